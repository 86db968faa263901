"""Table `deliveries` for those who look: what is in which state, since when, and behind what. Nothing is changed.

What one turn looks at is bounded; where that ends before what there is, the answer says where to go on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import apsw

from edgequeues.core.lifecycle import State
from edgequeues.models import Entry
from edgequeues.space.deliveries import COLUMNS, ENTRY, Delivery

# -- messages -----------------------------------------------------------------------------------------------

ROW = ", ".join(f"d.{column}" for column in COLUMNS.split(", "))
WINDOW = "SELECT entry_id FROM deliveries WHERE consumer_id = ? AND entry_id > ? ORDER BY entry_id LIMIT 1 OFFSET ?"
STANDING = (
    f"SELECT {ROW}, {ENTRY} FROM deliveries d JOIN queue_entries e ON e.id = d.entry_id"
    " WHERE d.consumer_id = ? AND d.entry_id > ? AND d.entry_id <= ?"
    " AND d.state IN (SELECT value FROM json_each(?)) ORDER BY d.entry_id LIMIT ?"
)
POSITION_MAX = (1 << 63) - 1


class Standings(NamedTuple):
    """Messages with their entries. resume: not None when there may be more: the position to go on after."""

    found: list[tuple[Delivery, Entry]]
    resume: int | None


def standing(
    db: apsw.Connection,
    consumer_id: int,
    states: Iterable[State],
    after: int,
    limit: int,
    *,
    rows_max: int,
    bytes_max: int,
) -> Standings:
    """Messages in these states with positions above `after`, lowest first.

    Up to `limit` and about `bytes_max` of data, among the next `rows_max` in whatever state.
    """
    end: int | None = db.execute(WINDOW, (consumer_id, after, rows_max - 1)).get
    through = POSITION_MAX if end is None else end
    found: list[tuple[Delivery, Entry]] = []
    cursor = db.execute(STANDING, (consumer_id, after, through, json.dumps(list(states)), limit))
    try:
        for row in cursor:
            found.append((Delivery(*row[: len(Delivery._fields)]), Entry(*row[len(Delivery._fields) :])))
            bytes_max -= len(found[-1][1].data)
            if bytes_max <= 0 or len(found) == limit:
                return Standings(found, found[-1][0].position)
    finally:
        cursor.close()  # a half-read statement would keep the transaction from committing
    return Standings(found, end)


# -- lines --------------------------------------------------------------------------------------------------

FIRST_LINE = (
    "SELECT line FROM deliveries INDEXED BY deliveries_line WHERE consumer_id = ? AND line IS NOT NULL"
    " ORDER BY line LIMIT 1"
)
NEXT_LINE = (
    "SELECT line FROM deliveries INDEXED BY deliveries_line WHERE consumer_id = ? AND line > ?"
    " ORDER BY line LIMIT 1"
)
IN_LINE = "SELECT 1 FROM deliveries INDEXED BY deliveries_line WHERE consumer_id = ? AND line = ? LIMIT ?"
FIRST_IN = (
    f"SELECT {COLUMNS} FROM deliveries INDEXED BY deliveries_line WHERE consumer_id = ? AND line = ?"
    " ORDER BY entry_id LIMIT 1"
)
BEHIND = "SELECT 1 FROM deliveries WHERE consumer_id = ? AND line = ? AND entry_id < ? LIMIT ?"


class Heads(NamedTuple):
    """First messages of lines, each with a number of messages. resume: not None when there are more lines."""

    found: list[tuple[Delivery, int]]
    resume: str | None


def heads(
    db: apsw.Connection, consumer_id: int, after: str | None, limit: int, *, lines_max: int, rows_max: int
) -> Heads:
    """Of the next lines above `after`, in the order of their keys, the `limit` longest ones, the longest first.

    The number is of those behind; lines without any are left out.

    Looks at `lines_max` lines and `rows_max` messages at most; of a line that is longer than that, no more count.
    """
    waiting: dict[str, int] = {}
    line = _next_line(db, consumer_id, after)
    while line is not None and lines_max > 0 and rows_max > 0:
        count = depth(db, consumer_id, line, rows_max + 1)
        if count > 1:
            waiting[line] = count - 1
        rows_max -= count
        lines_max -= 1
        after, line = line, _next_line(db, consumer_id, line)
    longest = sorted(waiting.items(), key=lambda one: -one[1])[:limit]
    found = [(_first_in(db, consumer_id, key), count) for key, count in longest]
    return Heads(found, None if line is None else after)


def lines(
    db: apsw.Connection, consumer_id: int, after: str | None, limit: int, *, depth_max: int, rows_max: int
) -> Heads:
    """The next `limit` lines above `after`, in the order of their keys.

    The number is of all in the line. Counts `depth_max` of one line at most, and stops where it has counted
    `rows_max` of all.
    """
    found: list[tuple[Delivery, int]] = []
    line = _next_line(db, consumer_id, after)
    while line is not None and len(found) < limit and rows_max > 0:
        count = depth(db, consumer_id, line, depth_max)
        found.append((_first_in(db, consumer_id, line), count))
        rows_max -= count
        after, line = line, _next_line(db, consumer_id, line)
    return Heads(found, None if line is None else after)


def depth(db: apsw.Connection, consumer_id: int, line: str, depth_max: int) -> int:
    """How many messages a line has; counts no further than `depth_max`."""
    return len(db.execute(IN_LINE, (consumer_id, line, depth_max)).fetchall())


def first_of(db: apsw.Connection, consumer_id: int, line: str) -> Delivery | None:
    """The message that a line waits for."""
    row = db.execute(FIRST_IN, (consumer_id, line)).get
    return None if row is None else Delivery(*row)


def _first_in(db: apsw.Connection, consumer_id: int, line: str) -> Delivery:
    head = first_of(db, consumer_id, line)
    assert head is not None
    return head


def _next_line(db: apsw.Connection, consumer_id: int, after: str | None) -> str | None:
    row = (
        db.execute(FIRST_LINE, (consumer_id,))
        if after is None
        else db.execute(NEXT_LINE, (consumer_id, after))
    )
    line: str | None = row.get
    return line


def behind(db: apsw.Connection, consumer_id: int, line: str, position: int, limit: int) -> int:
    """How many messages of its line are before this one; counts no further than `limit`."""
    return len(db.execute(BEHIND, (consumer_id, line, position, limit)).fetchall())


# -- times and counts ---------------------------------------------------------------------------------------

FIRST_READY = (
    "SELECT coalesce(d.ready_ts, e.due_ts, e.updated_ts)"
    " FROM deliveries d JOIN queue_entries e ON e.id = d.entry_id"
    " WHERE d.consumer_id = ? AND d.rank = ? AND d.state = 'ready' AND e.updated_ts > ?"
    " AND (e.expires_ts IS NULL OR e.expires_ts > ?) ORDER BY d.turn LIMIT 1"
)
NEXT_RANK = (
    "SELECT rank FROM deliveries INDEXED BY deliveries_ready WHERE consumer_id = ? AND rank > ? AND state = 'ready'"
    " ORDER BY rank LIMIT 1"
)
OLDEST = (
    "SELECT e.updated_ts FROM deliveries d JOIN queue_entries e ON e.id = d.entry_id"
    " WHERE d.consumer_id = ? ORDER BY d.entry_id LIMIT 1"
)
EXPIRED = {  # by age, by their own end
    "age": (
        "SELECT d.state, d.size FROM queue_entries e"
        " LEFT JOIN deliveries d ON d.consumer_id = ? AND d.entry_id = e.id"
        " WHERE e.queue_id = ? AND e.updated_ts <= ? ORDER BY e.updated_ts, e.id LIMIT ?"
    ),
    "end": (
        "SELECT d.state, d.size FROM queue_entries e"
        " LEFT JOIN deliveries d ON d.consumer_id = ? AND d.entry_id = e.id"
        " WHERE e.queue_id = ? AND e.expires_ts <= ? AND e.updated_ts > ? ORDER BY e.expires_ts, e.updated_ts LIMIT ?"
    ),
}


def oldest_ready(db: apsw.Connection, consumer_id: int, *, at: int, aged_ts: int) -> int | None:
    """Unix ms since when the message has been ready that is handed out next; the earliest of any priority.

    What has expired at unix ms `at` does not count. How long it was delayed, backing off or behind others neither.
    """
    first: int | None = None
    rank: int | None = db.execute(
        NEXT_RANK, (consumer_id, -1)
    ).get  # most queues have messages of one priority
    while rank is not None:
        since: int | None = db.execute(FIRST_READY, (consumer_id, rank, aged_ts, at)).get
        if since is not None and (first is None or since < first):
            first = since
        rank = db.execute(NEXT_RANK, (consumer_id, rank)).get
    return first


def oldest(db: apsw.Connection, consumer_id: int) -> int | None:
    """Unix ms at which the oldest unfinished message was appended, in whatever state it is."""
    updated: int | None = db.execute(OLDEST, (consumer_id,)).get
    return updated


def expired(
    db: apsw.Connection, consumer_id: int, queue_id: str, limit: int, *, at: int, aged_ts: int
) -> list[tuple[State, int]]:
    """Messages of a consumer that have expired at unix ms `at` and were not swept: their states and bytes.

    Of each kind of ending, the first `limit` entries are looked at. What is handed out does not expire meanwhile.
    """
    rows: list[tuple[Any, ...]] = db.execute(
        EXPIRED["age"], (consumer_id, queue_id, aged_ts, limit)
    ).fetchall()
    rows += db.execute(EXPIRED["end"], (consumer_id, queue_id, at, aged_ts, limit)).fetchall()
    return [(state, size) for state, size in rows if state not in (None, "leased")]
