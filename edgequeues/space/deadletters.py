"""Table `dead_letters`: the facts of each dead letter. Its message is an entry of an ordinary queue, as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
from msgspec import Struct

DDL = """
CREATE TABLE dead_letters (
  entry_id      INTEGER PRIMARY KEY,  -- position in the queue of dead letters
  queue_id      TEXT    NOT NULL,     -- that queue
  source_id     TEXT    NOT NULL,     -- the queue it comes from
  source_name   TEXT    NOT NULL,     -- as it was called then
  source_entry  INTEGER NOT NULL,     -- its position there
  object_id     TEXT    NOT NULL,     -- its id there
  consumer      TEXT    NOT NULL,
  reason        TEXT    NOT NULL CHECK (reason IN ('exhausted', 'permanent', 'skipped')),
  error         TEXT    NOT NULL,
  errors        TEXT    NOT NULL,     -- JSON array, one object for each attempt
  attempts      INTEGER NOT NULL,
  first_seen_ts INTEGER NOT NULL,     -- unix ms of the first lease; of the append where there was none
  last_seen_ts  INTEGER NOT NULL,     -- unix ms of the newest lease
  failed_ts     INTEGER NOT NULL,     -- unix ms
  replayed_ts   INTEGER,              -- unix ms
  replay_id     TEXT                  -- id of the message that was made then
) STRICT;
CREATE INDEX dead_letters_queue ON dead_letters (queue_id, entry_id);
"""
COLUMNS = (
    "entry_id, queue_id, source_id, source_name, source_entry, object_id, consumer, reason, error, errors, attempts,"
    " first_seen_ts, last_seen_ts, failed_ts, replayed_ts, replay_id"
)
INSERT = f"INSERT INTO dead_letters ({COLUMNS}) VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))})"
GET = f"SELECT {COLUMNS} FROM dead_letters WHERE entry_id = ?"
PAGE = (
    f"SELECT {COLUMNS} FROM dead_letters WHERE queue_id = ? AND entry_id > ? AND failed_ts > ?"
    " ORDER BY entry_id LIMIT ?"
)
REPLAYED = "UPDATE dead_letters SET replayed_ts = ?, replay_id = ? WHERE entry_id = ?"
REMOVE = "DELETE FROM dead_letters WHERE entry_id = ?"


class DeadLetter(Struct):
    """A row, in the order of the columns."""

    position: int
    queue_id: str
    source_id: str
    source_name: str
    source_position: int
    object_id: str
    consumer: str
    reason: str
    error: str
    errors: str
    attempts: int
    first_seen: int
    last_seen: int
    failed: int
    replayed: int | None = None
    replay_id: str | None = None


def insert(db: apsw.Connection, row: DeadLetter) -> None:
    """Write the facts of a new dead letter down."""
    db.execute(INSERT, tuple(getattr(row, name) for name in row.__struct_fields__))


def get(db: apsw.Connection, position: int) -> DeadLetter | None:
    """The facts of the entry at this position, if it is a dead letter."""
    row: Sequence[Any] | None = db.execute(GET, (position,)).get
    return None if row is None else DeadLetter(*row)


def page(db: apsw.Connection, queue_id: str, after: int, failed_ts: int, limit: int) -> list[DeadLetter]:
    """Dead letters in a queue with positions above `after`, given up after unix ms `failed_ts`, lowest first."""
    rows: list[tuple[Any, ...]] = db.execute(PAGE, (queue_id, after, failed_ts, limit)).fetchall()
    return [DeadLetter(*row) for row in rows]


def replayed(db: apsw.Connection, position: int, at: int, replay_id: str) -> None:
    """Note that a new message was made of it."""
    db.execute(REPLAYED, (at, replay_id, position))


def remove(db: apsw.Connection, positions: Iterable[int]) -> None:
    """Forget the facts of entries that are removed."""
    db.executemany(REMOVE, ((position,) for position in positions))
