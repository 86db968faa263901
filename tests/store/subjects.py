"""The two stores as subjects of the checks, in virtual time: one opens a folder, one asks a server over it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import trio

from edgequeues.store import DeadMessage, LocalStore, Options, QueueStore, RemoteStore, open_local
from edgequeues.store.conformance import Subject
from edgequeues.store.subject import Letter
from shards.testing import InlineDisk, TrioClock
from tests.client.working import serving

SPACE = "demo"
OPTIONS = Options(lease_ms=20_000)


class Ours(QueueStore, Protocol):
    """What both stores have beyond the interface."""

    async def dead_letters(self, queue: str, limit: int = 100) -> list[DeadMessage]: ...


class Base:
    """What stores are opened on, and can be closed and opened again over the same folder."""

    def __init__(self, folder: Path, start: Callable[[Path, TrioClock], Starting]) -> None:
        self._folder = folder
        self._clock = TrioClock()
        self._starting = start
        self._stack = AsyncExitStack()
        self.make: Callable[[], Ours]

    async def start(self) -> None:
        self.make = await self._stack.enter_async_context(self._starting(self._folder, self._clock))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def letters(self, queue: str) -> list[Letter]:
        return [(one.message, one.error) for one in await self.make().dead_letters(queue)]


Starting = AbstractAsyncContextManager[Callable[[], Ours]]


@asynccontextmanager
async def _folder(folder: Path, clock: TrioClock) -> AsyncIterator[Callable[[], LocalStore]]:
    async with open_local(
        folder, SPACE, OPTIONS, clock=clock, disk=InlineDisk(), randomness=random.Random(1)
    ) as store:
        yield store.another


@asynccontextmanager
async def _server(folder: Path, clock: TrioClock) -> AsyncIterator[Callable[[], RemoteStore]]:
    async with serving(folder, clock) as (client, _):
        yield lambda: RemoteStore(client, SPACE, OPTIONS)


@asynccontextmanager
async def subject(
    folder: Path,
    start: Callable[[Path, TrioClock], Starting],
    wrap: Callable[[Ours], QueueStore] = lambda store: store,
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
            time_max_ms=2 * 86_400_000,
            letters=base.letters,
            restart=base.restart,
        )
    finally:
        await base.stop()


KINDS: dict[str, Callable[[Path, TrioClock], Starting]] = {"local": _folder, "remote": _server}
