"""Calls functions that others wrote, plain ones in threads, async ones on trio; puts what they raise in words."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable, iscoroutinefunction

import trio

from edgequeues.store import base


class Function:
    """A function that may hang or raise anything.

    threads_max: calls of a plain function that run at once; one that was cancelled and runs on counts.
    """

    def __init__(self, function: Callable[..., object], threads_max: int) -> None:
        self._function = function
        self._is_async = is_async(function)
        self._threads = trio.CapacityLimiter(threads_max)

    async def call(self, *args: object) -> None:
        """Call it, and wait for what it gives if that can be waited for.

        A thread cannot be ended: whoever is cancelled leaves it behind. Raises whatever the function does.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._is_async:
            given = self._function(*args)
        else:
            [given] = await trio.to_thread.run_sync(
                lambda: [self._function(*args)], abandon_on_cancel=True, limiter=self._threads
            )
        if isawaitable(given):  # as of a lambda around an async function
            await given


def is_async(function: Callable[..., object]) -> bool:
    """Is this an async function, or an object that is called like one?"""
    return iscoroutinefunction(function) or iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of an object, it tells which kind it is
    )


def alone(fault: BaseException) -> BaseException:
    """What went wrong, without the groups that task groups put around it."""
    while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
        fault = fault.exceptions[0]
    return fault


def is_ours(fault: BaseException) -> bool:
    """Is it no fault of the function, but the end of whoever called it?"""
    if isinstance(fault, BaseExceptionGroup):
        return any(is_ours(one) for one in fault.exceptions)
    return isinstance(fault, KeyboardInterrupt | trio.Cancelled)


def words(fault: BaseException) -> str:
    """What went wrong in words, as much as is kept of them."""
    kind = type(fault).__name__
    try:
        text = str(fault)
    except Exception:  # an error of others may not even be able to say what it is
        text = ""
    return base.error_text(f"{kind}: {text}" if text else kind)
