"""What do messages of sessions cost: taking one in while every delivery hangs, and draining a thousand sessions?

Producers and manager share one event loop and one folder, as in a program that embeds them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import trio

from bench import machine
from bench.figures import Against, Figure, figure, quantile
from bench.rig import Rig, quiet_collector, together
from edgequeues.inbound import Inbound, InboundRow
from edgequeues.sessions.inbox import Inbox
from edgequeues.sessions.local import open_inbox
from edgequeues.sessions.manager import open_manager

RATE = 200  # messages a second, one by one: a busy evening of chats
TEXT = "x" * 200
HANGING = 100
P99_MS_MAX = 10.0  # above that of the flush
EACH = 10  # messages of a session
PRODUCERS = 32


def measure(rig: Rig) -> Iterator[Figure]:
    """Both."""
    yield _hanging(rig)
    yield _draining(rig)


def _hanging(rig: Rig) -> Figure:
    """How long `enqueue` takes beside deliveries that do not end, with the time of a flush before and after."""
    flushes: list[float] = []
    rounds: list[list[float]] = []
    for _ in range(rig.pick(5, 3, 1)):
        with rig.place() as folder, quiet_collector():
            flushes += machine.flush_times_ms(folder, rig.pick(500, 200, 20))
            rounds.append(trio.run(_enqueue, folder, rig.pick(1_000, 400, 10)))
            flushes += machine.flush_times_ms(folder, rig.pick(500, 200, 20))
    every = [ms for one in rounds for ms in one]
    p99, flush_p99 = quantile(every, 0.99), quantile(flushes, 0.99)
    return figure(
        "sessions",
        f"enqueue, {RATE} a second, while {HANGING} deliveries hang, p50",
        [quantile(one, 0.5) for one in rounds],
        "ms",
        against=[
            Against(what="p99 above flush p99, ms", value=p99 - flush_p99, target=P99_MS_MAX, at_most=True)
        ],
        more={"p99": p99, "most": max(every), "flush p50": quantile(flushes, 0.5), "flush p99": flush_p99},
    )


async def _enqueue(folder: Path, count: int) -> list[float]:
    took: list[float] = []
    hanging, all_hang = 0, trio.Event()

    async def hang(_: InboundRow) -> None:
        nonlocal hanging
        hanging += 1
        if hanging == HANGING:
            all_hang.set()
        await trio.sleep_forever()

    async with open_inbox(folder) as inbox, open_manager(inbox, hang) as manager:
        await _fill(inbox, sessions=HANGING, each=1)
        await all_hang.wait()
        due = trio.current_time()
        for number in range(count):
            due += 1 / RATE
            await trio.sleep_until(due)
            began = time.perf_counter()
            await manager.enqueue(session_id=f"session {number % HANGING}", origin="bench", content=TEXT)
            took.append((time.perf_counter() - began) * 1000)
    return took


def _draining(rig: Rig) -> Figure:
    """Messages a second, from the manager's start to the last delivery; all were on disk before."""
    sessions = rig.pick(1_000, 1_000, 10)
    rates, cpus = [], []
    for _ in range(rig.pick(3, 2, 1)):
        with rig.place() as folder, quiet_collector():
            seconds, cpu = trio.run(_drain, folder, sessions)
            rates.append(sessions * EACH / seconds)
            cpus.append(cpu / (sessions * EACH) * 1e6)
    case = f"{sessions:,} sessions with {EACH} messages each, drained"
    return figure("sessions", case, rates, "messages/s", more={"cpu us": quantile(cpus, 0.5)})


async def _drain(folder: Path, sessions: int) -> tuple[float, float]:
    left, done = sessions * EACH, trio.Event()
    seen: Counter[str] = Counter()

    async def deliver(row: InboundRow) -> None:
        nonlocal left
        if row["content"] != str(seen[row["session_id"]]):
            raise RuntimeError("out of order")  # no figure is worth anything then
        seen[row["session_id"]] += 1
        left -= 1
        if left == 0:
            done.set()

    async with open_inbox(folder) as inbox:
        await _fill(inbox, sessions=sessions, each=EACH)
        began, cpu = time.perf_counter(), time.thread_time()
        async with open_manager(inbox, deliver):
            await done.wait()
            took = time.perf_counter() - began, time.thread_time() - cpu
    return took


async def _fill(inbox: Inbox, *, sessions: int, each: int) -> None:
    async def some(first: int) -> None:
        for number in range(each):
            for session in range(first, sessions, PRODUCERS):
                await inbox.enqueue(
                    Inbound(session_id=f"session {session}", origin="bench", content=str(number))
                )

    await together([partial(some, first) for first in range(PRODUCERS)])
