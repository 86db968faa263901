"""The two stores as subjects of the checks, in virtual time: one opens a folder, one asks a server over it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import trio

from edgequeues.store import DeadMessage, Options, QueueStore, RemoteStore, open_local
from edgequeues.store.conformance import Subject
from edgequeues.store.subject import Letter
from shards.testing import InlineDisk, TrioClock
from tests.client.working import serving

SPACE = "demo"
OPTIONS = Options(lease_ms=20_000)


class Ours(QueueStore, Protocol):
    """What both stores have beyond the interface."""

    async def extend(self, message_id: str) -> None: ...

    async def dead_letters(self, queue: str, limit: int = 100) -> list[DeadMessage]: ...


class Make(Protocol):
    """Makes a store object."""

    def __call__(self, options: Options = OPTIONS) -> Ours: ...


Start = Callable[[Path, TrioClock], AbstractAsyncContextManager[Make]]


class Base:
    """What stores are opened on, and can be closed and opened again over the same folder."""

    def __init__(self, folder: Path, start: Start) -> None:
        self._folder = folder
        self._clock = TrioClock()
        self._start = start
        self._stack = AsyncExitStack()
        self.make: Make

    async def start(self) -> None:
        self.make = await self._stack.enter_async_context(self._start(self._folder, self._clock))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def letters(self, queue: str) -> list[Letter]:
        return [(one.message, one.error) for one in await self.make().dead_letters(queue)]


@asynccontextmanager
async def _folder(folder: Path, clock: TrioClock) -> AsyncIterator[Make]:
    async with open_local(
        folder, SPACE, OPTIONS, clock=clock, disk=InlineDisk(), randomness=random.Random(1)
    ) as store:
        yield lambda options=OPTIONS: store.another(options)


@asynccontextmanager
async def _server(folder: Path, clock: TrioClock) -> AsyncIterator[Make]:
    async with serving(folder, clock) as (client, _):
        yield lambda options=OPTIONS: RemoteStore(client, SPACE, options)


@asynccontextmanager
async def subject(
    folder: Path,
    start: Start,
    wrap: Callable[[Ours], QueueStore] = lambda store: store,
    *,
    time_max_ms: int = 2 * 86_400_000,
) -> AsyncIterator[Subject]:
    """A subject over a folder. wrap: what is checked instead of the store itself."""
    base = Base(folder, start)

    @asynccontextmanager
    async def opened() -> AsyncIterator[QueueStore]:
        yield wrap(base.make())

    async def advance(ms: int) -> None:
        await trio.sleep(ms / 1000)

    await base.start()
    try:
        yield Subject(
            opened,
            OPTIONS.lease_ms,
            "t",
            advance=advance,
            time_max_ms=time_max_ms,
            letters=base.letters,
            restart=base.restart,
        )
    finally:
        await base.stop()


KINDS: dict[str, Start] = {"local": _folder, "remote": _server}
