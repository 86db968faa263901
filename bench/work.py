"""What does working a queue cost, beside its own SQL run bare?

Messages are pushed, pulled and acked, so many a call, every answer on disk. What SQLite is told meanwhile is written
down once, and told to it again on an equal file: the same statements with the same values, commits and flushes, and
nothing around them. Beside each rate stands the processor time of the event loop for a message.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import apsw
import trio

from bench.figures import Against, Figure, figure, ratio
from bench.rig import QUEUE, Rig, Took, new_entries, quiet_collector, together
from bench.work_fill import make
from edgequeues.models import NewEntry, Ordering, Pull
from edgequeues.space.shard import SpaceShard
from shards import files
from shards.disk import ThreadDisk
from shards.limits import Limits
from shards.namespace import Ref, open_namespace
from shards.storage import Storage, open_storage

SPACE = "work"
COMMIT = "COMMIT"
TIMES_BARE_MAX = 3.0  # where a call has a hundred messages

Work = Sequence[Sequence[Sequence[NewEntry]]]  # what each caller pushes, call by call
Told = tuple[str, Any, int]  # a statement, its values, and how many rows had ever been changed before


class Shape(NamedTuple):
    """How a queue is worked: in which order, `each` messages a call, by how many at once."""

    ordering: Ordering
    each: int
    callers: int


SHAPES = (
    Shape("unordered", 100, 1),
    Shape("unordered", 100, 16),
    Shape("per_key", 100, 1),
    Shape("unordered", 1, 64),
)


class Step(NamedTuple):
    """What SQLite is told at once: a statement with its values, or with `many`. flush: a commit that wrote."""

    statement: str
    values: Any
    many: bool
    flush: bool


class TapedSpace(SpaceShard):
    """Writes down what SQLite is told."""

    tape: ClassVar[list[Told]] = []

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.db.exec_trace = self._told

    def _told(self, _: apsw.Cursor, statement: str, values: Any) -> bool:
        self.tape.append((statement, values, self.db.total_changes()))
        return True


def measure(rig: Rig) -> Iterator[Figure]:
    """In no order by one and by many, in the order of keys, and one message a call."""
    for shape in SHAPES:
        calls = rig.pick(160, 64, 2) if shape.each > 1 else rig.pick(6_400, 1_600, 64)
        yield from _figures(rig, shape, batches(shape, max(calls, 2 * shape.callers)))


def batches(shape: Shape, calls: int) -> Work:
    """So many calls' messages, dealt out to the callers. Every message has a key of its own."""
    entries = [
        NewEntry(one.data, one.object_id, one.type, key=one.object_id)
        for one in new_entries(calls * shape.each)
    ]
    parts = [entries[at : at + shape.each] for at in range(0, len(entries), shape.each)]
    return [parts[number :: shape.callers] for number in range(shape.callers)]


def _figures(rig: Rig, shape: Shape, work: Work) -> Iterator[Figure]:
    messages = sum(map(len, work)) * shape.each
    with rig.place() as seed:
        compared = Compared(seed, shape, work)
        with rig.place() as folder:
            compared.tape(folder)
        ways = {
            "ours": partial(_placed, rig, compared.ours),
            "SQL alone": partial(_placed, rig, compared.bare),
        }
        found = rig.rounds(rig.pick(5, 3, 1), ways)
    seconds = {name: [one.all for one in took] for name, took in found.items()}
    cpu = {name: [one.cpu / messages * 1e6 for one in took] for name, took in found.items()}
    times = ratio(seconds["ours"], seconds["SQL alone"])
    told = sum(len(step.values) if step.many else 1 for step in compared.steps)
    commits = sum(step.flush for step in compared.steps)
    special = {
        "ours": {"times the SQL by cpu": ratio(cpu["ours"], cpu["SQL alone"])},
        "SQL alone": {"statements a message": told / messages, "messages a commit": messages / commits},
    }
    against = [Against(what="times the SQL", value=times, target=TIMES_BARE_MAX, at_most=True)]
    if shape.each == 1:
        against, special["ours"] = [], {"times the SQL": times} | special["ours"]
    case = f"push, pull and ack {shape.each}, {shape.ordering}, {shape.callers} callers"
    for name, more in special.items():
        rates = [messages / one for one in seconds[name]]
        more |= {"loop cpu us/message": statistics.median(cpu[name]), "flush p50 ms": rig.flush_ms}
        beside = against if name == "ours" else []
        yield figure("work", f"{case}: {name}", rates, "messages/s", against=beside, more=more)


def _placed(rig: Rig, way: Callable[[Path], Took]) -> Took:
    with rig.place() as folder:
        return way(folder)


async def prepare(folder: Path, ordering: Ordering) -> None:
    """Make the space with its queue, which was worked once already."""
    async with open_namespace(SpaceShard, folder) as namespace:
        ref = namespace.ref(SPACE)
        await make(ref, ordering)
        await _work(ref, [[NewEntry("{}", key="first")]])


async def _work(ref: Ref[SpaceShard], mine: Sequence[Sequence[NewEntry]]) -> None:
    """Push some, pull as many, ack them; then the next."""
    for entries in mine:
        await ref.call(SpaceShard.push, QUEUE, entries)
        given = await ref.call(SpaceShard.pull, QUEUE, None, Pull(batch=len(entries)))
        assert len(given.messages) == len(entries)
        await ref.call(SpaceShard.ack, QUEUE, [one.lease for one in given.messages])


async def _run(kind: type[SpaceShard], folder: Path, work: Work) -> Took:
    async with open_namespace(kind, folder) as namespace:
        ref = namespace.ref(SPACE)
        await ref.call(SpaceShard.stats, QUEUE)
        TapedSpace.tape.clear()  # of what opening took
        with quiet_collector():
            began, cpu = time.perf_counter(), time.thread_time()
            await together([partial(_work, ref, mine) for mine in work])
            return Took([], time.perf_counter() - began, time.thread_time() - cpu)


class Compared:
    """Work that is done in several ways, each in an empty folder, on equal files. `tape` comes before `bare`."""

    def __init__(self, seed: Path, shape: Shape, work: Work) -> None:
        self.steps: list[Step] = []
        self._seed = seed
        self._work = work
        trio.run(prepare, seed, shape.ordering)

    def ours(self, folder: Path) -> Took:
        """By the engine."""
        shutil.copytree(self._seed, folder, dirs_exist_ok=True)
        return trio.run(_run, SpaceShard, folder, self._work)

    def tape(self, folder: Path) -> None:
        """By the engine, writing down what SQLite is told from the first transaction to the last."""
        shutil.copytree(self._seed, folder, dirs_exist_ok=True)
        trio.run(_run, TapedSpace, folder, self._work)
        tape = [*TapedSpace.tape]
        TapedSpace.tape.clear()
        ends = [number for number, (statement, _, _) in enumerate(tape) if statement == COMMIT]
        self.steps = _steps(tape[: ends[-1] + 1])

    def bare(self, folder: Path) -> Took:
        """By telling SQLite the same again."""
        shutil.copytree(self._seed, folder, dirs_exist_ok=True)
        storage = open_storage(files.path_of(folder, SPACE), ThreadDisk(), Limits())
        storage.ready()
        with quiet_collector():
            began, cpu = time.perf_counter(), time.thread_time()
            _tell(storage, self.steps)
            took = Took([], time.perf_counter() - began, time.thread_time() - cpu)
        storage.close(tidy=False)
        return took


def _steps(tape: Sequence[Told]) -> list[Step]:
    """The same for telling it again: what is said over and over with other values is said at once."""
    steps: list[Step] = []
    changed = tape[0][2]  # before this transaction
    for statement, values, changes in tape:
        last = steps[-1] if steps else None
        if last is not None and last.statement == statement and not statement.startswith("SELECT"):
            steps[-1] = Step(
                statement, [*last.values, values] if last.many else [last.values, values], True, False
            )
            continue
        flush = statement == COMMIT and changes > changed
        if statement == COMMIT:
            changed = changes
        steps.append(Step(statement, values, False, flush))
    return steps


def _tell(storage: Storage, steps: Sequence[Step]) -> None:
    db = storage.db
    for statement, values, many, flush in steps:
        if many:
            db.executemany(statement, values)
        else:
            db.execute(statement, values).fetchall()
        if flush:
            storage.flush()
