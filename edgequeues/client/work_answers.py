"""Work queues without a network: what an answer means, as typed values. All raise as `answers.checked` does."""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType

from edgequeues.client.answers import Answer, checked, decoded
from edgequeues.client.messages import (
    Answered,
    Consumer,
    DeadLetter,
    Explanation,
    Failure,
    LetterPage,
    LetterPreview,
    Message,
    Pulled,
    Replayed,
    Standing,
    StandingPage,
    State,
)
from edgequeues.client.text import Text


class WireMessage(Struct, frozen=True):
    """A message as it stands in an answer."""

    lease: str
    attempts: int
    until: int
    id: str
    position: int
    version: str
    created: int
    updated: int
    priority: int
    data: Raw
    type: str | None = None
    key: str | None = None
    headers: Raw | UnsetType = UNSET
    content_type: str | None = None


class WirePulled(Struct, frozen=True):
    """What a pull gave, as it stands in an answer."""

    messages: list[WireMessage]
    paused: bool = False
    backlog: int = 0


class WireStanding(Struct, frozen=True):
    """A message that was peeked at, as it stands in an answer."""

    id: str
    position: int
    state: State
    attempts: int
    due: int | None
    worker: str | None
    last_error: str | None
    key: str | None
    priority: int
    data: Raw


class WireStandings(Struct, frozen=True):
    """A page of them."""

    messages: list[WireStanding]
    resume: int | None = None


class Envelope(Struct, frozen=True, rename="camel"):
    """What is known of a dead letter, as it stands in an answer."""

    original_message: Raw
    original_message_id: str
    original_queue: str
    consumer: str
    reason: str
    last_error: str
    errors: list[Failure]
    attempts: int
    first_seen_at: int
    last_seen_at: int
    failed_at: int
    replayed_at: int | None = None
    new_message_id: str | None = None


class WireLetter(Struct, frozen=True):
    """A dead letter as it stands in an answer."""

    id: str
    position: int
    letter: Envelope


class WireLetters(Struct, frozen=True):
    """A page of them."""

    letters: list[WireLetter]
    resume: int | None = None


class Verdicts(Struct, frozen=True):
    """What became of each lease, in order."""

    results: list[Answered]


class Replays(Struct, frozen=True):
    """What became of each dead letter."""

    results: list[Replayed]


class Consumers(Struct, frozen=True):
    """The consumers of a queue."""

    consumers: list[Consumer]


class Explained(Struct, frozen=True):
    """A message with each consumer."""

    consumers: list[Explanation]


class WirePreview(Struct, frozen=True):
    """What a filter names, as it stands in an answer."""

    count: int
    letters: list[WireLetter]


def pulled(answer: Answer) -> Pulled:
    """Return the messages of a pull."""
    body = Text(checked(answer))
    found = body.decode(WirePulled)
    return Pulled([_message(body, one) for one in found.messages], found.paused, found.backlog)


def verdicts(answer: Answer) -> list[Answered]:
    """Return what became of leases."""
    return decoded(answer, Verdicts).results


def standings(answer: Answer) -> StandingPage:
    """Return what a peek saw."""
    body = Text(checked(answer))
    found = body.decode(WireStandings)
    messages = [
        Standing(
            id=one.id,
            position=one.position,
            state=one.state,
            attempts=one.attempts,
            due=one.due,
            worker=one.worker,
            last_error=one.last_error,
            key=one.key,
            priority=one.priority,
            raw=body.raw(one.data),
        )
        for one in found.messages
    ]
    return StandingPage(messages, found.resume)


def letters(answer: Answer) -> LetterPage:
    """Return dead letters."""
    body = Text(checked(answer))
    found = body.decode(WireLetters)
    return LetterPage([_letter(body, one) for one in found.letters], found.resume)


def preview(answer: Answer) -> LetterPreview:
    """Return what a filter names."""
    body = Text(checked(answer))
    found = body.decode(WirePreview)
    return LetterPreview(found.count, [_letter(body, one) for one in found.letters])


def _message(body: Text, wire: WireMessage) -> Message:
    return Message(
        lease=wire.lease,
        attempts=wire.attempts,
        until=wire.until,
        id=wire.id,
        position=wire.position,
        version=wire.version,
        type=wire.type,
        created=wire.created,
        updated=wire.updated,
        priority=wire.priority,
        raw=body.raw(wire.data),
        key=wire.key,
        headers=body.headers(wire.headers),
        content_type=wire.content_type,
    )


def _letter(body: Text, wire: WireLetter) -> DeadLetter:
    said = wire.letter
    return DeadLetter(
        id=wire.id,
        position=wire.position,
        original_id=said.original_message_id,
        original_queue=said.original_queue,
        consumer=said.consumer,
        reason=said.reason,
        last_error=said.last_error,
        errors=said.errors,
        attempts=said.attempts,
        first_seen=said.first_seen_at,
        last_seen=said.last_seen_at,
        failed=said.failed_at,
        replayed=said.replayed_at,
        new_id=said.new_message_id,
        raw=body.raw(said.original_message),
    )
