"""Replies on their way: what of the event they need, and the loop that sends those of the outbox queue."""

from __future__ import annotations

import hashlib
import random
import re
from typing import Annotated, Any, Final, Protocol

import msgspec
import trio
from msgspec import Meta, Struct

from edgequeues.daemon.contract import EmailReply, GiveUp, Reply, TryAgain
from edgequeues.daemon.queue import Patience
from edgequeues.daemon.sending import policy
from edgequeues.daemon.wire import Answers, Message, Pulled, QueueError, Refused, Retry
from edgequeues.events.event import Source, SwitchboardEvent

OUTGOING_BYTES_MAX = 96 * 1024  # of a reply that may lie in a queue; well under what a message may have
SUBJECT_CHARS_MAX = 900
REFERENCES_MAX = 20  # message ids; the first of a long thread and its last ones
MESSAGE_ID_CHARS_MAX = 250

VISIBILITY_MS = 180_000  # longer than a provider may take
ERROR_CHARS_MAX = 1_000
IDLE_S = 1.0  # between pulls of an empty outbox
ACK_S_MAX = 10.0  # that acks go on when all else has stopped
DELAY_S_FIRST, DELAY_S_MAX = 5, 3_600  # before a reply is tried again, where the provider does not say

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+(?:[.:][A-Za-z0-9_-]+)*")
_MESSAGE_ID: Final = re.compile(r"<[!-;=?-~]+>")
_ANSWERED: Final = re.compile(r"re\s*(?:\[\d+\])?\s*:", re.IGNORECASE)


class Outgoing(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """A reply that says where it goes, and what it answers.

    id: the same for every attempt to send this one, by which receivers know a repeat; printable ASCII.
    in_reply_to, references: message ids in angle brackets, as RFC 5322, 3.6.4 has them.
    """

    id: Annotated[str, Meta(pattern=r"^[!-~]{1,255}$")]
    event_id: str
    source: Source
    reply: Reply
    in_reply_to: str | None = None
    references: str | None = None

    def key(self) -> str:
        """The idempotency key."""
        return self.id

    @property
    def channel(self) -> Source:
        """How it leaves."""
        return "email" if isinstance(self.reply, EmailReply) else "sms"


class Sends(Protocol):
    """Whatever sends replies; see `sending.sender.Sender`."""

    async def send(self, outgoing: Outgoing) -> None:
        """Send one. Raises TryAgain, GiveUp."""


class Queue(Protocol):
    """What is used of `daemon.queue.HttpQueue`."""

    async def pull(self, batch: int, visibility_ms: int) -> Pulled:
        """Lease messages. Raises QueueError."""

    async def ack(self, answers: Answers) -> Any:
        """Say what becomes of them. Raises QueueError."""


def outgoing(event: SwitchboardEvent, reply: Reply, *, call: str = "reply") -> Outgoing:
    """What answers an event, with all that the reply left to the event. call: which of an event's replies it is.

    Raises GiveUp where the reply has nowhere to go, or may not be sent; `sending.policy` tells what may.
    """
    where = event.reply
    if isinstance(reply, EmailReply):
        reply = msgspec.structs.replace(
            reply,
            to=reply.to or (where and where.to_email) or [],
            subject=_subject(event) if reply.subject is None else reply.subject,
        )
    else:
        reply = msgspec.structs.replace(reply, to=reply.to or (where and where.to_phone_e164))
    policy.check(reply)
    name = event.id if _PLAIN.fullmatch(event.id) else hashlib.sha256(event.id.encode()).hexdigest()
    in_reply_to, references = _thread(event) if isinstance(reply, EmailReply) else (None, None)
    return Outgoing(
        id=f"{name}:{call}",
        event_id=event.id,
        source=event.source,
        reply=reply,
        in_reply_to=in_reply_to,
        references=references,
    )


def queued(event: SwitchboardEvent, reply: Reply) -> Outgoing:
    """`outgoing` for a result's reply, which may have to lie in a queue. Raises GiveUp also where it is too large."""
    it = outgoing(event, reply)
    size = len(msgspec.json.encode(it))
    if size > OUTGOING_BYTES_MAX:
        raise GiveUp(
            f"the reply has {size} bytes as JSON; a result's reply may have {OUTGOING_BYTES_MAX}. "
            "Send it with ctx.send_email, or send a link"
        )
    return it


def _subject(event: SwitchboardEvent) -> str:
    asked = policy.CONTROLS.sub(" ", event.content.subject or "").strip() or "(no subject)"
    return (asked if _ANSWERED.match(asked) else f"Re: {asked}")[:SUBJECT_CHARS_MAX]


def _thread(event: SwitchboardEvent) -> tuple[str | None, str | None]:
    """In-Reply-To and References of an answer."""
    correlation = event.correlation
    answered = message_ids(correlation.message_id)[:1]
    before = message_ids(correlation.references)
    if not before and len(parents := message_ids(correlation.in_reply_to)) == 1:
        before = parents
    line = list(dict.fromkeys(one for one in before if one not in answered)) + answered
    if len(line) > REFERENCES_MAX:
        line = [line[0], *line[1 - REFERENCES_MAX :]]
    return "".join(answered) or None, " ".join(line) or None


def message_ids(text: str | None) -> list[str]:
    """The message ids in a header's text that are not too long; a single one may lack its brackets."""
    text = (text or "").strip()
    if text and "<" not in text:
        text = f"<{text}>"
    return [one for one in _MESSAGE_ID.findall(text) if len(one) <= MESSAGE_ID_CHARS_MAX]


async def pay(
    queue: Queue,
    sender: Sends,
    stopping: trio.Event,
    *,
    logger: Any,
    concurrency: int = 8,
    patience: Patience | None = None,
    chance: random.Random | None = None,
) -> None:
    """Send what lies in the outbox, in any order, `concurrency` replies at once, until `stopping` is set.

    Then no pull begins, and what is being sent is finished and acked; whoever cancels this does not end an ack.
    logger: structlog's, or one like it.
    """
    cashier = _Cashier(queue, sender, logger, patience or Patience(), chance or random.Random())
    while not stopping.is_set():
        pulled = await cashier.pull(concurrency)
        if stopping.is_set():
            await cashier.give_back(pulled)
            return
        async with trio.open_nursery() as nursery:
            for message in pulled.messages:
                nursery.start_soon(cashier.pay, message)
        if not pulled.messages:
            with trio.move_on_after(cashier.pause_s):
                await stopping.wait()


class _Cashier:
    """Pays one outbox. pause_s: until the next pull, where the last one brought nothing."""

    def __init__(
        self, queue: Queue, sender: Sends, logger: Any, patience: Patience, chance: random.Random
    ) -> None:
        self.pause_s = IDLE_S
        self._queue = queue
        self._sender = sender
        self._logger = logger
        self._patience = patience
        self._chance = chance
        self._failures = 0  # of pulls, in a row

    async def pull(self, batch: int) -> Pulled:
        """What is to be sent next; nothing, where the queue cannot be reached."""
        try:
            pulled = await self._queue.pull(batch, VISIBILITY_MS)
        except QueueError as error:
            self._failures += 1
            self.pause_s = self._patience.pause_s(self._failures, error, self._chance)
            self._logger.warning("the outbox cannot be pulled", err=str(error))
            return Pulled([])
        self._failures = 0
        self.pause_s = IDLE_S
        return pulled

    async def give_back(self, pulled: Pulled) -> None:
        """Have others send what came when this was to stop."""
        if pulled.messages:
            await self._say(Answers(retries=[Retry(one.lease, 0) for one in pulled.messages]))

    async def pay(self, message: Message) -> None:
        """Send one reply, and say what became of it."""
        await self._say(await self._paid(message))

    async def _paid(self, message: Message) -> Answers:
        lease = message.lease
        try:
            it = msgspec.json.decode(message.body, type=Outgoing)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            text = f"MALFORMED_EVENT: this is no reply of a daemon: {error}"
            return Answers(permanent=[lease], errors={lease: text[:ERROR_CHARS_MAX]})
        logger = self._logger.bind(eventId=it.event_id, source=it.source, attempt=message.attempts)
        try:
            await self._sender.send(it)
        except GiveUp as error:
            logger.error("a reply is given up", err=_told(error), outcome="refused")
            return Answers(permanent=[lease], errors={lease: _told(error)})
        except Exception as error:
            asked_s = error.delay_s if isinstance(error, TryAgain) else None
            delay_s = DELAY_S_FIRST * 2 ** min(message.attempts - 1, 20) if asked_s is None else asked_s
            logger.warning("a reply did not leave", err=_told(error), outcome="again")
            again = Retry(lease, min(round(delay_s), DELAY_S_MAX))
            return Answers(retries=[again], errors={lease: _told(error)})
        logger.info("a reply has left", outcome="sent")
        return Answers(acks=[lease])

    async def _say(self, answers: Answers) -> None:
        """Have the queue know, whatever else stops: what was sent and not acked is pulled again."""
        failures = 0
        with trio.move_on_after(ACK_S_MAX, shield=True):
            while True:
                try:
                    await self._queue.ack(answers)
                    return
                except QueueError as error:
                    if isinstance(error, Refused):
                        break
                    failures += 1
                    await trio.sleep(self._patience.pause_s(failures, error, self._chance))
        self._logger.warning("an ack was lost, so some replies will be pulled again")


def _told(error: Exception) -> str:
    """For `lastError`. Only what is raised on purpose is known to hold nothing personal."""
    if isinstance(error, GiveUp | TryAgain):
        return f"{error.code}: {error}"[:ERROR_CHARS_MAX]
    return f"CONSUMER_HANDLER_ERROR: {type(error).__name__}"
