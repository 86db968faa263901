"""What to do with a file after the disk refused a flush or a write.

The kernel reports such a failure once and then says "ok" over a hole, so neither retrying the flush nor opening
the file again is safe, not even in a new process. A marker beside the file says so. The repair writes everything
anew: what the page cache still holds, or the disk kept, becomes new dirty pages that a new fsync covers; the
checksums of the -wal and an integrity check tell whether a hole was among it.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from shards import files, identity, migrate
from shards.disk import Disk
from shards.errors import UnusableFile
from shards.sqlite import NOT_A_DATABASE, connect


def marker(database: Path) -> Path:
    """Return the path of the marker: there while the file may not be opened."""
    return Path(f"{database}-refused")


def mark(database: Path, disk: Disk, reason: str) -> None:
    """Leave the marker, as durably as a failing disk lets us. Raises OSError."""
    marker(database).write_text(reason + "\n")
    disk.sync_folder(database.parent)


def needed(database: Path) -> bool:
    """Has a flush of this file failed, and was it not repaired since?"""
    return marker(database).exists()


def repair(database: Path, disk: Disk) -> None:
    """Rewrite the -wal, then the database; check them; remove the marker. No connection may be open.

    Raises UnusableFile when the check fails, OSError or apsw.Error when the disk refuses again; the marker stays.
    """
    for path in (Path(f"{database}-wal"), database):
        if path.exists():
            fresh = Path(f"{path}-fresh")
            disk.copy(path, fresh)
            disk.replace(fresh, path)
            disk.sync_folder(path.parent)
    disk.remove(Path(f"{database}-shm"))
    problems = integrity(database, disk.vfs)
    if problems:
        raise UnusableFile(f"{database} after its repair: {problems[0]}")
    _adopt(database, disk)
    disk.remove(marker(database))
    disk.sync_folder(database.parent)


def _adopt(database: Path, disk: Disk) -> None:
    """The rewritten file is the shard's own, not a copy of it."""
    db = connect(database, disk.vfs, cache_kib=64)
    try:
        if migrate.version(db) is not None:
            identity.adopt(db, files.identity(database))
            wal = disk.open_wal(database)
            try:
                wal.sync()
            finally:
                wal.close()
    finally:
        db.close(True)


def integrity(database: Path, vfs: str) -> list[str]:
    """Return what SQLite's own integrity check finds wrong; empty is good."""
    db = apsw.Connection(str(database), vfs=vfs or None)
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return faults(db)
    finally:
        db.close(True)


def faults(db: apsw.Connection) -> list[str]:
    """The same of an open database."""
    try:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check").fetchall()]
    except NOT_A_DATABASE as error:
        found = [str(error)]
    return [] if found == ["ok"] else found
