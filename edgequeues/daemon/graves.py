"""Dead letters where the service has no way to say that a message is one: they are pushed to a queue, then acked.

A daemon that dies between the two buries a message twice.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from random import Random
from typing import Literal

import msgspec
import trio
from msgspec import Raw, Struct

from edgequeues.core import jsontext
from edgequeues.core.errors import InvalidJson
from edgequeues.core.times import utc
from edgequeues.daemon.queue import HttpQueue, Patience
from edgequeues.daemon.wire import Message, QueueError, Refused

Reason = Literal["malformed", "max_attempts", "permanent"]


class Envelope(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dead letter. Times are ISO 8601 in UTC.

    original_message: the bytes that were pushed, in base64 where original_encoding says so, as they were no JSON.
    """

    original_message: Raw
    original_encoding: str | None = None
    original_queue: str
    original_message_id: str
    reason: Reason
    error: str
    last_error: str = msgspec.field(name="lastError")
    attempts: int
    first_seen_at: str = msgspec.field(name="firstSeenAt")
    last_seen_at: str = msgspec.field(name="lastSeenAt")
    failed_at: str


class Graves:
    """The queue for dead letters. source: the name of the queue that they come from."""

    def __init__(
        self, queue: HttpQueue, source: str, *, now_ms: Callable[[], int], patience: Patience, chance: Random
    ) -> None:
        self._queue = queue
        self._source = source
        self._now_ms = now_ms
        self._patience, self._chance = patience, chance

    async def bury(self, message: Message, reason: Reason, error: str, *, limit_s: float) -> None:
        """Push a dead letter; try for `limit_s`. Raises QueueError."""
        letter = envelope(message, self._source, reason, error, self._now_ms())
        ends_s = trio.current_time() + limit_s
        failures = 0
        while True:
            try:
                return await self._queue.push(letter)
            except Refused:
                raise
            except QueueError as fault:
                failures += 1
                pause_s = self._patience.pause_s(failures, fault, self._chance)
                if trio.current_time() + pause_s >= ends_s:
                    raise
                await trio.sleep(pause_s)


def envelope(message: Message, source: str, reason: Reason, error: str, now_ms: int) -> Envelope:
    """The dead letter of a message."""
    try:
        jsontext.check(message.body)
        original, encoding = message.body, None
    except InvalidJson:
        original, encoding = msgspec.json.encode(base64.b64encode(message.body).decode()), "base64"
    now = utc(now_ms)
    return Envelope(
        original_message=Raw(original),
        original_encoding=encoding,
        original_queue=source,
        original_message_id=message.id,
        reason=reason,
        error=error,
        last_error=error,
        attempts=message.attempts,
        first_seen_at=utc(message.timestamp_ms or now_ms),
        last_seen_at=now,
        failed_at=now,
    )
