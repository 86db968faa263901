"""Why a message is not delivered now, and what is in which state: looking without touching."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import msgspec
from msgspec import Struct

from edgequeues.core.lifecycle import State
from edgequeues.models import ENTRY_BYTES_MAX, ConsumerInfo, Ended, Entry, Explanation, Line, Standing
from edgequeues.space import attempts, deliveries, retention, standings
from edgequeues.space.consumers import Consumer
from edgequeues.space.deliveries import Delivery
from edgequeues.space.queues import Queue

EXPIRED_MAX = 10_000  # messages that have expired and were not swept that are looked at
BEHIND_MAX = 10_000  # messages before one in its line that are counted
LOOKED_AT = 10_000  # messages in whatever state, or in lines, that one turn looks at
LINES_LOOKED_AT = 1_000
REASONS = {
    "scheduled": "delayed",
    "waiting": "behind",
    "leased": "leased",
    "backoff": "backing_off",
    "ready": "ready",
}


class Peeked(Struct, frozen=True):
    """Messages as they stand. resume: not None when there may be more: the position to go on after."""

    found: list[Standing]
    resume: int | None


class Lines(Struct, frozen=True):
    """Lines that wait. resume: not None when there are more to look at: the key to go on after."""

    lines: list[Line]
    resume: str | None


def counted(
    db: apsw.Connection, queue: Queue, consumer: Consumer, at: int, expired_max: int = EXPIRED_MAX
) -> ConsumerInfo:
    """A consumer as listed at unix ms `at`. Beyond `expired_max` at once, the expired count until they are swept."""
    aged_ts = retention.aged_ts(queue, at)
    oldest = None
    if consumer.counts.ready:
        oldest = standings.oldest_ready(db, consumer.consumer_id, at=at, aged_ts=aged_ts)
    counts, size = msgspec.structs.asdict(consumer.counts), consumer.bytes
    if queue.due(at):
        for state, bytes_ in standings.expired(
            db, consumer.consumer_id, queue.queue_id, expired_max, at=at, aged_ts=aged_ts
        ):
            counts[state] -= 1
            counts["total_expired"] += 1
            size -= bytes_
    return ConsumerInfo(
        name=consumer.name,
        config=consumer.config,
        created=consumer.created_ts,
        filling=consumer.filling,
        bytes=size,
        oldest_ready=oldest,
        oldest_ready_age_ms=None if oldest is None else max(at - oldest, 0),
        **counts,
    )


def peek(db: apsw.Connection, consumer: Consumer, states: Sequence[State], after: int, limit: int) -> Peeked:
    """Messages in these states, by position from above `after`; about ENTRY_BYTES_MAX of data at most."""
    found, resume = standings.standing(
        db, consumer.consumer_id, states, after, limit, rows_max=LOOKED_AT, bytes_max=ENTRY_BYTES_MAX
    )
    return Peeked([_standing(consumer, row, entry) for row, entry in found], resume)


def _standing(consumer: Consumer, row: Delivery, entry: Entry) -> Standing:
    return Standing(
        entry,
        consumer.name,
        row.state,
        row.attempts,
        row.due,
        row.worker,
        row.error,
        row.first,
        row.last,
    )


def lines(db: apsw.Connection, consumer: Consumer, after: str | None, limit: int) -> Lines:
    """Ordering keys whose messages wait, with the message they wait for; the longest lines first.

    after: the key to go on after. Of LINES_LOOKED_AT keys, and no more than LOOKED_AT messages.
    """
    found, resume = standings.heads(
        db, consumer.consumer_id, after, limit, lines_max=LINES_LOOKED_AT, rows_max=LOOKED_AT
    )
    return Lines(
        [
            Line(row.line or "", row.position, row.state, row.attempts, row.due, waiting)
            for row, waiting in found
        ],
        resume,
    )


def explain(db: apsw.Connection, queue: Queue, consumer: Consumer, entry: Entry, at: int) -> Explanation:
    """Where an entry stands with a consumer at unix ms `at`."""
    row = deliveries.get(db, consumer.consumer_id, entry.position)
    history = [
        Ended(one.attempt, one.ending, one.worker, one.began, one.ended, one.error)
        for one in attempts.of(db, consumer.consumer_id, entry.position)
    ]
    if row is None:
        why = "filling" if consumer.filling and entry.position > consumer.filled else "finished"
        return Explanation(consumer.name, why, None, None, 0, entry.key, None, 0, None, history)
    why, until = REASONS[row.state], row.due
    if row.state == "ready" and queue.paused:
        why = "paused"
    if row.state != "leased" and retention.expired(queue, entry.updated, entry.expires, at):
        why, until = "expired", None
    behind = 0
    if row.state == "waiting" and row.line is not None:
        behind = standings.behind(db, consumer.consumer_id, row.line, entry.position, BEHIND_MAX)
    worker = row.worker if row.state == "leased" else None
    return Explanation(
        consumer.name, why, row.state, until, behind, entry.key, worker, row.attempts, row.error, history
    )
