"""How every connection of the runtime is opened, how it waits for locks, and which SQLite is good enough."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import apsw
import trio

from shards.errors import UnsupportedSQLite, UnusableFile

T = TypeVar("T")

BUSY_RETRY_S = 0.005  # another program holds a lock: look again this soon
BUSY_MAX_S = 5.0  # and give up after this long
OLDEST = (3, 51, 3)  # repairs the WAL-reset bug: https://sqlite.org/wal.html#walresetbug
WITHDRAWN = (3, 52, 0)
# Each run of a statement takes the next place and drops the statement that was kept there, whatever else is free. One
# that was not run among so many has to be prepared again, which takes longer than to run it.
STATEMENTS_KEPT = 400
NOT_A_DATABASE = (apsw.NotADBError, apsw.CorruptError, apsw.FormatError)
DISK_ERRORS = (
    apsw.IOError,
    apsw.FullError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.CantOpenError,
    apsw.NoMemError,
)


def check_version(version: str | None = None) -> None:
    """Raise UnsupportedSQLite unless the SQLite inside apsw may be trusted with a WAL."""
    text = version or apsw.sqlite_lib_version()
    number = tuple(int(part) for part in text.split("."))
    if number < OLDEST or number[:3] == WITHDRAWN:
        raise UnsupportedSQLite(f"SQLite {text}")


async def patiently(work: Callable[[], Awaitable[T]], *, max_s: float = BUSY_MAX_S) -> T:
    """Do `work` again until another program's lock is no longer in its way. Raises apsw.BusyError after `max_s`.

    SQLite itself is told not to wait: on the event loop it would stop everything else.
    """
    deadline = trio.current_time() + max_s
    while True:
        try:
            return await work()
        except apsw.BusyError:
            if trio.current_time() >= deadline:
                raise
        await trio.sleep(BUSY_RETRY_S)


def new_connection(path: str, vfs: str = "") -> apsw.Connection:
    """A connection whose statements stay prepared. Settings of the file are left to do."""
    db = apsw.Connection(path, vfs=vfs or None, statementcachesize=STATEMENTS_KEPT)
    # The values that a statement is given do not count for how it is run. Else nearly each one with ORDER BY or LIMIT
    # is prepared again for whatever values it is given.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return db


def connect(
    path: Path, vfs: str, *, cache_kib: int, look: Callable[[apsw.Connection], object] | None = None
) -> apsw.Connection:
    """Open `path` (made if absent) as a WAL database that never checkpoints or syncs a commit by itself.

    look: called before anything is written; what it raises closes the file as it was.
    synchronous=NORMAL: SQLite syncs the -wal before a checkpoint, the database before the -wal is reused and a
    new -wal header before its frames; the sync after a commit is the caller's. Raises UnusableFile.
    """
    db = new_connection(str(path), vfs)
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        if look is not None:
            look(db)
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", "normal")
        db.pragma("wal_autocheckpoint", 0)
        db.pragma("cache_size", -cache_kib)
        db.pragma("temp_store", "memory")
    except NOT_A_DATABASE as error:
        db.close(True)
        raise UnusableFile(f"{path}: {error}") from error
    except BaseException:
        db.close(True)
        raise
    return db
