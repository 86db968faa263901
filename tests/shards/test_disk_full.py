"""On a full disk what grows is refused, deletes work, and with room all works again, without a restart."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from shards import repair
from shards.errors import DiskFull
from shards.limits import Limits
from shards.namespace import Namespace
from shards.testing import FaultyDisk, TrioClock, running

from .examples import Notes, path_of, wal_bytes

S = TypeVar("S", bound=Notes)

KIB = 1024
LIMITS = Limits(reserve_bytes=1024 * KIB, wal_checkpoint_bytes=512 * KIB, wal_bytes_max=2048 * KIB)


@pytest.fixture
def disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[FaultyDisk]:
    caplog.set_level(logging.CRITICAL, "shards")
    disk = FaultyDisk(tmp_path)
    yield disk
    disk.close()


async def pad_until_full(namespace: Namespace[S], size: int, name: str = "a") -> list[int]:
    """Add rows until one is refused; return the ids of those confirmed."""
    confirmed: list[int] = []
    for _ in range(10_000):
        try:
            confirmed.append(await namespace.ref(name).call(Notes.pad, size))
        except DiskFull:
            return confirmed
    raise AssertionError("the disk did not get full")


@pytest.mark.parametrize("size", [1_000, 5_000, 40_000, 300_000])
@pytest.mark.parametrize("room", [0, 700 * KIB, 3_000 * KIB])
async def test_sq_s03_growing_verbs_are_refused_deletes_work_and_room_heals_it(
    tmp_path: Path, disk: FaultyDisk, size: int, room: int
) -> None:
    async with running(Notes, tmp_path, disk=disk, limits=LIMITS) as namespace:
        ref = namespace.ref("a")
        kept = [await ref.call(Notes.pad, size) for _ in range(20)]
        disk.fill(room)
        kept += await pad_until_full(namespace, size)
        assert await ref.call(Notes.pads) == kept
        for _ in range(3):
            with pytest.raises(DiskFull):
                await ref.call(Notes.pad, size)
        gone, kept = kept[:10], kept[10:]
        for number in gone:
            await ref.call(Notes.unpad, number)
        assert await ref.call(Notes.pads) == kept
        disk.free()
        await trio.sleep(1.1)  # room is looked for once a second
        kept.append(await ref.call(Notes.pad, size))
        assert await ref.call(Notes.pads) == kept
        assert disk.free_bytes is None
        path = path_of(namespace, "a")
        assert (tmp_path / "reserve").stat().st_size == LIMITS.reserve_bytes
    assert repair.integrity(path, disk.vfs) == []


async def test_sq_s03_emptying_a_shard_makes_the_room_that_appends_need(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    """Nobody frees anything outside: the deleted rows' pages are used again once there is a reserve."""
    async with running(Notes, tmp_path, disk=disk, limits=LIMITS) as namespace:
        ref = namespace.ref("a")
        disk.fill(4_000 * KIB)
        confirmed = await pad_until_full(namespace, 20_000)
        for number in confirmed:
            await ref.call(Notes.unpad, number)
        assert await ref.call(Notes.pads) == []


async def test_sq_s03_what_does_not_grow_and_other_shards_keep_working(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    async with running(Notes, tmp_path, disk=disk, limits=LIMITS) as namespace:
        for name in "ab":
            await namespace.ref(name).call(Notes.add, "x")
        disk.fill(300 * KIB)
        await pad_until_full(namespace, 3_000)
        await namespace.ref("b").call(Notes.remove, "x")
        assert await namespace.ref("b").call(Notes.texts) == []
        with pytest.raises(DiskFull):
            await namespace.ref("b").call(Notes.pad, 10)
        assert namespace.reserve.full


async def test_sq_s03_nothing_of_a_refused_batch_is_half_written(tmp_path: Path, disk: FaultyDisk) -> None:
    """64 callers at once until it is full; what was confirmed is there, what was refused is not."""
    async with running(Notes, tmp_path, disk=disk, limits=LIMITS) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.texts)
        disk.fill(900 * KIB)
        disk.flush_takes = 0.001
        confirmed, refused = set[int](), 0

        async def caller() -> None:
            nonlocal refused
            for _ in range(10):
                try:
                    confirmed.add(await ref.call(Notes.pad, 5_000))
                except DiskFull:
                    refused += 1

        async with trio.open_nursery() as nursery:
            for _ in range(64):
                nursery.start_soon(caller)
        assert refused > 0
        assert len(confirmed) + refused == 640
        assert set(await ref.call(Notes.pads)) == confirmed
        path = path_of(namespace, "a")
    assert repair.integrity(path, disk.vfs) == []


async def test_sq_s03_a_disk_that_fills_up_before_a_start_still_serves_deletes(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    clock = TrioClock()
    async with running(Notes, tmp_path, disk=disk, limits=LIMITS, clock=clock) as namespace:
        kept = [await namespace.ref("a").call(Notes.pad, 5_000) for _ in range(50)]
    disk.fill(0)
    async with running(Notes, tmp_path, disk=disk, limits=LIMITS, clock=clock) as namespace:
        ref = namespace.ref("a")
        assert await ref.call(Notes.pads) == kept
        await pad_until_full(namespace, 5_000)
        for number in kept[:10]:
            await ref.call(Notes.unpad, number)
        assert await ref.call(Notes.pads) == kept[10:]
        disk.free()
        await trio.sleep(1.1)
        await ref.call(Notes.pad, 5_000)


async def test_sq_s03_a_shard_that_cannot_be_made_is_refused_and_made_later(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    async with running(Notes, tmp_path, disk=disk, limits=LIMITS) as namespace:
        await namespace.ref("a").call(Notes.texts)
        disk.fill(0)
        with pytest.raises(DiskFull):
            await namespace.ref("new").call(Notes.add, "x")
        await namespace.ref("new").call(Notes.add, "y")  # in what the reserve gave back
        assert await namespace.ref("new").call(Notes.texts) == ["y"]
        disk.free()
        await trio.sleep(1.1)
        await namespace.ref("new").call(Notes.pad, 10)


async def test_sq_s03_a_checkpoint_that_finds_no_room_loses_nothing(tmp_path: Path, disk: FaultyDisk) -> None:
    """The -wal grows into its last room; the copy into the database does not fit until the reserve goes."""
    async with running(Notes, tmp_path, disk=disk, limits=LIMITS) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.texts)
        disk.fill(600 * KIB)
        confirmed = await pad_until_full(namespace, 5_000)
        assert wal_bytes(path_of(namespace, "a")) >= LIMITS.wal_checkpoint_bytes
        await trio.sleep(1)
        await ref.call(Notes.unpad, confirmed.pop())
        assert await ref.call(Notes.pads) == confirmed
        path = path_of(namespace, "a")
    assert repair.integrity(path, disk.vfs) == []


async def test_sq_s03_alarms_run_on_a_full_disk(tmp_path: Path, disk: FaultyDisk) -> None:
    class Trimmer(Notes):
        def alarm(self) -> None:
            self.db.execute("DELETE FROM pad")

    async with running(Trimmer, tmp_path, disk=disk, limits=LIMITS) as namespace:
        ref = namespace.ref("a")
        await ref.call(lambda shard: shard.set_alarm(shard.now_ms + 60_000))
        disk.fill(500 * KIB)
        await pad_until_full(namespace, 5_000)
        await trio.sleep(90)
        assert await ref.call(Trimmer.pads) == []


@pytest.mark.parametrize("seed", range(6))
async def test_sq_s03_a_disk_that_fills_and_empties_at_random_loses_nothing(
    tmp_path: Path, disk: FaultyDisk, seed: int
) -> None:
    rng, kept = random.Random(seed), set[int]()
    async with running(Notes, tmp_path, disk=disk, limits=LIMITS, seed=seed) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.texts)
        for _ in range(12):
            disk.fill(rng.randrange(2_000 * KIB))
            for _ in range(rng.randrange(120)):
                try:
                    if kept and rng.random() < 0.3:
                        number = rng.choice(sorted(kept))
                        await ref.call(Notes.unpad, number)
                        kept.discard(number)
                    else:
                        kept.add(await ref.call(Notes.pad, rng.choice([100, 9_000, 60_000])))
                except DiskFull:
                    await trio.sleep(rng.random())
            assert set(await ref.call(Notes.pads)) == kept
            disk.free()
            await trio.sleep(1.1)
            kept.add(await ref.call(Notes.pad, 100))
            if rng.random() < 0.3:
                await namespace.evict("a")
        path = path_of(namespace, "a")
    assert repair.integrity(path, disk.vfs) == []
