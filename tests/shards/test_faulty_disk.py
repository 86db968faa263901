"""The simulated disk finds what it is for: raw SQLite on it, in each way the runtime could have been built wrong.

EDGEQUEUES_CUTS raises the power cuts a claim, EDGEQUEUES_SEED picks others. A failure names seed and cut.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
import trio

from shards.testing import Cut, FaultyDisk

CUTS = int(os.environ.get("EDGEQUEUES_CUTS", "600"))  # of each claim, in all its histories
SEED = int(os.environ.get("EDGEQUEUES_SEED", "1"))
HISTORIES = 4
BATCHES = 40
ENOUGH = 3  # losses of a wrong variant that prove the point

SCHEMA = """
CREATE TABLE part (batch INTEGER, number INTEGER, of INTEGER, filler BLOB, PRIMARY KEY (batch, number));
CREATE TABLE newest (batch INTEGER);
INSERT INTO newest VALUES (0);
"""
CHECKPOINTS = (
    apsw.SQLITE_CHECKPOINT_PASSIVE,
    apsw.SQLITE_CHECKPOINT_RESTART,
    apsw.SQLITE_CHECKPOINT_TRUNCATE,
)


class Writer:
    """One shard's file without the runtime: a main connection, a second one for checkpoints, our own sync."""

    def __init__(self, folder: Path, seed: int, disk: FaultyDisk, *, synchronous: str = "normal") -> None:
        self.disk = disk
        self.path = folder / "a.db"
        self.rng = random.Random(seed)
        self.synchronous = synchronous
        self.batches = 0
        self.open()
        self.main.execute(SCHEMA).fetchall()
        self.wal = disk.open_wal(self.path)
        self.wal.sync()
        disk.sync_folder(folder)

    def open(self) -> None:
        self.main, self.second = self.connect(), self.connect()

    def connect(self) -> apsw.Connection:
        db = apsw.Connection(str(self.path), vfs=self.disk.vfs)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        assert db.pragma("journal_mode", "wal") == "wal"
        db.pragma("synchronous", self.synchronous)
        db.pragma("wal_autocheckpoint", 0)
        return db

    def close(self, *, checkpoint: bool = False) -> None:
        for db in (self.second, self.main):
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(not checkpoint))
            db.close()

    def commit(self) -> int:
        """Commit one batch of rows on several pages; return its number."""
        parts = self.rng.randint(1, 6)
        with self.main:
            for number in range(parts):
                filler = self.rng.randbytes(self.rng.randint(0, 1_500))
                row = (self.batches + 1, number, parts, filler)
                self.main.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
            self.main.execute("UPDATE newest SET batch = ?", (self.batches + 1,))
        self.batches += 1
        return self.batches

    def maybe_checkpoint(self, odds: float = 0.1) -> None:
        if self.rng.random() < odds:
            self.second.execute("SELECT count(*) FROM part").fetchall()
            self.second.wal_checkpoint(mode=self.rng.choice(CHECKPOINTS))

    def confirm(self, *, sync: bool = True) -> None:
        """Commit, sync, say so, with checkpoints anywhere between."""
        batch = self.commit()
        self.maybe_checkpoint()
        if sync:
            self.wal.sync()
        self.disk.mark(batch)
        self.maybe_checkpoint()


def damage(cut: Cut) -> str:
    """Open what is left with plain SQLite; say what is wrong with it, "" if nothing is."""
    path = cut.folder / "a.db"
    if not path.exists():
        return "the file is gone" if cut.marks else ""
    db = apsw.Connection(str(path))
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.pragma("synchronous", "off")
        return wrong(db, {mark for mark in cut.marks if isinstance(mark, int)})
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return f"corrupt: {error}"
    finally:
        db.close()


def wrong(db: apsw.Connection, confirmed: set[int]) -> str:
    if (check := db.pragma("integrity_check")) != "ok":
        return f"corrupt: {check}"
    if not db.execute("SELECT count(*) FROM sqlite_schema").get:
        return "the tables are gone" if confirmed else ""
    found = db.execute("SELECT batch, count(*) = max(of) FROM part GROUP BY batch").fetchall()
    batches = [batch for batch, _ in found]
    if not all(whole for _, whole in found) or batches != list(range(1, len(batches) + 1)):
        return f"torn: {found}"
    if db.execute("SELECT batch FROM newest").get != len(batches):
        return "torn: the newest batch is not the last"
    lost = confirmed - set(batches)
    return f"lost: {sorted(lost)}" if lost else ""


class Histories:
    """Runs one way of writing several times on fresh disks, and cuts the power of each many times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cuts = 0

    def disks(self, **options: bool | float) -> Iterator[tuple[Path, int, FaultyDisk]]:
        for number in range(HISTORIES):
            folder = self.folder / f"disk{number}"
            folder.mkdir()
            disk = FaultyDisk(folder, **options)  # type: ignore[arg-type]
            yield folder, SEED * 1_000 + number, disk
            disk.close()

    def bad(self, disk: FaultyDisk, seed: int, *, since: int = 0) -> list[str]:
        found = []
        for cut in disk.cuts(CUTS // HISTORIES, random.Random(seed), self.folder / "cut", since=since):
            self.cuts += 1
            if problem := damage(cut):
                found.append(f"seed {seed}, cut at {cut.at} of {disk.now} with seed {cut.seed}: {problem}")
        return found

    def run(
        self, write: Callable[[Writer], None], *, checked: bool = True, synchronous: str = "normal"
    ) -> list[str]:
        found = []
        for folder, seed, disk in self.disks(checked=checked):
            writer = Writer(folder, seed, disk, synchronous=synchronous)
            write(writer)
            writer.close()
            found += self.bad(disk, seed)
        return found


@pytest.fixture()
def histories(tmp_path: Path) -> Histories:
    return Histories(tmp_path)


def report(problems: list[str]) -> str:
    return f"{len(problems)} bad cuts:\n" + "\n".join(problems[:10])


# -- commit and confirm -----------------------------------------------------------------------------------


def confirm_all(writer: Writer) -> None:
    for _ in range(BATCHES):
        writer.confirm()


def test_what_was_confirmed_after_the_sync_survives_every_cut(histories: Histories) -> None:
    problems = histories.run(confirm_all)
    assert not problems, report(problems)


def test_with_synchronous_full_no_sync_of_ours_is_needed(histories: Histories) -> None:
    """The control: the simulated disk does not lose what SQLite itself makes durable."""

    def write(writer: Writer) -> None:
        for _ in range(BATCHES):
            writer.confirm(sync=False)

    problems = histories.run(write, synchronous="full")
    assert not problems, report(problems)


def test_without_the_sync_confirmed_rows_are_lost(histories: Histories) -> None:
    def write(writer: Writer) -> None:
        for _ in range(BATCHES):
            writer.confirm(sync=False)

    problems = histories.run(write)
    assert len(problems) > 0
    assert all("lost" in problem for problem in problems), report(problems)
