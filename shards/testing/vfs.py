# ruff: noqa: N802 (SQLite's names)
"""SQLite's unix VFS, each step on the simulated disk's files recorded. -shm files pass: they are memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from shards.testing.recorder import Recorder

JOURNALS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL


class RecordedVfs(apsw.VFS):
    """SQLite's unix VFS, with every step on the disk's files recorded."""

    def __init__(self, name: str, disk: Recorder) -> None:
        super().__init__(name, "unix")
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file of the disk recorded, any other (temporary ones too) as it is."""
        text = name.filename() if isinstance(name, apsw.URIFilename) else name
        path = Path(text) if text else None
        if path is None or not self._disk.platter.owns(path):
            return apsw.VFSFile("unix", name, flags)
        return RecordedFile(self._disk, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Delete and record it; the folder is synced only where SQLite asks for it."""
        if self._disk.dead:
            return
        super().xDelete(filename, False)
        path = Path(filename)
        self._disk.unlink(path)
        if syncdir:
            as_sqlite(apsw.SQLITE_IOERR_DIR_FSYNC, lambda: self._disk.sync_folder(path.parent))
            self._disk.platter.settle()


class RecordedFile(apsw.VFSFile):
    """A file opened by SQLite."""

    def __init__(
        self, disk: Recorder, path: Path, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        if path.exists():
            disk.open(
                path
            )  # reads a file that is new to it, so now: closing it later would drop SQLite's locks
        super().__init__("unix", name, flags)
        self._disk = disk
        self._path = path
        self._inode = disk.open(path)
        # The unix VFS syncs the folder with the first sync of a journal or -wal that it may have created.
        self._folder_too = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & JOURNALS)

    def xRead(self, amount: int, offset: int) -> bytes:
        """Read, or fail."""
        if self._disk.strikes("read", self._path):
            raise sqlite_error(apsw.SQLITE_IOERR_READ)
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:
        """Write what there is room for and record it."""
        if self._disk.dead:
            return
        if self._disk.strikes("write", self._path):
            raise sqlite_error(apsw.SQLITE_IOERR_WRITE)
        whole = bytes(data)
        kept = whole[: self._disk.fitting(self._inode, offset, len(whole))]
        if kept:
            super().xWrite(kept, offset)
            self._disk.platter.write(self._inode, offset, kept)
        if len(kept) < len(whole):
            raise apsw.FullError(f"no room for {self._path.name}")

    def xTruncate(self, newsize: int) -> None:
        """Cut the file off or extend it, and record that."""
        if self._disk.dead:
            return
        if not self._disk.resize(self._inode, newsize):
            raise apsw.FullError(f"no room for {self._path.name}")
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        """Record a sync. Nothing physical: what the simulated disk keeps is decided by the record."""
        if self._disk.dead:
            return
        as_sqlite(apsw.SQLITE_IOERR_FSYNC, lambda: self._disk.sync(self._inode, self._path))
        if self._folder_too:
            self._folder_too = False
            as_sqlite(apsw.SQLITE_IOERR_DIR_FSYNC, lambda: self._disk.sync_folder(self._path.parent))
        self._disk.platter.settle()


def sqlite_error(code: int) -> apsw.IOError:
    """Return the error that a VFS raises for an extended result code."""
    error = apsw.IOError(apsw.mapping_extended_result_codes[code])
    error.extendedresult = code  # type: ignore[attr-defined]  # its stubs lack it
    return error


def as_sqlite(code: int, sync: Callable[[], None]) -> None:
    """Do a sync; what fails is raised as SQLite knows it."""
    try:
        sync()
    except OSError as error:
        raise sqlite_error(code) from error
