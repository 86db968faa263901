"""The invariants find what was broken by hand, and nothing in a space that worked."""

from __future__ import annotations

import pytest

from edgequeues.models import NewEntry, QueueConfig
from edgequeues.space import check
from edgequeues.space.shard import SpaceShard
from shards.testing import Direct


@pytest.fixture
def space() -> Direct[SpaceShard]:
    """A space with two queues, moved, expiring and deleted entries."""
    space = Direct(SpaceShard)
    space.call(SpaceShard.configure, "short", QueueConfig(max_age_ms=60_000))
    for number in range(5):
        entries = [NewEntry(f'{{"n":{number}}}', object_id=f"o{number % 3}", type="t", ttl_ms=5_000 + number)]
        space.call(SpaceShard.append, "short", entries)
        space.call(SpaceShard.append, "long", [NewEntry('"\\ud83d \xe9"'), NewEntry("[1]", if_version=None)])
        space.clock.advance(7)  # type: ignore[attr-defined]
    space.call(SpaceShard.delete_ids, "short", ["o1"])
    for number in (1_000, 2_000):
        space.call(SpaceShard.reconfigure, "long", {"max_entries": number})
    return space


def test_a_space_that_worked_has_no_problems(space: Direct[SpaceShard]) -> None:
    assert check.problems(space.db) == []


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("UPDATE queues SET entries = entries + 1 WHERE name = 'long'", "entries and"),
        ("UPDATE queues SET bytes = bytes + 1 WHERE name = 'short'", "bytes, there are"),
        ("DELETE FROM queues WHERE name = 'long'", "which is not there"),
        ("UPDATE store SET position = 2", "ahead of the last position"),
        ("UPDATE queues SET tail = 1", "its tail is 1"),
        ("UPDATE store SET lamport = 1", "the counter of the space is at 1"),
        ("UPDATE queue_entries SET data = data || ' '", "bytes, its row says"),
        ("UPDATE queue_entries SET updated_ts = updated_ts + 9999 WHERE id = 2", "older than the one before"),
        ("UPDATE queues SET sweep_ts = NULL", "the next sweep is at no time"),
        ("UPDATE shard_alarm SET due_ms = NULL", "no alarm is set"),
        ("UPDATE queue_entries SET data = '{x' || substr(data, 3) WHERE id = 2", "is not JSON"),
        ("DELETE FROM store", "0 rows in store"),
        ("DELETE FROM audit WHERE audit_id = 2", "the audit has 2 records, numbered 1 to 3"),
        ("UPDATE audit SET detail = '{' WHERE audit_id = 2", "record 2 of the audit is not JSON"),
    ],
)
def test_damage_done_by_hand_is_named(space: Direct[SpaceShard], damage: str, named: str) -> None:
    space.db.execute(damage)
    assert any(named in problem for problem in check.problems(space.db)), check.problems(space.db)
