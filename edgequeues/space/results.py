"""Table `results`: what came of messages that were worked, kept a while for senders who send them again."""

from __future__ import annotations

from typing import NamedTuple

import apsw

KEPT_MS = 24 * 3_600_000  # as long as idempotency keys
BYTES_MAX = 64 * 1024

DDL = """
CREATE TABLE results (
  entry_id     INTEGER PRIMARY KEY,  -- position of the message, which may be gone
  processed_ts INTEGER NOT NULL,     -- unix ms
  result       TEXT    NOT NULL,     -- JSON
  expires_ts   INTEGER NOT NULL      -- unix ms
) STRICT;
CREATE INDEX results_expires ON results (expires_ts);
"""
PUT = "INSERT OR REPLACE INTO results (entry_id, processed_ts, result, expires_ts) VALUES (?, ?, ?, ?)"
GET = "SELECT processed_ts, result FROM results WHERE entry_id = ? AND expires_ts > ?"
SWEEP = (
    "DELETE FROM results WHERE entry_id IN (SELECT entry_id FROM results WHERE expires_ts <= ?"
    " ORDER BY expires_ts LIMIT ?)"
)
SOONEST = "SELECT min(expires_ts) FROM results"


class Result(NamedTuple):
    """What came of a message, as JSON, and at which unix ms."""

    processed: int
    result: str


def put(db: apsw.Connection, position: int, result: str, at: int) -> None:
    """Keep what came of a message at unix ms `at`; what was kept before goes."""
    db.execute(PUT, (position, at, result, at + KEPT_MS))


def get(db: apsw.Connection, position: int, at: int) -> Result | None:
    """What came of a message, if that is known and kept at unix ms `at`."""
    row = db.execute(GET, (position, at)).get
    return None if row is None else Result(*row)


def sweep(db: apsw.Connection, at: int, limit: int) -> None:
    """Forget up to `limit` results whose time is over at unix ms `at`."""
    db.execute(SWEEP, (at, limit))


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms at which the time of the next result is over."""
    at: int | None = db.execute(SOONEST).get
    return at
