"""Who is told of every call of a shard: when it was asked, ran and was answered."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from shards.turn import Turn

T = TypeVar("T")


class Called(NamedTuple):
    """A call, with the seconds of `time.perf_counter` at which something happened to it.

    ran_s: its turn began; None: it never did. done_s: its turn ended, and the wait for the flush began.
    """

    shard: str
    verb: str
    asked_s: float
    ran_s: float | None
    done_s: float
    answered_s: float
    error: BaseException | None


Tracer = Callable[[Called], None]  # runs in the task that made the call, once it has its answer


class TimedTurn(Turn[T]):
    """A turn that remembers when it ran."""

    __slots__ = ("done_s", "ran_s")

    def __init__(self, verb: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__(verb, args, kwargs)
        self.ran_s: float | None = None
        self.done_s = 0.0

    def run(self, shard: object) -> None:
        """See `Turn.run`."""
        self.ran_s = perf_counter()
        try:
            super().run(shard)
        finally:
            self.done_s = perf_counter()

    async def traced(self, tracer: Tracer, shard: str, submit: Callable[[], None]) -> T:
        """Submit it, wait for its answer, and tell of it. Raises what both do."""
        asked_s, error = perf_counter(), None
        try:
            submit()
            return await self.answer()
        except BaseException as raised:
            error = raised
            raise
        finally:
            tracer(self._told(shard, asked_s, error))

    def _told(self, shard: str, asked_s: float, error: BaseException | None) -> Called:
        now_s = perf_counter()
        verb = getattr(self.verb, "__name__", repr(self.verb))
        return Called(shard, verb, asked_s, self.ran_s, self.done_s or now_s, now_s, error)
