"""Dead letters: what is written down when a message is given up, and the one envelope in which it is shown."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import msgspec
from msgspec import Raw, Struct

from edgequeues.models import ENTRY_BYTES_MAX, WORK_QUEUE, ConsumerConfig, Entry, NewEntry
from edgequeues.space import attempts, deadletters, log, retention
from edgequeues.space.deadletters import DeadLetter
from edgequeues.space.desk import Burial
from edgequeues.space.queues import Queue

RETENTION_MS = 7 * 86_400_000

# Of a queue of dead letters that nobody made.
CONFIG = msgspec.structs.replace(WORK_QUEUE, max_age_ms=RETENTION_MS)
CONSUMER = ConsumerConfig(attempts_max=None, dead_letters="")


class Failure(Struct, rename="camel"):
    """One attempt as the envelope lists it. at: unix ms at which it ended."""

    attempt: int
    at: int
    worker: str | None
    ending: str
    message: str | None


class Envelope(Struct, rename="camel"):
    """A dead letter as it is shown. Times are unix ms; lastError is the error of the last attempt."""

    original_message: Raw
    original_message_id: str
    original_queue: str
    consumer: str
    reason: str
    last_error: str
    errors: Raw
    attempts: int
    first_seen_at: int
    last_seen_at: int
    failed_at: int
    replayed_at: int | None
    new_message_id: str | None


def facts(
    db: apsw.Connection, source: Queue, target_id: str, position: int, entry: Entry, burial: Burial
) -> DeadLetter:
    """What to write down of a message that is given up and now lies at `position` of the queue `target_id`."""
    row = burial.delivery
    failures = [
        Failure(one.attempt, one.ended, one.worker, one.ending, one.error)
        for one in attempts.of(db, row.consumer_id, row.position)
    ]
    return DeadLetter(
        position=position,
        queue_id=target_id,
        source_id=source.queue_id,
        source_name=source.name or source.queue_id,
        source_position=row.position,
        object_id=entry.id,
        consumer=burial.consumer.name,
        reason=burial.reason,
        error=burial.error,
        errors=msgspec.json.encode(failures).decode(),
        attempts=row.attempts,
        first_seen=row.first or entry.updated,
        last_seen=row.last or entry.updated,
        failed=burial.at,
    )


def listed(
    db: apsw.Connection, queue: Queue, at: int, after: int, limit: int
) -> list[tuple[Entry, Envelope]]:
    """Dead letters of a queue that have not expired, by position from above `after`.

    Up to `limit` and about ENTRY_BYTES_MAX of data, one at least if there is one.
    """
    past = retention.aged_ts(queue, at)
    found: list[tuple[Entry, Envelope]] = []
    room = ENTRY_BYTES_MAX
    for row in deadletters.page(db, queue.queue_id, after, past, limit):
        entry = log.at(db, row.position)
        if entry is not None:
            found.append((entry, envelope(row, entry.data)))
            room -= len(entry.data)
        if room <= 0:
            break
    return found


def of_objects(
    db: apsw.Connection, queue: Queue, object_ids: Sequence[str]
) -> list[tuple[Entry, DeadLetter]]:
    """Those of the objects that are dead letters in this queue."""
    found = []
    for position in log.positions(db, queue.queue_id, object_ids):
        entry, letter = log.at(db, position), deadletters.get(db, position)
        if entry is not None and letter is not None:
            found.append((entry, letter))
    return found


def again(entry: Entry) -> NewEntry:
    """The message of an entry as a new one, under a new id."""
    return NewEntry(
        data=entry.data,
        type=entry.type,
        key=entry.key,
        headers=entry.headers,
        content_type=entry.content_type,
        priority=entry.priority,
    )


def envelope(letter: DeadLetter, data: str) -> Envelope:
    """The envelope around the original message."""
    return Envelope(
        original_message=Raw(data.encode()),
        original_message_id=letter.object_id,
        original_queue=letter.source_name,
        consumer=letter.consumer,
        reason=letter.reason,
        last_error=letter.error,
        errors=Raw(letter.errors.encode()),
        attempts=letter.attempts,
        first_seen_at=letter.first_seen,
        last_seen_at=letter.last_seen,
        failed_at=letter.failed,
        replayed_at=letter.replayed,
        new_message_id=letter.replay_id,
    )
