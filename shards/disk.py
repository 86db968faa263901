"""The disk port: the file work SQLite does not do for us, and where it runs.

SQLite syncs the database around checkpoints by itself. What is ours: making a commit durable (`Wal.sync`), making
a new file's name durable (`sync_folder`), and the copies of a repair. All of it may be slow, so `run` moves it to a
worker thread; only a flush may run on the event loop, where that has proved to be quick (`Pace`). Tests pass a disk
that runs inline (virtual time and threads do not mix) or one that loses unsynced writes.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from shards.pace import QUICK_S, Pace
from shards.workers import Workers

T = TypeVar("T")

FLUSH_THREADS_MAX = 64  # one flush in flight a shard; more threads than this only queue in the kernel


class Wal(Protocol):
    """The one descriptor of a shard's -wal file, opened before its first answer and closed after its last."""

    def sync(self) -> None:
        """Make everything written to the -wal so far durable. Raises OSError; then nothing is certain."""
        ...

    def close(self) -> None:
        """Give the descriptor back."""
        ...


class Disk(Protocol):
    """File work beside SQLite."""

    vfs: str  # the SQLite VFS every connection uses; "" is SQLite's own

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking work off the event loop. Not cancellable: half-done file work helps nobody."""
        ...

    async def flush(self, name: str, work: Callable[[], None]) -> None:
        """Run `work`, a flush of shard `name`, wherever that is best. Not cancellable."""
        await self.run(work)

    def open_wal(self, database: Path) -> Wal:
        """Open the -wal of `database`, which must exist."""
        ...

    def sync_folder(self, folder: Path) -> None:
        """Make the names in `folder` durable. Raises OSError."""
        ...

    def sync_file(self, path: Path) -> None:
        """Make the content of a file durable that others than SQLite have written. Raises OSError."""
        ...

    def link(self, source: Path, target: Path) -> None:
        """Give a file a further name. Raises FileExistsError, FileNotFoundError."""
        ...

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file and make the copy's content durable (its name is not, until `sync_folder`)."""
        ...

    def replace(self, source: Path, target: Path) -> None:
        """Rename `source` over `target`."""
        ...

    def remove(self, path: Path) -> None:
        """Delete a file if it is there."""
        ...

    def allocate(self, path: Path, size: int) -> None:
        """Make a file of `size` bytes with its room reserved, and make it durable (its name: `sync_folder`).

        Raises OSError, ENOSPC when there is not that much room; then no file is left.
        """
        ...


class OsWal:
    """A -wal descriptor on a real file system."""

    def __init__(self, database: Path) -> None:
        self.path = Path(f"{database}-wal")
        self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)

    def sync(self) -> None:
        """fdatasync, then check that the descriptor still is the file: a deleted one syncs nothing that counts."""
        os.fdatasync(self._fd)
        ours, there = os.fstat(self._fd), os.stat(self.path)  # noqa: PTH116 (one syscall, hot)
        if ours.st_nlink == 0 or (ours.st_ino, ours.st_dev) != (there.st_ino, there.st_dev):
            raise OSError(f"{self.path} was deleted or replaced under us")

    def close(self) -> None:
        """Close the descriptor. Safe for -wal only: closing the database or -shm would drop SQLite's locks."""
        os.close(self._fd)


class ThreadDisk:
    """The production disk: real files, worker threads. quick_s: see `Pace`; 0: all flushes run in threads."""

    vfs = ""

    def __init__(self, *, quick_s: float = QUICK_S) -> None:
        self._workers = Workers(FLUSH_THREADS_MAX)
        self._pace = Pace(quick_s)

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a worker thread; about 0.07 ms for the hop."""
        return await self._workers.run(work)

    async def flush(self, name: str, work: Callable[[], None]) -> None:
        """Run a flush in a worker thread, or at once where the last ones were quick and this shard's alone."""

        def timed() -> float:
            began = time.perf_counter()
            work()
            return time.perf_counter() - began

        self._pace.note(name, timed() if self._pace.is_quick(name) else await self.run(timed))

    def open_wal(self, database: Path) -> Wal:
        """Open the real -wal."""
        return OsWal(database)

    def sync_folder(self, folder: Path) -> None:
        """Fsync the directory."""
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_file(self, path: Path) -> None:
        """Fsync the file."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def link(self, source: Path, target: Path) -> None:
        """Make a hard link."""
        target.hardlink_to(source)

    def copy(self, source: Path, target: Path) -> None:
        """Copy and fsync."""
        with source.open("rb") as reader, target.open("wb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fsync(writer.fileno())

    def replace(self, source: Path, target: Path) -> None:
        """Rename over."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Unlink."""
        path.unlink(missing_ok=True)

    def allocate(self, path: Path, size: int) -> None:
        """Reserve the blocks, zeros without writing them, and fsync."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if size:
                os.posix_fallocate(fd, 0, size)
            os.fsync(fd)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)
