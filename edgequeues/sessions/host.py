"""The asyncio loop of a program that has a manager in it: its functions run there, and are asked for on trio."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from inspect import isawaitable

import trio

from edgequeues.loops import Job, LoopGone
from edgequeues.sessions.calling import is_async

LEAVE_S = 3.0  # that a function has to end once it is cancelled; less than a manager waits for it
LOOK_S = 1.0  # between looks at whether the loop is closed, which nobody is told


class Host:
    """The loop that runs where this is made, with the context variables as they are now."""

    def __init__(self, log: logging.Logger) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._log = log

    async def closed(self) -> None:
        """On trio: wait until the loop is closed."""
        while not self._loop.is_closed():  # noqa: ASYNC110 - nothing tells
            await trio.sleep(LOOK_S)

    def threaded(self, function: Callable[..., object]) -> Callable[..., object]:
        """What a manager calls so that the function runs on the loop if it is async, and else in a thread.

        What a plain one gives to wait for, as a lambda around an async one, is waited for on the loop.
        """
        if is_async(function):
            return self.looped(function)

        def call(*args: object) -> object:
            given = self._context.copy().run(function, *args)
            return self.run(_given, given) if isawaitable(given) else None

        return call

    def looped(self, function: Callable[..., object]) -> Callable[..., Awaitable[object]]:
        """What a manager calls so that the function runs on the loop, plain or async."""

        async def call(*args: object) -> None:
            await self.run(_called, function, *args)

        return call

    async def run(self, function: Callable[..., Awaitable[object]], *args: object) -> None:
        """On trio: have it run as a task on the loop. Being cancelled cancels that, and waits LEAVE_S for it.

        Raises what the function does. Where the loop is gone, it waits to be cancelled: that is nobody's failure.
        """
        try:
            job = Job(self._loop, function, *args, context=self._context.copy())
            await self._end_with(job)
        except LoopGone:
            await trio.sleep_forever()
        except asyncio.CancelledError:
            raise RuntimeError("its task was cancelled, and not by the manager") from None

    async def _end_with(self, job: Job) -> None:
        try:
            await job.wait()
        except trio.Cancelled:
            with trio.move_on_after(LEAVE_S, shield=True) as limit:
                try:
                    if await job.end():  # what it did counts, though nobody had heard of it here
                        await job.wait()
                        return
                except LoopGone:
                    self._log.info("the event loop is closed: what ran there is no more")
            if limit.cancelled_caught:
                self._log.warning(
                    "a function that was cancelled goes on: it blocks its event loop, or will not be cancelled"
                )
            raise


async def _called(function: Callable[..., object], *args: object) -> None:
    given = function(*args)
    if isawaitable(given):
        await given


async def _given(given: Awaitable[object]) -> None:
    await given
