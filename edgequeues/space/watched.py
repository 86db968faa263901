"""What operators are told of a space: who did what to it, how much goes through its queues, and that it changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import update_wrapper
from itertools import islice
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import Struct

from edgequeues.core.who import SERVER, Who
from edgequeues.models import QueueConfig
from edgequeues.space import audit
from edgequeues.space.audit import TOLD_MAX
from edgequeues.space.queues import Queue
from edgequeues.space.timed import Timed
from shards.shard import Context

CHANGED = "changed"  # the event that something was written, whatever it is
RATE_S = 60
RATES_MAX = (
    10_000  # queues whose messages are counted; beyond that, the one that was quiet for longest is dropped
)

S = TypeVar("S", bound="Watched")
P = ParamSpec("P")
T = TypeVar("T")
X = TypeVar("X")


class Rate:
    """How many came and how many were acked in the last minute, to the second. In memory alone."""

    __slots__ = ("_seconds",)

    def __init__(self) -> None:
        self._seconds: deque[list[int]] = deque()  # [unix second, came, acked], the oldest first

    def add(self, at: int, came: int, acked: int) -> None:
        """Count what was at unix ms `at`, which never falls."""
        second, seconds = at // 1_000, self._seconds
        if seconds and seconds[-1][0] == second:
            seconds[-1][1] += came
            seconds[-1][2] += acked
        else:
            seconds.append([second, came, acked])
            self._pass(second)

    def per_second(self, at: int) -> tuple[list[int], list[int]]:
        """How many came and were acked in each of the last 60 seconds, of which the last one runs at unix ms `at`."""
        now = at // 1_000
        self._pass(now)
        came, acked = [0] * RATE_S, [0] * RATE_S
        for second, in_, out in self._seconds:
            came[second - now - 1], acked[second - now - 1] = in_, out
        return came, acked

    def _pass(self, second: int) -> None:
        seconds = self._seconds
        while seconds and seconds[0][0] <= second - RATE_S:
            seconds.popleft()


class Watched(Timed):
    """who: by whom the running turn was asked for."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.who: Who = SERVER
        # By queue: unix ms, how many came and were acked, in turns not yet written back.
        self._passed: dict[str, list[int]] = {}
        self._written = 0  # rows, since the file was opened
        self._rates: dict[str, Rate] = {}  # by queue, the one that was quiet for longest first

    def write_back(self) -> None:
        """Write down the counters that turns have changed; count what came; say that there was a change, if so."""
        super().write_back()
        written = self.db.total_changes()
        if written != self._written:
            self._written = written
            self.emit(CHANGED)
        for queue_id, (at, came, acked) in self._passed.items():
            rate = self._rates.pop(queue_id, None) or Rate()
            rate.add(at, came, acked)
            self._rates[queue_id] = rate
        self._passed.clear()
        while len(self._rates) > RATES_MAX:
            del self._rates[next(iter(self._rates))]

    def forget(self) -> None:
        """Read all rows afresh from now on. What came in turns that were undone did not come."""
        super().forget()
        self._passed.clear()

    def delete_all(self) -> None:
        """Delete everything; nothing has come yet."""
        super().delete_all()
        self._rates.clear()

    def _accept(self, row: Queue, at: int, count: int) -> None:
        """Count messages that were put into a queue at unix ms `at`."""
        self._let_pass(row, at, count, 0)

    def _finish(self, row: Queue, at: int, count: int) -> None:
        """Count messages of a queue that were acked at unix ms `at`."""
        if count:
            self._let_pass(row, at, 0, count)

    def _let_pass(self, row: Queue, at: int, came: int, acked: int) -> None:
        passed = self._passed.get(row.queue_id)
        if passed is None:
            self._passed[row.queue_id] = [at, came, acked]
        else:
            passed[0], passed[1], passed[2] = at, passed[1] + came, passed[2] + acked

    def _per_second(self, row: Queue) -> tuple[list[int], list[int]]:
        """What came and what was acked in the last minute, second by second, as far as the file was open then."""
        self.write_back()
        rate = self._rates.get(row.queue_id, Rate())
        return rate.per_second(self._time())

    def _record(self, action: str, row: Queue | None = None, **detail: object) -> None:
        """Write down what whoever asked for this turn has done. detail: what JSON can say, and not None."""
        at = self._time()
        queue_id, name = (None, None) if row is None else (row.queue_id, row.name)
        said = {name: value for name, value in detail.items() if value is not None}
        audit.record(self.db, at, self.who, action, queue_id, name, said)
        self._alarm_in(audit.KEPT_MS)

    def _recorded(self, row: Queue) -> Queue:
        """The same queue; that it was made is on record."""
        self._record("configure", row, made=True)
        return row

    def _record_settings(self, row: Queue, before: QueueConfig) -> None:
        """Have it on record what of a queue's settings is other than before, if anything is."""
        changes = changed(before, row.config)
        if changes.keys() == {"paused"}:
            self._record("pause" if row.paused else "resume", row)
        elif changes:
            self._record("configure", row, changes=changes)


def by(who: Who, verb: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """A verb, or another turn, as somebody asks for it: what it records is recorded of them."""

    def turn(shard: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        before, shard.who = shard.who, who
        try:
            return verb(shard, *args, **kwargs)
        finally:
            shard.who = before

    update_wrapper(turn, verb, assigned=())  # the marks of the verb: does it read, does it grow?
    return turn


def changed(before: Struct, after: Struct) -> dict[str, list[object]]:
    """The fields that are other than they were: how each was, and how it is."""
    pairs = {name: [getattr(before, name), getattr(after, name)] for name in before.__struct_fields__}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def told(things: Iterable[X]) -> list[X]:
    """The first of some things, as many as one record names."""
    return list(islice(things, TOLD_MAX))
