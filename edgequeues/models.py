"""Values that cross an edge: what verbs take and give. Decoded once at the edge, trusted inside."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from edgequeues.core.backoff import DELAY_MS_MAX, Backoff, DelayMs
from edgequeues.core.lifecycle import State

ENTRIES_MAX = 1_000  # entries one call appends, ids one call names, entries one page holds: bounds a turn
ENTRY_BYTES_MAX = 4 * 1024 * 1024  # one entry's data; a page stops growing at about this size too
TTL_MS_MAX = 100 * 365 * 86_400_000  # a century, far from the edge of 64 bits
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"

PRIORITY = 4  # where none is given
LEASE_MS_MAX = 12 * 3_600_000
PULL_MAX = 100  # messages one pull hands out
DEPTH_MAX = 1_000_000_000

Outcome = Literal["new", "same", "moved", "stale", "dead", "filtered"]
Kind = Literal["log", "work"]
Ordering = Literal["unordered", "fifo", "per_key"]
Start = Literal["new", "beginning"]
OnAck = Literal["keep", "delete"]
LetterBody = Literal["original", "envelope"]
Reason = Literal["exhausted", "permanent", "skipped"]
Verdict = Literal["done", "finished", "stale", "lapsed", "superseded", "unknown"]
UNIX_MS_MAX = 253_402_300_799_999  # the last moment whose year has four digits
Priority = Annotated[int, Meta(ge=0, le=9)]
UnixMs = Annotated[int, Meta(ge=0, le=UNIX_MS_MAX)]
Batch = Annotated[int, Meta(ge=1, le=PULL_MAX)]
LeaseMs = Annotated[int, Meta(ge=1, le=LEASE_MS_MAX)]
PerSecond = Annotated[float, Meta(ge=0.01, le=10_000)]
TtlMs = Annotated[int, Meta(ge=1, le=TTL_MS_MAX)]


class NewEntry(Struct, frozen=True):
    """One object to append, already checked at the edge.

    data: JSON text exactly as received, at most ENTRY_BYTES_MAX bytes in UTF-8.
    object_id: None lets the shard generate a ULID.
    ttl_ms: expires that long after this append; the queue's own max_age_ms may end it sooner.
    if_version: the version this writer gives the object; not above the stored one means stale, no effect.
    headers: JSON text of an object of strings.
    content_type: what the data stands for where it is not JSON: see the dialects.
    priority: 0 to 9, higher is handed out sooner.
    due, delay_ms: not handed out before this unix ms, or so long after now; None: as the queue has it.
    idempotency_key: a later push with the same key answers as this one did, and does nothing.
    """

    data: str
    object_id: str | None = None
    type: str | None = None
    ttl_ms: int | None = None
    key: str | None = None
    headers: str | None = None
    if_version: str | None = None
    content_type: str | None = None
    priority: int = PRIORITY
    due: int | None = None
    delay_ms: int | None = None
    idempotency_key: str | None = None


class Appended(Struct, frozen=True):
    """What became of one object. `stale` reports the stored position and version, which stand.

    By the queue's spec: `dead`: a dead letter, at that position among those; `filtered`: not wanted, and nowhere.
    """

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
    content_type: str | None = None
    priority: int = PRIORITY
    due: int | None = None


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
    on_ack: is an entry deleted once every consumer has finished it?
    retain_acked_ms: if so, only that much later.
    delay_ms: what is appended is not handed out before that time has passed, if it says nothing else.
    depth_max: unfinished messages of a consumer; a push that would make more is refused. None: no limit.
    paused: nothing is handed out.
    sessions: its ordering keys are sessions, see `edgequeues.inbound`; fixed when the queue is made.
    """

    name: Annotated[str, Meta(pattern=NAME_PATTERN)] | None = None
    kind: Kind = "log"
    max_age_ms: TtlMs | None = None
    max_entries: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    mutable: bool = True
    on_ack: OnAck = "keep"
    retain_acked_ms: DelayMs = 0
    delay_ms: DelayMs = 0
    depth_max: Annotated[int, Meta(ge=1, le=DEPTH_MAX)] | None = None
    paused: bool = False
    sessions: bool = False


WORK_QUEUE = QueueConfig(kind="work", on_ack="delete", mutable=False)  # where nothing else is said


class QueueInfo(Struct, frozen=True):
    """A queue as listed. `entries` and `bytes` never include expired ones (`bytes`: of data, in UTF-8).

    configured: unix ms at which its settings last changed; None: never.
    """

    id: str
    config: QueueConfig
    created: int
    configured: int | None
    entries: int
    bytes: int
    oldest: int | None  # unix ms of the last append of the entry at the front
    cursor: str  # the tail


class QueueList(Struct, frozen=True):
    """Queues in id order. resume: not None when there are more: pass it as `after`."""

    queues: list[QueueInfo]
    resume: str | None


class ConsumerConfig(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """The rules by which a consumer is given messages. Fixed when it is made: ordering.

    ordering: unordered; fifo: one line for the whole queue; per_key: one line for each ordering key.
    lease_ms: how long a message is hidden once it was handed out, where a pull does not say.
    batch: how many messages are handed out at once, where a pull does not say.
    attempts_max: deliveries of one message in all, the last of which makes it a dead letter; None: no end.
    lapse_delay_ms: a message whose lease lapsed is not handed out again before that time has passed.
    starvation_after_ms: what has been ready so long goes before younger ones of higher priority; None: it waits.
    dead_letters: the queue they go to, by name or id; None: the queue's own, made when needed; "": nowhere.
    dead_letter_body: what dialects without a route for dead letters show of one: the message as it was, or the
        envelope. The implicit queue of dead letters takes it over from the consumer it is made for.
    facts: texts that a dialect keeps with a consumer; they mean nothing here.
    """

    ordering: Ordering = "unordered"
    lease_ms: LeaseMs = 30_000
    batch: Batch = 1
    attempts_max: Annotated[int, Meta(ge=1, le=1_000_000)] | None = 5
    backoff: Backoff = Backoff()
    lapse_delay_ms: DelayMs = 0
    starvation_after_ms: Annotated[int, Meta(ge=1, le=DELAY_MS_MAX)] | None = None
    dead_letters: Annotated[str, Meta(max_length=128)] | None = None
    dead_letter_body: LetterBody = "original"
    facts: Annotated[dict[str, str], Meta(max_length=16)] = {}


class Pull(Struct, frozen=True, forbid_unknown_fields=True):
    """Ask for up to `batch` messages, hidden from others for `lease_ms` (None, both: as the consumer has it).

    worker: how the one who asks calls himself; shown by explain.
    """

    batch: Batch | None = None
    lease_ms: LeaseMs | None = None
    worker: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


class Message(Struct, frozen=True):
    """A message handed out. attempts: this one included. until: unix ms at which the lease lapses."""

    entry: Entry
    lease: str
    attempts: int
    until: int


class Pulled(Struct, frozen=True):
    """What a pull gave. backlog: unfinished messages of the consumer."""

    messages: list[Message]
    paused: bool
    backlog: int


class Retry(Struct, frozen=True, forbid_unknown_fields=True):
    """Give up an attempt. delay_ms: None: as the consumer's back-off says. permanent: do not try again."""

    lease: str
    delay_ms: DelayMs | None = None
    error: Annotated[str, Meta(max_length=4_096)] | None = None
    permanent: bool = False


class Standing(Struct, frozen=True):
    """Where a message stands with a consumer. due: unix ms; see the states."""

    entry: Entry
    consumer: str
    state: State
    attempts: int
    due: int | None
    worker: str | None
    last_error: str | None
    first: int | None
    last: int | None


class ConsumerInfo(Struct, frozen=True):
    """A consumer as listed. Counts of deliveries by state, and totals since it was made.

    What has expired counts in total_expired and nowhere else, swept or not. So total_in is at any time the sum of the
    states and of the totals of all ends: acked, exhausted, permanent, skipped, expired, cancelled.
    oldest_ready: unix ms since when the message has been ready that is handed out next; None: there is none. How long
        it was parked before does not count. oldest_ready_age_ms: how long that is ago by the space's clock.
    """

    name: str
    config: ConsumerConfig
    created: int
    filling: bool
    bytes: int
    scheduled: int
    waiting: int
    ready: int
    leased: int
    backoff: int
    oldest_ready: int | None
    oldest_ready_age_ms: int | None
    total_in: int
    total_attempts: int
    total_acked: int
    total_retried: int
    total_lapsed: int
    total_released: int
    total_exhausted: int
    total_permanent: int
    total_skipped: int
    total_expired: int
    total_cancelled: int


class Ended(Struct, frozen=True):
    """How one attempt ended. began, ended: unix ms."""

    attempt: int
    ending: str
    worker: str | None
    began: int
    ended: int
    error: str | None


class Explanation(Struct, frozen=True):
    """Why a message is not delivered now, and what happened to it with one consumer.

    why: `ready`, `paused`, `delayed`, `behind`, `leased`, `backing_off`, `filling`, `expired`, `finished`.
    until: unix ms at which that may change by itself. behind: messages before it in its line.
    """

    consumer: str
    why: str
    state: State | None
    until: int | None
    behind: int
    key: str | None
    worker: str | None
    attempts: int
    last_error: str | None
    history: list[Ended]


class Line(Struct, frozen=True):
    """An ordering key whose messages wait, and its head: at which position, in which state, until when (unix ms)."""

    key: str
    position: int
    state: State
    attempts: int
    due: int | None
    waiting: int


class Backlog(Struct, frozen=True):
    """What is still to be done: messages unfinished, those of them that are ready, bytes of data of all.

    oldest: unix ms at which the oldest was appended; None: there is none.
    """

    unfinished: int
    ready: int
    bytes: int
    oldest: int | None


class Purge(Struct, frozen=True):
    """The last purge of a queue. started: unix ms; None: there was none."""

    started: int | None
    completed: bool
