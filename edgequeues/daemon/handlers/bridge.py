"""How a handler that runs in another thread has something done on trio, for as long as its attempt goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import outcome
import trio

from edgequeues.daemon.contract import Download, TryAgain
from edgequeues.loops import Calls

OVER = "the attempt is over: its context is of no more use"

T = TypeVar("T")


def _over() -> Exception:
    return TryAgain(OVER)


class Bridge(Calls):
    """Of one attempt, whose nursery is given."""

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__(nursery, _over)
        self._downloads = nursery

    async def hold(self, opening: AbstractAsyncContextManager[Download]) -> Stream:
        """On trio's thread: open a download, in a task of its own. Raises what opening it raises."""
        stream = Stream(opening)
        await self._downloads.start(stream.serve)
        if stream.fault is not None:
            raise stream.fault
        return stream


async def bridged(work: Callable[[Bridge], Awaitable[T]]) -> T:
    """Do what needs a bridge, which ends with it. What it raises comes out as it is."""
    async with trio.open_nursery() as nursery:
        bridge = Bridge(nursery)
        try:
            done = await outcome.acapture(work, bridge)
        finally:
            bridge.close()
    value: T = done.unwrap()
    return value


class Stream:
    """A download that is opened, read and closed by one task, whichever asks for a piece. On trio's thread.

    fault: why it could not be opened, or closed.
    """

    def __init__(self, opening: AbstractAsyncContextManager[Download]) -> None:
        self.size = 0
        self.content_type = ""
        self.fault: Exception | None = None
        self._opening = opening
        self._ask, self._asked = trio.open_memory_channel[Callable[[Download], Awaitable[None]]](0)
        self._pieces: AsyncIterator[bytes] | None = None
        self._done = trio.Event()

    async def serve(self, task_status: trio.TaskStatus[None]) -> None:
        """Hold it open until `close`."""
        is_open = False
        try:
            async with self._opening as download:
                self.size, self.content_type = download.size, download.content_type
                is_open = True
                task_status.started()
                async with self._asked:
                    async for one in self._asked:
                        await one(download)
        except Exception as fault:
            self.fault = fault
            if not is_open:
                task_status.started()
        finally:
            self._done.set()

    async def piece(self) -> bytes | None:
        """The next one; None: there are no more."""

        async def next_piece(download: Download) -> bytes | None:
            if self._pieces is None:
                self._pieces = aiter(download)
            return await anext(self._pieces, None)

        return await self._answer(next_piece)

    async def read(self, *limit: int) -> bytes:
        """See `contract.Download.read`."""

        async def read(download: Download) -> bytes:
            return await download.read(*limit)

        return await self._answer(read)

    async def close(self) -> None:
        """Close it."""
        await self._ask.aclose()
        await self._done.wait()
        if self.fault is not None:
            raise self.fault

    async def _answer(self, do: Callable[[Download], Awaitable[T]]) -> T:
        done: list[outcome.Outcome[T]] = []
        ended = trio.Event()

        async def answer(download: Download) -> None:
            done.append(await outcome.acapture(do, download))
            ended.set()

        await self._ask.send(answer)
        await ended.wait()
        return done[0].unwrap()
