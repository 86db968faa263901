"""Table `rates`: how far ahead of their pace queues are worked, all of one or key by key, while they are."""

from __future__ import annotations

import apsw

from edgequeues.spec.pacing import Taken

DDL = """
CREATE TABLE rates (
  queue_id   TEXT    NOT NULL,
  key        TEXT    NOT NULL,  -- '' where messages are not told apart
  arrival_us INTEGER NOT NULL,  -- unix us; when what was let through would have come, had it come evenly
  next_us    INTEGER NOT NULL,  -- unix us; when the first may go that is not put off yet
  until_us   INTEGER NOT NULL,  -- unix us; the row says nothing any more from then on
  PRIMARY KEY (queue_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX rates_until ON rates (until_us);
"""
GET = "SELECT arrival_us, next_us FROM rates WHERE queue_id = ? AND key = ?"
PUT = "INSERT OR REPLACE INTO rates (queue_id, key, arrival_us, next_us, until_us) VALUES (?, ?, ?, ?, ?)"
SWEEP = (
    "DELETE FROM rates WHERE (queue_id, key) IN (SELECT queue_id, key FROM rates WHERE until_us <= ?"
    " ORDER BY until_us LIMIT ?)"
)
SOONEST = "SELECT min(until_us) FROM rates"
REMOVE = "DELETE FROM rates WHERE queue_id = ?"


def get(db: apsw.Connection, queue_id: str, key: str) -> Taken:
    """What was let through of a key."""
    row = db.execute(GET, (queue_id, key)).fetchone()
    return Taken() if row is None else Taken(*row)


def put(db: apsw.Connection, queue_id: str, key: str, taken: Taken) -> None:
    """Note it."""
    db.execute(PUT, (queue_id, key, *taken, max(taken)))


def sweep(db: apsw.Connection, at_us: int, limit: int) -> None:
    """Forget up to `limit` rows that say nothing any more at unix us `at_us`."""
    db.execute(SWEEP, (at_us, limit))


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms from which on a row says nothing any more."""
    found: int | None = db.execute(SOONEST).get
    return None if found is None else found // 1_000 + 1


def remove(db: apsw.Connection, queue_id: str) -> None:
    """Forget all of a queue, whose pace is another from now on."""
    db.execute(REMOVE, (queue_id,))
