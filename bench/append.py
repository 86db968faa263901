"""How many appends a second are confirmed on disk, and how much of what SQLite gives is that?

Three comparisons, each in the same rounds: plain executemany of the same rows into the same tables in one
transaction; the same engine with synchronous=FULL, whose COMMIT makes the event loop wait; one caller alone.
Beside each rate stands the processor time of the event loop a row: other programs' load does not change it much.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import trio

from bench.figures import Against, Figure, figure, ratio
from bench.rig import FULL, OURS, Calls, Engine, Rig, Took, append_all, deal, new_entries, raw_append

SPACES = 32
SLOW_FLUSH_MS = 1.0  # above this the disk alone decides, and the target is a share of what it allows
Shape = tuple[int, int]  # rows a call, callers

CALLS: dict[Shape, int] = {  # a quarter of a second each, or so
    (1, 1): 320, (1, 16): 1_600, (1, 64): 3_200,
    (10, 1): 240, (10, 16): 800, (10, 64): 960,
    (100, 1): 100, (100, 16): 320, (100, 64): 320,
}  # fmt: skip
WITH_FULL: tuple[Shape, ...] = ((1, 1), (1, 64), (100, 16))


class Rates(NamedTuple):
    """Of one way to append: rows a second, and microseconds of processor a row, round by round."""

    rows: list[float]
    cpu_us: list[float]

    def figure(self, case: str, against: Sequence[Against] = (), **more: float) -> Figure:
        cpu = {"loop cpu us/row": statistics.median(self.cpu_us)}
        return figure("append", case, self.rows, "rows/s", against=against, more=more | cpu)


def measure(rig: Rig) -> Iterator[Figure]:
    """One space in every shape, then many spaces on one loop."""
    count = rig.pick(5, 3, 1)
    alone: list[float] = []
    for shape in CALLS:
        found = _one_space(rig, shape, count)
        if shape == (1, 1):
            alone = found["ours"].rows
        yield from _figures(rig, shape, found, alone)
    yield from _many_spaces(rig, count)


def _rates(rig: Rig, count: int, rows: int, cases: dict[str, Callable[[], Took]]) -> dict[str, Rates]:
    found = rig.rounds(count, cases)
    return {
        name: Rates([rows / one.all for one in took], [one.cpu / rows * 1e6 for one in took])
        for name, took in found.items()
    }


def _one_space(rig: Rig, shape: Shape, count: int) -> dict[str, Rates]:
    each, callers = shape
    calls = max(callers, CALLS[shape] // rig.pick(1, 2, 20))
    entries = new_entries(each * calls)
    work = deal(entries, each, callers)

    def raw() -> Took:
        with rig.place() as folder:
            return raw_append(folder, entries)

    cases: dict[str, Callable[[], Took]] = {"ours": partial(_engine, rig, OURS, work), "raw": raw}
    if shape in WITH_FULL:
        cases["full"] = partial(_engine, rig, FULL, work)
    return _rates(rig, count, len(entries), cases)


def _engine(rig: Rig, engine: Engine, work: Sequence[Calls], spaces: int = 1) -> Took:
    with rig.place() as folder:
        return trio.run(append_all, engine, folder, work, spaces)


def _figures(rig: Rig, shape: Shape, found: dict[str, Rates], alone: list[float]) -> Iterator[Figure]:
    each, callers = shape
    ours, raw, name = found["ours"], found["raw"], f"{each} a call, {callers} callers"
    of_raw = ratio(ours.rows, raw.rows)
    against = []
    more = {}
    if shape == (100, 16):
        against.append(Against(what="raw executemany", value=of_raw, target=0.5))
        more["of raw by cpu"] = ratio(raw.cpu_us, ours.cpu_us)
    elif each > 1:
        more["of raw"] = of_raw
    if shape == (1, 64):
        against.append(Against(what="1 caller", value=ratio(ours.rows, alone), target=10))
        if rig.flush_ms > SLOW_FLUSH_MS:
            share = statistics.median(ours.rows) / (callers / rig.flush_ms * 1000)
            against = [Against(what="callers / flush p50", value=share, target=0.8)]
        against.append(Against(what="FULL inline", value=ratio(ours.rows, found["full"].rows), target=0.9))
    elif "full" in found:
        more["of FULL inline"] = ratio(ours.rows, found["full"].rows)
    yield ours.figure(name, against, **more)
    if shape in WITH_FULL:
        yield found["full"].figure(f"{name}: FULL inline")
    if shape == (100, 16):
        yield raw.figure("raw executemany, one transaction")


def _many_spaces(rig: Rig, count: int) -> Iterator[Figure]:
    """Two callers a space: while one space flushes, the loop should serve the others."""
    spaces = rig.pick(SPACES, SPACES, 4)
    work = deal(new_entries(2 * spaces * rig.pick(60, 20, 2)), 1, 2 * spaces)
    cases: dict[str, Callable[[], Took]] = {
        "ours": partial(_engine, rig, OURS, work, spaces),
        "full": partial(_engine, rig, FULL, work, spaces),
    }
    found = _rates(rig, count, sum(map(len, work)), cases)
    times = ratio(found["ours"].rows, found["full"].rows)
    name = f"{spaces} spaces, 2 callers each, 1 a call"
    yield found["ours"].figure(name, [Against(what="FULL inline", value=times, target=1.5)])
    yield found["full"].figure(f"{name}: FULL inline")
