"""Table `schedules`: the messages that specs have made again and again, and when each is due next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import apsw

DDL = """
CREATE TABLE schedules (
  name       TEXT    NOT NULL PRIMARY KEY,
  app        TEXT    NOT NULL,  -- whose spec declares it
  spec       TEXT    NOT NULL,  -- and how: JSON of a ScheduleSpec
  next_ts    INTEGER,           -- unix ms; the next time for which no message was made yet. NULL: there is none
  look_ts    INTEGER,           -- unix ms at which the alarm looks at it; later than next_ts while it has to wait
  last_ts    INTEGER,           -- unix ms; the last time for which a message was made
  made       INTEGER NOT NULL,  -- messages
  last_error TEXT               -- why none was made the last time; NULL: one was
) STRICT, WITHOUT ROWID;
CREATE INDEX schedules_look ON schedules (look_ts) WHERE look_ts IS NOT NULL;
CREATE INDEX schedules_app ON schedules (app);
"""
_COLUMNS = "name, app, spec, next_ts, look_ts, last_ts, made, last_error"
GET = f"SELECT {_COLUMNS} FROM schedules WHERE name = ?"
PAGE = f"SELECT {_COLUMNS} FROM schedules WHERE name > ? ORDER BY name LIMIT ?"
OF_APP = f"SELECT {_COLUMNS} FROM schedules WHERE app = ? ORDER BY name"
DUE = f"SELECT {_COLUMNS} FROM schedules WHERE look_ts <= ? ORDER BY look_ts LIMIT ?"
SOONEST = "SELECT min(look_ts) FROM schedules WHERE look_ts IS NOT NULL"
PUT = f"INSERT OR REPLACE INTO schedules ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
REMOVE = "DELETE FROM schedules WHERE name = ?"


class Schedule(NamedTuple):
    """A row. spec: JSON."""

    name: str
    app: str
    spec: str
    next_ts: int | None
    look_ts: int | None
    last_ts: int | None = None
    made: int = 0
    last_error: str | None = None


def get(db: apsw.Connection, name: str) -> Schedule | None:
    """The schedule of this name, if there is one."""
    row = db.execute(GET, (name,)).fetchone()
    return None if row is None else Schedule(*row)


def page(db: apsw.Connection, after: str, limit: int) -> list[Schedule]:
    """Up to `limit` schedules, by name from above `after`."""
    return _rows(db.execute(PAGE, (after, limit)))


def of_app(db: apsw.Connection, app: str) -> list[Schedule]:
    """The schedules that the spec of an app declares."""
    return _rows(db.execute(OF_APP, (app,)))


def due(db: apsw.Connection, at: int, limit: int) -> list[Schedule]:
    """Up to `limit` schedules to be looked at by unix ms `at`, the most overdue first."""
    return _rows(db.execute(DUE, (at, limit)))


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms at which the next one is to be looked at."""
    found: int | None = db.execute(SOONEST).get
    return found


def put(db: apsw.Connection, schedule: Schedule) -> None:
    """Keep a schedule as it is now."""
    db.execute(PUT, schedule)


def remove(db: apsw.Connection, name: str) -> None:
    """Forget a schedule."""
    db.execute(REMOVE, (name,))


def _rows(found: Iterable[tuple[object, ...]]) -> list[Schedule]:
    return [Schedule(*row) for row in found]  # type: ignore[arg-type]
