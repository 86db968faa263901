"""What do all benches stand on? A real folder, rows made before the clock starts, disks to compare, callers."""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple, TypeVar

import apsw
import trio

from edgequeues.core import ids
from edgequeues.models import NewEntry, QueueConfig
from edgequeues.space import log, queues, store
from edgequeues.space.shard import SpaceShard
from shards import files, sqlite
from shards.disk import Disk, OsWal, ThreadDisk, Wal
from shards.limits import Limits
from shards.namespace import Ref, open_namespace

T = TypeVar("T")
Effort = Literal["full", "quick", "tiny"]

QUEUE = "bench"
STATUS = Path("/proc/self/status")
BASE_MS = 1_700_000_000_000
ROW_BYTES = 200
TYPE = "example.org/type/Message"
# Without the clause for objects stored already: what SQLite gives when nothing is checked.
RAW_INSERT = log.INSERT_ABSENT.partition(" ON CONFLICT")[0]


@dataclass(frozen=True)
class Rig:
    """Where and how thoroughly to measure. flush_ms: median time of a flush in that folder.

    only, also: which peers take part, if not all, and options of `serve` with which edgequeues does so once more.
    """

    folder: Path
    effort: Effort
    flush_ms: float
    only: Sequence[str] = ()
    also: Sequence[str] = ()

    def pick(self, full: T, quick: T, tiny: T) -> T:
        """The size for this effort."""
        return {"full": full, "quick": quick, "tiny": tiny}[self.effort]

    @contextmanager
    def place(self) -> Iterator[Path]:
        """A fresh folder, removed afterwards."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            yield Path(name)

    def rounds(self, count: int, cases: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
        """Measure every case `count` times, in turn, starting with another one each round."""
        found: dict[str, list[T]] = {name: [] for name in cases}
        order = list(cases)
        for _ in range(count):
            for name in order:
                found[name].append(cases[name]())
            order = [*order[1:], order[0]]
        return found


# -- rows ---------------------------------------------------------------------------------------------------


def new_entries(count: int, *, first: int = 0, data_bytes: int = ROW_BYTES) -> list[NewEntry]:
    """Objects of about `data_bytes` of JSON each, with an id and a type, the same ones in every run."""
    random = Random(first)
    made = []
    for number in range(first, first + count):
        object_id = ids.new_ulid(BASE_MS + number // 8, random)
        head = f'{{"id":"{object_id}","@type":"{TYPE}","number":{number},"text":"'
        made.append(NewEntry(f'{head}{"x" * max(data_bytes - len(head) - 2, 0)}"}}', object_id, TYPE))
    return made


def rows(entries: Sequence[NewEntry], queue_id: str, *, first: int = 1) -> Iterator[log.Row]:
    """What the table gets for these objects, at positions from `first` on."""
    for position, entry in enumerate(entries, first):
        version = f"{position:016x}@00000000"
        assert entry.object_id is not None
        yield log.Row(
            position, version, entry.object_id, queue_id, entry.type, BASE_MS, BASE_MS, None, None, None,
            len(entry.data), entry.data, None, entry.priority, None,
        )  # fmt: skip


def fill(folder: Path, name: str, count: int, *, data_bytes: int = ROW_BYTES) -> None:
    """Make the space `name` with one queue of `count` entries, quickly: by plain SQL, in a file nobody serves."""
    trio.run(_make_queue, folder, name)
    db = apsw.Connection(str(files.path_of(folder, name)))
    for pragma, value in (("journal_mode", "off"), ("synchronous", "off"), ("cache_size", -256 * 1024)):
        db.pragma(pragma, value)
    queue, home = queues.find(db, QUEUE), store.load(db)
    assert queue is not None
    assert home is not None
    with db:
        for first, some in _portions(count, data_bytes):
            db.executemany(RAW_INSERT, rows(some, queue.queue_id, first=first + 1))
            queue.bytes += sum(len(entry.data) for entry in some)
        queue.entries = queue.changes = queue.tail = home.position = home.lamport = count
        home.clock_ms = home.wall_ms = BASE_MS
        queues.count(db, queue)
        store.save(db, home)
    db.pragma("journal_mode", "wal")
    db.close()
    fd = os.open(files.path_of(folder, name), os.O_RDONLY)
    os.fsync(fd)  # or it would go on being written while something else is measured
    os.close(fd)


def filled_ids(count: int, *, data_bytes: int = ROW_BYTES) -> list[str]:
    """The ids of the objects that `fill` put in, in order."""
    return [str(entry.object_id) for _, some in _portions(count, data_bytes) for entry in some]


def _portions(count: int, data_bytes: int) -> Iterator[tuple[int, list[NewEntry]]]:
    """The same objects in every run, 8 MiB of them at a time."""
    step = max(1, 8 * 1024 * 1024 // data_bytes)
    for first in range(0, count, step):
        yield first, new_entries(min(step, count - first), first=first, data_bytes=data_bytes)


async def _make_queue(folder: Path, name: str) -> None:
    async with open_namespace(SpaceShard, folder) as namespace:
        await namespace.ref(name).call(SpaceShard.configure, QUEUE, QueueConfig(name=QUEUE))


# -- disks and kinds to compare -----------------------------------------------------------------------------


class InlineFlushDisk(ThreadDisk):
    """Flushes on the event loop, which then waits for the disk; all other file work stays in threads."""

    async def flush(self, _: str, work: Callable[[], None]) -> None:
        work()


class _NoSync:
    """A -wal that SQLite has synced already, at COMMIT."""

    def __init__(self, wal: Wal) -> None:
        self._wal = wal

    def sync(self) -> None:
        pass

    def close(self) -> None:
        self._wal.close()


class FullDisk(InlineFlushDisk):
    """Leaves the flush to SQLite; for `FullSpace`."""

    def open_wal(self, database: Path) -> Wal:
        return _NoSync(OsWal(database))


class FullSpace(SpaceShard):
    """Syncs within COMMIT, on the event loop, as a program without a flush of its own does."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.db.pragma("synchronous", "full")


class Took(NamedTuple):
    """Seconds: of each call, of all together, and of the processor that the calling thread used."""

    calls: list[float]
    all: float
    cpu: float


@dataclass(frozen=True)
class Engine:
    """A way to make commits durable."""

    kind: type[SpaceShard]
    disk: Callable[[], Disk]


OURS = Engine(SpaceShard, ThreadDisk)
IN_THREADS = Engine(SpaceShard, partial(ThreadDisk, quick_s=0))
INLINE = Engine(SpaceShard, InlineFlushDisk)
FULL = Engine(FullSpace, FullDisk)

# -- work ---------------------------------------------------------------------------------------------------

Calls = Sequence[Sequence[NewEntry]]


def deal(entries: Sequence[NewEntry], each: int, callers: int) -> list[list[Sequence[NewEntry]]]:
    """The calls each caller makes: `each` entries a call, all callers alike."""
    calls = [entries[at : at + each] for at in range(0, len(entries) - each + 1, each)]
    return [calls[number::callers] for number in range(callers)]


async def append_all(engine: Engine, folder: Path, work: Sequence[Calls], spaces: int = 1) -> Took:
    """Make all calls; caller n works on space n modulo `spaces`."""
    took: list[float] = []

    async def caller(ref: Ref[SpaceShard], calls: Calls) -> None:
        for entries in calls:
            began = time.perf_counter()
            await ref.call(SpaceShard.append, QUEUE, entries)
            took.append(time.perf_counter() - began)

    async with open_namespace(engine.kind, folder, disk=engine.disk()) as namespace:
        refs = [namespace.ref(f"space{number}") for number in range(spaces)]
        for ref in refs:
            await ref.call(SpaceShard.append, QUEUE, [NewEntry("{}")])  # opens the file, makes the queue
        with quiet_collector():
            began, cpu = time.perf_counter(), time.thread_time()
            await together([_bind(caller, refs[n % spaces], calls) for n, calls in enumerate(work)])
            return Took(took, time.perf_counter() - began, time.thread_time() - cpu)


def _bind(
    caller: Callable[[Ref[SpaceShard], Calls], Awaitable[None]], ref: Ref[SpaceShard], calls: Calls
) -> Callable[[], Awaitable[None]]:
    return lambda: caller(ref, calls)


async def together(tasks: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Run all at once; return when all have ended."""
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Keep the garbage collector from walking what was made before the clock started."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def raw_append(folder: Path, entries: Sequence[NewEntry]) -> Took:
    """What one executemany of these rows takes, in one durable transaction, into the tables of a space."""
    path = folder / "raw.db"
    db = sqlite.connect(path, "", cache_kib=Limits().cache_kib)
    for step in SpaceShard.migrations:
        db.execute(step)
    made = list(rows(entries, ids.new_ulid(BASE_MS, Random(0))))
    wal = OsWal(path)
    with quiet_collector():
        began, cpu = time.perf_counter(), time.thread_time()
        db.execute("BEGIN IMMEDIATE")
        db.executemany(RAW_INSERT, made)
        db.execute("COMMIT")
        wal.sync()
        seconds = time.perf_counter() - began
        took = Took([seconds], seconds, time.thread_time() - cpu)
    wal.close()
    db.close()
    return took


# -- memory -------------------------------------------------------------------------------------------------


def in_child(module: str, *arguments: str | int) -> dict[str, float]:
    """Run `python -m module arguments` and return the JSON object on its last line: its memory is its own."""
    root = Path(__file__).resolve().parents[1]
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return answer


def resident_mib() -> float:
    """Memory of this process that is in RAM now."""
    return _status("VmRSS")


def peak_mib() -> float:
    """The most that was in RAM since the process began, or since `forget_peak`."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Start a new peak, where the system can."""
    if STATUS.exists():
        STATUS.with_name("clear_refs").write_text("5")


def _status(field: str) -> float:
    if not STATUS.exists():  # not Linux: the peak since the start has to do, in bytes there
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return float(STATUS.read_text().partition(f"{field}:")[2].split()[0]) / 1024
