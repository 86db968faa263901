"""Which queues live inside a program? Libraries over SQLite, each in a process of its own, beside our own engine."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import trio

from bench.peers.cache import Cache
from bench.peers.jobs import Round, Run
from bench.peers.process import Absent
from bench.rig import new_entries, together
from bench.served import end
from edgequeues.models import NewEntry, Pull, QueueConfig
from edgequeues.space.shard import SpaceShard
from shards.namespace import Ref, open_namespace

OURS = "edgequeues in process"
SETTINGS = {
    OURS: "its defaults: every answer after fdatasync",
    "litequeue": "WAL, synchronous set to FULL",
    "persist-queue": "SQLiteAckQueue, auto_commit; WAL, synchronous FULL",
    "huey": "SqliteStorage, fsync=True; no acks",
}
CHILD = Path(__file__).with_name("inprocess_child.py")
QUEUE = "bench"


class Inside(NamedTuple):
    """A library at work: what it says of a job by so many callers for so many seconds."""

    rate: Callable[[str, int, float], float]

    def run(self, job: str, callers: int, seconds: float) -> Run:
        """One round after the other."""
        return lambda: Round(self.rate(job, callers, seconds), {})


@contextmanager
def theirs(name: str, place: Path, cache: Cache) -> Iterator[Inside]:
    """A process with this library. Raises Absent."""
    python = cache.python()
    with subprocess.Popen(
        [python, CHILD, name, place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(place / "log").open("wb"),
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers, questions = process.stdout, process.stdin

        def rate(job: str, callers: int, seconds: float) -> float:
            questions.write(f"{job} {callers} {seconds}\n")
            questions.flush()
            answer = answers.readline()
            if not answer:
                raise EOFError((place / "log").read_text()[-300:])
            return float(answer)

        try:
            if answers.readline().strip() != "ready":
                raise Absent((place / "log").read_text()[-300:])
            yield Inside(rate)
        finally:
            end(process)


@contextmanager
def engine(place: Path) -> Iterator[Inside]:
    """Our own, in this process: a space in a folder of its own, opened for each round."""
    yield Inside(partial(_rate, place))


def _rate(place: Path, job: str, callers: int, seconds: float) -> float:
    return trio.run(_work, place, job, callers, seconds)


async def _work(place: Path, job: str, callers: int, seconds: float) -> float:
    done = 0
    entry = NewEntry(new_entries(1)[0].data)

    async def caller(ref: Ref[SpaceShard]) -> None:
        nonlocal done
        while time.perf_counter() < until:
            await ref.call(SpaceShard.push, QUEUE, [entry])
            if job != "push":
                given = await ref.call(SpaceShard.pull, QUEUE, None, Pull(batch=1))
                await ref.call(SpaceShard.ack, QUEUE, [one.lease for one in given.messages])
            done += 1

    async with open_namespace(SpaceShard, place) as namespace:
        ref = namespace.ref("space")
        await ref.call(SpaceShard.configure, QUEUE, QueueConfig(name=QUEUE, kind="work"))
        began = time.perf_counter()
        until = began + seconds
        await together([partial(caller, ref) for _ in range(callers)])
        return done / (time.perf_counter() - began)
