"""The table of transitions is what happens: every move in it is made by something, and none that is not."""

from __future__ import annotations

from functools import partial

import pytest

from edgequeues.core.backoff import Backoff
from edgequeues.core.lifecycle import TRANSITIONS, UNFINISHED, Event, State
from edgequeues.models import ConsumerConfig, Ordering
from edgequeues.space import deliveries
from edgequeues.space.consumers import Consumer
from edgequeues.space.desk import Desk
from edgequeues.space.queues import Queue
from edgequeues.space.shard import SpaceShard
from shards.testing import Direct, FakeClock

from .jobs import Jobs
from .world import Space

LEASE_MS = 30_000
Move = tuple[State, Event, State]


class WatchedDesk(Desk):
    moves: set[Move]

    def _move(self, consumer: Consumer, state: State, event: Event, then: State, count: int = 1) -> None:
        super()._move(consumer, state, event, then, count)
        self.moves.add((state, event, then))


class WatchedShard(SpaceShard):
    moves: set[Move]

    def _desk(self, row: Queue) -> Desk:
        bury = partial(self._bury, row)
        desk = WatchedDesk(self.db, self._home(), row, self._time(), self.random, bury)
        desk.moves = self.moves
        return desk


class WatchedSpace(Space):
    def __init__(self, moves: set[Move]) -> None:
        Direct.__init__(self, WatchedShard, FakeClock())
        shard = self.shard
        assert isinstance(shard, WatchedShard)
        shard.moves = moves


@pytest.fixture
def moves() -> set[Move]:
    return set()


def jobs(
    moves: set[Move], ordering: Ordering = "unordered", lapse_delay_ms: int = 0, **rules: object
) -> Jobs:
    config = ConsumerConfig(ordering, LEASE_MS, backoff=Backoff(0, 0), lapse_delay_ms=lapse_delay_ms)
    return Jobs(WatchedSpace(moves), config)


def in_state(moves: set[Move], state: State, ttl_ms: int | None = None) -> tuple[Jobs, str]:
    """A queue, and the id of a message in it that is in this state."""
    made = jobs(moves, "fifo")
    if state == "waiting":
        made.push("0")
    [object_id] = made.push("1", ttl_ms=ttl_ms, delay_ms=60_000 if state == "scheduled" else 0)
    if state in ("leased", "backoff"):
        message = made.one()
        if state == "backoff":
            made.fail(message, delay_ms=60_000)
    assert made.space.call(SpaceShard.explain, "jobs", object_id)[0].state == state
    return made, object_id


def passing(ms: int, made: Jobs) -> None:
    made.space.clock.advance(ms)
    made.ring()


def end_by_others(moves: set[Move], state: State) -> None:
    """Delete a message in this state, skip one, let one expire."""
    made, object_id = in_state(moves, state)
    made.space.call(SpaceShard.delete_ids, "jobs", [object_id])
    if state != "leased":
        made, object_id = in_state(moves, state)
        made.space.call(SpaceShard.skip, "jobs", None, object_id)
        made, _ = in_state(moves, state, ttl_ms=1_000)
        passing(3_000, made)


def close(moves: set[Move], state: State) -> None:
    """Have the session be over of which a message in this state is."""
    made, _ = in_state(moves, state)
    shard = made.space.shard
    desk = shard._desk(shard._require("jobs"))
    [consumer] = desk.queue.consumers
    desk.close_session(consumer, deliveries.some(shard.db, consumer.consumer_id, 10))
    shard._worked(desk)
    assert made.pull() == []


def answer(moves: set[Move], how: str) -> None:
    """Answer for the first of a line, and let time pass."""
    made = jobs(moves, "fifo", lapse_delay_ms=60_000 if how == "late, backing off" else 0)
    made.push("1")
    made.push("2", delay_ms=120_000 if how == "bury" else 0)
    message = made.one()
    if how.startswith("late"):
        passing(LEASE_MS, made)
    if how == "release":
        made.space.call(SpaceShard.release, "jobs", [message.lease])
    elif how in ("retry", "retry later", "bury"):
        made.fail(message, permanent=how == "bury", delay_ms=60_000 if how == "retry later" else None)
    else:
        made.ack(message)
    passing(120_000, made)


def put_off(moves: set[Move]) -> None:
    """Put a message off before it was ever handed out, and again after it was."""
    made = jobs(moves)
    made.push("1")
    for _ in range(2):
        shard = made.space.shard
        desk = shard._desk(shard._require("jobs"))
        [consumer] = desk.queue.consumers
        [one] = desk.look(consumer, 5)
        desk.hold(consumer, one, desk.at + 60_000)
        shard._worked(desk)
        assert made.pull() == []
        passing(60_000, made)
        made.fail(made.one())


def test_every_move_of_the_table_is_made_and_no_other(moves: set[Move]) -> None:
    for state in UNFINISHED:
        end_by_others(moves, state)
        close(moves, state)
    for how in ("ack", "late", "late, backing off", "release", "retry", "retry later", "bury"):
        answer(moves, how)
    put_off(moves)
    assert moves == {(state, event, then) for (state, event), ends in TRANSITIONS.items() for then in ends}


def test_a_move_that_the_table_does_not_have_is_a_fault_of_ours(moves: set[Move]) -> None:
    made = jobs(moves)
    row = made.space.shard._require("jobs")
    desk = made.space.shard._desk(row)
    with pytest.raises(AssertionError, match="lease: waiting to leased"):
        desk._move(row.consumers[0], "waiting", "lease", "leased")
    assert moves == set()
