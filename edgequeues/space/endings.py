"""Table `endings`: how messages for sessions ended with the consumer `default`, while their entries are there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import apsw

Ending = Literal["acked", "dead", "expired", "cancelled"]

DDL = """
CREATE TABLE endings (
  entry_id INTEGER PRIMARY KEY,  -- position of the message
  queue_id TEXT    NOT NULL,
  ending   TEXT    NOT NULL CHECK (ending IN ('acked', 'dead', 'expired', 'cancelled')),
  failures INTEGER NOT NULL CHECK (failures >= 0),  -- deliveries that failed
  error    TEXT,                 -- why the last of them did, or why it ended
  at_ts    INTEGER NOT NULL      -- unix ms
) STRICT;
CREATE INDEX endings_at ON endings (queue_id, at_ts);
"""
PUT = (
    "INSERT OR REPLACE INTO endings (entry_id, queue_id, ending, failures, error, at_ts)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
REMOVE = "DELETE FROM endings WHERE entry_id = ?"
BEFORE = (
    "SELECT e.id, e.size FROM endings n JOIN queue_entries e ON e.id = n.entry_id"
    " WHERE n.queue_id = ? AND n.at_ts < ? ORDER BY n.at_ts LIMIT ?"
)


class End(NamedTuple):
    """How a message ended, at unix ms `at`, in the order of the statement."""

    position: int
    queue_id: str
    ending: Ending
    failures: int
    error: str | None
    at: int


def put(db: apsw.Connection, ends: Iterable[End]) -> None:
    """Write down how messages ended."""
    db.executemany(PUT, ends)


def remove(db: apsw.Connection, positions: Iterable[int]) -> None:
    """Forget how these ended, whose entries go."""
    db.executemany(REMOVE, [(one,) for one in positions])


def before(db: apsw.Connection, queue_id: str, at: int, limit: int) -> list[tuple[int, int]]:
    """Position and size of up to `limit` messages that ended before unix ms `at`, in that order."""
    rows: list[Any] = db.execute(BEFORE, (queue_id, at, limit)).fetchall()
    return rows
