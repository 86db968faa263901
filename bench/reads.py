"""Does reading from the middle of a queue cost more when the queue is longer?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

import trio

from bench.figures import Against, Figure, figure, ratio
from bench.rig import QUEUE, Rig, fill, quiet_collector
from edgequeues.core import cursors
from edgequeues.models import RangeQuery
from edgequeues.space.shard import SpaceShard
from shards.namespace import open_namespace

LENGTHS = (1_000, 100_000, 1_000_000)
PAGE = 100
GROWTH_MAX = 1.5


class TimedSpace(SpaceShard):
    """Reads in one turn and tells how long it took: the work without the way to it."""

    def timed(self, asks: Sequence[RangeQuery]) -> float:
        began = time.perf_counter()
        for ask in asks:
            page = self.read(QUEUE, ask)
            assert len(page.entries) == ask.limit
        return time.perf_counter() - began


def measure(rig: Rig) -> Iterator[Figure]:
    """100 entries: in a turn and through a call, from the middle and from anywhere."""
    lengths = rig.pick(LENGTHS, LENGTHS[:2], (200, 400))
    with rig.place() as folder:
        for length in lengths:
            fill(folder, f"length{length}", length)
        cases = {
            (length, scattered): partial(
                trio.run, _times_us, folder, length, rig.pick(300, 200, 5), scattered
            )
            for scattered in (False, True)
            for length in lengths
        }
        found: dict[tuple[int, bool], list[tuple[float, float]]] = {case: [] for case in cases}
        for _ in range(rig.pick(5, 3, 1)):
            for case, times in cases.items():
                found[case].append(times())
    for scattered, where in ((False, "the middle"), (True, "anywhere")):
        for way, name in enumerate(("in a turn", "through a call")):
            columns = {n: [times[way] for times in found[n, scattered]] for n in lengths}
            for length, values in columns.items():
                against = []
                if length == lengths[-1]:
                    growth = ratio(values, columns[lengths[0]])
                    target = Against(
                        what=f"{lengths[0]:,} entries", value=growth, target=GROWTH_MAX, at_most=True
                    )
                    against.append(target)
                case_name = f"{PAGE} of {length:,} from {where}, {name}"
                yield figure("reads", case_name, values, "us/read", against=against)


async def _times_us(folder: Path, length: int, count: int, scattered: bool) -> tuple[float, float]:
    """Microseconds a read takes within a turn, and through a call of its own."""
    random = Random(length)
    async with open_namespace(TimedSpace, folder) as namespace:
        ref = namespace.ref(f"length{length}")
        page = await ref.call(TimedSpace.read, QUEUE, RangeQuery(limit=1))
        assert page.store_id is not None
        assert page.queue_id is not None
        asks = []
        for _ in range(count):
            position = random.randrange(length - PAGE) if scattered else length // 2
            asks.append(RangeQuery(after=cursors.encode(page.store_id, page.queue_id, position), limit=PAGE))
        with quiet_collector():
            in_turn = await ref.call(TimedSpace.timed, asks)
            began = time.perf_counter()
            for ask in asks:
                await ref.call(TimedSpace.read, QUEUE, ask)
            called = time.perf_counter() - began
    return in_turn / count * 1e6, called / count * 1e6
