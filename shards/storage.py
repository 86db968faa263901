"""The file of one open shard: its connection, transactions, flushes and checkpoints.

Statements and COMMIT run on the event loop. What waits for the disk (`flush`, `checkpoint`, opening, closing) is
blocking and meant for a worker thread. The rules followed here, and what breaks without each, are in
docs/adr/0002-group-commit-and-the-flush.md.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import perf_counter

import apsw

from shards import migrate, repair
from shards.disk import Disk, Wal
from shards.errors import NeedsRepair
from shards.limits import Limits
from shards.meter import Meter
from shards.sqlite import connect


class FlushRefused(Exception):
    """The disk refused a sync: what it covered may be lost, though it can still be read. Only a repair helps."""


class Storage:
    """An open file. Made by `open_storage`; used by one actor."""

    def __init__(self, path: Path, disk: Disk, limits: Limits, db: apsw.Connection) -> None:
        self.path = path
        self.db = db
        self.wal_pages = 0  # length of the -wal at the last commit that wrote
        self._disk = disk
        self._limits = limits
        self._wal: Wal | None = None
        self._second: apsw.Connection | None = None
        self._wrote = False
        self._page_bytes: int = db.pragma("page_size")
        self._checkpoint_at = limits.wal_checkpoint_bytes
        db.set_wal_hook(self._on_commit)

    def _on_commit(self, _db: apsw.Connection, _schema: str, pages: int) -> int:
        if pages < self.wal_pages:  # it started over: the next checkpoint is a full step away again
            self._checkpoint_at = self._limits.wal_checkpoint_bytes
        self.wal_pages = pages
        self._wrote = True
        return int(apsw.SQLITE_OK)

    @property
    def wal_bytes(self) -> int:
        """Bytes of the -wal in use."""
        return self.wal_pages * self._page_bytes

    # -- transactions, on the loop ----------------------------------------------------------------------

    def begin(self) -> None:
        """Open the batch's transaction. Raises apsw.BusyError while another program writes."""
        self._wrote = False
        self.db.execute("BEGIN IMMEDIATE")

    def commit(self, meter: Meter) -> bool:
        """End the transaction; return whether it wrote anything that wants a flush."""
        began_s = perf_counter()
        self.db.execute("COMMIT")
        if self._wrote:
            meter.commit(perf_counter() - began_s)
        return self._wrote

    def rollback(self) -> None:
        """Undo the transaction, if there still is one."""
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")

    # -- blocking ---------------------------------------------------------------------------------------

    def ready(self) -> None:
        """Open the -wal's descriptor, then make the file and its name durable: the last step of opening."""
        self._wal = self._disk.open_wal(self.path)
        self.flush()
        try:
            self._disk.sync_folder(self.path.parent)
        except OSError as error:
            raise FlushRefused(f"{self.path.parent}: {error}") from error

    def flush(self) -> None:
        """Make every commit so far durable. Raises FlushRefused."""
        assert self._wal is not None
        try:
            self._wal.sync()
        except OSError as error:
            raise FlushRefused(str(error)) from error

    def wants_checkpoint(self) -> bool:
        """Has the -wal grown by a full step since the last checkpoint?"""
        return self.wal_bytes >= self._checkpoint_at

    def over_bound(self) -> bool:
        """Is the -wal so long that turns must wait until it can start over?"""
        return self.wal_bytes >= self._limits.wal_bytes_max

    def checkpoint(self, mode: int) -> bool:
        """Copy the -wal into the database on the second connection; return whether all of it was copied.

        mode: apsw.SQLITE_CHECKPOINT_PASSIVE, or _RESTART while no turn runs. Raises apsw.IOError, apsw.FullError,
        and apsw.BusyError when another program stands in the way.
        """
        self._checkpoint_at = self.wal_bytes + self._limits.wal_checkpoint_bytes
        if self._second is None:
            self._second = connect(self.path, self._disk.vfs, cache_kib=64)
        migrate.version(self._second)  # without a read its checkpoint does nothing
        frames, copied = self._second.wal_checkpoint(mode=mode)
        assert frames >= 0, "the checkpoint connection was not primed"
        return bool(frames == copied)

    def close(self, *, tidy: bool) -> None:
        """Close everything; `tidy` empties the -wal first (its file stays). Nothing may be in flight."""
        try:
            if tidy:
                with suppress(apsw.BusyError):
                    self.checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            if self._wal is not None:
                self._wal.close()
            for db in (self._second, self.db):
                if db is not None:
                    db.set_wal_hook(None)
                    db.close(True)


def open_storage(path: Path, disk: Disk, limits: Limits) -> Storage:
    """Open or make the file at `path` and bring it to a known state on disk. Blocking.

    Raises NeedsRepair, UnusableFile, apsw.BusyError (another program reads the -wal), OSError, apsw.FullError.
    """
    if repair.needed(path):
        raise NeedsRepair(str(path))
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.sync_folder(path.parent.parent)
    db = connect(
        path, disk.vfs, cache_kib=limits.cache_kib, look=migrate.version
    )  # refuses another program's
    try:
        migrate.version(db)  # without a read the checkpoint does nothing
        # A commit of a process killed before its flush may sit in the page cache only. Copied into the database
        # and synced now, it can no longer vanish after somebody has read it.
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return Storage(path, disk, limits, db)
    except BaseException:
        db.close(True)
        raise
