"""Handlers that are Python functions: `async def` on trio or asyncio, plain ones in threads.

A thread cannot be stopped: one that is over its budget goes on, and has its place until it ends.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from edgequeues.daemon.contract import Context, Handler, Result, TryAgain
from edgequeues.daemon.handlers.asyncio_loop import open_loop
from edgequeues.daemon.handlers.bridge import Bridge, bridged
from edgequeues.daemon.handlers.faces import PlainContext
from edgequeues.daemon.handlers.spec import HandlerSpec, UnusableHandler, result_of
from edgequeues.events.event import SwitchboardEvent

Function = Callable[[SwitchboardEvent, Any], Any]


class _OnTrio:
    def __init__(self, function: Callable[[SwitchboardEvent, Context], Awaitable[object]], name: str) -> None:
        self._function = function
        self._name = name

    async def handle(self, event: SwitchboardEvent, ctx: Context) -> Result:
        return result_of(await self._function(event, ctx), who=self._name)


class _InThreads:
    """Threads of its own, so that no handler keeps others' work waiting."""

    def __init__(self, function: Function, name: str, at_once: int, logger: Any) -> None:
        self._function = function
        self._name = name
        self._limiter = trio.CapacityLimiter(at_once)
        self._logger = logger
        self._running = 0

    async def handle(self, event: SwitchboardEvent, ctx: Context) -> Result:
        async def work(bridge: Bridge) -> object:
            return await self._run(event, PlainContext(ctx, bridge))

        return result_of(await bridged(work), who=self._name)

    async def _run(self, event: SwitchboardEvent, ctx: PlainContext) -> object:
        state = {"runs": False}

        def call() -> object:
            state["runs"] = True
            try:
                return self._called(event, ctx)
            finally:
                state["runs"] = False

        try:
            return await trio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._limiter)
        except trio.Cancelled:
            if state["runs"]:
                self._logger.warning(
                    "a handler that was told to stop goes on in its thread, and has its place until it ends",
                    eventId=event.id,
                    attempt=ctx.attempt,
                    threads=int(self._limiter.borrowed_tokens),
                )
            elif self._limiter.available_tokens == 0:
                self._logger.warning(
                    "an event found no thread: all have handlers that did not end",
                    eventId=event.id,
                    attempt=ctx.attempt,
                )
            raise

    def _called(self, event: SwitchboardEvent, ctx: PlainContext) -> object:
        given = self._function(event, ctx)
        if inspect.iscoroutine(given):
            given.close()
            raise TryAgain(f"{self._name} gave a coroutine: declare it with `async def`")
        return given


@asynccontextmanager
async def open_function(spec: HandlerSpec, *, logger: Any) -> AsyncIterator[Handler]:
    """Find a function and have what it runs on. Raises UnusableHandler."""
    function = find(spec.target)
    if not _is_async(function):
        if spec.loop == "asyncio":
            raise UnusableHandler(
                f"{spec.target} is a plain function, which runs in threads: leave asyncio out"
            )
        yield _InThreads(function, spec.target, spec.at_once, logger)
    elif spec.loop == "asyncio":
        async with open_loop(function, spec.target, logger) as handler:
            yield handler
    else:
        yield _OnTrio(function, spec.target)


def find(target: str) -> Function:
    """The function `module:function`, of the working directory or what is installed. Raises UnusableHandler."""
    module_name, _, path = target.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as fault:  # a module may do anything when it is imported
        raise UnusableHandler(
            f"{target}: importing {module_name} failed with {type(fault).__name__}: {fault}; it must lie in {here}, "
            "where the daemon was started, or be installed beside edgequeues"
        ) from fault
    where = module_name
    for name in path.split("."):
        if not hasattr(found, name):
            file = getattr(sys.modules[module_name], "__file__", None) or module_name
            raise UnusableHandler(f"{target}: {where} has no {name!r}; it was read from {file}")
        found, where = getattr(found, name), f"{where}.{name}"
    if isinstance(found, type) or not callable(found):
        kind = "a class" if isinstance(found, type) else type(found).__name__
        raise UnusableHandler(f"{target} is {kind}; name a function, or an object that can be called")
    _check_arguments(target, found)
    function: Function = found
    return function


def _check_arguments(target: str, found: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return  # of some that are built in, nothing is known
    try:
        signature.bind(None, None)
    except TypeError:
        raise UnusableHandler(
            f"{target}{signature} cannot be called with an event and a context; write `def handle(event, ctx)`"
        ) from None


def _is_async(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of an object that can be called
    )
