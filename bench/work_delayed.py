"""How soon are messages handed out that all come due at once?

They are pushed with one and the same time before which they are not to be handed out; consumers wait for it as those
of HTTP do. A space has one alarm, whatever waits in it: no timer is set for a message.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import trio

from bench.figures import Against, Figure, figure
from bench.rig import QUEUE, Rig, new_entries, quiet_collector
from bench.work_fill import make
from edgequeues.models import LEASE_MS_MAX, PULL_MAX, UNIX_MS_MAX, NewEntry, Pull
from edgequeues.space.base import WORK
from edgequeues.space.shard import SpaceShard
from shards.namespace import Namespace, Ref, open_namespace

SPACE = "work"
CONSUMERS = 16
EACH = 1_000  # a push
FIRST_S = 0.5  # from the last push to when they are due, at least,
MARGIN = 1.5  # if pushing takes no longer than so many times what it took at first
ALL_S_MAX = 5.0


class Handed(NamedTuple):
    """Seconds from when the messages were due. late: until the last one had been pushed; 0: it was in time."""

    first: float
    last: float
    late: float


def measure(rig: Rig) -> Iterator[Figure]:
    """All by one queue; a message counts as handed out when its lease is on disk and the consumer has it."""
    count = rig.pick(100_000, 20_000, 200)
    rounds = []
    for _ in range(rig.pick(3, 1, 1)):
        with rig.place() as folder:
            rounds.append(trio.run(_hand_out, folder, count))
    seconds = [one.last for one in rounds]
    more = {
        "first ms": max(one.first for one in rounds) * 1000,
        "messages/s": count / max(seconds),
        "pushed late by s": max(one.late for one in rounds),
        "flush p50 ms": rig.flush_ms,
    }
    against = Against(what="s, the slowest round", value=max(seconds), target=ALL_S_MAX, at_most=True)
    yield figure(
        "work-delayed",
        f"{count:,} due at once: all handed out after",
        seconds,
        "s",
        against=[against],
        more=more,
    )


async def _hand_out(folder: Path, count: int) -> Handed:
    parts = [new_entries(min(EACH, count - at), first=at) for at in range(0, count, EACH)]
    async with open_namespace(SpaceShard, folder) as namespace:
        ref = namespace.ref(SPACE)
        await make(ref, "unordered")
        with quiet_collector():
            began = time.time()
            await _push(ref, "other", parts[0], UNIX_MS_MAX)
            due_s = time.time() + FIRST_S + len(parts) * (time.time() - began) * MARGIN
            for part in parts:
                await _push(ref, QUEUE, part, int(due_s * 1000))
            late_s = max(0.0, time.time() - due_s)
            handed: list[float] = []  # unix time of each message
            async with trio.open_nursery() as nursery:
                for _ in range(CONSUMERS):
                    nursery.start_soon(_consume, namespace, handed, count, nursery.cancel_scope)
    assert len(handed) == count
    return Handed(handed[0] - due_s, handed[-1] - due_s, late_s)


async def _push(ref: Ref[SpaceShard], queue: str, entries: Sequence[NewEntry], due_ms: int) -> None:
    pushed = [NewEntry(one.data, one.object_id, one.type, due=due_ms) for one in entries]
    await ref.call(SpaceShard.push, queue, pushed)


async def _consume(
    namespace: Namespace[SpaceShard], handed: list[float], count: int, all_handed: trio.CancelScope
) -> None:
    """Pull again and again, and wait where there is nothing, as the HTTP protocol does for those who wait."""
    ref = namespace.ref(SPACE)
    with namespace.hub.watch_in_line(SPACE, (WORK, QUEUE), None) as watch:
        while True:
            pulled = await ref.call(SpaceShard.pull, QUEUE, None, Pull(batch=PULL_MAX, lease_ms=LEASE_MS_MAX))
            handed += [time.time()] * len(pulled.messages)
            if len(handed) == count:
                all_handed.cancel()
            if not pulled.messages:
                await watch.wait()
