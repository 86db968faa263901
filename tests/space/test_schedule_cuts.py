"""Power is cut at random moments while schedules are due: each time has its message once, whatever dies."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import apsw
import msgspec
import trio

from edgequeues.space import check
from edgequeues.space.schema import MIGRATIONS
from edgequeues.space.shard import SpaceShard
from edgequeues.spec import ir
from shards import files
from shards.check import check as check_folder
from shards.limits import Limits
from shards.testing import FaultyDisk, InlineDisk, TrioClock, running

CUTS = int(os.environ.get("EDGEQUEUES_CUTS", "60"))
SEED = int(os.environ.get("EDGEQUEUES_SEED", "1"))
NAME, MINUTE_MS = "demo", 60_000
LIMITS = Limits(wal_checkpoint_bytes=48_000, wal_bytes_max=150_000, idle_s=10, reserve_bytes=4096)
MESSAGE = {"at": {"var": {"now": True}}}
SPEC = {
    "version": 0,
    "app": "shop",
    "queues": {"jobs": {}},
    "schedules": {
        "tick": {"cron": "* * * * *", "queue": "jobs", "missed": "all", "message": MESSAGE},
    },
}


def state(folder: Path) -> tuple[list[int], int]:
    """The times for which there are messages, in their order, and the next one; unix ms."""
    path = files.path_of(folder, NAME)
    db = apsw.Connection(str(path))
    try:
        data = db.execute("SELECT data FROM queue_entries ORDER BY id").fetchall()
        next_ms: int = db.execute("SELECT next_ts FROM schedules").get
        return [json.loads(str(one))["at"] * 1_000 for (one,) in data], next_ms
    finally:
        db.close(True)


async def test_a_time_has_its_message_once_through_every_power_cut(tmp_path: Path) -> None:
    folder = tmp_path / "whole"
    folder.mkdir()
    disk = FaultyDisk(folder, flush_takes=0.002)
    clock = TrioClock()
    async with running(SpaceShard, folder, disk=disk, clock=clock, limits=LIMITS, seed=SEED) as namespace:
        space = namespace.ref(NAME)
        await space.call(SpaceShard.apply, ir.decode(msgspec.json.encode(SPEC)))
        began = disk.now
        await trio.sleep(20 * 60)
    seen = set()
    for number, cut in enumerate(disk.cuts(CUTS, random.Random(SEED), tmp_path / "cut", since=began)):
        assert [one.problems for one in check_folder(cut.folder, MIGRATIONS, check.problems)] == [[]]
        times, next_ms = state(cut.folder)
        assert times == sorted(set(times))
        assert not times or next_ms == times[-1] + MINUTE_MS
        seen.add(len(times))
        if number % 6 == 0:
            later = next_ms + 5 * MINUTE_MS
            async with running(
                SpaceShard, cut.folder, disk=InlineDisk(), clock=TrioClock(later), limits=LIMITS
            ):
                await trio.sleep(1)
            after, _ = state(cut.folder)
            assert after == [*times, *range(next_ms, later + 1, MINUTE_MS)]
    disk.close()
    assert len(seen) > 10  # cuts met many of the twenty minutes
