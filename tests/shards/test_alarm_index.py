"""The index of alarms: never later than what a shard's own file says, rebuilt when lost, and no race to lose."""

from __future__ import annotations

import logging
import os
import random
from pathlib import Path

import apsw
import pytest
import trio

from shards import alarms, files
from shards.alarm_index import AlarmIndex
from shards.limits import Limits
from shards.namespace import Namespace
from shards.shard import Shard
from shards.testing import FaultyDisk, InlineDisk, TrioClock, running

from .examples import Notes, Refused, SlowDisk

SEED = int(os.environ.get("EDGEQUEUES_SEED", "1"))
NAMES = ("a", "b", "c")


class Clock(Notes):
    """An alarm that now and then raises, sets itself anew, or does nothing."""

    def alarm(self) -> None:
        chance = self.random.random()
        if chance < 0.3:
            raise Refused
        if chance < 0.6:
            self.set_alarm(self.now_ms + self.random.randrange(20_000))

    def set_in(self, delay_ms: int | None) -> None:
        self.set_alarm(None if delay_ms is None else self.now_ms + delay_ms)

    def set_in_then_raise(self, delay_ms: int) -> None:
        self.set_in(delay_ms)
        raise Refused


def stored(folder: Path) -> dict[str, int]:
    """Alarms as the shards' files have them, committed."""
    found = {}
    for name, path in files.walk(folder):
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        if (
            db.execute("SELECT count(*) FROM sqlite_schema").get
            and (due_ms := alarms.stored(db).due_ms) is not None
        ):
            found[name] = due_ms
        db.close(True)
    return found


def indexed(folder: Path) -> dict[str, int]:
    """Alarms as the index on disk has them."""
    db = apsw.Connection(str(folder / "alarms.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)
    found = {str(name): int(str(due_ms)) for name, due_ms in db.execute("SELECT * FROM alarms").fetchall()}
    db.close(True)
    return found


def check_never_later(folder: Path) -> None:
    """The invariant."""
    known = indexed(folder)
    for name, due_ms in stored(folder).items():
        assert name in known, f"{name} is due {due_ms}, the index does not know"
        assert known[name] <= due_ms, f"{name} is due {due_ms}, indexed {known[name]}"


async def disturb(namespace: Namespace[Clock], rng: random.Random) -> None:
    """Do one random thing to a random shard."""
    ref = namespace.ref(rng.choice(NAMES))
    what = rng.randrange(8)
    if what < 4:
        await ref.call(Clock.set_in, rng.randrange(30_000))
    elif what == 4:
        await ref.call(Clock.set_in, None)
    elif what == 5:
        with pytest.raises(Refused):
            await ref.call(Clock.set_in_then_raise, rng.randrange(30_000))
    elif what == 6:
        await namespace.evict(ref.name)
    else:
        with trio.move_on_after(rng.random() * 0.01):
            await ref.call(Clock.set_in, rng.randrange(30_000))


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
async def test_the_index_on_disk_is_never_later_than_the_stored_alarm(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Random settings, clearings, failures, evictions, cancelled calls, clock steps and restarts."""
    caplog.set_level(logging.CRITICAL, "shards")
    rng, clock = random.Random(seed), TrioClock()
    for _ in range(4):
        async with running(
            Clock, tmp_path, clock=clock, disk=SlowDisk(rng.choice([0.0, 0.004])), seed=seed
        ) as namespace:

            async def watch() -> None:
                while True:
                    check_never_later(tmp_path)
                    await trio.sleep(0.001 + 0.05 * rng.random())

            async def work(namespace: Namespace[Clock]) -> None:
                for _ in range(12):
                    await disturb(namespace, rng)
                    await trio.sleep(rng.choice([0.0005, 0.01, 1.0, 4.0]) * rng.random())

            async with trio.open_nursery() as watching:
                watching.start_soon(watch)
                async with trio.open_nursery() as nursery:
                    for _ in range(3):
                        nursery.start_soon(work, namespace)
                watching.cancel_scope.cancel()
        check_never_later(tmp_path)
        clock.skew_ms += rng.choice([0, 0, 3_600_000, -3_600_000])


async def test_the_index_learns_the_truth_in_the_end(tmp_path: Path) -> None:
    async with running(Clock, tmp_path) as namespace:
        for delay_ms in (5_000, 900_000, 60_000, None, 700_000):
            await namespace.ref("a").call(Clock.set_in, delay_ms)
        await trio.sleep(3)
        assert indexed(tmp_path) == stored(tmp_path)


def lose(folder: Path, how: str) -> None:
    """Delete or spoil the index."""
    for path in folder.glob("alarms.sqlite*"):
        path.unlink()
    if how == "garbage":
        (folder / "alarms.sqlite").write_bytes(b"nonsense" * 1000)
    if how == "empty":
        (folder / "alarms.sqlite").touch()


@pytest.mark.parametrize("how", ["missing", "garbage", "empty"])
async def test_a_lost_index_is_rebuilt_from_the_shards(tmp_path: Path, how: str) -> None:
    clock = TrioClock()
    async with running(Clock, tmp_path, clock=clock) as namespace:
        for number in range(20):
            await namespace.ref(f"n{number}").call(Clock.set_in, 100_000 + number)
        await namespace.ref("none").call(Clock.add, "x")
    before = stored(tmp_path)
    lose(tmp_path, how)
    async with running(Clock, tmp_path, clock=clock, limits=Limits(open_max=4)) as namespace:
        await trio.sleep(10)
    assert stored(tmp_path) == before
    assert indexed(tmp_path) == before


async def test_an_index_that_cannot_be_written_refuses_alarms_and_says_so(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    async with running(Clock, tmp_path, disk=disk) as namespace:
        ref = namespace.ref("a")
        await ref.call(Clock.add, "x")
        disk.fail_sync(1, "alarms.sqlite-wal")
        with pytest.raises(Exception, match="shard a"):
            await ref.call(Clock.set_in, 5_000)
        check_never_later(tmp_path)
        assert any("alarm index" in reason for reason in namespace.unready())
    disk.close()


async def test_what_is_due_comes_out_in_order(tmp_path: Path) -> None:
    index = AlarmIndex(tmp_path / "alarms.sqlite", InlineDisk())
    assert not await index.load()
    rng = random.Random(SEED)
    due = {f"n{number}": rng.randrange(1000) for number in range(200)}
    for name, due_ms in due.items():
        index.note(name, rng.randrange(1000))
        index.note(name, due_ms)
    popped = []
    while (next_name := index.pop_due(499)) is not None:
        popped.append(next_name)
    assert [due[name] for name in popped] == sorted(at for at in due.values() if at < 500)
    rest = index.next_due_ms()
    assert rest == min(at for at in due.values() if at >= 500)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(index.run)
        index.stop()


class Inbox(Shard):
    """A writer that sets the alarm only if none is set, and a worker that takes a few rows and stops when idle."""

    migrations = ("CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT) STRICT;",)

    def put(self) -> None:
        self.db.execute("INSERT INTO item DEFAULT VALUES")
        if self.get_alarm() is None:
            self.set_alarm(self.now_ms)

    def alarm(self) -> None:
        self.db.execute("DELETE FROM item WHERE id IN (SELECT id FROM item ORDER BY id LIMIT 3)")
        if self.waiting():
            self.set_alarm(self.now_ms)

    def waiting(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM item").get)


@pytest.mark.parametrize("rounds", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
async def test_do_s08_no_row_waits_without_an_alarm(seed: int, rounds: int) -> None:
    """Writers, worker and evictions in random order; a row left over has an alarm to fetch it."""
    rng = random.Random(seed)
    async with running(Inbox, disk=SlowDisk(0.001), limits=Limits(mailbox_max=rounds)) as namespace:
        ref = namespace.ref("a")

        async def put() -> None:
            await trio.sleep(rng.random() * 2)
            for _ in range(rng.randrange(3)):
                await trio.lowlevel.checkpoint()
            await ref.call(Inbox.put)

        async with trio.open_nursery() as nursery:
            for _ in range(rounds):
                nursery.start_soon(put)
            for _ in range(20):
                await trio.sleep(rng.random() * 0.1)
                await namespace.evict("a")
        await trio.sleep(30)
        assert await ref.call(Inbox.waiting) == 0
