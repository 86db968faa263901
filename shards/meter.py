"""What a namespace tells of its work: how long things take, how much is done at once, which shards come and go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

Cause = Literal["idle", "crowded"]  # nobody used it; another one needed its place


class Meter(Protocol):
    """Who is told. Seconds are of `time.perf_counter`. Called on the event loop, so it must be quick."""

    def turn(self, seconds: float) -> None:
        """A turn was run."""

    def batch(self, turns: int) -> None:
        """A batch of so many turns was run as one transaction."""

    def commit(self, seconds: float) -> None:
        """A batch that wrote something was committed."""

    def flush(self, seconds: float) -> None:
        """Commits were made durable."""

    def held(self, turns: int, seconds: float) -> None:
        """So many answers were let out that had waited at the gate for so long."""

    def opened(self) -> None:
        """A shard's file was opened."""

    def evicted(self, cause: Cause) -> None:
        """A shard is to be closed that may be opened again."""

    def broke(self) -> None:
        """The disk refused a flush or a write of a shard."""


class Unmeasured:
    """Tells nobody."""

    def turn(self, seconds: float) -> None:
        """See `Meter`."""

    def batch(self, turns: int) -> None:
        """See `Meter`."""

    def commit(self, seconds: float) -> None:
        """See `Meter`."""

    def flush(self, seconds: float) -> None:
        """See `Meter`."""

    def held(self, turns: int, seconds: float) -> None:
        """See `Meter`."""

    def opened(self) -> None:
        """See `Meter`."""

    def evicted(self, cause: Cause) -> None:
        """See `Meter`."""

    def broke(self) -> None:
        """See `Meter`."""


class Levels(NamedTuple):
    """How a namespace is at one moment. waiting: calls without an answer. wal_bytes: of -wal files in use."""

    open: int
    waiting: int
    waiting_most: int  # of one shard
    wal_bytes: int
    wal_bytes_most: int  # of one shard
    disk_full: bool


def levels(waiting: Sequence[int], wal_bytes: Sequence[int], disk_full: bool) -> Levels:
    """Of shards with so many calls and bytes each."""
    most, longest = max(waiting, default=0), max(wal_bytes, default=0)
    return Levels(len(waiting), sum(waiting), most, sum(wal_bytes), longest, disk_full)
