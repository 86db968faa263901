"""Does working a queue cost more when the queue is longer, has more keys, or one that is stuck?

Both queues of a comparison are open at once and worked in turn, so that whatever else the machine does hits both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import blake2b
from itertools import count as numbers
from pathlib import Path
from typing import Any, NamedTuple

import trio

from bench.figures import Against, Figure, figure, ratio
from bench.rig import QUEUE, Rig, new_entries, quiet_collector
from bench.work_fill import fill
from edgequeues.models import LEASE_MS_MAX, NewEntry, Ordering, Pull
from edgequeues.space.shard import SpaceShard
from shards.namespace import Ref, open_namespace

SHORT = 1_000
STUCK = "stuck"
GROWTH_MAX = 1.5
GROWTH_MAX_BY_KEYS = 2.0
BEHIND = "push behind"


class Queue(NamedTuple):
    """What a queue holds: `messages`, the first `stuck` of them with one key whose head is handed out."""

    messages: int
    stuck: int = 0


class Case(NamedTuple):
    """What is compared: `name`, a long queue and a short one, worked `batch` messages a call."""

    name: str
    ordering: Ordering
    long: Queue
    short: Queue
    batch: int
    growth_max: float


class Times(NamedTuple):
    """Microseconds of a call: of its turn, and until its answer came."""

    turn: float
    call: float


Found = Mapping[str, list[Times]]  # by verb


class TimedSpace(SpaceShard):
    """Tells how long a turn took: the work without the way to it and the disk."""

    def timed(self, verb: str, *arguments: Any) -> tuple[Any, float]:
        began = time.perf_counter()
        return getattr(self, verb)(*arguments), (time.perf_counter() - began) * 1e6


def cases(rig: Rig) -> list[Case]:
    """What to compare at this effort."""
    short = rig.pick(SHORT, SHORT, 100)
    deep, many = rig.pick(1_000_000, 100_000, 300), rig.pick(100_000, 20_000, 300)
    plain = Queue(short)
    by_keys = GROWTH_MAX_BY_KEYS
    return [
        Case(f"{deep:,} messages", "unordered", Queue(deep), plain, 10, GROWTH_MAX),
        Case(f"{many:,} keys", "per_key", Queue(many), plain, 10, by_keys),
        Case(
            f"{many:,} behind one key", "per_key", Queue(many + short, many), Queue(short + 1, 1), 10, by_keys
        ),
        Case(f"{many:,} in one line", "fifo", Queue(many), plain, 1, by_keys),
    ]


def measure(rig: Rig) -> Iterator[Figure]:
    """Push, pull and ack, in turn in a long queue and a short one."""
    for case in cases(rig):
        with rig.place() as folder:
            for name, queue in (("long", case.long), ("short", case.short)):
                fill(folder, name, case.ordering, queue.messages, partial(_key, queue.stuck))
            rounds = trio.run(_rounds, folder, case, rig.pick(5, 3, 1), rig.pick(60, 30, 3))
        verbs = list(rounds[0]["long"])
        for verb in verbs:
            yield _figure(rig, case, verb, [(one["long"][verb], one["short"][verb]) for one in rounds])


def _key(stuck: int, number: int) -> str:
    """Keys that are far from each other in an index, as those of users are."""
    return STUCK if number < stuck else blake2b(b"%d" % number, digest_size=8).hexdigest()


def _figure(rig: Rig, case: Case, verb: str, rounds: list[tuple[list[Times], list[Times]]]) -> Figure:
    columns = {
        (way, which): [statistics.median(getattr(times, way) for times in one[which]) for one in rounds]
        for way in Times._fields
        for which in (0, 1)
    }
    against = [
        Against(
            what=f"{case.short.messages:,} messages, {name}",
            value=ratio(columns[way, 0], columns[way, 1]),
            target=case.growth_max,
            at_most=True,
        )
        for way, name in (("turn", "in a turn"), ("call", "through a call"))
    ]
    more = {
        f"at {case.short.messages:,}": statistics.median(columns["turn", 1]),
        "through a call": statistics.median(columns["call", 0]),
        f"through a call at {case.short.messages:,}": statistics.median(columns["call", 1]),
        "flush p50 us": rig.flush_ms * 1000,
    }
    each = 1 if verb == BEHIND else case.batch
    name = f"{verb} {each}, {case.ordering}, {case.name}, in a turn"
    return figure("work-depth", name, columns["turn", 0], "us", against=against, more=more)


async def _rounds(folder: Path, case: Case, count: int, cycles: int) -> list[dict[str, Found]]:
    """The times of each round, by queue and verb."""
    found = []
    async with open_namespace(TimedSpace, folder) as namespace:
        workers = {
            name: _Worker(namespace.ref(name), case, queue)
            for name, queue in (("long", case.long), ("short", case.short))
        }
        for worker in workers.values():
            await worker.begin()
        with quiet_collector():
            for _ in range(count):
                for number in range(cycles):
                    for name in sorted(workers, reverse=number % 2 == 0):
                        await workers[name].cycle()
                found.append({name: worker.take() for name, worker in workers.items()})
    return found


class _Worker:
    """Works one of the queues, and keeps the times."""

    def __init__(self, ref: Ref[TimedSpace], case: Case, queue: Queue) -> None:
        self.ref = ref
        self.batch = case.batch
        self.stuck = queue.stuck > 0
        self.times: dict[str, list[Times]] = {}
        self._numbers = numbers(queue.messages)

    async def begin(self) -> None:
        """Have the key's head handed out, and everything used once."""
        if self.stuck:
            pulled = await self.ref.call(SpaceShard.pull, QUEUE, None, Pull(lease_ms=LEASE_MS_MAX))
            assert pulled.messages[0].entry.key == STUCK
        for _ in range(3):
            await self.cycle()
        self.take()

    async def cycle(self) -> None:
        """Push a batch, pull as many, ack them: the queue is as long as before."""
        await self._call("push", QUEUE, [self._entry() for _ in range(self.batch)])
        pulled = await self._call("pull", QUEUE, None, Pull(batch=self.batch))
        assert len(pulled.messages) == self.batch
        await self._call("ack", QUEUE, [one.lease for one in pulled.messages])
        if self.stuck:
            await self._call("push", QUEUE, [self._entry(STUCK)], told_as=BEHIND)

    def _entry(self, key: str | None = None) -> NewEntry:
        number = next(self._numbers)
        [made] = new_entries(1, first=number)
        return NewEntry(made.data, made.object_id, made.type, key=key or _key(0, number))

    async def _call(self, verb: str, *arguments: Any, told_as: str | None = None) -> Any:
        began = time.perf_counter()
        answer, turn_us = await self.ref.call(TimedSpace.timed, verb, *arguments)
        call_us = (time.perf_counter() - began) * 1e6
        self.times.setdefault(told_as or verb, []).append(Times(turn_us, call_us))
        return answer

    def take(self) -> Found:
        """What was measured since it was last asked."""
        times, self.times = self.times, {}
        return times
