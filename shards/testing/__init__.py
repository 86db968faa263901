"""The test kit: everything nondeterministic about a shard, in a test's hands."""

from shards.testing.clock import FakeClock, TrioClock
from shards.testing.direct import Direct

__all__ = ["Direct", "FakeClock", "TrioClock"]
