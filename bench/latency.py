"""How long does one append wait, and is a flush on the event loop better than one in a thread when few wait?

A thread costs a hop there and back; a flush on the loop costs everybody else on it the time of the flush.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from functools import partial

import trio

from bench.figures import Figure, figure, quantile
from bench.rig import FULL, IN_THREADS, INLINE, OURS, Calls, Engine, Rig, append_all, deal, new_entries

ENGINES = {"ours": OURS, "flush in a thread": IN_THREADS, "flush on the loop": INLINE, "FULL inline": FULL}
CALLERS = (1, 2, 4, 16)


def measure(rig: Rig) -> Iterator[Figure]:
    """p50 and p99 of one row a call, by number of callers."""
    for callers in rig.pick(CALLERS, (1, 4), (1,)):
        work = deal(new_entries(callers * rig.pick(300, 100, 5)), 1, callers)
        every: dict[str, list[float]] = {name: [] for name in ENGINES}
        cases = {
            name: partial(_median_ms, rig, engine, work, every[name]) for name, engine in ENGINES.items()
        }
        for name, medians in rig.rounds(rig.pick(5, 3, 1), cases).items():
            more = {"p99": quantile(every[name], 0.99)}
            yield figure("latency", f"{callers} callers, {name}", medians, "ms", more=more)


def _median_ms(rig: Rig, engine: Engine, work: Sequence[Calls], every: list[float]) -> float:
    """Median of one round's calls, which are added to `every`."""
    with rig.place() as folder:
        took_ms = [took * 1000 for took in trio.run(append_all, engine, folder, work).calls]
    every += took_ms
    return statistics.median(took_ms)
