"""A clock that a test moves by hand, and one that follows trio's virtual time."""

from __future__ import annotations

import trio

EPOCH_MS = 1_700_000_000_000  # an arbitrary instant in 2023, so that failures print readable numbers


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
