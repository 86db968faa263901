"""Values of work queues: messages, leases, consumers, dead letters. Times are unix milliseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from msgspec import Struct

LeaseOutcome = Literal["done", "finished", "stale", "lapsed", "superseded", "unknown"]
State = Literal["scheduled", "waiting", "ready", "leased", "backoff"]
Start = Literal["new", "beginning"]


class Message(Struct, frozen=True, dict=True):
    """A message handed out.

    lease: what `ack`, `retry`, `release` and `extend` are told. attempts: this one included.
    until: when the lease lapses and somebody else may be given the message.
    raw: the JSON text of the data, exactly as it was pushed.
    """

    lease: str
    attempts: int
    until: int
    id: str
    position: int
    version: str
    type: str | None
    created: int
    updated: int
    priority: int
    raw: bytes
    key: str | None = None
    headers: Mapping[str, str] | None = None
    content_type: str | None = None

    @cached_property
    def data(self) -> object:
        """The data as Python values, decoded when first asked for."""
        return json.loads(self.raw)


class Pulled(Struct, frozen=True):
    """What a pull gave. paused: the queue hands nothing out. backlog: the consumer's unfinished messages."""

    messages: list[Message]
    paused: bool
    backlog: int


class Answered(Struct, frozen=True):
    """What became of a lease.

    outcome: `done`; `finished`: nothing was left to be done; `stale`: this lease was answered already, or
    somebody else was given the message since; `lapsed`: it ended before (an ack counts all the same while nobody
    else was given the message); `superseded`: the object has newer data; `unknown`: no lease of this queue.
    """

    lease: str
    outcome: LeaseOutcome

    @property
    def settled(self) -> bool:
        """Is it as it was asked to be?"""
        return self.outcome in ("done", "finished")


class Failed(Struct, frozen=True, omit_defaults=True):
    """An attempt to give up, where leases are not all told the same. See `Client.retry`."""

    lease: str
    delay_ms: int | None = None
    error: str | None = None
    permanent: bool = False


class Backoff(Struct, frozen=True):
    """Waits between attempts: doubling from `initial_ms` up to `max_ms`, or those of `list_ms`, the last for ever.

    jitter: each wait is shortened by a random part of it, up to this share.
    """

    initial_ms: int = 1_000
    max_ms: int = 60_000
    list_ms: tuple[int, ...] = ()
    jitter: float = 0.0


class ConsumerRules(Struct, frozen=True):
    """The rules by which a consumer is given messages. `ordering` is fixed when it is made.

    ordering: unordered; fifo: one after the other; per_key: one after the other within each ordering key.
    lease_ms: how long a message is hidden, where a pull does not say.
    attempts_max: the last of them makes a dead letter. None: no end.
    batch: how many messages are handed out at once, where a pull does not say.
    lapse_delay_ms: after a lapsed lease a message is not handed out sooner than that.
    starvation_after_ms: what has been ready so long goes before younger ones of higher priority. None: it waits.
    dead_letters: the queue they go to, by name or id. None: `<queue>-dlq`, made when needed. "": nowhere.
    dead_letter_body: what protocols without a route for dead letters show: the message as it was, or the envelope.
    facts: texts that a protocol keeps with a consumer; they mean nothing to the queue.
    """

    ordering: Literal["unordered", "fifo", "per_key"] = "unordered"
    lease_ms: int = 30_000
    batch: int = 1
    attempts_max: int | None = 5
    backoff: Backoff = Backoff()
    lapse_delay_ms: int = 0
    starvation_after_ms: int | None = None
    dead_letters: str | None = None
    dead_letter_body: Literal["original", "envelope"] = "original"
    facts: Mapping[str, str] = {}


class Consumer(Struct, frozen=True):
    """A consumer: its rules, its messages by state, and totals since it was made.

    filling: it is still being given what was in the queue before it. bytes: of unfinished messages.
    oldest_ready: since when the message has been ready that is handed out next. None: there is none.
    oldest_ready_age_ms: how long that is ago by the server's clock.
    """

    name: str
    config: ConsumerRules
    created: int
    filling: bool
    bytes: int
    scheduled: int
    waiting: int
    ready: int
    leased: int
    backoff: int
    oldest_ready: int | None
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
    oldest_ready_age_ms: int | None = None

    @property
    def unfinished(self) -> int:
        """Messages it has still to do."""
        return self.scheduled + self.waiting + self.ready + self.leased + self.backoff


class Standing(Struct, frozen=True, dict=True):
    """Where a message stands with a consumer.

    due: when it may be handed out (scheduled, backoff) or its lease lapses (leased).
    """

    id: str
    position: int
    state: State
    attempts: int
    due: int | None
    worker: str | None
    last_error: str | None
    key: str | None
    priority: int
    raw: bytes

    @cached_property
    def data(self) -> object:
        """The data as Python values, decoded when first asked for."""
        return json.loads(self.raw)


class StandingPage(Struct, frozen=True):
    """Messages by position. resume: the position to go on after. None: that was the last."""

    messages: list[Standing]
    resume: int | None


class Ended(Struct, frozen=True):
    """How one attempt ended."""

    attempt: int
    ending: str
    worker: str | None
    began: int
    ended: int
    error: str | None


class Explanation(Struct, frozen=True):
    """Why a consumer is not given a message now, and what happened to it.

    why: `ready`, `paused`, `delayed`, `behind`, `leased`, `backing_off`, `filling`, `expired`, `finished`.
    until: when that may change by itself. behind: messages before it in its line.
    """

    consumer: str
    why: str
    state: str | None
    until: int | None
    behind: int
    key: str | None
    worker: str | None
    attempts: int
    last_error: str | None
    history: list[Ended]


class Line(Struct, frozen=True):
    """An ordering key whose messages wait ("": the whole queue), and the message they wait for."""

    key: str
    position: int
    state: str
    attempts: int
    due: int | None
    waiting: int


class LinePage(Struct, frozen=True):
    """The longest lines of those looked at. resume: the key to go on after. None: that were all."""

    lines: list[Line]
    resume: str | None = None


class Failure(Struct, frozen=True):
    """One attempt of a dead letter. at: when it ended."""

    attempt: int
    at: int
    worker: str | None
    ending: str
    message: str | None


class DeadLetter(Struct, frozen=True, dict=True):
    """A message that was given up, in the queue of dead letters under `id` and `position`.

    original_id, original_queue: what it was, and where. raw: its data, exactly as it was pushed.
    reason: `exhausted`, `permanent`, `skipped` or `malformed`. replayed: when it was replayed, as message `new_id`.
    """

    id: str
    position: int
    original_id: str
    original_queue: str
    consumer: str
    reason: str
    last_error: str
    errors: list[Failure]
    attempts: int
    first_seen: int
    last_seen: int
    failed: int
    replayed: int | None
    new_id: str | None
    raw: bytes

    @cached_property
    def data(self) -> object:
        """The data as Python values, decoded when first asked for."""
        return json.loads(self.raw)


class LetterPage(Struct, frozen=True):
    """Dead letters by position. resume: the position to go on after. None: that was the last."""

    letters: list[DeadLetter]
    resume: int | None


class LetterFilter(Struct, frozen=True, omit_defaults=True):
    """Which dead letters of a queue: those for which all holds that is given.

    reason: one of these. queue: where they come from, by name or id. key, type: of the message.
    since, until: bounds on when they failed, both inclusive. error: a part of the last error, as it is written.
    replayed: was a new message made of them? For purges only.
    where: an expression that holds for them, in the language of specs: `attempts >= 5 && payload.n == 1`.
    """

    reason: tuple[Literal["exhausted", "permanent", "skipped", "malformed"], ...] = ()
    queue: str | None = None
    key: str | None = None
    type: str | None = None
    since: int | None = None
    until: int | None = None
    error: str | None = None
    replayed: bool | None = None
    where: str | None = None


class LetterPreview(Struct, frozen=True):
    """What a filter names: how many, and the first ten of them."""

    count: int
    letters: list[DeadLetter]


class Replayed(Struct, frozen=True):
    """What became of a dead letter that was to be replayed. message: the id of the message made of it.

    outcome: `replayed`; `already`: `message` was made before; `no_queue`: where it came from is gone; `later`: at
    this pace its turn would come when the message is old already; `invalid`: that queue's spec does not take it;
    `unknown`.
    """

    id: str
    message: str | None
    outcome: Literal["replayed", "already", "no_queue", "later", "invalid", "unknown"]


class ReplayTotals(Struct, frozen=True):
    """How many letters had which outcome."""

    replayed: int = 0
    no_queue: int = 0
    later: int = 0
    invalid: int = 0


class FilterReplay(Struct, frozen=True):
    """What a replay by filter did. more: something was left when it ended. results: the first 1,000."""

    totals: ReplayTotals
    more: bool
    results: list[Replayed]
