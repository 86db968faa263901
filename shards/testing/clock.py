"""A clock that a test moves by hand, one that also goes by itself, and one that follows trio's virtual time."""

from __future__ import annotations

import trio

from shards.clock import Clock, Follower, SystemClock

EPOCH_MS = 1_700_000_000_000  # an arbitrary instant in 2023, so that failures print readable numbers
SETTLE_S = 0.001


class FakeClock:
    """Stands still until told otherwise; may be stepped backwards."""

    def __init__(self, now_ms: int = EPOCH_MS) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Return the time last set."""
        return self._now_ms

    def advance(self, by_ms: int) -> None:
        """Move by `by_ms`, which may be negative."""
        self._now_ms += by_ms


class TrioClock:
    """Unix ms that passes as trio's own clock does, so `trio.sleep` under a MockClock moves it."""

    def __init__(self, start_ms: int = EPOCH_MS) -> None:
        self._start_ms = start_ms
        self._start = trio.current_time()
        self.skew_ms = 0  # add an hour here to see what a stepped wall clock does

    def now_ms(self) -> int:
        """Return the start time plus what has passed on trio's clock, plus the skew."""
        return self._start_ms + round((trio.current_time() - self._start) * 1000) + self.skew_ms


class MovedClock:
    """Goes as another clock does, and can be moved besides: what waits for a time that is passed so is woken."""

    def __init__(self, base: Clock | None = None) -> None:
        """base: the system's clock by default."""
        self._base = base or SystemClock()
        self._ahead_ms = 0
        self._followers: list[Follower] = []

    def now_ms(self) -> int:
        """Return the time of the base plus what this clock was moved."""
        return self._base.now_ms() + self._ahead_ms

    def follow(self, follower: Follower) -> None:
        """Have it told of each move from now on."""
        self._followers.append(follower)

    def move(self, by_ms: int) -> None:
        """Move by `by_ms`, which may be negative. On the thread of those who follow."""
        self._ahead_ms += by_ms
        for follower in self._followers:
            follower.nudge()

    async def settled(self) -> None:
        """Return once all is under way no more that is due by now."""
        while not all(follower.quiet(self.now_ms()) for follower in self._followers):  # noqa: ASYNC110 - many ways
            await trio.sleep(SETTLE_S)
