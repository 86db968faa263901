"""The test kit: everything nondeterministic about a shard, in a test's hands."""

from shards.testing.clock import FakeClock, MovedClock, TrioClock
from shards.testing.direct import Direct
from shards.testing.disk import FaultyDisk, InlineDisk
from shards.testing.journal import AnswerLost, MemoryJournal, MemoryLog
from shards.testing.kit import run_virtual, running
from shards.testing.platter import Cut, Platter

__all__ = [
    "AnswerLost",
    "Cut",
    "Direct",
    "FakeClock",
    "FaultyDisk",
    "InlineDisk",
    "MemoryJournal",
    "MemoryLog",
    "MovedClock",
    "Platter",
    "TrioClock",
    "run_virtual",
    "running",
]
