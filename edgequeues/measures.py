"""What the engine and the server measure of themselves: counts and histograms, cheap enough for every turn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from shards.meter import Cause

# Upper ends of buckets, in seconds: what a turn takes, what a disk takes, what a request and what work takes.
TURN_S = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25)
DISK_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5)
REQUEST_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
WORK_S = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3_600.0, 86_400.0)
BATCH_TURNS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Histogram:
    """How many values fell into which bucket, and their sum. bounds: upper ends, inclusive; one bucket is above."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float, count: int = 1) -> None:
        """Count a value, or so many of it."""
        self.counts[bisect_left(self.bounds, value)] += count
        self.total += value * count

    def merge(self, other: Histogram) -> None:
        """Add what another one of the same bounds has counted."""
        self.counts = [one + more for one, more in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


class EngineMeter:
    """What the shards tell, see `shards.meter.Meter`."""

    def __init__(self) -> None:
        self.turns = Histogram(TURN_S)
        self.batches = Histogram(BATCH_TURNS)
        self.commits = Histogram(DISK_S)
        self.flushes = Histogram(DISK_S)
        self.waits = Histogram(DISK_S)
        self.openings = 0
        self.breaks = 0
        self.evictions: dict[Cause, int] = {"crowded": 0, "idle": 0}
        self.turn = self.turns.add
        self.batch = self.batches.add
        self.commit = self.commits.add
        self.flush = self.flushes.add

    def held(self, turns: int, seconds: float) -> None:
        """See `Meter`."""
        self.waits.add(seconds, turns)

    def opened(self) -> None:
        """See `Meter`."""
        self.openings += 1

    def evicted(self, cause: Cause) -> None:
        """See `Meter`."""
        self.evictions[cause] += 1

    def broke(self) -> None:
        """See `Meter`."""
        self.breaks += 1


class RequestCounts:
    """What is counted of requests, see `edgequeues.http.observing`."""

    def __init__(self) -> None:
        self.by_kind: dict[tuple[str, str, str, int], int] = {}  # dialect, route, method, status
        self.seconds: dict[str, Histogram] = {}  # by dialect

    def add(self, dialect: str, route: str, method: str, status: int, seconds: float) -> None:
        """Count one."""
        kind = (dialect, route, method, status)
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        times = self.seconds.get(dialect)
        if times is None:
            times = self.seconds[dialect] = Histogram(REQUEST_S)
        times.add(seconds)
