"""Power is cut at thousands of random moments of a running namespace: no answer given before is found untrue.

The same search is then run on the runtime with one guard taken out at a time, and must find losses: a search that
finds nothing wrong anywhere would prove nothing. EDGEQUEUES_CUTS raises the cuts a claim, EDGEQUEUES_SEED picks
others. A failure names its seeds.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
import trio
from trio._core import _run as scheduler

from shards import actor, files, repair
from shards.disk import Wal
from shards.errors import NeedsRepair, ShardBroken
from shards.gate import Gate
from shards.limits import Limits
from shards.namespace import Namespace, open_namespace
from shards.shard import Shard
from shards.testing import FaultyDisk, TrioClock

CUTS = int(os.environ.get("EDGEQUEUES_CUTS", "3000"))  # of each claim, in all its histories
SEED = int(os.environ.get("EDGEQUEUES_SEED", "1"))
HISTORIES = 6
LIMITS = Limits(
    wal_checkpoint_bytes=48_000, wal_bytes_max=150_000, idle_s=0.5, open_max=2, reserve_bytes=4096
)


class Rows(Shard):
    """Rows with numbers that the test hands out."""

    migrations = ("CREATE TABLE line (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",)

    def add(self, first: int, count: int) -> None:
        text = self.random.randbytes(self.random.randint(1, 900)).hex()
        self.db.executemany("INSERT INTO line VALUES (?, ?)", [(first + n, text) for n in range(count)])
        self.emit("added")

    def ids(self) -> list[int]:
        return [int(str(number)) for (number,) in self.db.execute("SELECT id FROM line").fetchall()]


class Promise(NamedTuple):
    """An answer that left: the shard said that these rows are there."""

    shard: str
    rows: tuple[int, ...]


async def caller(namespace: Namespace[Rows], disk: FaultyDisk, rng: random.Random, first: int) -> None:
    """Append batches of rows, sometimes read, and mark what each answer promised."""
    for batch in range(25):
        shard = rng.choice("abc")
        ref, count = namespace.ref(shard), rng.choice((1, 1, 2, 8))
        start = first + batch * 10
        try:
            if rng.random() < 0.2:
                disk.mark(Promise(shard, tuple(await ref.call(Rows.ids))))
            await ref.call(Rows.add, start, count)
            disk.mark(Promise(shard, tuple(range(start, start + count))))
        except (ShardBroken, NeedsRepair):
            pass  # unknown: nothing was promised
        await trio.sleep(rng.random() * 0.004)


async def follower(namespace: Namespace[Rows], disk: FaultyDisk) -> None:
    """Stand in line for what is added to a shard, read it, and mark what each answer promised."""
    with namespace.hub.watch_in_line("a", "added", "line") as watch:
        while True:
            await watch.wait()
            with suppress(ShardBroken, NeedsRepair):
                disk.mark(Promise("a", tuple(await namespace.ref("a").call(Rows.ids))))


async def disturb(namespace: Namespace[Rows], disk: FaultyDisk, rng: random.Random, faults: bool) -> None:
    """Close shards, let another program open and close their files, make the disk refuse."""
    for _ in range(12):
        await trio.sleep(rng.random() * 0.02)
        name = rng.choice("abc")
        match rng.randint(0, 3):
            case 0:
                await namespace.evict(name)
            case 1:
                visit(files.path_of(namespace.folder, name), disk)
            case 2 if faults:
                disk.fail_sync()
            case _:
                pass


def visit(path: Path, disk: FaultyDisk) -> None:
    """What `sqlite3 FILE` does: it opens, reads, and on closing empties and deletes a -wal nobody else uses."""
    if not path.exists() or repair.needed(path):
        return
    db = apsw.Connection(str(path), vfs=disk.vfs)
    try:
        db.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018 (reads)
    except apsw.BusyError:
        pass
    finally:
        db.close()


async def history(
    folder: Path, seed: int, make_disk: Callable[[Path], FaultyDisk], faults: bool
) -> FaultyDisk:
    """Run a namespace under load until its callers are done; the seed decides the order of tasks, too."""
    scheduler.__dict__["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    scheduler.__dict__["_r"].seed(seed)
    disk, rng = make_disk(folder), random.Random(seed)
    async with (
        open_namespace(
            Rows, folder, disk=disk, clock=TrioClock(), limits=LIMITS, randomness=random.Random(seed)
        ) as namespace,
        trio.open_nursery() as following,
    ):
        for _ in range(2):
            following.start_soon(follower, namespace, disk)
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(caller, namespace, disk, random.Random(seed + number), 1000 * (number + 1))
            nursery.start_soon(disturb, namespace, disk, rng, faults)
        following.cancel_scope.cancel()
    return disk


def lost(folder: Path, promises: list[object]) -> str:
    """Return what is wrong with the files of a cut; empty: every promise holds."""
    promised: dict[str, set[int]] = {}
    for promise in promises:
        assert isinstance(promise, Promise)
        promised.setdefault(promise.shard, set()).update(promise.rows)
    for shard, rows in promised.items():
        path = files.path_of(folder, shard)
        if not path.exists():
            if rows:
                return f"{shard}: no file"
            continue
        if repair.needed(path):
            try:
                repair.repair(path, FaultyDisk(folder))
            except Exception as error:
                return f"{shard}: {error}"
        problem = missing(path, rows)
        if problem:
            return f"{shard}: {problem}"
    return ""


def missing(path: Path, rows: set[int]) -> str:
    db = apsw.Connection(str(path))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # nothing to keep: the cut is thrown away
    try:
        check = db.pragma("integrity_check")
        there = {number for (number,) in db.execute("SELECT id FROM line").fetchall()} if rows else set()
    except apsw.Error as error:
        return str(error)
    finally:
        db.close(True)
    return check if check != "ok" else f"{sorted(rows - there)} are gone" if rows - there else ""


def moments(disk: FaultyDisk, count: int, rng: random.Random) -> list[int]:
    """Choose when to cut: half of the cuts anywhere, half soon after a failed sync if there was one."""
    start, end = disk.platter.start, disk.now
    failures = disk.platter.failed_syncs()
    anywhere = [rng.randint(start, end) for _ in range(count // 2 if failures else count)]
    soon = [min(rng.choice(failures) + rng.randint(1, 80), end) for _ in range(count - len(anywhere))]
    return sorted(anywhere + soon)


def empty(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()


async def search(
    tmp_path: Path, make_disk: Callable[[Path], FaultyDisk], *, faults: bool = False
) -> list[str]:
    """Cut histories at random moments; return what was found lost."""
    found = []
    for number in range(HISTORIES):
        seed = SEED * 1000 + number
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = await history(folder, seed, make_disk, faults)
        rng, cut = random.Random(seed), tmp_path / "cut"
        for at in moments(disk, CUTS // HISTORIES, rng):
            cut_seed = rng.getrandbits(32)
            empty(cut)
            disk.cut(at, random.Random(cut_seed), cut)
            problem = lost(cut, disk.marks_before(at))
            if problem:
                found.append(f"history {seed}, cut {at} with seed {cut_seed}: {problem}")
        disk.close()
    return found


def slow_flush(folder: Path) -> FaultyDisk:
    """Flushes take long enough for turns, commits and checkpoints to come between."""
    return FaultyDisk(folder, flush_takes=0.002)


# Small turns wait while a flush is under way, large ones run and are committed meanwhile.
TURNS = pytest.mark.parametrize("large_turn_s", [inf, 0.0], ids=["small turns", "large turns"])


@TURNS
async def test_sq_s05_what_was_answered_survives_every_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_turn_s: float
) -> None:
    monkeypatch.setattr(actor, "LARGE_TURN_S", large_turn_s)
    assert await search(tmp_path, slow_flush) == []


@TURNS
async def test_what_was_answered_survives_when_the_disk_also_refuses_flushes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_turn_s: float
) -> None:
    monkeypatch.setattr(actor, "LARGE_TURN_S", large_turn_s)
    assert await search(tmp_path, slow_flush, faults=True) == []


class NoFlush(FaultyDisk):
    """Guard removed: commits are never flushed."""

    def open_wal(self, database: Path) -> Wal:
        wal = super().open_wal(database)
        wal.sync = lambda: None  # type: ignore[method-assign]
        return wal


async def test_without_the_flush_the_search_finds_losses(tmp_path: Path) -> None:
    assert await search(tmp_path, lambda folder: NoFlush(folder, flush_takes=0.002))


class EagerGate(Gate):
    """Guard removed: answers leave as soon as the batch is committed."""

    def hold(self, turns, events) -> None:  # type: ignore[no-untyped-def]
        self._let_out(turns, events)


async def test_with_answers_that_leave_before_the_flush_ends_the_search_finds_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "Gate", EagerGate)
    assert await search(tmp_path, slow_flush)


class LateGate(Gate):
    """Guard removed: the end of a flush confirms what was committed while it ran."""

    def confirm(self, number: int) -> None:
        super().confirm(self.committed)


async def test_with_a_flush_that_confirms_later_commits_the_search_finds_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "Gate", LateGate)
    monkeypatch.setattr(actor, "LARGE_TURN_S", 0.0)
    assert await search(tmp_path, slow_flush)


class StaleDescriptor(FaultyDisk):
    """Guard removed: the first descriptor of a -wal is kept for good, and never compared with the file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, flush_takes=0.002, checked=False)
        self._wals: dict[Path, Wal] = {}

    def open_wal(self, database: Path) -> Wal:
        return self._wals.setdefault(database, super().open_wal(database))


async def test_with_a_stale_descriptor_the_search_finds_losses(tmp_path: Path) -> None:
    assert await search(tmp_path, StaleDescriptor)


async def test_with_a_plain_reopen_after_a_failed_flush_the_search_finds_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair, "mark", lambda *_: None)  # guard removed: nothing tells that a flush failed
    assert await search(tmp_path, slow_flush, faults=True)
