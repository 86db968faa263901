"""Inboxes of both kinds over a folder, in virtual time, which can be closed and opened again: the next life."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import trio

from edgequeues.router import Router
from edgequeues.sessions.inbox import Inbox
from edgequeues.sessions.local import LocalInbox
from edgequeues.sessions.remote import RemoteInbox
from edgequeues.space.shard import SpaceShard
from shards.testing import TrioClock, running
from tests.client.working import serving

SPACE, QUEUE = "chat", "inbound"
LOCK_MS = 300_000


class Make(Protocol):
    """Makes an inbox, of a worker of that name."""

    def __call__(self, worker: str = "manager", queue: str = QUEUE) -> Inbox: ...


Start = Callable[[Path, TrioClock], AbstractAsyncContextManager[Make]]


class Base:
    """What inboxes are made on. A life of it runs in a task of its own, so a test can end it and begin another."""

    def __init__(self, folder: Path, start: Start, nursery: trio.Nursery) -> None:
        self._folder = folder
        self._clock = TrioClock()
        self._start = start
        self._nursery = nursery
        self._over = trio.Event()
        self._ended = trio.Event()
        self.make: Make

    def now_ms(self) -> int:
        return self._clock.now_ms()

    async def start(self) -> None:
        self.make = await self._nursery.start(self._live)

    async def stop(self) -> None:
        self._over.set()
        await self._ended.wait()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def _live(self, *, task_status: trio.TaskStatus[Make]) -> None:
        self._over, self._ended = trio.Event(), trio.Event()
        async with self._start(self._folder, self._clock) as make:
            task_status.started(make)
            await self._over.wait()
        self._ended.set()


@asynccontextmanager
async def opened(folder: Path, kind: str) -> AsyncIterator[Base]:
    """What inboxes of a kind are made on, over a folder."""
    async with trio.open_nursery() as nursery:
        base = Base(folder, KINDS[kind], nursery)
        await base.start()
        yield base
        await base.stop()


@asynccontextmanager
async def _server(folder: Path, clock: TrioClock) -> AsyncIterator[Make]:
    async with serving(folder, clock) as (client, _):
        yield lambda worker="manager", queue=QUEUE: RemoteInbox(client, SPACE, queue, worker=worker)


@asynccontextmanager
async def _local(folder: Path, clock: TrioClock) -> AsyncIterator[Make]:
    async with running(SpaceShard, folder, clock=clock) as namespace:
        router = Router(namespace)
        yield lambda worker="manager", queue=QUEUE: LocalInbox(router, SPACE, queue, worker=worker)


KINDS: dict[str, Start] = {"local": _local, "remote": _server}
