"""A call on its way through a shard: what to run, what came of it, and who waits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CoroutineType, GeneratorType
from typing import Any, Generic, TypeVar

import outcome
import trio

from shards.errors import TurnRefused

T = TypeVar("T")

_plain: set[object] = set()  # verbs already seen to be plain functions


class Turn(Generic[T]):
    """One call. The caller parks in `answer`; the shard runs it, then delivers."""

    __slots__ = ("_task", "args", "kwargs", "result", "verb")

    def __init__(self, verb: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.verb = verb
        self.args = args
        self.kwargs = kwargs
        self.result: outcome.Outcome[T] | None = None
        self._task: trio.lowlevel.Task | None = None

    async def answer(self) -> T:
        """Wait for delivery. Cancelled: stop listening; the turn runs and commits all the same."""
        self._task = trio.lowlevel.current_task()

        def stop_listening(_: object) -> trio.lowlevel.Abort:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        answer: T = await trio.lowlevel.wait_task_rescheduled(stop_listening)
        return answer

    def run(self, shard: object) -> None:
        """Run the verb; raises what it raises."""
        value = self.verb(shard, *self.args, **self.kwargs)
        if isinstance(value, CoroutineType | GeneratorType):
            value.close()  # or Python would warn that it was never awaited
            raise TurnRefused(f"{self.verb!r} returned a {type(value).__name__}")
        self.result = outcome.Value(value)

    def fail(self, error: BaseException) -> None:
        """Make `error` the result, whatever it was."""
        self.result = outcome.Error(error)

    @property
    def failed(self) -> bool:
        """Is its result an error?"""
        return isinstance(self.result, outcome.Error)

    def deliver(self) -> None:
        """Wake the caller with the result, if it still listens."""
        task, self._task = self._task, None
        if task is not None:
            assert self.result is not None
            trio.lowlevel.reschedule(task, self.result)


def require_plain(verb: Callable[..., object]) -> None:
    """Raise TurnRefused for a coroutine or generator function, before anything is queued."""
    if verb in _plain:
        return
    if (
        inspect.iscoroutinefunction(verb)
        or inspect.isgeneratorfunction(verb)
        or inspect.isasyncgenfunction(verb)
    ):
        raise TurnRefused(repr(verb))
    if inspect.isfunction(verb) and "<locals>" not in verb.__qualname__:  # closures would pile up here
        _plain.add(verb)
