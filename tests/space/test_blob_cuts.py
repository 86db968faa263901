"""Power is cut at many moments of a space with objects: what was answered holds, and nothing is lost sight of."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
import trio

from edgequeues.blobs.about import About
from edgequeues.blobs.folder import STAGED, open_folder
from edgequeues.core.errors import BlobNotFound, BlobStoreDown
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.workers.blobs import Blobs, Rules, open_sweeper
from shards.clock import Clock
from shards.disk import Disk
from shards.testing import FaultyDisk, InlineDisk, TrioClock, running

SPACE, BUCKET = "demo", "of-cuts"
RULES = Rules(["text/plain"], 1_000_000, 86_400_000, 3_600)
CUTS = 60


class Said(NamedTuple):
    """What was answered about an object; of what is under way, that it may be either."""

    key: str
    state: Literal["there", "gone", "either"]


@asynccontextmanager
async def opened(folder: Path, disk: Disk, clock: Clock) -> AsyncIterator[Blobs]:
    """The object store of a data folder, with its sweeper."""
    async with running(SpaceShard, folder, disk=disk, clock=clock) as namespace:
        blobs = Blobs(
            Router(namespace), partial(open_folder, folder / "blobs", disk), disk, RULES, "http://here"
        )
        async with open_sweeper(blobs):
            yield blobs


def data(key: str) -> bytes:
    return random.Random(key).randbytes(5_000)


def event(key: str) -> str:
    return f"event-{key[0]}"


async def put(blobs: Blobs, key: str) -> None:
    await blobs.put(SPACE, BUCKET, key, data(key), About(event(key), "email", "text/plain"))


async def live(folder: Path, disk: FaultyDisk, clock: Clock) -> None:
    """Store objects of two events, erase one of them, and store some of it again."""
    async with opened(folder, disk, clock) as blobs:
        for key in ("a1", "b1", "a2", "b2", "a3"):
            disk.mark(Said(key, "either"))
            await put(blobs, key)
            disk.mark(Said(key, "there"))
        for key in ("a1", "a2", "a3"):
            disk.mark(Said(key, "either"))
        await blobs.erase_event(SPACE, event("a"))
        for key in ("a1", "a2", "a3"):
            disk.mark(Said(key, "gone"))
        disk.mark(Said("a1", "either"))
        await put(blobs, "a1")
        disk.mark(Said("a1", "there"))


async def state(blobs: Blobs, key: str) -> str:
    """Is an object there, with the bytes it had?"""
    try:
        blob = await blobs.get(SPACE, BUCKET, key)
    except BlobNotFound:
        return "gone"
    assert b"".join([piece async for piece in blobs.read(SPACE, blob, 0, blob.size)]) == data(key)
    return "there"


async def test_what_was_answered_about_objects_survives_a_power_cut(tmp_path: Path) -> None:
    folder, clock, seen = tmp_path / "data", TrioClock(), set()
    folder.mkdir()
    disk = FaultyDisk(folder)
    await live(folder, disk, clock)
    for cut in disk.cuts(CUTS, random.Random(1), tmp_path / "cut"):
        said = {mark.key: mark.state for mark in disk.marks_before(cut.at) if isinstance(mark, Said)}
        async with opened(cut.folder, InlineDisk(), clock) as blobs:
            for key, wanted in said.items():
                found = await state(blobs, key)
                assert wanted in ("either", found), f"{key} is {found} at {cut.at} with seed {cut.seed}"
                seen.add((wanted, found))
            await trio.sleep(30)  # what is still to be deleted is
            kept = {key for key in said if await state(blobs, key) == "there"}
            files = {file.name for file in (cut.folder / "blobs").rglob("*@")}
            orphans = {name.removesuffix("@") for name in files} - kept
            assert kept <= {name.removesuffix("@") for name in files}
            assert all(said[key] == "either" for key in orphans)  # stored, and not yet answered
            for key in orphans:
                await put(blobs, key)
                assert await state(blobs, key) == "there"
            assert not list((cut.folder / "blobs" / STAGED).glob("*"))
    disk.close()
    assert seen >= {("either", "there"), ("either", "gone"), ("there", "there"), ("gone", "gone")}


async def test_bytes_are_on_disk_before_their_row_is_written(tmp_path: Path) -> None:
    """With the disk refusing to sync an object's file, there is no row of it."""
    folder, clock = tmp_path / "data", TrioClock()
    folder.mkdir()
    disk = FaultyDisk(folder)
    async with opened(folder, disk, clock) as blobs:
        await put(blobs, "b1")
        disk.fail_sync(pattern="[0-9]")
        with pytest.raises(BlobStoreDown):
            await put(blobs, "a1")
        assert await state(blobs, "a1") == "gone"
        await put(blobs, "a1")
        assert await state(blobs, "a1") == "there"
    disk.close()
