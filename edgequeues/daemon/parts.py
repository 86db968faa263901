"""What the daemon's loop works with; `app` puts it together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from edgequeues.daemon.contract import Context, Handler, Reply
from edgequeues.daemon.graves import Graves
from edgequeues.daemon.metrics import DaemonMetrics
from edgequeues.daemon.queue import HttpQueue, Patience
from edgequeues.daemon.wire import Message
from edgequeues.events.event import SwitchboardEvent
from edgequeues.logs import Log


class Replies(Protocol):
    """How replies leave. outbox: name of the queue whose messages are sent; None: they are sent from here."""

    outbox: str | None

    def letter(self, event: SwitchboardEvent, reply: Reply) -> tuple[Any, str]:
        """A reply as it lies in the outbox, and its idempotency key. Raises GiveUp."""

    async def send(self, event: SwitchboardEvent, reply: Reply) -> None:
        """Send it now. Raises TryAgain, GiveUp."""

    def emitted(self, queue_id: str) -> None:
        """Be told that the outbox, which has this id, has got something."""


def unwatched(_: Message) -> AbstractContextManager[None]:
    """Nobody wants to know."""
    return nullcontext()


class Parts(Struct, frozen=True, kw_only=True):
    """What the loop works with.

    read: makes an event of a body; whatever it raises says that it is malformed. context: for an event and the number
    of its attempt. redact: takes personal data out of an error. graves: where dead letters are pushed on services
    that take no word for them. attempting: around a handler that works on a message.
    """

    queue: HttpQueue
    handler: Handler
    read: Callable[[bytes], SwitchboardEvent]
    context: Callable[[SwitchboardEvent, int], Context]
    replies: Replies
    redact: Callable[[str], str]
    log: Log
    metrics: DaemonMetrics
    now_ms: Callable[[], int]
    graves: Graves | None = None
    patience: Patience = Patience()
    chance: Random = msgspec.field(default_factory=Random)
    attempting: Callable[[Message], AbstractContextManager[None]] = unwatched
