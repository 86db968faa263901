"""Disks for tests: one that works inline, and one that records every step, fails on demand and loses power.

Both keep real files, so SQLite sees what a page cache would hold. Neither uses threads: those do not mix with
virtual time.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio

from shards.disk import Disk, OsWal, ThreadDisk, Wal
from shards.testing.faults import no_room, os_error
from shards.testing.recorder import Recorder
from shards.testing.vfs import RecordedVfs

T = TypeVar("T")

_numbers = itertools.count(1)  # each disk's VFS has a name of its own: the process has one list of them


class InlineDisk(ThreadDisk):
    """Real files, no threads. Its own syncs reach the disk only if asked: a test folder need not survive."""

    def __init__(self, *, sync: bool = False) -> None:
        super().__init__(quick_s=0)  # `run` decides
        self._sync = sync

    async def run(self, work: Callable[[], T]) -> T:
        """Let other tasks run, then `work`, in no virtual time. Cancelled before it starts or not at all."""
        await trio.lowlevel.checkpoint()
        return work()

    def open_wal(self, database: Path) -> Wal:
        """Open the real -wal."""
        return OsWal(database) if self._sync else UnsyncedWal(database)

    def sync_folder(self, folder: Path) -> None:
        """Fsync the directory, or only make sure that there is one."""
        if self._sync:
            super().sync_folder(folder)
        else:
            folder.stat()

    def sync_file(self, path: Path) -> None:
        """Fsync the file, or only make sure that there is one."""
        if self._sync:
            super().sync_file(path)
        else:
            path.stat()

    def copy(self, source: Path, target: Path) -> None:
        """Copy, and fsync if asked."""
        if self._sync:
            super().copy(source, target)
        else:
            shutil.copyfile(source, target)


class UnsyncedWal(OsWal):
    """A -wal descriptor whose sync only checks that it still is the file."""

    def sync(self) -> None:
        """Raise OSError if the -wal was deleted or replaced."""
        if not self.path.exists() or not os.path.samestat(os.fstat(self._fd), self.path.stat()):
            raise OSError(f"{self.path} was deleted or replaced under us")


class FaultyDisk(Recorder, Disk):
    """A disk whose files below `folder` can be cut at any point of their history, and can be made to fail.

    What the folder holds at the start is durable.

    flush_takes: seconds (of trio's clock) that each `run` takes; half pass before the work, half after, so a
    flush is in flight while others commit. It covers what was written before it began.
    checked: does a -wal's sync raise OSError if the file was deleted or replaced, as `OsWal` does?
    """

    def __init__(self, folder: Path, *, flush_takes: float = 0.0, checked: bool = True) -> None:
        super().__init__(folder)
        self.flush_takes = flush_takes
        self.checked = checked
        self.vfs = f"faulty-{next(_numbers)}"
        self._registered = RecordedVfs(self.vfs, self)

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` inline, in the middle of `flush_takes`. Cancelled before it starts or not at all.

        A sync is in flight until the work does something else, or else until this returns.
        """
        half = self.flush_takes / 2
        await trio.sleep(half)
        if not half:
            return work()
        self.platter.hold()
        try:
            return work()
        finally:
            begun = self.platter.let_go()
            with trio.CancelScope(shield=True):
                await trio.sleep(half)
            if begun is not None:
                self.platter.end_sync(begun)

    # -- the port ---------------------------------------------------------------------------------------

    def open_wal(self, database: Path) -> Wal:
        """Open the -wal; its syncs are recorded."""
        return FaultyWal(self, Path(f"{database}-wal").resolve())

    def sync_file(self, path: Path) -> None:
        """Record a file that was written without this disk, and its sync. Raises OSError."""
        path = path.resolve(strict=True)
        self.sync(self.open(path), path)

    def link(self, source: Path, target: Path) -> None:
        """Make a hard link and record it."""
        source, target = source.resolve(), target.resolve()
        target.hardlink_to(source)
        self.open(source)
        self.platter.link(source, target)

    def copy(self, source: Path, target: Path) -> None:
        """Copy and record it, with its sync. Raises OSError; then there may be a part of the copy."""
        target, data = target.resolve(), source.read_bytes()
        inode = self.open(target)
        self.resize(inode, 0)
        fits = self.take_room(len(data))
        target.write_bytes(data[:fits])
        self.platter.write(inode, 0, data[:fits])
        if fits < len(data):
            raise no_room(target)
        self.sync(inode, target)

    def replace(self, source: Path, target: Path) -> None:
        """Rename over and record it."""
        source, target = source.resolve(), target.resolve()
        replaced = self.platter.inode(target)
        source.replace(target)
        self.platter.rename(source, target)
        if replaced is not None:
            self.take_room(-self.platter.size(replaced))

    def remove(self, path: Path) -> None:
        """Unlink and record it."""
        path = path.resolve()
        path.unlink(missing_ok=True)
        self.unlink(path)

    def allocate(self, path: Path, size: int) -> None:
        """Make a file of `size` zeros and record it, with its sync. Raises OSError; then there is no file."""
        path = path.resolve()
        inode = self.open(path)
        try:
            if not self.resize(inode, size):
                raise no_room(path)
            path.touch()
            os.truncate(path, size)
            self.sync(inode, path)
        except OSError:
            self.remove(path)
            raise

    def close(self) -> None:
        """Unregister the VFS. Connections that are open go on working."""
        self._registered.unregister()


class FaultyWal:
    """A -wal descriptor: it stays with its inode, whatever becomes of the name."""

    def __init__(self, disk: FaultyDisk, path: Path) -> None:
        inode = disk.platter.inode(path)
        if inode is None:
            raise os_error(errno.ENOENT, path)
        self._disk = disk
        self._path = path
        self._inode = inode

    def sync(self) -> None:
        """Record the sync, then check that the inode still has the name. Raises OSError."""
        if self._disk.dead:
            return
        self._disk.sync(self._inode, self._path)
        if self._disk.checked and self._disk.platter.inode(self._path) != self._inode:
            raise OSError(f"{self._path} was deleted or replaced under us")

    def close(self) -> None:
        """Nothing to give back."""
