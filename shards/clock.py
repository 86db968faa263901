"""The clock port: unix milliseconds, from the system, from trio's clock, or from a test's hand."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable


class Clock(Protocol):
    """Where the runtime gets the time. It may step backwards; nothing durable relies on it never doing so."""

    def now_ms(self) -> int:
        """Return unix time, UTC, in whole milliseconds."""
        ...


class SystemClock:
    """Wall-clock time."""

    def now_ms(self) -> int:
        """Return the system's unix time in milliseconds."""
        return time.time_ns() // 1_000_000


class Follower(Protocol):
    """What waits for times of the clock."""

    def nudge(self) -> None:
        """The clock was moved: look at it again."""
        ...

    def quiet(self, now_ms: int) -> bool:
        """Is nothing under way that was due by then?"""
        ...


@runtime_checkable
class MovableClock(Clock, Protocol):
    """A clock that is moved by hand, and says so: what waits for one of its times need not be told otherwise."""

    def follow(self, follower: Follower) -> None:
        """Have it told of each move from now on."""
        ...
