"""Dead letters: where they go whatever is there, and what is left when they are done."""

from __future__ import annotations

from edgequeues.models import NewEntry, Pull, QueueConfig, Retry
from edgequeues.space.shard import SpaceShard

from .world import Space


def bury(space: Space, data: str) -> None:
    space.call(SpaceShard.push, "jobs", [NewEntry(data)])
    [message] = space.call(SpaceShard.pull, "jobs", None, Pull()).messages
    assert space.call(SpaceShard.retry, "jobs", [Retry(message.lease, permanent=True)]) == ["done"]


def test_a_full_queue_of_dead_letters_takes_one_more(space: Space) -> None:
    bury(space, "1")
    space.call(SpaceShard.reconfigure, "jobs-dlq", {"depth_max": 1})
    bury(space, "2")
    assert len(space.call(SpaceShard.dead_letters, "jobs-dlq", 0, 10)) == 2
    assert space.call(SpaceShard.configure, "jobs", QueueConfig(kind="work")).entries == 0


def test_an_acked_dead_letter_takes_its_facts_along(space: Space) -> None:
    bury(space, "1")
    bury(space, "2")
    [first] = space.call(SpaceShard.pull, "jobs-dlq", None, Pull()).messages
    space.call(SpaceShard.ack, "jobs-dlq", [first.lease])
    assert [entry.data for entry, _ in space.call(SpaceShard.dead_letters, "jobs-dlq", 0, 1)] == ["2"]
