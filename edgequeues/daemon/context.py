"""What a handler is given beside the event: downloads, sending, a logger, metrics and the time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import cached_property
from typing import Any

from edgequeues.daemon.contract import Context, Download, EmailReply, Metrics, Reply, SmsReply
from edgequeues.daemon.downloads import Downloads
from edgequeues.daemon.outbox import Sends, outgoing
from edgequeues.events.event import BlobRef, SwitchboardEvent


class Contexts:
    """Makes the context of each attempt. clock_now: the time in UTC. logger: structlog's, or one like it."""

    def __init__(
        self,
        sender: Sends,
        downloads: Downloads,
        clock_now: Callable[[], datetime],
        logger: Any,
        metrics: Metrics,
    ) -> None:
        self.sender = sender
        self.downloads = downloads
        self.clock_now = clock_now
        self.logger = logger
        self.metrics = metrics

    def of(self, event: SwitchboardEvent, attempt: int) -> Context:
        """The context of one attempt to handle an event. attempt: from 1."""
        return _Context(self, event, attempt)


class _Context:
    """See `contract.Context`. What all have the same is `common`'s."""

    def __init__(self, common: Contexts, event: SwitchboardEvent, attempt: int) -> None:
        self.attempt = attempt
        self.metrics = common.metrics
        self._common = common
        self._event = event
        self._sent = 0

    @cached_property
    def logger(self) -> Any:
        """Made for handlers that log."""
        event = self._event
        return self._common.logger.bind(eventId=event.id, source=event.source, attempt=self.attempt)

    def now(self) -> datetime:
        return self._common.clock_now()

    def download(
        self, ref: BlobRef, *, start: int = 0, end: int | None = None
    ) -> AbstractAsyncContextManager[Download]:
        return self._common.downloads.open(ref, start=start, end=end)

    async def send_email(self, reply: EmailReply) -> None:
        await self._send(reply)

    async def send_sms(self, reply: SmsReply) -> None:
        await self._send(reply)

    async def _send(self, reply: Reply) -> None:
        """The n-th call of every attempt has the same key, so that the receiver can know a repeat."""
        self._sent += 1
        await self._common.sender.send(outgoing(self._event, reply, call=str(self._sent)))
