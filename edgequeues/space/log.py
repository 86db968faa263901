"""Table `queue_entries`: the entries of every queue, by position. Every statement that touches it is in this file.

Rows with one queue_id have updated_ts rising with id (never falling), and created_ts <= updated_ts: so a time is
also a place in the queue, and whatever expires by age is a prefix of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw

from edgequeues.models import Entry

# `data` comes last: to reach a column behind a long text SQLite walks all its overflow pages.
DDL = """
CREATE TABLE queue_entries (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,  -- position, taken from the row of `store`
  version      TEXT    NOT NULL,  -- Lamport counter and writer; text order is version order
  object_id    TEXT    NOT NULL,
  queue_id     TEXT    NOT NULL,
  type_dxn     TEXT,
  created_ts   INTEGER NOT NULL,  -- unix ms; when the object was first appended
  updated_ts   INTEGER NOT NULL CHECK (updated_ts >= created_ts),  -- unix ms; when this row was
  due_ts       INTEGER,           -- unix ms; not to be handed out before
  expires_ts   INTEGER,           -- unix ms; NULL: by the queue's max_age_ms only
  ordering_key TEXT,
  priority     INTEGER NOT NULL DEFAULT 4 CHECK (priority BETWEEN 0 AND 9),
  content_type TEXT,              -- NULL: json
  headers      TEXT,              -- JSON object of strings
  size         INTEGER NOT NULL,  -- bytes of data in UTF-8
  data         TEXT    NOT NULL   -- JSON as it was received
) STRICT;
CREATE INDEX        idx_range     ON queue_entries (queue_id, id);
CREATE UNIQUE INDEX idx_object_id ON queue_entries (queue_id, object_id);
CREATE INDEX        idx_updated   ON queue_entries (queue_id, updated_ts, id, size);
CREATE INDEX        idx_type      ON queue_entries (queue_id, type_dxn, id) WHERE type_dxn IS NOT NULL;
CREATE INDEX        idx_expires   ON queue_entries (queue_id, expires_ts, updated_ts, size)
  WHERE expires_ts IS NOT NULL;
"""

# -- writing ------------------------------------------------------------------------------------------------

INSERT_ABSENT = (
    "INSERT INTO queue_entries (id, version, object_id, queue_id, type_dxn, created_ts, updated_ts, expires_ts,"
    " ordering_key, headers, size, data, due_ts, priority, content_type)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (queue_id, object_id) DO NOTHING"
)
RETRACT = "DELETE FROM queue_entries WHERE id > ?"
REMOVE = "DELETE FROM queue_entries WHERE id = ?"
FIND = (
    "SELECT id, version, created_ts, updated_ts, expires_ts, size, size = ? AND data = ?"
    " FROM queue_entries WHERE queue_id = ? AND object_id = ?"
)


class Row(NamedTuple):
    """What `insert_absent` writes of an entry, in the statement's order."""

    position: int
    version: str
    object_id: str
    queue_id: str
    type: str | None
    created: int
    updated: int
    expires: int | None
    key: str | None
    headers: str | None
    size: int
    data: str
    due: int | None
    priority: int
    content_type: str | None


class Stored(NamedTuple):
    """What is known of a stored object before it is appended again."""

    position: int
    version: str
    created: int
    updated: int
    expires: int | None
    size: int
    identical: bool


class Victim(NamedTuple):
    """An entry about to be removed. `expired`: it was invisible already, so it does not count as deleted."""

    position: int
    size: int
    expired: bool


def insert_absent(db: apsw.Connection, rows: Sequence[Row]) -> int:
    """Insert the rows whose objects are not stored yet; return how many that were."""
    before = db.total_changes()
    db.executemany(INSERT_ABSENT, rows)
    return db.total_changes() - before


def retract(db: apsw.Connection, position: int) -> None:
    """Delete whatever this turn inserted above `position`, the last one in use before it."""
    db.execute(RETRACT, (position,))


def remove(db: apsw.Connection, positions: Iterable[int]) -> None:
    """Delete entries by position."""
    db.executemany(REMOVE, ((position,) for position in positions))


def find(db: apsw.Connection, queue_id: str, object_id: str, size: int, data: str) -> Stored | None:
    """Look up an object, expired or not, and compare its data with `data` of `size` bytes."""
    row = db.execute(FIND, (size, data, queue_id, object_id)).get
    return None if row is None else Stored(*row)


# -- what to remove -----------------------------------------------------------------------------------------

AGED = "SELECT id, size, 1 FROM queue_entries WHERE queue_id = ? AND updated_ts <= ? ORDER BY updated_ts, id LIMIT ?"
LAPSED = (
    "SELECT id, size, 1 FROM queue_entries WHERE queue_id = ? AND expires_ts <= ? AND updated_ts > ?"
    " ORDER BY expires_ts, updated_ts LIMIT ?"
)
OLDEST = "SELECT id, size, 0 FROM queue_entries WHERE queue_id = ? ORDER BY updated_ts, id LIMIT ?"
BETWEEN = (
    "SELECT id, size, updated_ts <= ? OR coalesce(expires_ts <= ?, 0)"
    " FROM queue_entries WHERE queue_id = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?"
)
NAMED = (
    "SELECT id, size, updated_ts <= ? OR coalesce(expires_ts <= ?, 0)"
    " FROM queue_entries WHERE queue_id = ? AND object_id IN (SELECT value FROM json_each(?))"
)


def aged(db: apsw.Connection, queue_id: str, aged_ts: int, limit: int) -> list[Victim]:
    """Entries last appended at unix ms `aged_ts` or before, oldest first."""
    return _victims(db, AGED, (queue_id, aged_ts, limit))


def lapsed(db: apsw.Connection, queue_id: str, at: int, aged_ts: int, limit: int) -> list[Victim]:
    """Entries whose own end has come at unix ms `at`, without those that `aged` lists."""
    return _victims(db, LAPSED, (queue_id, at, aged_ts, limit))


def oldest(db: apsw.Connection, queue_id: str, limit: int) -> list[Victim]:
    """The entries at the front. Only right where none of them has expired."""
    return _victims(db, OLDEST, (queue_id, limit))


def between(
    db: apsw.Connection, queue_id: str, low: int, through: int, limit: int, *, at: int, aged_ts: int
) -> list[Victim]:
    """Entries with positions above `low`, up to and including `through`, lowest first."""
    asked = (aged_ts, at, queue_id, low, through, limit)
    return _victims(db, BETWEEN, asked)


def named(
    db: apsw.Connection, queue_id: str, object_ids: Sequence[str], *, at: int, aged_ts: int
) -> list[Victim]:
    """The entries of these objects, in no particular order."""
    asked = (aged_ts, at, queue_id, json.dumps(object_ids))
    return _victims(db, NAMED, asked)


def _victims(db: apsw.Connection, statement: str, asked: tuple[object, ...]) -> list[Victim]:
    rows: list[tuple[Any, ...]] = db.execute(statement, asked).fetchall()
    return [Victim(*row) for row in rows]


# -- times and counts ---------------------------------------------------------------------------------------

PASSED = (
    "SELECT id FROM queue_entries WHERE queue_id = ? AND updated_ts <= ?"
    " ORDER BY updated_ts DESC, id DESC LIMIT 1"
)
NEXT_AGE = "SELECT min(updated_ts) FROM queue_entries WHERE queue_id = ? AND updated_ts > ?"
NEXT_END = "SELECT min(expires_ts) FROM queue_entries WHERE queue_id = ? AND expires_ts > ?"
OLDEST_LIVE = (
    "SELECT updated_ts FROM queue_entries WHERE queue_id = ? AND updated_ts > ?"
    " AND (expires_ts IS NULL OR expires_ts > ?) ORDER BY updated_ts, id LIMIT 1"
)
COUNT_AGED = (
    "SELECT count(*), coalesce(sum(size), 0) FROM queue_entries WHERE queue_id = ? AND updated_ts <= ?"
)
COUNT_LAPSED = (
    "SELECT count(*), coalesce(sum(size), 0) FROM queue_entries"
    " WHERE queue_id = ? AND expires_ts <= ? AND updated_ts > ?"
)


def passed(db: apsw.Connection, queue_id: str, ts: int) -> int:
    """Position of the last entry appended at unix ms `ts` or before; 0 if there is none."""
    position: int | None = db.execute(PASSED, (queue_id, ts)).get
    return position or 0


def next_age(db: apsw.Connection, queue_id: str, ts: int) -> int | None:
    """Earliest updated_ts after unix ms `ts`."""
    updated: int | None = db.execute(NEXT_AGE, (queue_id, ts)).get
    return updated


def next_end(db: apsw.Connection, queue_id: str, ts: int) -> int | None:
    """Earliest expires_ts after unix ms `ts`."""
    expires: int | None = db.execute(NEXT_END, (queue_id, ts)).get
    return expires


def oldest_live(db: apsw.Connection, queue_id: str, at: int, aged_ts: int) -> int | None:
    """The updated_ts of the first entry that has not expired."""
    updated: int | None = db.execute(OLDEST_LIVE, (queue_id, aged_ts, at)).get
    return updated


def count_expired(db: apsw.Connection, queue_id: str, at: int, aged_ts: int) -> tuple[int, int]:
    """Entries that have expired but are still stored, and the bytes of their data. Read from indexes alone."""
    by_age = db.execute(COUNT_AGED, (queue_id, aged_ts)).get
    by_end = db.execute(COUNT_LAPSED, (queue_id, at, aged_ts)).get
    return by_age[0] + by_end[0], by_age[1] + by_end[1]


# -- reading ------------------------------------------------------------------------------------------------

COLUMNS = (  # in the order of the fields of Entry
    "object_id, id, version, type_dxn, created_ts, updated_ts, expires_ts, ordering_key, headers, data,"
    " content_type, priority, due_ts"
)
GET = (
    f"SELECT {COLUMNS} FROM queue_entries WHERE queue_id = ? AND object_id = ?"
    " AND updated_ts > ? AND (expires_ts IS NULL OR expires_ts > ?)"
)
AT = f"SELECT {COLUMNS} FROM queue_entries WHERE id = ?"
ARRIVALS = (
    "SELECT id, ordering_key, priority, due_ts, size FROM queue_entries WHERE queue_id = ? AND id > ?"
    " ORDER BY id LIMIT ?"
)
KEEP_UNTIL = (
    "UPDATE queue_entries SET expires_ts = min(coalesce(expires_ts, 9223372036854775807), ?) WHERE id = ?"
)
_LIVE = "(expires_ts IS NULL OR expires_ts > ?) AND created_ts BETWEEN ? AND ?"
_ANY = "FROM queue_entries WHERE queue_id = ? AND id > ? AND id < ?"
_TYPED = "FROM queue_entries WHERE queue_id = ? AND type_dxn = ? AND id > ? AND id < ?"
SCANS = {  # (reverse, typed)
    (False, False): f"SELECT {COLUMNS} {_ANY} AND {_LIVE} ORDER BY id LIMIT ?",
    (False, True): f"SELECT {COLUMNS} {_TYPED} AND {_LIVE} ORDER BY id LIMIT ?",
    (True, False): f"SELECT {COLUMNS} {_ANY} AND {_LIVE} ORDER BY id DESC LIMIT ?",
    (True, True): f"SELECT {COLUMNS} {_TYPED} AND {_LIVE} ORDER BY id DESC LIMIT ?",
}
WINDOWS = {  # (reverse, typed)
    (False, False): f"SELECT id {_ANY} ORDER BY id LIMIT 1 OFFSET ?",
    (False, True): f"SELECT id {_TYPED} ORDER BY id LIMIT 1 OFFSET ?",
    (True, False): f"SELECT id {_ANY} ORDER BY id DESC LIMIT 1 OFFSET ?",
    (True, True): f"SELECT id {_TYPED} ORDER BY id DESC LIMIT 1 OFFSET ?",
}
POSITIONS = (
    "SELECT id FROM queue_entries WHERE queue_id = ? AND object_id IN (SELECT value FROM json_each(?))"
)
_PICK = (
    f"SELECT {COLUMNS} FROM queue_entries WHERE id IN (SELECT value FROM json_each(?))"
    f" AND (? IS NULL OR type_dxn = ?) AND {_LIVE}"
)
PICKS = {  # reverse
    False: f"{_PICK} ORDER BY id LIMIT ?",
    True: f"{_PICK} ORDER BY id DESC LIMIT ?",
}


class Range(NamedTuple):
    """Which entries a scan gives: positions between `low` and `high`, both exclusive, that pass the filters.

    at: unix ms; what expired by then is left out. since, until: bounds on created_ts, inclusive.
    """

    queue_id: str
    low: int
    high: int
    reverse: bool
    type: str | None
    at: int
    since: int
    until: int


def get(db: apsw.Connection, queue_id: str, object_id: str, at: int, aged_ts: int) -> Entry | None:
    """The entry of an object, unless it has expired."""
    row = db.execute(GET, (queue_id, object_id, aged_ts, at)).get
    return None if row is None else Entry(*row)


def at(db: apsw.Connection, position: int) -> Entry | None:
    """The entry at a position, expired or not."""
    row = db.execute(AT, (position,)).get
    return None if row is None else Entry(*row)


def arrivals(db: apsw.Connection, queue_id: str, low: int, limit: int) -> list[tuple[Any, ...]]:
    """Position, key, priority, due time and size of entries above `low`, lowest first."""
    return db.execute(ARRIVALS, (queue_id, low, limit)).fetchall()


def keep_until(db: apsw.Connection, positions: Iterable[int], ts: int) -> None:
    """Have entries expire at unix ms `ts`, unless they do so sooner."""
    db.executemany(KEEP_UNTIL, [(ts, position) for position in positions])


NAMING = (
    "SELECT id, size, queue_id, coalesce(:event IN (json_extract(data, '$.id'), json_extract(data, '$.event.id'),"
    " json_extract(data, '$.originalMessage.id'), CASE WHEN json_type(data) = 'text' AND json_valid(data ->> '$')"
    " THEN json_extract(data ->> '$', '$.id') END), 0) FROM queue_entries WHERE id > :after ORDER BY id LIMIT :limit"
)


def naming(
    db: apsw.Connection, event_id: str, after: int, *, rows_max: int, bytes_max: int
) -> tuple[list[tuple[str, Victim]], int | None]:
    """Entries above position `after`, in whatever queue, whose data is of an event, each with its queue.

    About `rows_max` entries or `bytes_max` of data are looked through. The second value: up to where, if not to the
    end.
    """
    found: list[tuple[str, Victim]] = []
    cursor = db.execute(NAMING, {"event": event_id, "after": after, "limit": rows_max})
    looked, room, last = 0, bytes_max, after
    try:
        for last, size, queue_id, names_it in cursor:
            looked, room = looked + 1, room - size
            if names_it:
                found.append((queue_id, Victim(last, size, False)))
            if room <= 0:
                return found, last
    finally:
        cursor.close()  # a half-read statement would keep the transaction from committing
    return found, last if looked == rows_max else None


def window(db: apsw.Connection, wanted: Range, rows: int) -> int | None:
    """Position of the `rows`-th entry of the range before all filters but the type; None if it has fewer."""
    kind = () if wanted.type is None else (wanted.type,)
    asked = (wanted.queue_id, *kind, wanted.low, wanted.high, rows - 1)
    position: int | None = db.execute(WINDOWS[wanted.reverse, wanted.type is not None], asked).get
    return position


def scan(db: apsw.Connection, wanted: Range, *, entries_max: int, bytes_max: int) -> tuple[list[Entry], bool]:
    """Entries of the range until it ends, or there are `entries_max`, or about `bytes_max` of data.

    The second value: is there a further one?
    """
    kind = () if wanted.type is None else (wanted.type,)
    filters = (wanted.at, wanted.since, wanted.until)
    asked = (wanted.queue_id, *kind, wanted.low, wanted.high, *filters, entries_max + 1)
    cursor = db.execute(SCANS[wanted.reverse, wanted.type is not None], asked)
    return _take(cursor, entries_max, bytes_max)


def positions(db: apsw.Connection, queue_id: str, object_ids: Sequence[str]) -> list[int]:
    """Where these objects are stored, lowest first; those that are not have none."""
    rows: list[tuple[Any, ...]] = db.execute(POSITIONS, (queue_id, json.dumps(object_ids))).fetchall()
    return sorted(row[0] for row in rows)


def pick(
    db: apsw.Connection, where: Sequence[int], wanted: Range, *, entries_max: int, bytes_max: int
) -> tuple[list[Entry], bool]:
    """Like `scan`, of the entries at these positions, which are within the range."""
    filters = (wanted.at, wanted.since, wanted.until)
    asked = (json.dumps(where), wanted.type, wanted.type, *filters, entries_max + 1)
    return _take(db.execute(PICKS[wanted.reverse], asked), entries_max, bytes_max)


def _take(cursor: apsw.Cursor, entries_max: int, bytes_max: int) -> tuple[list[Entry], bool]:
    entries: list[Entry] = []
    room = bytes_max
    try:
        # Row by row: a thousand rows of the largest size, fetched at once, would be gigabytes.
        for row in cursor:
            if room <= 0 or len(entries) == entries_max:
                return entries, True
            entry = Entry(*row)
            entries.append(entry)
            room -= len(entry.data)
    finally:
        cursor.close()  # a half-read statement would keep the transaction from committing
    return entries, False
