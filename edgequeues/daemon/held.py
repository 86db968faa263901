"""A message that the daemon holds, and what is to be said of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import trio
from msgspec import Raw, Struct

from edgequeues.daemon.contract import Failure
from edgequeues.daemon.wire import Answers, Emit, Message, Retry
from edgequeues.events.event import SwitchboardEvent

ERROR_CHARS_MAX = 4_096
DELAY_S_MAX = 86_400  # what Cloudflare takes

Outcome = Literal["handled", "duplicate", "retried", "dead", "released"]
_RANK = {"high": 1, "normal": 2, "low": 3}


class Letter(Struct, frozen=True):
    """A reply that leaves with the ack. queue: name of the outbox. body: JSON. key: under which it is pushed once."""

    queue: str
    body: bytes
    key: str


class Answer(Struct, frozen=True, kw_only=True):
    """What to say of one message. delay_s: of a retry; None: as the consumer has it. result: JSON.

    outcome: what became of it. A dead letter that was pushed elsewhere is acked.
    """

    did: Literal["ack", "retry", "permanent"]
    outcome: Outcome
    delay_s: int | None = None
    error: str | None = None
    result: bytes | None = None
    letter: Letter | None = None

    @property
    def size(self) -> int:
        """Its bytes on the wire, about."""
        return (
            300
            + len(self.error or "")
            + len(self.result or b"")
            + (len(self.letter.body) if self.letter else 0)
        )


ACK = Answer(did="ack", outcome="handled")
DUPLICATE = Answer(did="ack", outcome="duplicate")
RELEASED = Answer(did="retry", outcome="released", delay_s=0, error="the daemon was stopped")


class Held:
    """A message whose lease this daemon has, for now.

    ends_s: trio's time at which the lease ends, at the earliest. event: what the message says, or else `fault`: why
    it says none. settled: what is to be said of it was said, or never will be.
    """

    def __init__(self, message: Message, ends_s: float) -> None:
        self.message = message
        self.lease = message.lease
        self.ends_s = ends_s
        self.event: SwitchboardEvent | None = None
        self.fault: str | None = None
        self.answer: Answer | None = None
        self.took_ms: int | None = None  # its handler
        self.settled = trio.Event()

    @property
    def left_s(self) -> float:
        """Seconds until the lease ends."""
        return self.ends_s - trio.current_time()

    @property
    def rank(self) -> int:
        """Which of those held goes first: the least, and of the same the one that came first."""
        return 0 if self.event is None else _RANK[self.event.priority]

    def fields(self) -> dict[str, Any]:
        """What each log line about it says."""
        said: dict[str, Any] = {"attempt": self.message.attempts, "messageId": self.message.id}
        if self.event is not None:
            said |= {"eventId": self.event.id, "source": self.event.source}
        return said


def answers(some: Iterable[Held], *, ours: bool) -> Answers:
    """What to say of messages, all of which have their answer. ours: may it be more than Cloudflare documents?"""
    said = Answers(acks=[], retries=[], permanent=[], releases=[], errors={}, results={}, emit=[])
    for held in some:
        lease, answer = held.lease, held.answer
        assert answer is not None
        if answer.did == "ack":
            said.acks.append(lease)
        elif answer.outcome == "released" and ours:
            said.releases.append(lease)
            continue
        elif answer.did == "retry":
            said.retries.append(Retry(lease, answer.delay_s))
        else:
            said.permanent.append(lease)
        if not ours:
            continue
        if answer.error is not None and answer.did != "ack":
            said.errors[lease] = answer.error
        if answer.result is not None:
            said.results[lease] = Raw(answer.result)
        if (letter := answer.letter) is not None:
            said.emit.append(Emit(lease, letter.queue, Raw(letter.body), letter.key))
    return said


def error(fault: BaseException) -> tuple[BaseException, str]:
    """What a handler raised, without the groups around it, and how that is told."""
    while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
        fault = fault.exceptions[0]
    try:
        said = str(fault)
    except Exception:  # of an exception of the handler's own making
        said = ""
    if isinstance(fault, Failure):
        return fault, short(f"{fault.code}: {said}" if said else fault.code)
    return fault, short(f"{Failure.code}: {type(fault).__name__}: {said}")


def short(text: str) -> str:
    """An error as it can be sent: half a surrogate pair cannot."""
    return text.encode(errors="backslashreplace").decode()[:ERROR_CHARS_MAX]


def whole_s(delay_s: float | None) -> int | None:
    """A delay as it can be said. What a handler gave may be no number that can."""
    try:
        return None if delay_s is None else min(max(math.ceil(delay_s), 0), DELAY_S_MAX)
    except (TypeError, ValueError, OverflowError):
        return None
