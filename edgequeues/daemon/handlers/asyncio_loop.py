"""Handlers on asyncio: one event loop, in a thread that lives as long as the daemon."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import outcome
import trio

from edgequeues.daemon.contract import Context, Handler, Result, TryAgain
from edgequeues.daemon.handlers.bridge import Bridge, bridged
from edgequeues.daemon.handlers.faces import AsyncioContext
from edgequeues.daemon.handlers.spec import result_of
from edgequeues.events.event import SwitchboardEvent

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
        attempt = _Attempt(self._loop, self._function, event, ctx)
        try:
            return await attempt.wait()
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


class _Attempt:
    """One task on the other loop, as seen from trio."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        function: Function,
        event: SwitchboardEvent,
        ctx: AsyncioContext,
    ) -> None:
        self._loop = loop
        self._function = function
        self._given = event, ctx
        self._token = trio.lowlevel.current_trio_token()
        self._task: asyncio.Task[outcome.Outcome[object]] | None = None
        self._done = trio.Event()
        loop.call_soon_threadsafe(self._start)

    async def wait(self) -> object:
        """What the handler gives, or raises."""
        await self._done.wait()
        assert self._task is not None
        done = outcome.Error(asyncio.CancelledError()) if self._task.cancelled() else self._task.result()
        if isinstance(done, outcome.Error) and isinstance(done.error, asyncio.CancelledError):
            raise TryAgain("the handler was cancelled, and not by the daemon")
        return done.unwrap()

    async def end(self) -> None:
        """Cancel it, and see that it ends."""
        self._loop.call_soon_threadsafe(self._cancel)
        await self._done.wait()

    def _start(self) -> None:
        # Whatever is raised is caught in the task: sys.exit() in one would end the loop.
        self._task = self._loop.create_task(outcome.acapture(self._function, *self._given))
        self._task.add_done_callback(self._tell)

    def _cancel(self) -> None:
        assert self._task is not None
        self._task.cancel()

    def _tell(self, _: object) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._done.set)


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
