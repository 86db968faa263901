"""Table `deliveries`: where each message stands with each consumer. Every statement that changes it is in this file.

A line is what must be handled one after the other: the messages of one ordering key, or of the whole queue. Only the
first of a line, its head, is ever scheduled, ready, leased or in back-off; all others are `waiting`. So pulling never
looks at a message that is not its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw

from edgequeues.core import ageing
from edgequeues.core.lifecycle import State
from edgequeues.models import Entry
from edgequeues.space import log

ENTRY = ", ".join(f"e.{column}" for column in log.COLUMNS.split(", "))

# The states are named one by one: for IN, SQLite fills a table with the list whenever it runs a statement.
DDL = """
CREATE TABLE deliveries (
  consumer_id INTEGER NOT NULL,
  entry_id    INTEGER NOT NULL,  -- position of the entry
  state       TEXT    NOT NULL
    CHECK (state = 'ready' OR state = 'leased' OR state = 'waiting' OR state = 'scheduled' OR state = 'backoff'),
  rank        INTEGER NOT NULL CHECK (rank BETWEEN 0 AND 9),  -- 9 - priority
  turn        INTEGER NOT NULL,  -- among those of a rank: lower is handed out sooner
  line        TEXT,              -- NULL: in no line
  due_ts      INTEGER,           -- unix ms; scheduled, backoff: ready then; leased: lapses then
  attempts    INTEGER NOT NULL CHECK (attempts >= 0),  -- leases given that count
  serial      INTEGER NOT NULL CHECK (serial >= 0),    -- leases given; part of the lease's token
  open        INTEGER NOT NULL CHECK (open IN (0, 1)), -- has the newest lease not been answered yet?
  worker      TEXT,              -- who was given it last, as he calls himself
  first_ts    INTEGER,           -- unix ms of the first lease
  last_ts     INTEGER,           -- unix ms of the newest lease
  last_error  TEXT,
  ready_ts    INTEGER,           -- unix ms at which it became ready again, or its turn came; NULL: it was not so yet
  size        INTEGER NOT NULL,  -- bytes of the entry's data
  PRIMARY KEY (consumer_id, entry_id),
  CHECK ((state = 'leased' OR state = 'scheduled' OR state = 'backoff') = (due_ts IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_ready ON deliveries (consumer_id, rank, turn) WHERE state = 'ready';
CREATE INDEX deliveries_due   ON deliveries (due_ts) WHERE due_ts IS NOT NULL;
CREATE INDEX deliveries_line  ON deliveries (consumer_id, line, entry_id) WHERE line IS NOT NULL;
CREATE INDEX deliveries_entry ON deliveries (entry_id);
"""

# -- making -------------------------------------------------------------------------------------------------

INSERT = (
    "INSERT INTO deliveries (consumer_id, entry_id, state, rank, turn, line, due_ts, size, attempts, serial, open)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0)"
)
BUSY = "SELECT line FROM deliveries WHERE consumer_id = ? AND line = ? LIMIT 1"


class Made(NamedTuple):
    """A new delivery, in the order of the statement."""

    consumer_id: int
    entry_id: int
    state: State
    rank: int
    turn: int
    line: str | None
    due: int | None
    size: int


def insert(db: apsw.Connection, rows: Sequence[Made]) -> None:
    """Make deliveries."""
    db.executemany(INSERT, rows)


def busy(db: apsw.Connection, consumer_id: int, lines: Iterable[str]) -> set[str]:
    """Those of the lines that hold a message already."""
    rows: list[tuple[Any, ...]] = db.executemany(BUSY, [(consumer_id, line) for line in lines]).fetchall()
    return {line for (line,) in rows}


# -- handing out --------------------------------------------------------------------------------------------

READY = (
    f"SELECT d.attempts, d.serial, {ENTRY} FROM deliveries d JOIN queue_entries e ON e.id = d.entry_id"
    " WHERE d.consumer_id = ? AND d.state = 'ready' ORDER BY d.rank, d.turn LIMIT ?"
)
FIRST_OF_RANK = (
    "SELECT d.entry_id, coalesce(d.ready_ts, e.due_ts, e.updated_ts)"
    " FROM deliveries d JOIN queue_entries e ON e.id = d.entry_id"
    " WHERE d.consumer_id = ? AND d.rank = ? AND d.state = 'ready' ORDER BY d.turn LIMIT ?"
)
STARVING = (  # one seek a priority
    "SELECT 1 FROM json_each('[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]')"
    " WHERE (SELECT coalesce(d.ready_ts, e.due_ts, e.updated_ts)"
    " FROM deliveries d JOIN queue_entries e ON e.id = d.entry_id"
    " WHERE d.consumer_id = ? AND d.rank = json_each.value AND d.state = 'ready' ORDER BY d.turn LIMIT 1) <= ?"
    " LIMIT 1"
)
CANDIDATE = (
    f"SELECT d.attempts, d.serial, {ENTRY} FROM deliveries d JOIN queue_entries e ON e.id = d.entry_id"
    " WHERE d.consumer_id = ? AND d.entry_id = ?"
)
LEASE = (
    "UPDATE deliveries SET state = 'leased', attempts = attempts + 1, serial = serial + 1, open = 1, worker = ?,"
    " first_ts = coalesce(first_ts, ?), last_ts = ?, due_ts = ? WHERE consumer_id = ? AND entry_id = ?"
)
EXTEND = "UPDATE deliveries SET due_ts = ? WHERE consumer_id = ? AND entry_id = ?"


class Candidate(NamedTuple):
    """A message that may be handed out. attempts, serial: before that."""

    attempts: int
    serial: int
    entry: Entry


def ready(db: apsw.Connection, consumer_id: int, limit: int, bytes_max: int) -> list[Candidate]:
    """The next messages of a consumer, up to `limit` and about `bytes_max` of data, one at least if there is one."""
    found: list[Candidate] = []
    cursor = db.execute(READY, (consumer_id, limit))
    try:
        for attempts, serial, *entry in cursor:
            if bytes_max <= 0:
                break
            found.append(Candidate(attempts, serial, Entry(*entry)))
            bytes_max -= len(found[-1].entry.data)
    finally:
        cursor.close()
    return found


def ready_by_age(
    db: apsw.Connection, consumer_id: int, limit: int, bytes_max: int, *, starved_ts: int
) -> list[Candidate]:
    """As `ready`, but what has been ready since unix ms `starved_ts` goes before all else."""
    if db.execute(STARVING, (consumer_id, starved_ts)).get is None:
        return ready(db, consumer_id, limit, bytes_max)  # then none starves before it is its turn anyway
    ranks: list[list[Any]] = [
        db.execute(FIRST_OF_RANK, (consumer_id, rank, limit)).fetchall() for rank in range(10)
    ]
    found: list[Candidate] = []
    for position in ageing.order(ranks, starved_ts, limit):
        if bytes_max <= 0:
            break
        attempts, serial, *entry = db.execute(CANDIDATE, (consumer_id, position)).get
        found.append(Candidate(attempts, serial, Entry(*entry)))
        bytes_max -= len(found[-1].entry.data)
    return found


def lease(
    db: apsw.Connection,
    consumer_id: int,
    positions: Iterable[int],
    *,
    worker: str | None,
    at: int,
    until: int,
) -> None:
    """Hand messages out. This statement is what counts attempts, so that a crash of the worker counts too."""
    db.executemany(LEASE, [(worker, at, at, until, consumer_id, position) for position in positions])


def extend(db: apsw.Connection, consumer_id: int, position: int, until: int) -> None:
    """Move the end of a lease."""
    db.execute(EXTEND, (until, consumer_id, position))


# -- looking at one -----------------------------------------------------------------------------------------

COLUMNS = (
    "consumer_id, entry_id, state, rank, turn, line, due_ts, attempts, serial, open, worker, first_ts, last_ts,"
    " last_error, size"
)
GET = f"SELECT {COLUMNS} FROM deliveries WHERE consumer_id = ? AND entry_id = ?"
OF_ENTRY = f"SELECT {COLUMNS} FROM deliveries WHERE entry_id = ?"
DUE = f"SELECT {COLUMNS} FROM deliveries WHERE due_ts <= ? ORDER BY due_ts LIMIT ?"
SOONEST = "SELECT min(due_ts) FROM deliveries WHERE due_ts IS NOT NULL"
SOME = f"SELECT {COLUMNS} FROM deliveries WHERE consumer_id = ? LIMIT ?"
OF_LINE = (
    f"SELECT {COLUMNS} FROM deliveries INDEXED BY deliveries_line WHERE consumer_id = ? AND line = ?"
    " AND entry_id <= ? ORDER BY entry_id DESC LIMIT ?"
)
LEASED_BY = (
    f"SELECT {COLUMNS} FROM deliveries INDEXED BY deliveries_due WHERE due_ts IS NOT NULL"
    " AND state = 'leased' AND consumer_id = ? AND worker = ? LIMIT ?"
)
ANY_LEASED = "SELECT 1 FROM deliveries WHERE entry_id = ? AND state = 'leased'"


class Delivery(NamedTuple):
    """A row, in the order of the columns."""

    consumer_id: int
    position: int
    state: State
    rank: int
    turn: int
    line: str | None
    due: int | None
    attempts: int
    serial: int
    open: int
    worker: str | None
    first: int | None
    last: int | None
    error: str | None
    size: int


def get(db: apsw.Connection, consumer_id: int, position: int) -> Delivery | None:
    """The delivery of an entry to a consumer, if it is unfinished."""
    row = db.execute(GET, (consumer_id, position)).get
    return None if row is None else Delivery(*row)


def among(db: apsw.Connection, consumer_id: int, positions: Iterable[int]) -> dict[int, Delivery]:
    """The unfinished deliveries of these entries to a consumer, by position."""
    rows: list[tuple[Any, ...]] = db.executemany(GET, [(consumer_id, one) for one in positions]).fetchall()
    return {row.position: row for row in map(Delivery._make, rows)}


def is_leased(db: apsw.Connection, position: int) -> bool:
    """Is an entry handed out to anybody?"""
    return db.execute(ANY_LEASED, (position,)).get is not None


def of_entry(db: apsw.Connection, position: int) -> list[Delivery]:
    """The unfinished deliveries of an entry."""
    return _rows(db.execute(OF_ENTRY, (position,)).fetchall())


def due(db: apsw.Connection, at: int, limit: int) -> list[Delivery]:
    """Deliveries whose time has come at unix ms `at`, longest due first."""
    return _rows(db.execute(DUE, (at, limit)).fetchall())


def left_of(db: apsw.Connection, rows: Iterable[Delivery]) -> list[Delivery]:
    """Those of the deliveries that are still there."""
    return [row for row in rows if get(db, row.consumer_id, row.position) is not None]


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms at which the next delivery of the space is due."""
    due_ms: int | None = db.execute(SOONEST).get
    return due_ms


def some(db: apsw.Connection, consumer_id: int, limit: int) -> list[Delivery]:
    """Any deliveries of a consumer."""
    return _rows(db.execute(SOME, (consumer_id, limit)).fetchall())


def of_line(db: apsw.Connection, consumer_id: int, line: str, through: int, limit: int) -> list[Delivery]:
    """The newest deliveries of a line at positions up to `through`, the newest first."""
    return _rows(db.execute(OF_LINE, (consumer_id, line, through, limit)).fetchall())


def leased_by(db: apsw.Connection, consumer_id: int, worker: str, limit: int) -> list[Delivery]:
    """What a worker was handed and has not answered. Looks at all that is due at some time."""
    return _rows(db.execute(LEASED_BY, (consumer_id, worker, limit)).fetchall())


# -- moving on ----------------------------------------------------------------------------------------------

RELEASE = (
    "UPDATE deliveries SET state = ?, due_ts = ?, attempts = ?, open = ?, last_error = coalesce(?, last_error),"
    " ready_ts = ? WHERE consumer_id = ? AND entry_id = ?"
)
READY_NOW = (
    "UPDATE deliveries SET state = 'ready', ready_ts = due_ts, due_ts = NULL"
    " WHERE consumer_id = ? AND entry_id = ?"
)
HURRY = "UPDATE deliveries SET state = 'ready', ready_ts = ?, due_ts = NULL WHERE consumer_id = ? AND entry_id = ?"
ADVANCE = "UPDATE deliveries SET state = ?, due_ts = ?, ready_ts = ?, turn = ? WHERE consumer_id = ? AND entry_id = ?"
HOLD = "UPDATE deliveries SET state = ?, due_ts = ? WHERE consumer_id = ? AND entry_id = ?"
REMOVE = "DELETE FROM deliveries WHERE consumer_id = ? AND entry_id = ?"
HEAD = (
    "SELECT d.entry_id, d.state, e.due_ts FROM deliveries d INDEXED BY deliveries_line"
    " JOIN queue_entries e ON e.id = d.entry_id"
    " WHERE d.consumer_id = ? AND d.line = ? ORDER BY d.entry_id LIMIT 1"
)


class Head(NamedTuple):
    """The first message of a line. due: unix ms before which it is not to be handed out."""

    position: int
    state: State
    due: int | None


def give_back(
    db: apsw.Connection,
    row: Delivery,
    state: State,
    *,
    due: int | None,
    attempts: int,
    open: bool,
    error: str | None,
    at: int | None,
) -> None:
    """End a lease at unix ms `at` without finishing the delivery. open: may its holder still ack it?"""
    ready = at if state == "ready" else None
    db.execute(RELEASE, (state, due, attempts, open, error, ready, row.consumer_id, row.position))


def hold(db: apsw.Connection, consumer_id: int, position: int, state: State, until: int) -> None:
    """Put off what is ready until unix ms `until`."""
    db.execute(HOLD, (state, until, consumer_id, position))


def make_ready(db: apsw.Connection, rows: Iterable[Delivery]) -> None:
    """Their time has come."""
    db.executemany(READY_NOW, [(row.consumer_id, row.position) for row in rows])


def hurry(db: apsw.Connection, row: Delivery, at: int) -> None:
    """Have one be ready at unix ms `at`, before its time."""
    db.execute(HURRY, (at, row.consumer_id, row.position))


def advance(
    db: apsw.Connection,
    consumer_id: int,
    head: Head,
    state: State,
    due: int | None,
    turn: int,
    at: int,
) -> None:
    """It is this message's turn in its line, at unix ms `at`."""
    ready = at if state == "ready" else None
    db.execute(ADVANCE, (state, due, ready, turn, consumer_id, head.position))


def remove(db: apsw.Connection, rows: Iterable[tuple[int, int]]) -> None:
    """Forget deliveries, by consumer and position."""
    db.executemany(REMOVE, rows)


def head(db: apsw.Connection, consumer_id: int, line: str) -> Head | None:
    """The first message of a line."""
    row = db.execute(HEAD, (consumer_id, line)).get
    return None if row is None else Head(*row)


def _rows(rows: Iterable[tuple[Any, ...]]) -> list[Delivery]:
    return [Delivery(*row) for row in rows]
