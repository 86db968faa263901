"""Look at every file of a folder that nobody serves, and say what is wrong with it.

Opens the files read-only where it can: a -wal left by a crash is read, not copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from shards import alarm_index, alarms, files, migrate, repair
from shards.disk import Disk
from shards.errors import SchemaTooNew, ShardError, UnusableFile
from shards.sqlite import NOT_A_DATABASE

Invariants = Callable[[apsw.Connection], list[str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One file and what is wrong with it; empty `problems`: nothing."""

    name: str
    path: Path
    bytes: int
    problems: Sequence[str]
    repairable: bool  # a flush of it failed: `shards.repair` rewrites it


def check(folder: Path, steps: Sequence[str], invariants: Invariants) -> Iterator[Finding]:
    """Yield a finding for every shard of `folder`, in order of their names. Blocking; hold the folder's lock.

    steps: the shard's migrations; invariants: returns what is wrong with the rows of a file.
    """
    index = _index(folder)
    for name, path in sorted(files.walk(folder)):
        refused = repair.needed(path)
        problems = ["a flush of it failed; its last commits may have a hole"] if refused else []
        problems += _file(path, steps, invariants, index, name)
        yield Finding(name, path, path.stat().st_size, problems, refused)


def _index(folder: Path) -> dict[str, int] | None:
    """The alarm index as it is on disk; None where there is none, since it is then made anew."""
    path = folder / alarm_index.FILE_NAME
    if not path.exists():
        return None
    try:
        db = _open(path)
        try:
            return dict(alarm_index.read(db))
        finally:
            db.close(True)
    except (*NOT_A_DATABASE, apsw.SQLError):
        return None


def _file(
    path: Path, steps: Sequence[str], invariants: Invariants, index: dict[str, int] | None, name: str
) -> list[str]:
    try:
        problems = repair.integrity(path, "")
        if problems:
            return problems
        db = _open(path)
        try:
            todo = migrate.pending(db, steps)
            if todo:
                return [f"its schema lacks steps {todo.start} to {todo.stop - 1}; serving it once adds them"]
            return invariants(db) + _alarm(db, index, name)
        finally:
            db.close(True)
    except (UnusableFile, SchemaTooNew) as error:
        return [error.detail]
    except (apsw.Error, OSError) as error:
        return [str(error)]


def _alarm(db: apsw.Connection, index: dict[str, int] | None, name: str) -> list[str]:
    if db.execute(alarms.READ).get is None:
        return ["its row of the table shard_alarm is missing"]
    due_ms = alarms.stored(db).due_ms
    if index is None or due_ms is None or index.get(name, due_ms + 1) <= due_ms:
        return []
    return [f"its alarm is due at {due_ms}, the index says {index.get(name)}: it would wake too late"]


def _open(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.pragma("query_only", 1)
    return db


def repair_all(folder: Path, disk: Disk) -> Iterator[tuple[str, str]]:
    """Repair every file whose flush failed; yield its name and why that did not help ("": it did). Blocking."""
    for name, path in sorted(files.walk(folder)):
        if repair.needed(path):
            try:
                repair.repair(path, disk)
            except (ShardError, OSError, apsw.Error) as error:
                yield name, str(error)
            else:
                yield name, ""
