"""One database written raw, without the runtime, on simulated disks whose power is cut: what is left of it?"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from shards.testing import Cut, FaultyDisk

CUTS = int(os.environ.get("EDGEQUEUES_CUTS", "600"))  # of each claim, in all its histories
SEED = int(os.environ.get("EDGEQUEUES_SEED", "1"))
HISTORIES = max(4, CUTS // 1_000)
BATCHES = 40

SCHEMA = """
BEGIN;
CREATE TABLE part (batch INTEGER, number INTEGER, of INTEGER, filler BLOB, PRIMARY KEY (batch, number));
CREATE TABLE newest (batch INTEGER);
INSERT INTO newest VALUES (0);
COMMIT;
"""
CHECKPOINTS = (
    apsw.SQLITE_CHECKPOINT_PASSIVE,
    apsw.SQLITE_CHECKPOINT_RESTART,
    apsw.SQLITE_CHECKPOINT_TRUNCATE,
)


class Writer:
    """One shard's file without the runtime: a main connection, a second one for checkpoints, our own sync."""

    def __init__(
        self, folder: Path, seed: int, disk: FaultyDisk, *, journal: str = "wal", synchronous: str = "normal"
    ) -> None:
        self.disk = disk
        self.path = folder / "a.db"
        self.rng = random.Random(seed)
        self.journal = journal
        self.synchronous = synchronous
        self.batches = 0
        self.open()
        self.main.execute(SCHEMA).fetchall()
        if journal == "wal":
            self.wal = disk.open_wal(self.path)
            self.wal.sync()
        disk.sync_folder(folder)

    def open(self) -> None:
        self.main, self.second = self.connect(), self.connect()

    def connect(self) -> apsw.Connection:
        db = apsw.Connection(str(self.path), vfs=self.disk.vfs)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        assert db.pragma("journal_mode", self.journal) == self.journal
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
        if self.journal == "wal" and self.rng.random() < odds:
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
    """Runs one way of writing on several fresh disks and cuts the power of each many times."""

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
                found.append(f"seed {seed}, cut at {cut.at} of {disk.now} (its seed {cut.seed}): {problem}")
        return found

    def run(self, write: Callable[[Writer], None], *, checked: bool = True, **pragmas: str) -> list[str]:
        found = []
        for folder, seed, disk in self.disks(checked=checked):
            writer = Writer(folder, seed, disk, **pragmas)
            write(writer)
            writer.close()
            found += self.bad(disk, seed)
        return found


def kinds(problems: list[str]) -> set[str]:
    """The sorts of damage among the problems: lost, torn, corrupt."""
    return {problem.split(": ")[1] for problem in problems}


def report(problems: list[str]) -> str:
    return f"{len(problems)} bad cuts:\n" + "\n".join(problems[:10])
