"""Table `audit`: what operators did to a space, written in the transaction that did it.

Rows are numbered without gaps and go from the front, so that their number is known without counting them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import apsw
import msgspec

from edgequeues.core.who import Who

KEPT_MS = 90 * 86_400_000
ROWS_MAX = 100_000
TOLD_MAX = 100  # ids, or other things, that one row names

DDL = """
CREATE TABLE audit (
  audit_id   INTEGER PRIMARY KEY,  -- one more than the one before
  at_ts      INTEGER NOT NULL,     -- unix ms
  who_id     TEXT    NOT NULL,     -- of a token, or a word for those without one
  who_name   TEXT    NOT NULL,
  action     TEXT    NOT NULL,
  queue_id   TEXT,                 -- NULL: it was about the whole space
  queue_name TEXT,                 -- as it was called then
  detail     TEXT    NOT NULL      -- JSON object
) STRICT;
CREATE INDEX audit_queue ON audit (queue_id)   WHERE queue_id IS NOT NULL;
CREATE INDEX audit_name  ON audit (queue_name) WHERE queue_name IS NOT NULL;
"""
_GIVEN = "at_ts, who_id, who_name, action, queue_id, queue_name, detail"
_COLUMNS = f"audit_id, {_GIVEN}"
INSERT = f"INSERT INTO audit ({_GIVEN}) VALUES (?, ?, ?, ?, ?, ?, ?)"
PAGE = f"SELECT {_COLUMNS} FROM audit WHERE audit_id > ? ORDER BY audit_id LIMIT ?"
OF_QUEUE = f"SELECT {_COLUMNS} FROM audit WHERE queue_id = ? AND audit_id > ? ORDER BY audit_id LIMIT ?"
OF_NAME = f"SELECT {_COLUMNS} FROM audit WHERE queue_name = ? AND audit_id > ? ORDER BY audit_id LIMIT ?"
PAGE_BACK = f"SELECT {_COLUMNS} FROM audit WHERE audit_id < ? ORDER BY audit_id DESC LIMIT ?"
OF_QUEUE_BACK = (
    f"SELECT {_COLUMNS} FROM audit WHERE queue_id = ? AND audit_id < ? ORDER BY audit_id DESC LIMIT ?"
)
OF_NAME_BACK = (
    f"SELECT {_COLUMNS} FROM audit WHERE queue_name = ? AND audit_id < ? ORDER BY audit_id DESC LIMIT ?"
)
NEWEST = "SELECT max(audit_id) FROM audit"
FRONT = "SELECT audit_id, at_ts FROM audit WHERE audit_id > 0 ORDER BY audit_id LIMIT ?"
SWEEP = "DELETE FROM audit WHERE audit_id <= ?"


class Record(NamedTuple):
    """A row. at: unix ms. detail: JSON object."""

    audit_id: int
    at: int
    who_id: str
    who_name: str
    action: str
    queue_id: str | None
    queue_name: str | None
    detail: str


def record(
    db: apsw.Connection,
    at: int,
    who: Who,
    action: str,
    queue_id: str | None,
    queue_name: str | None,
    detail: Mapping[str, Any],
) -> None:
    """Write down what somebody did, and forget the oldest where there are too many."""
    text = msgspec.json.encode(detail).decode()
    db.execute(INSERT, (at, who.id, who.name, action, queue_id, queue_name, text))
    sweep(db, at, 2)  # one comes, up to two go: so they never grow beyond their number


def page(db: apsw.Connection, after: int, limit: int, *, reverse: bool = False) -> list[Record]:
    """Up to `limit` rows from above `after`, the oldest first; reverse: from below it, the newest first."""
    return [Record(*row) for row in db.execute(PAGE_BACK if reverse else PAGE, (after, limit))]


def of_queue(
    db: apsw.Connection, queue_id: str, after: int, limit: int, *, reverse: bool = False
) -> list[Record]:
    """As `page`, of those about a queue that is there."""
    found = db.execute(OF_QUEUE_BACK if reverse else OF_QUEUE, (queue_id, after, limit))
    return [Record(*row) for row in found]


def of_name(db: apsw.Connection, name: str, after: int, limit: int, *, reverse: bool = False) -> list[Record]:
    """As `page`, of those about queues that were called so."""
    return [Record(*row) for row in db.execute(OF_NAME_BACK if reverse else OF_NAME, (name, after, limit))]


def sweep(db: apsw.Connection, at: int, rows_max: int) -> None:
    """Forget up to `rows_max` rows that are too old at unix ms `at`, or too many; never the last one.

    Its number must not be given again: who pages on from it would miss what comes.
    """
    newest: int | None = db.execute(NEWEST).get
    if newest is None or not _over(db.execute(FRONT, (1,)).fetchall(), newest, at):
        return
    gone = _over(db.execute(FRONT, (rows_max,)).fetchall(), newest, at)
    db.execute(SWEEP, (gone[-1],))


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms at which the oldest row is to be forgotten; None: never."""
    front: list[tuple[Any, ...]] = db.execute(FRONT, (2,)).fetchall()
    if len(front) < 2:
        return None
    oldest: int = front[0][1]
    return oldest + KEPT_MS


def _over(rows: list[tuple[Any, ...]], newest: int, at: int) -> list[int]:
    """Which of the first rows are to go."""
    return [
        audit_id
        for audit_id, at_ts in rows
        if audit_id < newest and (audit_id <= newest - ROWS_MAX or at_ts <= at - KEPT_MS)
    ]
