"""How fast is a space copied and put back while it is served, and what do those notice who append to it meanwhile?

A file of 400,000 rows: a copy of it is made and read to its end; it is looked at and put in the place of a space; and
to compare, it is copied by the system and flushed. 16 callers append 10 rows a call to a space of as many rows, alone
and while one copy after the other is made of it: "of alone" sets these rates side by side.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import trio

from bench.figures import Figure, figure, ratio
from bench.rig import QUEUE, Calls, Rig, deal, fill, new_entries, quiet_collector, together
from edgequeues.core.who import SERVER
from edgequeues.space.check import problems
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from shards.copying import Copies
from shards.files import path_of
from shards.namespace import Namespace, Ref, open_namespace
from shards.replacing import Replacements

SPACE, OTHER = "full", "other"
PIECE_BYTES = 1024 * 1024
MIB = 1024 * 1024
CALLERS, EACH = 16, 10


def measure(rig: Rig) -> Iterator[Figure]:
    """The rates of files, then those of appends."""
    count, rounds = rig.pick(400_000, 100_000, 500), rig.pick(3, 2, 1)
    cases: dict[str, Callable[[], float]] = {
        "copied": partial(_rate, rig, count, _copied),
        "put back": partial(_rate, rig, count, _put_back),
        "copied by the system, and flushed": partial(_rate, rig, count, _by_the_system),
    }
    found = rig.rounds(rounds, cases)
    [*ours, theirs] = found
    for name in ours:
        more = {f"of {theirs}": ratio(found[name], found[theirs])}
        yield figure("backups", f"a space, {name}", found[name], "MiB/s", more=more)
    yield figure("backups", f"a space, {theirs}", found[theirs], "MiB/s")
    appends: dict[str, Callable[[], float]] = {
        "alone": partial(_appends, rig, count, False),
        "while copies are made": partial(_appends, rig, count, True),
    }
    found = rig.rounds(rounds, appends)
    more = {"of alone": ratio(found["while copies are made"], found["alone"])}
    for name, rates in found.items():
        case = f"appends, {EACH} a call, {CALLERS} callers, {name}"
        yield figure("backups", case, rates, "rows/s", more=more if name != "alone" else None)


# -- files --------------------------------------------------------------------------------------------------


def _rate(rig: Rig, count: int, way: Callable[[Path], float]) -> float:
    """MiB of a space a second."""
    with rig.place() as folder:
        fill(folder, SPACE, count)
        size = path_of(folder, SPACE).stat().st_size
        return size / MIB / way(folder)


def _copied(folder: Path) -> float:
    async def main() -> float:
        async with open_namespace(SpaceShard, folder) as namespace:
            await namespace.ref(SPACE).call(SpaceShard.stats, QUEUE)
            began = time.perf_counter()
            await _copy(namespace)
            return time.perf_counter() - began

    return trio.run(main)


async def _copy(namespace: Namespace[SpaceShard]) -> None:
    copies = Copies(namespace)
    async for _ in copies.pieces(await copies.take(SPACE)):
        pass


def _put_back(folder: Path) -> float:
    async def main() -> float:
        async with open_namespace(SpaceShard, folder) as namespace:
            replacements = Replacements(namespace, Copies(namespace), problems)
            began = time.perf_counter()
            pieces = _pieces(path_of(folder, SPACE))
            noted = by(SERVER, SpaceShard.restored)
            await replacements.put(OTHER, pieces, sha256=None, replace=False, first=noted)
            await namespace.ref(OTHER).call(SpaceShard.stats, QUEUE)
            return time.perf_counter() - began

    return trio.run(main)


async def _pieces(path: Path) -> AsyncGenerator[bytes, None]:
    with path.open("rb") as file:  # nothing else goes on meanwhile
        while piece := file.read(PIECE_BYTES):
            yield piece


def _by_the_system(folder: Path) -> float:
    target = folder / "copy.db"
    began = time.perf_counter()
    shutil.copyfile(path_of(folder, SPACE), target)
    fd = os.open(target, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    return time.perf_counter() - began


# -- appends ------------------------------------------------------------------------------------------------


def _appends(rig: Rig, count: int, copied: bool) -> float:
    wanted = rig.pick(200_000, 50_000, 320)
    work = deal(new_entries(wanted, first=count), EACH, CALLERS)
    with rig.place() as folder:
        fill(folder, SPACE, count)
        return trio.run(_append_all, folder, work, wanted, copied)


async def _append_all(folder: Path, work: Sequence[Calls], wanted: int, copied: bool) -> float:
    async with open_namespace(SpaceShard, folder) as namespace, trio.open_nursery() as nursery:
        ref = namespace.ref(SPACE)
        await ref.call(SpaceShard.stats, QUEUE)
        if copied:
            nursery.start_soon(_copy_on, namespace)
        with quiet_collector():
            began = time.perf_counter()
            await together([partial(_append, ref, calls) for calls in work])
            took = time.perf_counter() - began
        nursery.cancel_scope.cancel()
    return wanted / took


async def _copy_on(namespace: Namespace[SpaceShard]) -> None:
    while True:
        await _copy(namespace)


async def _append(ref: Ref[SpaceShard], calls: Calls) -> None:
    for entries in calls:
        await ref.call(SpaceShard.append, QUEUE, entries)
