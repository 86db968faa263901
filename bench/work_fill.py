"""How is a long work queue made? By plain SQL, in a file nobody serves, as `rig.fill` makes a long log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import trio

from bench.rig import BASE_MS, QUEUE, RAW_INSERT, new_entries, rows
from edgequeues.core.lifecycle import State
from edgequeues.models import PRIORITY, WORK_QUEUE, ConsumerConfig, Ordering
from edgequeues.space import consumers, deliveries, log, queues, store
from edgequeues.space.consumers import DEFAULT
from edgequeues.space.deliveries import Made
from edgequeues.space.moves import FIFO_LINE
from edgequeues.space.shard import SpaceShard
from shards import files
from shards.namespace import Ref, open_namespace

PORTION = 20_000  # messages made at once
Key = Callable[[int], str]  # the ordering key of the n-th message


async def make(ref: Ref[SpaceShard], ordering: Ordering) -> None:
    """Make the queue with its consumer, and nothing in it."""
    await ref.call(SpaceShard.configure, QUEUE, WORK_QUEUE)
    if ordering != "unordered":
        await ref.call(SpaceShard.dismiss, QUEUE, DEFAULT)  # an order is for good
        await ref.call(SpaceShard.consume, QUEUE, DEFAULT, ConsumerConfig(ordering=ordering))


def fill(folder: Path, name: str, ordering: Ordering, count: int, key: Key) -> None:
    """Make the space `name` with a work queue of `count` messages, of which none was ever handed out."""
    trio.run(_make, folder, name, ordering)
    path = files.path_of(folder, name)
    db = apsw.Connection(str(path))
    for pragma, value in (("journal_mode", "off"), ("synchronous", "off"), ("cache_size", -256 * 1024)):
        db.pragma(pragma, value)
    queue, home = queues.find(db, QUEUE), store.load(db)
    assert queue is not None
    assert home is not None
    [consumer] = queue.consumers
    deals = _Deals(consumer.consumer_id, ordering)
    with db:
        for first in range(0, count, PORTION):
            entries = new_entries(min(PORTION, count - first), first=first)
            made = [
                row._replace(key=key(number))
                for number, row in enumerate(rows(entries, queue.queue_id, first=home.position + 1), first)
            ]
            db.executemany(RAW_INSERT, made)
            deliveries.insert(db, [*deals.of(made)])
            home.position = made[-1].position
            queue.bytes += sum(row.size for row in made)
        queue.entries = queue.changes = count
        queue.tail = home.position
        home.lamport = home.position
        home.clock_ms = home.wall_ms = BASE_MS
        consumer.filled, consumer.bytes, consumer.turns = home.position, queue.bytes, deals.turns
        consumer.counts.ready, consumer.counts.waiting = deals.ready, count - deals.ready
        consumer.counts.total_in = count
        consumer.dirty = True
        queues.count(db, queue)
        consumers.save(db, consumer)
        store.save(db, home)
    db.pragma("journal_mode", "wal")
    db.close()
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)  # or it would go on being written while something else is measured
    os.close(fd)


async def _make(folder: Path, name: str, ordering: Ordering) -> None:
    async with open_namespace(SpaceShard, folder) as namespace:
        await make(namespace.ref(name), ordering)


class _Deals:
    """Deliveries of messages one after the other: the first of a line is ready, all others wait."""

    def __init__(self, consumer_id: int, ordering: Ordering) -> None:
        self.consumer_id = consumer_id
        self.ordering = ordering
        self.turns = 0
        self.ready = 0
        self._busy: set[str] = set()

    def of(self, made: list[log.Row]) -> Iterator[Made]:
        for row in made:
            line = {"unordered": None, "fifo": FIFO_LINE, "per_key": row.key}[self.ordering]
            waits = line is not None and line in self._busy
            turn = row.position
            if line is not None and not waits:
                self._busy.add(line)
                self.turns += 1
                turn = self.turns
            self.ready += not waits
            state: State = "waiting" if waits else "ready"
            yield Made(self.consumer_id, row.position, state, 9 - PRIORITY, turn, line, None, row.size)
