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
STEP_5 = """
ALTER TABLE results ADD COLUMN queue_id  TEXT;  -- the queue of the message; none for a call without one
ALTER TABLE results ADD COLUMN object_id TEXT;  -- its id there
CREATE INDEX results_queue ON results (queue_id, entry_id) WHERE queue_id IS NOT NULL;
"""
PUT = (
    "INSERT OR REPLACE INTO results (entry_id, processed_ts, result, expires_ts, queue_id, object_id)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
GET = "SELECT processed_ts, result FROM results WHERE entry_id = ? AND expires_ts > ?"
PAGE = (
    "SELECT entry_id, object_id, processed_ts, result FROM results"
    " WHERE queue_id = :queue AND entry_id > :after AND expires_ts > :at ORDER BY entry_id LIMIT :limit"
)
SWEEP = (
    "DELETE FROM results WHERE entry_id IN (SELECT entry_id FROM results WHERE expires_ts <= ?"
    " ORDER BY expires_ts LIMIT ?)"
)
SOONEST = "SELECT min(expires_ts) FROM results"


class Result(NamedTuple):
    """What came of a message, as JSON, and at which unix ms."""

    processed: int
    result: str


class Outcome(NamedTuple):
    """What came of a message of a queue, as JSON, and at which unix ms."""

    position: int
    object_id: str
    processed: int
    result: str


def put(db: apsw.Connection, position: int, result: str, at: int, message: tuple[str, str] | None) -> None:
    """Keep what came of a message, of this queue and with this id there, at unix ms `at`.

    What was kept before goes. None: it was no message, but a call.
    """
    queue_id, object_id = message or (None, None)
    db.execute(PUT, (position, at, result, at + KEPT_MS, queue_id, object_id))


def get(db: apsw.Connection, position: int, at: int) -> Result | None:
    """What came of a message, if that is known and kept at unix ms `at`."""
    row = db.execute(GET, (position, at)).get
    return None if row is None else Result(*row)


def page(db: apsw.Connection, queue_id: str, after: int, limit: int, *, at: int) -> list[Outcome]:
    """What came of messages of a queue, by position from above `after`, as far as it is kept at unix ms `at`."""
    rows = db.execute(PAGE, {"queue": queue_id, "after": after, "limit": limit, "at": at})
    return [Outcome(*row) for row in rows]


def sweep(db: apsw.Connection, at: int, limit: int) -> None:
    """Forget up to `limit` results whose time is over at unix ms `at`."""
    db.execute(SWEEP, (at, limit))


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms at which the time of the next result is over."""
    at: int | None = db.execute(SOONEST).get
    return at
