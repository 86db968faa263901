"""Table `dead_letters`: the facts of each dead letter. Its message is an entry of an ordinary queue, as it was."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import apsw
from msgspec import Struct

from edgequeues.models import UNIX_MS_MAX, Entry
from edgequeues.models_letters import LetterFilter
from edgequeues.space import log
from edgequeues.spec import conditions
from edgequeues.spec.conditions import CONDITION_BYTES, CONDITIONS_MAX

ENTRY = ", ".join(f"e.{column}" for column in log.COLUMNS.split(", "))

# `errors` comes last: it may be long, and what comes after a long text is slow to reach.
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
  attempts      INTEGER NOT NULL,
  first_seen_ts INTEGER NOT NULL,     -- unix ms of the first lease; of the append where there was none
  last_seen_ts  INTEGER NOT NULL,     -- unix ms of the newest lease
  failed_ts     INTEGER NOT NULL,     -- unix ms
  replayed_ts   INTEGER,              -- unix ms
  replay_id     TEXT,                 -- id of the message that was made then
  replay_due_ts INTEGER,              -- unix ms at which that was due, where it was to keep a pace
  before        TEXT,                 -- JSON of its row in the queue it comes from, if it was a dead letter there
  errors        TEXT    NOT NULL      -- JSON array, one object for each attempt
) STRICT;
CREATE INDEX dead_letters_queue ON dead_letters (queue_id, entry_id);
CREATE INDEX dead_letters_open  ON dead_letters (queue_id, source_id, source_entry) WHERE replayed_ts IS NULL;
CREATE INDEX dead_letters_pace  ON dead_letters (queue_id, replay_due_ts) WHERE replay_due_ts IS NOT NULL;
"""
# Messages that were dead when they came, `malformed`; which letters come from an entry is looked up.
STEP_3 = f"""
ALTER TABLE dead_letters RENAME TO dead_letters_2;
DROP INDEX dead_letters_queue;
DROP INDEX dead_letters_open;
DROP INDEX dead_letters_pace;
{DDL.replace("'skipped')", "'skipped', 'malformed')")}
INSERT INTO dead_letters SELECT * FROM dead_letters_2;
DROP TABLE dead_letters_2;
CREATE INDEX dead_letters_source ON dead_letters (source_id, source_entry);
"""
COLUMNS = (
    "entry_id, queue_id, source_id, source_name, source_entry, object_id, consumer, reason, error, attempts,"
    " first_seen_ts, last_seen_ts, failed_ts, replayed_ts, replay_id, before, errors"
)
_LETTER = ", ".join(f"l.{column}" for column in COLUMNS.split(", "))
_PLACE = "l.source_id, l.source_entry, l.entry_id"
JOIN = "FROM dead_letters l JOIN queue_entries e ON e.id = l.entry_id"
LIVE = "e.updated_ts > :aged AND (e.expires_ts IS NULL OR e.expires_ts > :at)"

INSERT = f"INSERT INTO dead_letters ({COLUMNS}) VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))})"
GET = f"SELECT {COLUMNS} FROM dead_letters WHERE entry_id = ?"
PAGE = (
    f"SELECT {_LETTER}, {ENTRY} {JOIN} WHERE l.queue_id = :queue AND l.entry_id > :after AND {LIVE}"
    " ORDER BY l.entry_id LIMIT :limit"
)
AT = f"SELECT {_LETTER}, {ENTRY} {JOIN} WHERE l.entry_id IN (SELECT value FROM json_each(?))"
NAMED = (
    f"SELECT {_PLACE}, e.size, e.object_id {JOIN} WHERE l.entry_id IN (SELECT value FROM json_each(:positions))"
    f" AND {LIVE} ORDER BY {_PLACE}"
)
REPLAYED = "UPDATE dead_letters SET replayed_ts = ?, replay_id = ?, replay_due_ts = ? WHERE entry_id = ?"
LAST_DUE = "SELECT max(replay_due_ts) FROM dead_letters WHERE queue_id = ? AND replay_due_ts IS NOT NULL"
REPLAYED_AMONG = (
    "SELECT entry_id FROM dead_letters WHERE entry_id IN (SELECT value FROM json_each(?))"
    " AND replayed_ts IS NOT NULL"
)
AMONG = f"SELECT e.object_id {JOIN} WHERE l.entry_id IN (SELECT value FROM json_each(?))"
SUMMARIES = (
    "SELECT entry_id, error, attempts, first_seen_ts, last_seen_ts, source_name FROM dead_letters"
    " WHERE entry_id IN (SELECT value FROM json_each(?))"
)
REMOVE = "DELETE FROM dead_letters WHERE entry_id = ?"
FROM_ENTRY = (
    "SELECT replayed_ts FROM dead_letters WHERE source_id = ? AND source_entry = ?"
    " ORDER BY entry_id DESC LIMIT 1"
)
WAITING_FROM = "SELECT count(*) FROM dead_letters WHERE source_id = ? AND replayed_ts IS NULL"

# -- by filter: every row is looked at and says whether it is wanted, so that a turn can stop anywhere ------

_WANTED = (
    f"coalesce({LIVE} AND l.entry_id <= :through AND l.failed_ts BETWEEN :since AND :until"
    " AND (:reasons IS NULL OR l.reason IN (SELECT value FROM json_each(:reasons)))"
    " AND (:source IS NULL OR l.source_id = :source OR (:by_name AND l.source_name = :source))"
    " AND (:key IS NULL OR e.ordering_key = :key) AND (:type IS NULL OR e.type_dxn = :type)"
    " AND (:error IS NULL OR instr(l.error, :error) > 0)"
    " AND (:replayed IS NULL OR (l.replayed_ts IS NOT NULL) = :replayed), 0)"
)
OPEN = (  # as they were first pushed
    f"SELECT {_PLACE}, e.size, {_WANTED} {JOIN} WHERE l.queue_id = :queue AND l.replayed_ts IS NULL"
    f" AND ({_PLACE}) > (:source_id, :source_position, :position) ORDER BY {_PLACE} LIMIT :rows"
)
IN_ORDER = (  # as they came here
    f"SELECT {_PLACE}, e.size, {_WANTED} {JOIN} WHERE l.queue_id = :queue AND l.entry_id > :position"
    " ORDER BY l.entry_id LIMIT :rows"
)


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
    attempts: int
    first_seen: int
    last_seen: int
    failed: int
    replayed: int | None
    replay_id: str | None
    before: str | None
    errors: str


class Summary(NamedTuple):
    """What is told of a dead letter beside its message. first_seen, last_seen: unix ms."""

    error: str
    attempts: int
    first_seen: int
    last_seen: int
    queue: str


Holds = Callable[[Entry, DeadLetter], bool]


class Search(NamedTuple):
    """Which dead letters of a queue are wanted, at positions up to `through`.

    source_id: the queue that the filter names; None where it names none, or one that is gone.
    at, aged_ts: unix ms; what has expired by then, or was last appended by then, is not wanted.
    holds: what else is asked of each, which SQL cannot tell. scans: how often that goes through its data.
    """

    queue_id: str
    wanted: LetterFilter
    source_id: str | None
    through: int
    at: int
    aged_ts: int
    holds: Holds | None = None
    scans: int = 0


class Place(NamedTuple):
    """Where a look through the dead letters of a queue has come to."""

    source_id: str = ""
    source_position: int = 0
    position: int = 0


START = Place()


class Found(NamedTuple):
    """Dead letters that are wanted, with the bytes of their data. resume: not None when the look goes on there."""

    places: list[tuple[Place, int]]
    resume: Place | None


def insert(db: apsw.Connection, row: DeadLetter) -> None:
    """Write the facts of a new dead letter down."""
    db.execute(INSERT, tuple(getattr(row, name) for name in row.__struct_fields__))


def get(db: apsw.Connection, position: int) -> DeadLetter | None:
    """The facts of the entry at this position, if it is a dead letter."""
    row: Sequence[Any] | None = db.execute(GET, (position,)).get
    return None if row is None else DeadLetter(*row)


def at(db: apsw.Connection, positions: Sequence[int]) -> list[tuple[Entry, DeadLetter]]:
    """Those of the entries at these positions that are dead letters, in no particular order."""
    return list(_pairs(db.execute(AT, (json.dumps(positions),))))


def page(
    db: apsw.Connection, queue_id: str, after: int, limit: int, bytes_max: int, *, at: int, aged_ts: int
) -> list[tuple[Entry, DeadLetter]]:
    """Dead letters in a queue that have not expired, with positions above `after`, lowest first.

    Up to `limit` and about `bytes_max` of data and errors, one at least if there is one.
    """
    asked = {"queue": queue_id, "after": after, "limit": limit, "at": at, "aged": aged_ts}
    cursor = db.execute(PAGE, asked)
    found: list[tuple[Entry, DeadLetter]] = []
    try:
        for entry, letter in _pairs(cursor):
            found.append((entry, letter))
            bytes_max -= len(entry.data) + len(letter.errors)
            if bytes_max <= 0:
                break
    finally:
        cursor.close()  # a half-read statement would keep the transaction from committing
    return found


def named(
    db: apsw.Connection, positions: Sequence[int], *, at: int, aged_ts: int
) -> list[tuple[Place, int, str]]:
    """Those of the entries at these positions that are dead letters and have not expired, as they were first pushed.

    With the bytes of their data, and their ids.
    """
    asked = {"positions": json.dumps(positions), "at": at, "aged": aged_ts}
    rows: list[tuple[Any, ...]] = db.execute(NAMED, asked).fetchall()
    return [(Place(*place), size, object_id) for *place, size, object_id in rows]


def summaries(db: apsw.Connection, positions: Sequence[int]) -> dict[int, Summary]:
    """What is told of those entries that are dead letters, by position."""
    rows: list[tuple[Any, ...]] = db.execute(SUMMARIES, (json.dumps(positions),)).fetchall()
    return {position: Summary(*row) for position, *row in rows}


def look(
    db: apsw.Connection,
    search: Search,
    after: Place,
    *,
    rows_max: int,
    letters_max: int = sys.maxsize,
    bytes_max: int = sys.maxsize,
    as_they_came: bool = False,
) -> Found:
    """Look through dead letters from behind `after`, at `rows_max` of them at most.

    Those not replayed, where no other are wanted, come in the order in which their messages were first pushed; else,
    or `as_they_came`, all come by position. The look ends sooner where there are `letters_max`, or about `bytes_max`
    of data; and where `search.holds` was asked of CONDITIONS_MAX letters, or of about CONDITION_BYTES of data.
    """
    room = CONDITION_BYTES
    if search.holds is not None:
        rows_max = min(rows_max, CONDITIONS_MAX)
    asked = _asked(search) | after._asdict() | {"rows": rows_max}
    places: list[tuple[Place, int]] = []
    looked_at, last = 0, after
    in_order = as_they_came or search.wanted.replayed is not False
    cursor = db.execute(IN_ORDER if in_order else OPEN, asked)
    try:
        for source_id, source_position, position, size, is_wanted in cursor:
            if len(places) == letters_max or bytes_max <= 0 or room <= 0:
                return Found(places, last)
            looked_at += 1
            last = Place(source_id, source_position, position)
            if is_wanted and search.holds is not None:
                room -= conditions.work(size, search.scans, f"the dead letter at position {position}")
            if is_wanted and (search.holds is None or search.holds(*at(db, [position])[0])):
                places.append((last, size))
                bytes_max -= size
    finally:
        cursor.close()
    return Found(places, last if looked_at == rows_max else None)


def _asked(search: Search) -> dict[str, Any]:
    wanted = search.wanted
    return {
        "queue": search.queue_id,
        "through": search.through,
        "at": search.at,
        "aged": search.aged_ts,
        "reasons": json.dumps(wanted.reason) if wanted.reason else None,
        "source": wanted.queue if search.source_id is None else search.source_id,
        "by_name": search.source_id is None,
        "key": wanted.key,
        "type": wanted.type,
        "error": wanted.error,
        "replayed": wanted.replayed,
        "since": wanted.since or 0,
        "until": UNIX_MS_MAX if wanted.until is None else wanted.until,
    }


# -- afterwards ---------------------------------------------------------------------------------------------


class Replay(NamedTuple):
    """Of which dead letter a message was made, in the order of the statement. at, due: unix ms."""

    at: int
    message: str
    due: int | None
    position: int


def replayed(db: apsw.Connection, rows: Sequence[Replay]) -> None:
    """Note that new messages were made of them."""
    db.executemany(REPLAYED, rows)


def replayed_among(db: apsw.Connection, positions: Sequence[int]) -> set[int]:
    """Those of these positions at which there is a dead letter of which a message was made."""
    rows: list[tuple[Any, ...]] = db.execute(REPLAYED_AMONG, (json.dumps(positions),)).fetchall()
    return {position for (position,) in rows}


def among(db: apsw.Connection, positions: Sequence[int]) -> list[str]:
    """Ids of those of the entries at these positions that are dead letters."""
    rows: list[tuple[Any, ...]] = db.execute(AMONG, (json.dumps(positions),)).fetchall()
    return [object_id for (object_id,) in rows]


def last_due(db: apsw.Connection, queue_id: str) -> int | None:
    """Unix ms at which the last message is due that was made of a dead letter of this queue at a pace."""
    due: int | None = db.execute(LAST_DUE, (queue_id,)).get
    return due


def of_message(db: apsw.Connection, queue_id: str, position: int) -> Literal["dead", "replayed"] | None:
    """What became of a message as a dead letter, given by its queue and position; None: none was made of it."""
    found = db.execute(FROM_ENTRY, (queue_id, position)).fetchall()
    return None if not found else "dead" if found[0][0] is None else "replayed"


def waiting_from(db: apsw.Connection, queue_id: str) -> int:
    """How many dead letters of a queue, wherever they are, were not replayed."""
    count: int = db.execute(WAITING_FROM, (queue_id,)).get
    return count


def remove(db: apsw.Connection, positions: Iterable[int]) -> None:
    """Forget the facts of entries that are removed."""
    db.executemany(REMOVE, ((position,) for position in positions))


def _pairs(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Entry, DeadLetter]]:
    columns = len(DeadLetter.__struct_fields__)
    for row in rows:
        yield Entry(*row[columns:]), DeadLetter(*row[:columns])
