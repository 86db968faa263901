"""Table `attempts`: how the newest attempts ended that were not acked. Rows go when their delivery is finished.

A lease that ended because its message was replaced by a newer version is remembered a while longer, so that its
holder is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import apsw

Ending = Literal["retried", "lapsed", "released", "failed", "superseded"]

KEPT = 100  # of one delivery, so that what fails for ever does not grow for ever

DDL = """
CREATE TABLE attempts (
  consumer_id INTEGER NOT NULL,
  entry_id    INTEGER NOT NULL,
  serial      INTEGER NOT NULL,  -- of the lease
  attempt     INTEGER NOT NULL,  -- its number among those that count
  ending      TEXT    NOT NULL CHECK (  -- one by one: for IN, SQLite fills a table in every statement
    ending = 'retried' OR ending = 'lapsed' OR ending = 'released' OR ending = 'failed' OR ending = 'superseded'
  ),
  worker      TEXT,
  began_ts    INTEGER NOT NULL,  -- unix ms
  ended_ts    INTEGER NOT NULL,  -- unix ms
  error       TEXT,
  PRIMARY KEY (consumer_id, entry_id, serial)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_superseded ON attempts (ended_ts) WHERE ending = 'superseded';
"""
INSERT = (
    "INSERT OR REPLACE INTO attempts"
    " (consumer_id, entry_id, serial, attempt, ending, worker, began_ts, ended_ts, error)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
OF = (
    "SELECT serial, attempt, ending, worker, began_ts, ended_ts, error FROM attempts"
    " WHERE consumer_id = ? AND entry_id = ? ORDER BY serial"
)
ENDING = "SELECT ending FROM attempts WHERE consumer_id = ? AND entry_id = ? AND serial = ?"
REMOVE = "DELETE FROM attempts WHERE consumer_id = ? AND entry_id = ?"
REMOVE_OLD = "DELETE FROM attempts WHERE consumer_id = ? AND entry_id = ? AND serial <= ?"
REMOVE_SUPERSEDED = (
    "DELETE FROM attempts WHERE (consumer_id, entry_id, serial) IN (SELECT consumer_id, entry_id, serial"
    " FROM attempts WHERE ending = 'superseded' AND ended_ts <= ? LIMIT ?)"
)


class Attempt(NamedTuple):
    """How one attempt ended."""

    serial: int
    attempt: int
    ending: Ending
    worker: str | None
    began: int
    ended: int
    error: str | None


def insert(db: apsw.Connection, consumer_id: int, position: int, attempt: Attempt) -> None:
    """Write down how an attempt ended; forget what is older than the KEPT newest."""
    serial, number, ending, worker, began, ended, error = attempt
    db.execute(INSERT, (consumer_id, position, serial, number, ending, worker, began, ended, error))
    if serial > KEPT:
        db.execute(REMOVE_OLD, (consumer_id, position, serial - KEPT))


def of(db: apsw.Connection, consumer_id: int, position: int) -> list[Attempt]:
    """The attempts at a message that have ended, in order, as far as they are kept."""
    rows: list[tuple[Any, ...]] = db.execute(OF, (consumer_id, position)).fetchall()
    return [Attempt(*row) for row in rows]


def ending(db: apsw.Connection, consumer_id: int, position: int, serial: int) -> Ending | None:
    """How this attempt ended, if it is still known."""
    found: Ending | None = db.execute(ENDING, (consumer_id, position, serial)).get
    return found


def remove(db: apsw.Connection, deliveries: Iterable[tuple[int, int]]) -> None:
    """Forget the attempts of these deliveries, given by consumer and position."""
    db.executemany(REMOVE, deliveries)


def sweep(db: apsw.Connection, ended_ts: int, limit: int) -> None:
    """Forget leases superseded at that unix ms or before."""
    db.execute(REMOVE_SUPERSEDED, (ended_ts, limit))
