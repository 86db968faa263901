"""Handlers on asyncio: one event loop, in a thread that lives as long as the daemon."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from edgequeues.daemon.contract import Context, Handler, Result, TryAgain
from edgequeues.daemon.handlers.bridge import Bridge, bridged
from edgequeues.daemon.handlers.faces import AsyncioContext
from edgequeues.daemon.handlers.spec import result_of
from edgequeues.events.event import SwitchboardEvent
from edgequeues.loops import Job

LEAVE_S = 1.0  # that a task has to end once it is cancelled, and then the loop

Function = Callable[[SwitchboardEvent, Any], Awaitable[object]]


class _OnAsyncio:
    def __init__(self, function: Function, name: str, loop: asyncio.AbstractEventLoop, logger: Any) -> None:
        self._function = function
        self._name = name
        self._loop = loop
        self._logger = logger

    async def handle(self, event: SwitchboardEvent, ctx: Context) -> Result:
        async def work(bridge: Bridge) -> object:
            return await self._run(event, AsyncioContext(ctx, bridge))

        return result_of(await bridged(work), who=self._name)

    async def _run(self, event: SwitchboardEvent, ctx: AsyncioContext) -> object:
        attempt = Job(self._loop, self._function, event, ctx)
        try:
            return await attempt.wait()
        except asyncio.CancelledError:
            raise TryAgain("the handler was cancelled, and not by the daemon") from None
        except trio.Cancelled:
            with trio.move_on_after(LEAVE_S, shield=True) as limit:
                await attempt.end()
            if limit.cancelled_caught:
                self._logger.warning(
                    "a handler that was cancelled goes on: it blocks its event loop, or will not be cancelled",
                    eventId=event.id,
                    attempt=ctx.attempt,
                )
            raise


@asynccontextmanager
async def open_loop(function: Function, name: str, logger: Any) -> AsyncIterator[Handler]:
    """A loop that ends with the block; its tasks are cancelled and waited for."""
    token = trio.lowlevel.current_trio_token()
    ready = trio.Event()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def stay() -> None:
        running.append((asyncio.get_running_loop(), stop := asyncio.Event()))
        token.run_sync_soon(ready.set)
        await stop.wait()

    thread = threading.Thread(
        target=asyncio.run, args=(stay(),), name="edgequeues handlers on asyncio", daemon=True
    )
    thread.start()
    try:
        await ready.wait()
        yield _OnAsyncio(function, name, running[0][0], logger)
    finally:
        with trio.CancelScope(shield=True):
            await ready.wait()
            loop, stop = running[0]
            loop.call_soon_threadsafe(stop.set)
            await trio.to_thread.run_sync(thread.join, LEAVE_S)
        if thread.is_alive():
            logger.warning("the event loop of the handlers does not end: one of them blocks it")
