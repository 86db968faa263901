"""Trio in one thread, an asyncio loop in another: what each has the other do, and how that ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeVar

import outcome
import trio

T = TypeVar("T")
Do = Callable[..., Awaitable[T]]


class LoopGone(Exception):
    """The event loop ended, or was told to, before what it was to do. Have it done on another one."""


class Call(Future[T]):
    """What is being done on trio."""

    def __init__(self) -> None:
        super().__init__()
        self.scope = trio.CancelScope()

    def cancel(self) -> bool:
        """No: see `Calls.stop`."""
        return False


class Calls:
    """Has things done on trio, in the nursery, where that is asked for in other threads.

    over: makes what a call raises that is ended, or comes too late.
    """

    def __init__(self, nursery: trio.Nursery, over: Callable[[], Exception]) -> None:
        self._nursery = nursery
        self._over = over
        self._token = trio.lowlevel.current_trio_token()
        self._closed = False

    def refuse(self) -> None:
        """On trio's thread: refuse what comes later; what goes on may go on."""
        self._closed = True

    def close(self) -> None:
        """On trio's thread: end whatever goes on, and refuse what comes later."""
        self.refuse()
        self._nursery.cancel_scope.cancel()

    def submit(self, do: Do[T], *args: Any) -> Call[T]:
        """From another thread: have something done. What it gives, or raises, comes with the call."""
        call: Call[T] = Call()
        try:
            self._token.run_sync_soon(self._start, call, do, args)
        except trio.RunFinishedError:
            call.set_exception(self._over())
        return call

    def stop(self, call: Call[T]) -> None:
        """From another thread: nobody waits for it any more."""
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(call.scope.cancel)

    async def wait(self, do: Do[T], *args: Any) -> T:
        """From an asyncio loop: have something done, and wait for it. Whoever is cancelled ends it."""
        call = self.submit(do, *args)
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            self.stop(call)
            raise

    def _start(self, call: Call[T], do: Do[T], args: tuple[Any, ...]) -> None:
        if self._closed:
            call.set_exception(self._over())
        else:
            self._nursery.start_soon(self._run, call, do, args)

    async def _run(self, call: Call[T], do: Do[T], args: tuple[Any, ...]) -> None:
        try:
            with call.scope:
                call.set_result(await do(*args))
        except Exception as fault:
            call.set_exception(fault)
        finally:
            if not call.done():
                call.set_exception(self._over())


class Job:
    """One task on an asyncio loop, as seen from trio.

    context: which it runs in. Raises LoopGone where the loop is closed.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, function: Do[Any], *args: Any, context: Context | None = None
    ) -> None:
        self._loop = loop
        self._do = function, args
        self._context = context
        self._token = trio.lowlevel.current_trio_token()
        self._task: asyncio.Task[outcome.Outcome[Any]] | None = None
        self._was_over = True
        self._done = trio.Event()
        self._soon(self._start)

    async def wait(self) -> Any:
        """What the function gives, or raises; CancelledError of asyncio where it was cancelled, and not by `end`."""
        await self._done.wait()
        assert self._task is not None
        if self._task.cancelled():
            raise asyncio.CancelledError
        if self._task.exception() is not None:
            raise LoopGone("it was interrupted")
        return self._task.result().unwrap()

    async def end(self) -> bool:
        """Cancel it, and see that it ends. True: it had ended before. Raises LoopGone where the loop is closed."""
        self._soon(self._cancel)
        await self._done.wait()
        return self._was_over

    def _soon(self, do: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(do)
        except RuntimeError:
            raise LoopGone("it is closed") from None

    def _start(self) -> None:
        self._task = self._loop.create_task(self._run(), context=self._context)
        self._task.add_done_callback(self._tell)

    async def _run(self) -> outcome.Outcome[Any]:
        """Whatever is raised is caught here: sys.exit() would end the loop. Ctrl-C is for whoever runs it."""
        function, args = self._do
        done: outcome.Outcome[Any] = await outcome.acapture(function, *args)
        if isinstance(done, outcome.Error) and isinstance(done.error, KeyboardInterrupt):
            raise done.error
        return done

    def _cancel(self) -> None:
        assert self._task is not None
        self._was_over = not self._task.cancel()

    def _tell(self, _: object) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._done.set)
