"""The simulated disk finds what it is for: raw SQLite on it, in each way the runtime could have been built wrong.

EDGEQUEUES_CUTS raises the power cuts a claim, EDGEQUEUES_SEED picks others. A failure names seed and cut.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
import trio

from shards.testing import FaultyDisk

from .histories import BATCHES, SEED, Histories, Writer, kinds, report


@pytest.fixture
def histories(tmp_path: Path) -> Histories:
    return Histories(tmp_path)


# -- when to confirm --------------------------------------------------------------------------------------


def write_all(writer: Writer, *, sync: bool) -> None:
    for _ in range(BATCHES):
        writer.confirm(sync=sync)


def test_what_is_confirmed_after_its_sync_survives_every_cut(histories: Histories) -> None:
    problems = histories.run(lambda writer: write_all(writer, sync=True))
    assert not problems, report(problems)


def test_with_synchronous_full_no_sync_of_ours_is_needed(histories: Histories) -> None:
    """The control: the simulated disk keeps what SQLite itself makes durable."""
    problems = histories.run(lambda writer: write_all(writer, sync=False), synchronous="full")
    assert not problems, report(problems)


@pytest.mark.parametrize(
    ("journal", "synchronous", "outcome"),
    [("delete", "extra", set()), ("delete", "full", {"lost"}), ("truncate", "full", set())],
)
def test_a_rollback_journal_keeps_what_sqlite_promises(
    histories: Histories, *, journal: str, synchronous: str, outcome: set[str]
) -> None:
    """Deleting the journal is the commit: without a sync of the folder (EXTRA has it) it may come back."""
    problems = histories.run(
        lambda writer: write_all(writer, sync=False), journal=journal, synchronous=synchronous
    )
    assert kinds(problems) == outcome, report(problems)


def test_without_the_sync_confirmed_rows_are_lost(histories: Histories) -> None:
    problems = histories.run(lambda writer: write_all(writer, sync=False))
    assert kinds(problems) == {"lost"}, report(problems)


def test_with_synchronous_off_a_checkpoint_can_ruin_the_file(histories: Histories) -> None:
    problems = histories.run(lambda writer: write_all(writer, sync=True), synchronous="off")
    assert {"corrupt", "torn"} & kinds(problems), report(problems)


async def flush_in_flight(writer: Writer, *, begun: bool, early: bool) -> None:
    """Commit every 3 ms while syncs of 10 ms follow each other.

    begun: confirm what was committed before the sync began, else all there is when it ends.
    early: confirm before the sync has ended.
    """

    def sync() -> None:
        before.append(writer.batches)
        writer.wal.sync()
        if early:
            confirm()

    def confirm() -> None:
        for batch in range(confirmed[-1] + 1, (before[-1] if begun else writer.batches) + 1):
            writer.disk.mark(batch)
            confirmed.append(batch)

    async def commit() -> None:
        for _ in range(BATCHES):
            writer.commit()
            writer.maybe_checkpoint()
            await trio.sleep(0.003)

    before, confirmed = [0], [0]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(commit)
        while confirmed[-1] < BATCHES:
            await writer.disk.run(sync)
            if not early:
                confirm()


@pytest.mark.parametrize(
    ("begun", "early", "outcome"),
    [(True, False, set()), (False, False, {"lost"}), (True, True, {"lost"})],
    ids=["what was there when it began, at its end", "what is there at its end", "before it ended"],
)
async def test_a_sync_in_flight_confirms_only(
    histories: Histories, *, begun: bool, early: bool, outcome: set[str]
) -> None:
    """Of the three, only the first is right: it does not confirm commits the sync may not have seen."""
    problems = []
    for folder, seed, disk in histories.disks():
        writer = Writer(folder, seed, disk)
        disk.flush_takes = 0.01
        await flush_in_flight(writer, begun=begun, early=early)
        writer.close()
        problems += histories.bad(disk, seed)
    assert kinds(problems) == outcome, report(problems)


# -- the descriptor ---------------------------------------------------------------------------------------


def reopen_on_a_new_wal(writer: Writer) -> None:
    """Closing the last connection deletes the -wal; our descriptor stays with the deleted file."""
    for _ in range(BATCHES // 2):
        writer.confirm()
    writer.close(checkpoint=True)
    writer.open()


def test_syncing_a_deleted_wal_loses_confirmed_rows(histories: Histories) -> None:
    def write(writer: Writer) -> None:
        reopen_on_a_new_wal(writer)
        write_all(writer, sync=True)

    problems = histories.run(write, checked=False)
    assert kinds(problems) == {"lost"}, report(problems)


def test_a_deleted_wal_is_noticed(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    writer = Writer(tmp_path, SEED, disk)
    reopen_on_a_new_wal(writer)
    writer.commit()
    with pytest.raises(OSError, match="deleted or replaced"):
        writer.wal.sync()


# -- after SIGKILL ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("careful", [False, True], ids=["at once loses", "after a checkpoint does not"])
def test_answering_after_a_kill(histories: Histories, *, careful: bool) -> None:
    """The page cache shows commits that no sync covered; whoever answers from it has confirmed them."""

    def write(writer: Writer) -> None:
        for _ in range(BATCHES // 4):
            writer.confirm()
            unsynced = writer.commit()
            with writer.disk.killed():
                writer.close(checkpoint=True)
            writer.open()
            assert writer.main.execute("SELECT batch FROM newest").get == unsynced
            if careful:
                writer.main.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            writer.disk.mark(unsynced)
            writer.wal = writer.disk.open_wal(writer.path)

    problems = histories.run(write)
    assert bool(problems) is not careful, report(problems)


# -- after a failed sync ----------------------------------------------------------------------------------


def carry_on(writer: Writer) -> None:
    """Sync again: the kernel says ok, over a hole."""


def reopen(writer: Writer) -> None:
    """Open the file anew: the page cache still shows every row."""
    writer.close()
    writer.open()


def repair(writer: Writer) -> None:
    """Write everything anew, so that a new sync covers it."""
    writer.close()
    for path in (Path(f"{writer.path}-wal"), writer.path):
        fresh = Path(f"{path}-fresh")
        writer.disk.copy(path, fresh)
        writer.disk.replace(fresh, path)
        writer.disk.sync_folder(path.parent)
    writer.open()
    assert writer.main.pragma("integrity_check") == "ok"
    writer.wal = writer.disk.open_wal(writer.path)


@pytest.mark.parametrize(
    ("recover", "safe"),
    [(carry_on, False), (reopen, False), (repair, True)],
    ids=["carrying on loses", "reopening loses", "rewriting does not"],
)
def test_after_a_failed_sync(histories: Histories, recover: Callable[[Writer], None], *, safe: bool) -> None:
    """Everything the page cache shows after `recover` is confirmed, as a reader would take it to be."""

    def write(writer: Writer) -> None:
        for _ in range(writer.rng.randint(1, BATCHES)):
            writer.confirm()
        failed = writer.commit()
        writer.disk.fail_sync()
        with pytest.raises(OSError, match="Input/output error"):
            writer.wal.sync()
        recover(writer)
        writer.wal.sync()
        writer.disk.mark(failed)
        write_all(writer, sync=True)

    problems = histories.run(write)
    assert bool(problems) is not safe, report(problems)


# -- room -------------------------------------------------------------------------------------------------


def commit_on(writer: Writer) -> None:
    while True:
        writer.commit()


def test_a_full_disk_refuses_growth_and_takes_it_back_when_there_is_room(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    writer = Writer(tmp_path, SEED, disk)
    for _ in range(10):
        writer.confirm()
    disk.fill(10_000)
    with pytest.raises(apsw.FullError):
        commit_on(writer)
    known = writer.main.execute("SELECT batch FROM newest").get
    assert known == writer.batches  # the refused one was undone
    with pytest.raises(apsw.FullError):
        writer.main.execute("DELETE FROM part").fetchall()
    disk.free(200_000)
    assert writer.commit() == known + 1
    writer.second.execute("SELECT count(*) FROM part").fetchall()
    room = disk.free_bytes
    writer.second.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert room is not None
    assert disk.free_bytes is not None
    assert disk.free_bytes > room  # the -wal gave back more than the database took
    assert writer.main.pragma("integrity_check") == "ok"


def test_overwriting_needs_no_room(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    writer = Writer(tmp_path, SEED, disk)
    for _ in range(10):
        writer.confirm()
    writer.second.execute("SELECT count(*) FROM part").fetchall()
    writer.second.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    disk.fill(0)
    writer.main.execute("UPDATE newest SET batch = batch").fetchall()  # over the old frames of the -wal
