"""The app at work on requests: what it receives, and what becomes of its failures."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from hypercorn.config import Config

MESSAGES_MAX = 2  # that wait for a handler, a read of the socket each, before no more is read

Message = dict[str, Any]
Send = Callable[[Any], Awaitable[None]]

log = logging.getLogger("edgequeues.http")


class Inbox:
    """What a handler receives. Whoever puts waits while much is left, but never to say that the client is gone."""

    __slots__ = ("_arrival", "_messages", "_taken")

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._arrival = trio.lowlevel.ParkingLot()
        self._taken = trio.lowlevel.ParkingLot()

    async def put(self, message: Message) -> None:
        """Add a message."""
        self._messages.append(message)
        self._arrival.unpark()
        if len(self._messages) > MESSAGES_MAX and not message["type"].endswith(".disconnect"):
            await self._taken.park()

    async def __call__(self) -> Message:
        """Return the next message; a disconnect again and again."""
        while True:
            message = self.come()
            if message is not None:
                return message
            await self._arrival.park()

    def come(self) -> Message | None:
        """Return the next message if it is there already."""
        if not self._messages:
            return None
        message = self._messages[0]
        if not message["type"].endswith(".disconnect"):
            self._messages.popleft()
        self._taken.unpark()
        return message


class Handlers:
    """Hypercorn's task group: runs the app once per request. What fails in there fails alone."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    async def spawn_app(self, app: Any, _config: Config, scope: Any, send: Send) -> Send:
        """Start the app; return what gives it messages."""
        inbox = Inbox()
        self._nursery.start_soon(_call, app, scope, inbox, send)
        return inbox.put


async def _call(app: Any, scope: Any, receive: Callable[[], Awaitable[Message]], send: Send) -> None:
    try:
        await app(scope, receive, send)
    except Exception:
        log.exception("a handler failed")
    await send(None)
