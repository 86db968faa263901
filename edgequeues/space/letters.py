"""Dead letters: what is written down when a message is given up, and the one envelope in which it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, repeat

import apsw
import msgspec
from msgspec import Raw, Struct

from edgequeues.core.backoff import DELAY_MS_MAX
from edgequeues.models import ENTRY_BYTES_MAX, WORK_QUEUE, Appended, ConsumerConfig, Entry, NewEntry
from edgequeues.models_letters import LetterReason
from edgequeues.space import attempts, deadletters, retention
from edgequeues.space.deadletters import DeadLetter, Summary
from edgequeues.space.moves import Burial
from edgequeues.space.queues import Queue
from edgequeues.spec.judging import Malformed

MALFORMED = "MALFORMED_EVENT"  # how consumers say of a message that it is no event; events/check.py
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


def consumer_for(rules: ConsumerConfig) -> ConsumerConfig:
    """The rules of the consumer that a queue is born with which is made for the dead letters of another consumer."""
    return msgspec.structs.replace(CONSUMER, batch=rules.batch, dead_letter_body=rules.dead_letter_body)


# -- writing down -------------------------------------------------------------------------------------------


def facts(
    db: apsw.Connection, source: Queue, target_id: str, position: int, entry: Entry, burial: Burial
) -> DeadLetter:
    """What to write down of a message that is given up and now lies at `position` of the queue `target_id`."""
    row = burial.delivery
    failures = [
        Failure(one.attempt, one.ended, one.worker, one.ending, one.error)
        for one in attempts.of(db, row.consumer_id, row.position)
    ]
    before = deadletters.get(db, row.position)
    return DeadLetter(
        position=position,
        queue_id=target_id,
        source_id=source.queue_id,
        source_name=source.name or source.queue_id,
        source_position=row.position,
        object_id=entry.id,
        consumer=burial.consumer.name,
        reason=_reason(burial),
        error=burial.error,
        attempts=row.attempts,
        first_seen=row.first or entry.updated,
        last_seen=row.last or entry.updated,
        failed=burial.at,
        replayed=None,
        replay_id=None,
        before=None if before is None else msgspec.json.encode(before).decode(),
        errors=msgspec.json.encode(failures).decode(),
    )


def _reason(burial: Burial) -> LetterReason:
    """Of what consumers give up at once, some was no event: they say so by this code."""
    malformed = burial.reason == "permanent" and burial.error.startswith(MALFORMED)
    return "malformed" if malformed else burial.reason


def unfit_facts(
    source: Queue, target_id: str, position: int, made: Appended, malformed: Malformed, at: int
) -> DeadLetter:
    """What to write down of a message that was dead when it came. position: where it would have been."""
    return DeadLetter(
        position=made.position,
        queue_id=target_id,
        source_id=source.queue_id,
        source_name=source.name or source.queue_id,
        source_position=position,
        object_id=malformed.entry.object_id or made.id,
        consumer="",
        reason="malformed",
        error=malformed.error,
        attempts=0,
        first_seen=at,
        last_seen=at,
        failed=at,
        replayed=None,
        replay_id=None,
        before=None,
        errors="[]",
    )


def again(entry: Entry | NewEntry, due: int | None = None) -> NewEntry:
    """The message of an entry as a new one, under a new id. due: unix ms, not before."""
    return NewEntry(
        data=entry.data,
        type=entry.type,
        key=entry.key,
        headers=entry.headers,
        content_type=entry.content_type,
        priority=entry.priority,
        due=due,
    )


def restored(letter: DeadLetter, position: int) -> DeadLetter | None:
    """What was known of a letter in the queue it goes back to, where it is now at `position`; None: nothing."""
    if letter.before is None:
        return None
    known = msgspec.json.decode(letter.before, type=DeadLetter)
    known.position = position
    return known


# -- replaying ----------------------------------------------------------------------------------------------


def pace(db: apsw.Connection, queue: Queue, per_second: float | None, at: int) -> Iterator[int | None]:
    """Unix ms at which one after the other is to be due; None, for ever: at once.

    The first is due at unix ms `at`, or in its turn behind what was made at a pace before: so a call that broke off
    goes on at the same pace, and nothing has to remember it.
    """
    if per_second is None:
        return repeat(None)
    last = deadletters.last_due(db, queue.queue_id)
    start = at if last is None else max(at, last + -int(-1_000 // per_second))
    return (start + int(n * 1_000 / per_second) for n in count())


def fits(source: Queue, entry: Entry, at: int) -> bool:
    """Does the spec of the queue that a message goes back to take it, as it is now?"""
    return source.judge is None or isinstance(source.judge(again(entry), at), NewEntry)


def in_time(source: Queue, due: int | None, at: int) -> bool:
    """Is what is due then still young by then? Half the life of a message has to be left for the work."""
    span = DELAY_MS_MAX if source.max_age_ms is None else source.max_age_ms // 2
    return due is None or due - at <= span


# -- showing ------------------------------------------------------------------------------------------------


def listed(
    db: apsw.Connection, queue: Queue, at: int, after: int, limit: int
) -> list[tuple[Entry, Envelope]]:
    """Dead letters of a queue that have not expired, by position from above `after`.

    Up to `limit` and about ENTRY_BYTES_MAX of data and errors, one at least if there is one.
    """
    aged_ts = retention.aged_ts(queue, at)
    found = deadletters.page(db, queue.queue_id, after, limit, ENTRY_BYTES_MAX, at=at, aged_ts=aged_ts)
    return [(entry, envelope(letter, entry.data)) for entry, letter in found]


def summaries(db: apsw.Connection, positions: Sequence[int]) -> dict[int, Summary]:
    """What dialects tell of dead letters beside their messages, by position; of other entries nothing. One query."""
    return deadletters.summaries(db, positions)


def envelope_json(db: apsw.Connection, position: int) -> bytes | None:
    """The JSON of a dead letter's envelope; None: at this position there is none."""
    found = deadletters.at(db, [position])
    return None if not found else msgspec.json.encode(envelope(found[0][1], found[0][0].data))


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


def known(entry: Entry, letter: DeadLetter) -> dict[str, object]:
    """What a condition may ask of a letter beside its message. Times are unix seconds, as in all expressions."""
    return {
        "error": letter.error,
        "reason": letter.reason,
        "attempts": letter.attempts,
        "failed_at": letter.failed / 1_000,
        "first_seen_at": letter.first_seen / 1_000,
        "last_seen_at": letter.last_seen / 1_000,
        "queue": letter.source_name,
        "consumer": letter.consumer,
        "key": entry.key,
        "type": entry.type,
        "replayed": letter.replayed is not None,
    }


# -- where they go ------------------------------------------------------------------------------------------


def come_round(
    row: Queue,
    rules: Iterable[ConsumerConfig],
    named: Callable[[str], Queue | None],
    own: Callable[[Queue], Queue | None],
) -> str | None:
    """Would dead letters of a queue, by these rules, come back to it? The first queue on the way that they would go.

    named: the queue of that name or id. own: the one that was made for the dead letters of a queue.
    """
    todo: list[tuple[Queue, ConsumerConfig, str | None]] = [(row, one, None) for one in rules]
    seen: set[str] = set()
    while todo:
        queue, rule, first = todo.pop()
        grave = own(queue) if rule.dead_letters is None else rule.dead_letters and named(rule.dead_letters)
        if not grave or grave.queue_id in seen:
            continue
        first = first or grave.name or grave.queue_id
        if grave.queue_id == row.queue_id:
            return first
        seen.add(grave.queue_id)
        todo += [(grave, one.config, first) for one in grave.consumers]
    return None
