"""Shards and disks that the tests of the runtime share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, TypeVar, cast

import apsw
import trio

from shards import files
from shards.disk import Wal
from shards.namespace import Namespace, Ref
from shards.shard import Shard, grows
from shards.testing import InlineDisk

T = TypeVar("T")


class Refused(Exception):
    """What a verb raises on purpose."""


class Notes(Shard):
    """Rows of text, and a number of them kept in memory."""

    migrations: ClassVar[Sequence[str]] = (
        "CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL) STRICT;",
        "CREATE TABLE pad (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;",
    )

    forgotten = 0

    def opened(self) -> None:
        """Count the rows there are."""
        self.known = self.counted()

    def forget(self) -> None:
        """Count again."""
        self.forgotten += 1
        self.known = self.counted()

    def counted(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM note").get)

    def add(self, text: str) -> int:
        self.known += 1
        self.db.execute("INSERT INTO note (text) VALUES (?)", (text,))
        self.emit("added")
        return self.db.last_insert_rowid()

    def add_then_raise(self, text: str) -> None:
        self.add(text)
        self.emit("undone")
        raise Refused(text)

    def texts(self) -> list[str]:
        return [str(text) for (text,) in self.db.execute("SELECT text FROM note ORDER BY id").fetchall()]

    def in_memory_and_stored(self) -> tuple[int, int]:
        return self.known, self.counted()

    def remove(self, text: str) -> None:
        self.db.execute("DELETE FROM note WHERE text = ?", (text,))

    @grows
    def pad(self, size: int) -> int:
        """Add a row of `size` bytes that no compression would shorten."""
        self.db.execute("INSERT INTO pad (bytes) VALUES (?)", (self.random.randbytes(size),))
        return self.db.last_insert_rowid()

    def pads(self) -> list[int]:
        rows = self.db.execute("SELECT id FROM pad ORDER BY id").fetchall()
        return [cast(int, number) for (number,) in rows]

    def unpad(self, number: int) -> None:
        self.db.execute("DELETE FROM pad WHERE id = ?", (number,))

    def rewrite(self, number: int, size: int) -> None:
        self.db.execute("UPDATE pad SET bytes = randomblob(?) WHERE id = ?", (size, number))

    def file(self) -> str:
        return self.file_id


class SlowDisk(InlineDisk):
    """A disk whose work takes time on trio's clock, half of it before and half of it after; counts its flushes."""

    def __init__(self, takes_s: float = 0.0) -> None:
        super().__init__()
        self.takes_s = takes_s
        self.flushes = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Take half the time, work, take the rest."""
        half = self.takes_s / 2
        await trio.sleep(half)
        result = work()
        with trio.CancelScope(shield=True):
            await trio.sleep(half)
        return result

    def open_wal(self, database: Path) -> Wal:
        """Open a -wal that counts."""
        return CountedWal(super().open_wal(database), self)


class CountedWal:
    """Passes everything on."""

    def __init__(self, wal: Wal, disk: SlowDisk) -> None:
        self._wal = wal
        self._disk = disk

    def sync(self) -> None:
        """Count and sync."""
        self._disk.flushes += 1
        self._wal.sync()

    def close(self) -> None:
        """Close."""
        self._wal.close()


def path_of(namespace: Namespace[Notes], name: str) -> Path:
    """The file of a shard."""
    return files.path_of(namespace.folder, name)


def wal_of(path: Path) -> Path:
    """The -wal of a shard's file."""
    return Path(f"{path}-wal")


def wal_bytes(path: Path) -> int:
    """How long the -wal file of a shard's file is."""
    return wal_of(path).stat().st_size


async def open_slowly(ref: Ref[Notes], disk: SlowDisk, takes_s: float) -> None:
    """Open the shard in no time; from now on the disk takes some."""
    await ref.call(Notes.texts)
    disk.takes_s = takes_s


@contextmanager
def foreign(path: Path) -> Iterator[apsw.Connection]:
    """Another program's connection to a shard's file."""
    db = apsw.Connection(str(path))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    try:
        yield db
    finally:
        db.close(True)
