"""How many entries a second go, by id and by range?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import trio

from bench.figures import Figure, figure
from bench.rig import QUEUE, Rig, fill, filled_ids, quiet_collector, together
from edgequeues.space.shard import SpaceShard
from shards.namespace import Ref, open_namespace

SPACE = "full"


def measure(rig: Rig) -> Iterator[Figure]:
    """Delete all of a filled queue, each way."""
    shapes = {
        (1, 1): 600,
        (1, 16): 4_000,
        (100, 1): 20_000,
        (100, 16): 40_000,
    }  # ids a call, callers: entries
    cases: dict[str, Callable[[], float]] = {}
    for (each, callers), count in shapes.items():
        name = f"by id, {each} a call, {callers} callers"
        cases[name] = partial(_rate, rig, max(each * callers, count // rig.pick(1, 4, 100)), each, callers)
    cases["by range, one caller"] = partial(_rate, rig, rig.pick(40_000, 10_000, 200), 0, 1)
    for name, rates in rig.rounds(rig.pick(3, 2, 1), cases).items():
        yield figure("deletes", name, rates, "entries/s")


def _rate(rig: Rig, count: int, each: int, callers: int) -> float:
    with rig.place() as folder:
        fill(folder, SPACE, count)
        return count / trio.run(_seconds, folder, count, each, callers)


async def _seconds(folder: Path, count: int, each: int, callers: int) -> float:
    named = filled_ids(count)
    calls = [named[at : at + each] for at in range(0, count, each)] if each else []
    async with open_namespace(SpaceShard, folder) as namespace:
        ref = namespace.ref(SPACE)
        await ref.call(SpaceShard.stats, QUEUE)
        with quiet_collector():
            began = time.perf_counter()
            if each:
                await together([partial(_by_id, ref, calls[n::callers]) for n in range(callers)])
            else:
                await _by_range(ref)
            took = time.perf_counter() - began
        assert (await ref.call(SpaceShard.stats, QUEUE)).entries == 0
    return took


async def _by_id(ref: Ref[SpaceShard], calls: Sequence[Sequence[str]]) -> None:
    for named in calls:
        assert await ref.call(SpaceShard.delete_ids, QUEUE, named) == len(named)


async def _by_range(ref: Ref[SpaceShard]) -> None:
    done = await ref.call(SpaceShard.delete_range, QUEUE)
    while done.resume is not None:
        done = await ref.call(SpaceShard.delete_range, QUEUE, done.resume, None, done.through)
