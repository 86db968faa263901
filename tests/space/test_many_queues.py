"""More queues in a space than are kept in memory."""

from __future__ import annotations

from edgequeues.models import NewEntry, Pull, Retry
from edgequeues.space.rows import QUEUES_CACHED
from edgequeues.space.shard import SpaceShard

from .world import Space


def bury(space: Space, count: int) -> None:
    messages = space.call(SpaceShard.pull, "jobs", None, Pull(count)).messages
    retries = [Retry(one.lease, permanent=True) for one in messages]
    assert space.call(SpaceShard.retry, "jobs", retries) == ["done"] * count


def test_a_queue_whose_messages_die_is_counted_right_though_its_dead_letters_are_not_in_memory(
    space: Space,
) -> None:
    """A queue is never in memory twice within a turn: what the one knows, the other would write over."""
    space.call(SpaceShard.push, "jobs", [NewEntry("1"), NewEntry("2"), NewEntry("3"), NewEntry("4")])
    bury(space, 1)
    space.shard.forget()
    space.call(SpaceShard.stats, "jobs")
    for number in range(QUEUES_CACHED // 2 - 1):
        space.put(f"q{number}", "1")  # each is kept by its id and by its name
    bury(space, 2)
    [info] = space.call(SpaceShard.consumers, "jobs")
    assert (info.ready, info.leased, info.total_permanent) == (1, 0, 3)
    assert space.count("jobs") == 1
    bury(space, 1)
    assert (space.count("jobs"), space.count("jobs-dlq")) == (0, 4)
