"""What a worker and its handler say to each other of one message."""

from __future__ import annotations

import math
from typing import Literal

import anyio
from msgspec import Struct

from edgequeues.client.messages import Failed, Message

Did = Literal["acked", "retried", "given_up", "released", "lost"]


class TryAgain(Exception):
    """Raised by a handler: this attempt failed. delay_ms: before the next one. None: as the consumer has it."""

    def __init__(self, error: str = "", *, delay_ms: int | None = None) -> None:
        super().__init__(error)
        self.delay_ms = delay_ms


class GiveUp(Exception):
    """Raised by a handler: no attempt can succeed; the message becomes a dead letter."""


class Handled(Struct, frozen=True):
    """What became of one message. took_s: how long its handler ran.

    did: `acked`, `retried`, `given_up` (for good), `released` (given back untouched), or `lost`: the lease is not
    ours any more, `error` says why, and the message is for others to handle.
    """

    message: Message
    did: Did
    error: str | None
    took_s: float


class Tally(Struct):
    """How many messages ended how."""

    acked: int = 0
    retried: int = 0
    given_up: int = 0
    released: int = 0
    lost: int = 0

    def count(self, did: Did) -> None:
        """Count one more."""
        setattr(self, did, getattr(self, did) + 1)


class Held:
    """A message whose lease this worker has."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.lease = (
            message.lease
        )  # a later one, where the first lapsed and this worker was given the message again
        self.scope: anyio.CancelScope | None = None  # of its handler, once that has begun
        self.began_s = math.inf
        self.handled = False
        self.failed: Failed | None = None  # if handled: what to say; None: an ack


class Bell:
    """Wakes the one task that waits for it, if one does."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    def ring(self) -> None:
        """Wake it."""
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Sleep until the next ring."""
        self._event = anyio.Event()
        await self._event.wait()
