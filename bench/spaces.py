"""What do many spaces cost: to write to, to open, to keep in memory, and to find again after a restart?"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count as numbers
from pathlib import Path
from typing import ClassVar

import msgspec
import trio

from bench.figures import Figure, figure, quantile
from bench.rig import QUEUE, Rig, in_child, new_entries, quiet_collector, resident_mib, together
from edgequeues.models import NewEntry
from edgequeues.space.shard import SpaceShard
from shards.clock import SystemClock
from shards.limits import Limits
from shards.namespace import Namespace, open_namespace

CALLERS = 64
OPEN_MAX = 512
HOUR_MS = 3_600_000


class LaterClock(SystemClock):
    """Two hours ahead: every alarm that was set is due."""

    def now_ms(self) -> int:
        return super().now_ms() + 2 * HOUR_MS


class RingingSpace(SpaceShard):
    """Notes whose alarm ran."""

    rung: ClassVar[set[str]] = set()

    def alarm(self) -> None:
        super().alarm()
        self.rung.add(self.name)


def measure(rig: Rig) -> Iterator[Figure]:
    """The most spaces last: their folder serves the other questions too."""
    most = rig.pick(10_000, 600, 20)
    with rig.place() as folder:
        for spaces in (1, rig.pick(100, 100, 5)):
            with rig.place() as small:
                _, again = trio.run(_spread, small, spaces, rig.pick(6_400, 1_600, 64))
                yield figure("spaces", f"appends over {spaces:,} open spaces", [again], "rows/s")
        made, again = trio.run(_spread, folder, most, rig.pick(2_000, 300, 20))
        yield figure("spaces", f"first append to each of {most:,} new spaces", [made], "rows/s")
        yield figure("spaces", f"appends over {most:,} spaces, at most {OPEN_MAX} open", [again], "rows/s")
        opens_ms = trio.run(_opens_ms, folder, most, rig.pick(500, 100, 5))
        more = {"p99": quantile(opens_ms, 0.99)}
        yield figure("spaces", "cold open by a read, one at a time", opens_ms, "ms", more=more)
        memory = in_child("bench.spaces", str(folder), most, min(OPEN_MAX, most))
        yield figure("spaces", f"memory, {most:,} spaces known, none open", [memory["idle_mib"]], "MiB")
        each = (memory["open_mib"] - memory["idle_mib"]) / memory["open"] * 1024
        name = f"memory, {memory['open']:.0f} of them open"
        yield figure("spaces", name, [memory["open_mib"]], "MiB", more={"KiB a space": each})
        yield from _restart(folder, most, rig.pick(1_000, 200, 5))


async def _spread(folder: Path, spaces: int, calls: int) -> tuple[float, float]:
    """Rows a second: the first to every space, which makes it; then `calls` more over all of them in turn."""
    entries = [[entry] for entry in new_entries(max(calls, spaces))]
    async with open_namespace(SpaceShard, folder, limits=Limits(open_max=OPEN_MAX)) as namespace:
        with quiet_collector():
            began = time.perf_counter()
            await _append(namespace, spaces, entries[:spaces])
            made = spaces / (time.perf_counter() - began)
            began = time.perf_counter()
            await _append(namespace, spaces, entries[:calls])
            return made, calls / (time.perf_counter() - began)


async def _append(namespace: Namespace[SpaceShard], spaces: int, calls: Sequence[Sequence[NewEntry]]) -> None:
    """Append call n to space n modulo `spaces`, by as many callers as share the work."""
    next_call = numbers()

    async def caller() -> None:
        while (number := next(next_call)) < len(calls):
            await namespace.ref(f"s{number % spaces}").call(SpaceShard.append, QUEUE, calls[number])

    await together([caller] * CALLERS)


async def _opens_ms(folder: Path, spaces: int, count: int) -> list[float]:
    took = []
    async with open_namespace(SpaceShard, folder, limits=Limits(open_max=OPEN_MAX)) as namespace:
        for number in range(0, spaces, max(1, spaces // count)):
            began = time.perf_counter()
            await namespace.ref(f"s{number}").call(SpaceShard.stats, QUEUE)
            took.append((time.perf_counter() - began) * 1000)
    return took


def _restart(folder: Path, spaces: int, alarms: int) -> Iterator[Figure]:
    """Set alarms, stop, start when they are due."""
    trio.run(_set_alarms, folder, alarms)
    ready_ms, rung_ms = trio.run(_ring, folder, alarms)
    yield figure("spaces", f"restart with {spaces:,} spaces: ready after", [ready_ms], "ms")
    more = {"alarms/s": alarms / rung_ms * 1000}
    yield figure("spaces", f"restart: all {alarms:,} due alarms ran after", [rung_ms], "ms", more=more)


async def _set_alarms(folder: Path, alarms: int) -> None:
    entries = [NewEntry("{}", ttl_ms=HOUR_MS)]
    async with open_namespace(SpaceShard, folder, limits=Limits(open_max=OPEN_MAX)) as namespace:
        await _append(namespace, alarms, [entries] * alarms)


async def _ring(folder: Path, alarms: int) -> tuple[float, float]:
    RingingSpace.rung.clear()
    began = time.perf_counter()
    async with open_namespace(RingingSpace, folder, clock=LaterClock()) as namespace:
        ready = time.perf_counter() - began
        while len(RingingSpace.rung) < alarms:
            assert not namespace.unready()
            await trio.sleep(0.01)
        rung = time.perf_counter() - began
    return ready * 1000, rung * 1000


async def child(folder: Path, spaces: int, opened: int) -> dict[str, float]:
    """Memory with the folder served and nothing open, and with `opened` spaces open."""
    limits = Limits(open_max=OPEN_MAX, idle_s=3_600)
    async with open_namespace(SpaceShard, folder, limits=limits) as namespace:
        idle = resident_mib()
        entries = new_entries(opened)
        await together(
            [partial(_one, namespace, f"s{n * (spaces // opened)}", entries[n]) for n in range(opened)]
        )
        return {"idle_mib": idle, "open_mib": resident_mib(), "open": namespace.open_count}


async def _one(namespace: Namespace[SpaceShard], name: str, entry: NewEntry) -> None:
    await namespace.ref(name).call(SpaceShard.append, QUEUE, [entry])


if __name__ == "__main__":
    place, known, wanted = sys.argv[1:]
    print(msgspec.json.encode(trio.run(child, Path(place), int(known), int(wanted))).decode())
