"""The clock port: unix milliseconds, from the system, from trio's clock, or from a test's hand."""

from __future__ import annotations

import time
from typing import Protocol


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
