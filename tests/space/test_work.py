"""What a consumer is given, and what is left when keys, messages and queues end."""

from __future__ import annotations

from edgequeues.models import NewEntry, Pull, QueueConfig
from edgequeues.space.shard import SpaceShard
from edgequeues.space.timed import SWEEP_PAUSE_MS

from .world import ULID, Space


def push(space: Space, *entries: NewEntry, queue: str = "jobs") -> list[str]:
    results = space.call(SpaceShard.push, queue, entries).results
    return [one.outcome for one in results]


def pulled(space: Space, batch: int = 1, queue: str = "jobs") -> list[str]:
    return [one.entry.data for one in space.call(SpaceShard.pull, queue, None, Pull(batch)).messages]


def test_a_key_means_nothing_any_more_when_its_queue_is_gone(space: Space) -> None:
    """Else a push to the queue that is made under the same id would be answered, and lost."""
    keyed = NewEntry("1", idempotency_key="once")
    assert push(space, keyed, queue=ULID) == ["new"]
    while space.call(SpaceShard.remove, ULID):
        pass
    assert push(space, keyed, queue=ULID) == ["new"]
    assert pulled(space, queue=ULID) == ["1"]


def test_more_keys_than_one_turn_forgets_go_with_their_queue(space: Space) -> None:
    for start in range(0, 2_500, 500):
        push(space, *(NewEntry("1", idempotency_key=f"k{start + n}") for n in range(500)), queue=ULID)
    turns = 1
    while space.call(SpaceShard.remove, ULID):
        turns += 1
    assert turns > 1
    assert space.db.execute("SELECT count(*) FROM dedup").get == 0


def test_a_message_that_expires_while_it_is_leased_does_not_keep_the_alarm_ringing(space: Space) -> None:
    push(space, NewEntry("1", ttl_ms=1_000))
    assert pulled(space) == ["1"]
    space.clock.advance(5_000)
    rings = 0
    while space.alarm_due() and rings < 10:
        space.run_alarm()
        rings += 1
    assert rings < 10
    alarm = space.shard.get_alarm()
    assert alarm is not None
    assert space.clock.now_ms() < alarm <= space.clock.now_ms() + SWEEP_PAUSE_MS
    space.clock.advance(30_000)
    while space.alarm_due():
        space.run_alarm()
    assert space.call(SpaceShard.configure, "jobs", QueueConfig(kind="work")).entries == 0


def test_expired_messages_do_not_hide_those_behind_them(space: Space) -> None:
    push(space, *(NewEntry("0", ttl_ms=1_000) for _ in range(300)))
    push(space, NewEntry("1"), NewEntry("2"), NewEntry("3"))
    space.clock.advance(1_000)
    assert pulled(space) == ["1"]
    assert pulled(space, 5) == ["2", "3"]
