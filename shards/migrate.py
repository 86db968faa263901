"""Numbered schema steps, each applied once and written down in the table `shard_schema`."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from shards import alarms, identity
from shards.errors import SchemaTooNew, UnusableFile

DDL = """
CREATE TABLE shard_schema (
  version    INTEGER PRIMARY KEY,  -- 0: the runtime's own tables; n: the shard's step n
  applied_ms INTEGER NOT NULL      -- unix ms
) STRICT;
"""
TABLES = "SELECT count(*), count(*) FILTER (WHERE name = 'shard_schema') FROM sqlite_schema WHERE name <> 'shard_at'"
VERSION = "SELECT max(version) FROM shard_schema"
RECORD = "INSERT INTO shard_schema (version, applied_ms) VALUES (?, ?)"


def version(db: apsw.Connection) -> int | None:
    """Return the newest step applied; None for an empty database. Raises UnusableFile if it is someone else's."""
    tables, ours = db.execute(TABLES).get
    if not tables:
        return None
    if not ours:
        raise UnusableFile(f"{db.filename} holds the tables of another program")
    newest: int | None = db.execute(VERSION).get
    return newest


def pending(db: apsw.Connection, steps: Sequence[str]) -> range:
    """Return the numbers of the steps still to be applied, 0 (the runtime's own) first.

    Raises SchemaTooNew when the file is ahead of `steps`, UnusableFile when it is not ours.
    """
    newest = version(db)
    if newest is not None and newest > len(steps):
        raise SchemaTooNew(f"{db.filename} has schema {newest}, this program knows {len(steps)}")
    return range(0 if newest is None else newest + 1, len(steps) + 1)


def apply(db: apsw.Connection, steps: Sequence[str], number: int, *, now_ms: int) -> None:
    """Apply step `number` and record it. The caller owns the transaction."""
    script = DDL + alarms.DDL + identity.DDL if number == 0 else steps[number - 1]
    db.execute(script).fetchall()
    db.execute(RECORD, (number, now_ms))


def migrate(db: apsw.Connection, steps: Sequence[str], *, now_ms: int) -> range:
    """Apply all pending steps in one transaction; return their numbers."""
    todo = pending(db, steps)
    with db:
        for number in todo:
            apply(db, steps, number, now_ms=now_ms)
    return todo
