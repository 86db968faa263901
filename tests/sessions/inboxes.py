"""Inboxes of both kinds over a folder, in virtual time, which can be closed and opened again: the next life."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

from edgequeues.sessions.inbox import Inbox
from edgequeues.sessions.remote import RemoteInbox
from shards.testing import TrioClock
from tests.client.working import serving

SPACE, QUEUE = "chat", "inbound"
LOCK_MS = 300_000


class Make(Protocol):
    """Makes an inbox, of a worker of that name."""

    def __call__(self, worker: str = "manager", queue: str = QUEUE) -> Inbox: ...


Start = Callable[[Path, TrioClock], AbstractAsyncContextManager[Make]]


class Base:
    """What inboxes are made on."""

    def __init__(self, folder: Path, start: Start) -> None:
        self._folder = folder
        self._clock = TrioClock()
        self._start = start
        self._stack = AsyncExitStack()
        self.make: Make

    def now_ms(self) -> int:
        return self._clock.now_ms()

    async def start(self) -> None:
        self.make = await self._stack.enter_async_context(self._start(self._folder, self._clock))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def restart(self) -> None:
        await self.stop()
        await self.start()


@asynccontextmanager
async def _server(folder: Path, clock: TrioClock) -> AsyncIterator[Make]:
    async with serving(folder, clock) as (client, _):
        yield lambda worker="manager", queue=QUEUE: RemoteInbox(client, SPACE, queue, worker=worker)


KINDS: dict[str, Start] = {"remote": _server}
