"""Values that cross an edge: what verbs take and give. Decoded once at the edge, trusted inside."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

ENTRIES_MAX = 1_000  # entries one call appends, ids one call names, entries one page holds: bounds a turn
ENTRY_BYTES_MAX = 4 * 1024 * 1024  # one entry's data; a page stops growing at about this size too
TTL_MS_MAX = 100 * 365 * 86_400_000  # a century, far from the edge of 64 bits
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"

Outcome = Literal["new", "same", "moved", "stale"]
Kind = Literal["log", "work"]
TtlMs = Annotated[int, Meta(ge=1, le=TTL_MS_MAX)]


class NewEntry(Struct, frozen=True):
    """One object to append, already checked at the edge.

    data: JSON text exactly as received, at most ENTRY_BYTES_MAX bytes in UTF-8.
    object_id: None lets the shard generate a ULID.
    ttl_ms: expires that long after this append; the queue's own max_age_ms may end it sooner.
    if_version: the version this writer gives the object; not above the stored one means stale, no effect.
    headers: JSON text of an object of strings.
    """

    data: str
    object_id: str | None = None
    type: str | None = None
    ttl_ms: int | None = None
    key: str | None = None
    headers: str | None = None
    if_version: str | None = None


class Appended(Struct, frozen=True):
    """What became of one object. `stale` reports the stored position and version, which stand."""

    id: str
    position: int
    version: str
    outcome: Outcome


class AppendAnswer(Struct, frozen=True):
    """One result per object in the order sent; `cursor` is the queue's tail as of this append."""

    results: list[Appended]
    cursor: str


class RangeQuery(Struct, frozen=True):
    """Which entries to read. Cursors are exclusive. `reverse` starts at the tail, newest first.

    limit: at most this many; None means all of the range (a page holds at most ENTRIES_MAX of them).
    since_ms, until_ms: bounds on the time an object was first appended, both inclusive.
    """

    after: str | None = None
    before: str | None = None
    limit: int | None = None
    reverse: bool = False
    type: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    ids: tuple[str, ...] = ()


class Entry(Struct, frozen=True):
    """One stored object. `created` and `updated` are unix ms; `data` is the JSON text as it was received."""

    id: str
    position: int
    version: str
    type: str | None
    created: int
    updated: int
    expires: int | None
    key: str | None
    headers: str | None
    data: str


class Page(Struct, frozen=True):
    """Part of a range, in position order (newest first if reversed).

    next_cursor: position of the highest entry given, prev_cursor of the lowest; an empty page gives back the
    cursors it was asked with. None where there is nothing to point at (an unknown queue).
    resume: not None when the range goes on: pass it as `after` (`before` if reversed) for the next page. A page
    may end early, even empty, because a turn examines a bounded number of rows.
    store_id, queue_id: what the cursors of this page belong to; None for an unknown queue.
    """

    entries: list[Entry]
    next_cursor: str | None
    prev_cursor: str | None
    resume: str | None
    store_id: str | None = None
    queue_id: str | None = None


class Deleted(Struct, frozen=True):
    """`deleted` entries are gone. resume: not None when the range goes on: call again with it as `after`, and
    with `through` as given here, so that what is appended meanwhile stays.
    """

    deleted: int
    resume: str | None = None
    through: str | None = None


class QueueConfig(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """The settings of a queue.

    name: unique in the space, free to change; None: only the id addresses it.
    kind: fixed when the queue is made.
    max_age_ms: an entry expires that long after its last append; None: never.
    max_entries: only the newest so many are kept; None: all.
    mutable: may an object be appended again with other content (it moves to the tail)?
    """

    name: Annotated[str, Meta(pattern=NAME_PATTERN)] | None = None
    kind: Kind = "log"
    max_age_ms: TtlMs | None = None
    max_entries: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    mutable: bool = True


class QueueInfo(Struct, frozen=True):
    """A queue as listed. `entries` and `bytes` never include expired ones (`bytes`: of data, in UTF-8)."""

    id: str
    config: QueueConfig
    created: int
    entries: int
    bytes: int
    oldest: int | None  # unix ms of the last append of the entry at the front
    cursor: str  # the tail


class QueueList(Struct, frozen=True):
    """Queues in id order. resume: not None when there are more: pass it as `after`."""

    queues: list[QueueInfo]
    resume: str | None
