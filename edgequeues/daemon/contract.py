"""What a handler gives and raises, and what the daemon needs of whatever runs one.

A handler is `handle(event, ctx) -> Result | None`. Names on the wire, for handlers in other languages, are camelCase.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct

from edgequeues.events.event import Address, BlobRef, Phone, SwitchboardEvent


class Failure(Exception):
    """Why a message was not handled. code: of the catalogue, see `events.catalogue`."""

    code = "CONSUMER_HANDLER_ERROR"


class TryAgain(Failure):
    """Raised by a handler: this attempt failed. delay_s: until the next one; None: as the settings have it."""

    def __init__(self, error: str = "", *, delay_s: float | None = None) -> None:
        super().__init__(error)
        self.delay_s = delay_s


class GiveUp(Failure):
    """Raised by a handler: no attempt can succeed; the message becomes a dead letter."""

    code = "POLICY_VIOLATION"


class EmailReply(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    forbid_unknown_fields=True,
    tag_field="channel",
    tag="email",
):
    """A mail in answer to an event. to: as the event's `reply` has it, where it is empty.

    subject: `Re: ` and that of the event, where it is None. The headers that keep a thread together are set anyway.
    """

    to: list[Address] = []
    subject: Annotated[str, Meta(max_length=998)] | None = None
    text: str | None = None
    html: str | None = None


class SmsReply(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    forbid_unknown_fields=True,
    tag_field="channel",
    tag="sms",
):
    """A text message in answer to an event. to: as the event's `reply` has it, where it is None."""

    body: Annotated[str, Meta(min_length=1, max_length=1600)]
    to: Phone | None = None
    media_urls: list[str] = []


Reply = EmailReply | SmsReply


class Artifact(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Something that a handler made, kept with the message's result."""

    kind: Annotated[str, Meta(min_length=1, max_length=64)]
    r2: BlobRef | None = None
    note: Annotated[str, Meta(max_length=4096)] | None = None


class Result(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """What a handler gives back, if anything. reply: to be sent, once the message is acknowledged."""

    reply: Reply | None = None
    artifacts: Annotated[list[Artifact], Meta(max_length=100)] = []


class Metrics(Protocol):
    """What a handler counts and times; each name becomes a metric `handler_<name>`, on the daemon's page."""

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter."""

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add one value to a histogram."""


class Download(Protocol):
    """An object as a stream of pieces. size: bytes of the whole object."""

    size: int
    content_type: str

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def read(self, limit: int = 64 * 1024 * 1024) -> bytes:
        """All that is left. Raises GiveUp above `limit` bytes."""


class Context(Protocol):
    """What a handler may use. attempt: from 1; how often the event was handed out.

    Handlers that are plain functions, or run on asyncio, are given one that looks the same to them: there, what is
    `async` here is called without `await`, or with asyncio's.
    """

    attempt: int
    metrics: Metrics

    @property
    def logger(self) -> Any:
        """A logger of structlog, which names the event in every line."""

    def now(self) -> datetime:
        """The time in UTC, by the daemon's clock."""

    def download(
        self, ref: BlobRef, *, start: int = 0, end: int | None = None
    ) -> AbstractAsyncContextManager[Download]:
        """Fetch an object, or its bytes from `start` to before `end`; a link that has ended is made anew."""

    async def send_email(self, reply: EmailReply) -> None:
        """Send a mail now. Each call of one event has an idempotency key of its own that stays in later attempts."""

    async def send_sms(self, reply: SmsReply) -> None:
        """Send a text message now, as `send_email` does."""


class Handler(Protocol):
    """Whatever runs the user's handler: a function, a subprocess, a URL."""

    async def handle(self, event: SwitchboardEvent, ctx: Context) -> Result:
        """Deal with one event, on trio. Raises TryAgain, GiveUp; any other exception is a failed attempt."""
