"""Power is cut at random moments while queues are worked: the files are sound, and what was answered is so.

The same search without the flush must find losses. EDGEQUEUES_CUTS raises the cuts, EDGEQUEUES_SEED picks others.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw
import trio
from trio._core import _run as scheduler

from edgequeues.core.backoff import Backoff
from edgequeues.models import ConsumerConfig, Message, NewEntry, Pull, QueueConfig, Retry
from edgequeues.space import check
from edgequeues.space.schema import MIGRATIONS
from edgequeues.space.shard import SpaceShard
from shards import files
from shards.check import check as check_folder
from shards.disk import Wal
from shards.limits import Limits
from shards.namespace import Namespace, Ref
from shards.testing import Cut, FaultyDisk, TrioClock, running

CUTS = int(os.environ.get("EDGEQUEUES_CUTS", "180"))
SEED = int(os.environ.get("EDGEQUEUES_SEED", "1"))
HISTORIES = 3
NAME, QUEUES = "demo", {"loose": "unordered", "lined": "per_key"}
LIMITS = Limits(wal_checkpoint_bytes=48_000, wal_bytes_max=150_000, idle_s=0.5, reserve_bytes=4096)
STORED = "SELECT object_id FROM queue_entries JOIN queues USING (queue_id) WHERE dlq_of IS NULL"
DEAD = "SELECT object_id FROM dead_letters"
ATTEMPTS = "SELECT object_id, attempts FROM deliveries JOIN queue_entries ON id = entry_id"


class Mark(NamedTuple):
    """What was known of a message: `pushed`, `leased` so many times, its `ending` asked for, `acked`, `dead`."""

    what: str
    message: str
    attempts: int = 0


class Worker:
    """Pushes to a queue, and works it."""

    def __init__(self, space: Ref[SpaceShard], disk: FaultyDisk, name: str, chance: random.Random) -> None:
        self.space = space
        self.disk = disk
        self.name = name
        self.queue = name.partition("-")[0]
        self.chance = chance

    async def push(self) -> None:
        for number in range(20):
            named = [f"{self.name}-{number}-{part}" for part in range(self.chance.choice([1, 1, 3]))]
            entries = [
                NewEntry('"' + "x" * self.chance.randrange(600) + '"', one, key=one[-1]) for one in named
            ]
            await self.space.call(SpaceShard.push, self.queue, entries)
            for one in named:
                self.disk.mark(Mark("pushed", one))
            await trio.sleep(self.chance.random() * 0.006)

    async def work(self) -> None:
        for _ in range(30):
            lease_ms = self.chance.choice([2, 5, 1_000])
            given = await self.space.call(SpaceShard.pull, self.queue, None, Pull(3, lease_ms, self.name))
            for one in given.messages:
                self.disk.mark(Mark("leased", one.entry.id, one.attempts))
            for one in given.messages:
                await self.answer(one)
            await trio.sleep(self.chance.random() * 0.006)

    async def answer(self, message: Message) -> None:
        """Ack it, fail it for good, fail it, or forget about it."""
        dice, name = self.chance.random(), message.entry.id
        if dice < 0.5:
            self.disk.mark(Mark("ending", name))
            [verdict] = await self.space.call(SpaceShard.ack, self.queue, [message.lease])
            if verdict == "done":
                self.disk.mark(Mark("acked", name))
        elif dice < 0.8:
            permanent = dice < 0.6
            if permanent:
                self.disk.mark(Mark("ending", name))
            retry = Retry(message.lease, error="no", permanent=permanent)
            [verdict] = await self.space.call(SpaceShard.retry, self.queue, [retry])
            if verdict == "done" and permanent:
                self.disk.mark(Mark("dead", name))


async def history(folder: Path, seed: int, disk: FaultyDisk) -> int:
    """Work the queues of a space until all callers are done; return when they began, in steps of the disk.

    The seed decides the order of tasks, too.
    """
    scheduler.__dict__["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    scheduler.__dict__["_r"].seed(seed)
    async with (
        running(SpaceShard, folder, disk=disk, clock=TrioClock(), limits=LIMITS, seed=seed) as namespace,
        trio.open_nursery() as nursery,
    ):
        space = await make(namespace)
        began = disk.now
        for number, queue in enumerate([*QUEUES, *QUEUES]):
            worker = Worker(space, disk, f"{queue}-{number}", random.Random(seed + number))
            nursery.start_soon(worker.push)
            nursery.start_soon(worker.work)
        for _ in range(3):
            await trio.sleep(0.05)
            await namespace.evict(NAME)
    return began


async def make(namespace: Namespace[SpaceShard]) -> Ref[SpaceShard]:
    space = namespace.ref(NAME)
    for queue, ordering in QUEUES.items():
        await space.call(
            SpaceShard.configure, queue, QueueConfig(kind="work", mutable=False, on_ack="delete")
        )
        await space.call(SpaceShard.dismiss, queue, "default")
        rules = ConsumerConfig(ordering=ordering, attempts_max=3, backoff=Backoff(initial_ms=3))  # type: ignore[arg-type]
        await space.call(SpaceShard.consume, queue, "default", rules)
    return space


def wrong(cut: Cut) -> list[str]:
    """What a cut left that must not be so."""
    found = [
        problem for one in check_folder(cut.folder, MIGRATIONS, check.problems) for problem in one.problems
    ]
    path = files.path_of(cut.folder, NAME)
    marks = [mark for mark in cut.marks if isinstance(mark, Mark)]
    if not path.exists() or not marks:
        return found + [f"{mark} is gone" for mark in marks]
    db = apsw.Connection(str(path))
    try:
        stored = {name for (name,) in db.execute(STORED).fetchall()}
        dead = {name for (name,) in db.execute(DEAD).fetchall()}
        attempts = {str(name): int(str(count)) for name, count in db.execute(ATTEMPTS).fetchall()}
    finally:
        db.close(True)
    known = {
        what: {mark.message for mark in marks if mark.what == what}
        for what in ("pushed", "ending", "acked", "dead")
    }
    found += [f"{name} is lost" for name in known["pushed"] - stored - dead - known["ending"]]
    found += [f"{name} comes back" for name in known["acked"] & (stored | dead)]
    found += [f"{name} rises from the dead" for name in known["dead"] - dead]
    found += [
        f"lease {mark.attempts} of {mark.message} was never given"
        for mark in marks
        if mark.what == "leased" and attempts.get(mark.message, mark.attempts) < mark.attempts
    ]
    return found


async def search(tmp_path: Path, make_disk: Callable[[Path], FaultyDisk]) -> list[str]:
    """Cut histories at random moments; return what was found wrong."""
    found = []
    for number in range(HISTORIES):
        seed, folder = SEED * 1000 + number, tmp_path / str(number)
        folder.mkdir()
        disk = make_disk(folder)
        began = await history(folder, seed, disk)
        for cut in disk.cuts(CUTS // HISTORIES, random.Random(seed), tmp_path / "cut", since=began):
            found += [
                f"history {seed}, cut {cut.at} with seed {cut.seed}: {problem}" for problem in wrong(cut)
            ]
        disk.close()
    return found


async def test_what_was_answered_of_work_survives_every_power_cut(tmp_path: Path) -> None:
    assert await search(tmp_path, lambda folder: FaultyDisk(folder, flush_takes=0.002)) == []


class NoFlush(FaultyDisk):
    """Guard removed: commits are never flushed."""

    def open_wal(self, database: Path) -> Wal:
        wal = super().open_wal(database)
        wal.sync = lambda: None  # type: ignore[method-assign]
        return wal


async def test_without_the_flush_the_search_finds_lost_work(tmp_path: Path) -> None:
    found = "\n".join(await search(tmp_path, lambda folder: NoFlush(folder, flush_takes=0.002)))
    assert all(said in found for said in ("is lost", "comes back", "was never given"))
