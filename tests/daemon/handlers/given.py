"""What a handler is given here: events whose tag says what to do with them, and a context that remembers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import trio

from edgequeues.daemon.contract import Context, EmailReply, GiveUp, Metrics, SmsReply
from edgequeues.events.event import (
    Attachment,
    BlobRef,
    Content,
    Correlation,
    Participants,
    ReplyTo,
    SwitchboardEvent,
)

NOW = datetime(2025, 9, 21, 12, 0, tzinfo=UTC)
OBJECT = b"hello " * 20_000
LINK = "https://objects.example/letter"
REF = BlobRef(bucket="switchboard-ingress", key="email/2025/09/21/event-1/att/1-letter.txt")


def event(todo: str, text: str = "hello", *, number: int = 1) -> SwitchboardEvent:
    attachment = Attachment(
        id="a1", filename="letter.txt", content_type="text/plain", size=len(OBJECT), r2=REF
    )
    return SwitchboardEvent(
        id=f"event-{number:04}",
        source="sms",
        received_at="2025-09-21T12:00:00Z",
        tags=[todo],
        participants=Participants(from_phone_e164="+15550100", to_phone_e164="+15550199"),
        content=Content(text=text, attachments=[attachment]),
        correlation=Correlation(thread_key="thread", twilio_message_sid="SM" + "0" * 32),
        reply=ReplyTo(channel="sms", to_phone_e164="+15550100"),
    )


class Lines:
    """A logger that keeps what it is told."""

    def __init__(self, lines: list[tuple[str, str, dict[str, Any]]] | None = None) -> None:
        self.lines = [] if lines is None else lines
        self._fields: dict[str, Any] = {}

    def bind(self, **fields: Any) -> Lines:
        bound = Lines(self.lines)
        bound._fields = self._fields | fields
        return bound

    def _tell(self, level: str, message: str, fields: dict[str, Any]) -> None:
        self.lines.append((level, message, self._fields | fields))

    def debug(self, message: str, **fields: Any) -> None:
        self._tell("debug", message, fields)

    def info(self, message: str, **fields: Any) -> None:
        self._tell("info", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        self._tell("warning", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._tell("error", message, fields)

    def told(self, text: str) -> bool:
        return any(text in message for _, message, _ in self.lines)


class Counts:
    """Metrics that are kept."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, float, dict[str, str]]] = []
        self.observed: list[tuple[str, float, dict[str, str]]] = []

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        self.counted.append((name, amount, labels))

    def observe(self, name: str, value: float, **labels: str) -> None:
        self.observed.append((name, value, labels))


class Object:
    """A download. Its task is the one that opened it, or the test fails."""

    size = len(OBJECT)
    content_type = "text/plain"

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._task = trio.lowlevel.current_task()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._data:
            await trio.lowlevel.checkpoint()
            assert trio.lowlevel.current_task() is self._task
            piece, self._data = self._data[:4096], self._data[4096:]
            yield piece

    async def read(self, limit: int = 64 * 1024 * 1024) -> bytes:
        if len(self._data) > limit:
            raise GiveUp("too long")
        return b"".join([piece async for piece in self])


class FakeContext:
    """A `contract.Context` without a daemon."""

    def __init__(self, attempt: int = 1) -> None:
        self.attempt = attempt
        self.logger = Lines()
        self.counts = Counts()
        self.metrics: Metrics = self.counts
        self.sent: list[EmailReply | SmsReply] = []
        self.open = 0  # downloads
        self.sending = trio.Event()
        self.was_stopped = False

    def now(self) -> datetime:
        return NOW

    @asynccontextmanager
    async def download(
        self, ref: BlobRef, *, start: int = 0, end: int | None = None
    ) -> AsyncIterator[Object]:
        if ref.key != REF.key:
            raise GiveUp("the object is gone")
        self.open += 1
        try:
            with trio.CancelScope():  # which only the task that opened it may close
                yield Object(OBJECT[start:end])
        finally:
            self.open -= 1

    async def send_email(self, reply: EmailReply) -> None:
        """Never ends."""
        self.sending.set()
        try:
            await trio.sleep_forever()
        finally:
            self.was_stopped = True

    async def send_sms(self, reply: SmsReply) -> None:
        if reply.to == "+15550666":
            raise GiveUp("this number is blocked")
        self.sent.append(reply)


_: type[Context] = FakeContext


async def link(ref: BlobRef) -> BlobRef:
    """What gives links."""
    return BlobRef(bucket=ref.bucket, key=ref.key, presigned_get_url=LINK, expires_at="2025-09-28T12:00:00Z")
