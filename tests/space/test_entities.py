"""Looking at entities and at what was done to them; receipts are forgotten when they are old."""

from __future__ import annotations

import json

import pytest

from edgequeues.core.errors import EntityNotFound
from edgequeues.space import entities, shard
from edgequeues.space.entities import Entity
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .specs import Shop, field
from .world import Space

DAY_MS = 86_400_000


def mapped(space: Space, command: str = "UpsertThing", name: str = "jobs") -> Jobs:
    """A queue whose messages make and change entities of type Thing: `id` says which."""
    inputs = {"entity_id": field("id"), "n": field("n")}
    shop = {"to": "command", "entity_type": "Thing", "command": command, "input_map": inputs}
    Shop(space, **{name: {"map_to": shop, "message_type": {"id": {}, "n": {}}}})
    return Jobs(space, queue=name)


def push(jobs: Jobs, *ids: str) -> list[str]:
    made = jobs.push(*(json.dumps({"id": one, "n": n}) for n, one in enumerate(ids)))
    jobs.ring()
    return made


def listed(space: Space, after: str = "", limit: int = 10) -> tuple[list[str], str | None]:
    found = space.call(SpaceShard.entities, "Thing", after, limit)
    return [one.entity_id for one in found.entities], found.resume


def test_entities_come_by_id_page_by_page(space: Space) -> None:
    push(mapped(space), "b", "a", "d", "c")
    assert listed(space) == (["a", "b", "c", "d"], None)
    assert listed(space, limit=3) == (["a", "b", "c"], "c")
    assert listed(space, "c") == (["d"], None)
    assert listed(space, limit=4) == (["a", "b", "c", "d"], None)
    assert space.call(SpaceShard.entities, "Thin", "", 10) == ([], None)


def test_large_entities_end_a_page_sooner(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "PAGE_BYTES_MAX", 10)
    push(mapped(space), "a", "b", "c", "d")  # of 7 bytes each
    assert listed(space) == (["a", "b"], "b")
    assert listed(space, "b") == (["c", "d"], None)


def test_an_entity_is_as_its_last_command_left_it(space: Space) -> None:
    jobs = mapped(space)
    push(jobs, "a")
    jobs.at(5_000)
    push(jobs, "a", "a")
    assert space.call(SpaceShard.entity, "Thing", "a") == Entity(
        "Thing", "a", None, '{"n":1}', 3, jobs.began_ms, jobs.began_ms + 5_000
    )


def test_what_is_not_there_is_told(space: Space) -> None:
    push(mapped(space), "a")
    for entity_type, entity_id in (("Thing", "b"), ("thing", "a"), ("Other", "a")):
        with pytest.raises(EntityNotFound, match=f"{entity_type} {entity_id}"):
            space.call(SpaceShard.entity, entity_type, entity_id)
        with pytest.raises(EntityNotFound):
            space.call(SpaceShard.entity_history, entity_type, entity_id, 0, 10)


def test_the_history_of_an_entity_names_the_messages_that_changed_it(space: Space) -> None:
    jobs = mapped(space)
    ids = push(jobs, "a", "b", "a", "a")
    found = space.call(SpaceShard.entity_history, "Thing", "a", 0, 2)
    assert [(one.version, one.command, one.object_id) for one in found.receipts] == [
        (1, "UpsertThing", ids[0]),
        (2, "UpsertThing", ids[2]),
    ]
    [queue_id] = {one.queue_id for one in found.receipts}
    assert found.queues == {queue_id: "jobs"}
    assert found.resume == found.receipts[-1].receipt_id
    rest = space.call(SpaceShard.entity_history, "Thing", "a", found.resume, 2)
    assert ([one.object_id for one in rest.receipts], rest.resume) == ([ids[3]], None)
    after = space.call(SpaceShard.entity_history, "Thing", "a", rest.receipts[-1].receipt_id, 2)
    assert after == ([], None, {})


def test_an_entity_that_was_removed_has_its_history(space: Space) -> None:
    push(mapped(space), "a")
    push(mapped(space, "DeleteThing"), "a")
    assert listed(space) == ([], None)
    found = space.call(SpaceShard.entity_history, "Thing", "a", 0, 10)
    assert [one.command for one in found.receipts] == ["UpsertThing", "DeleteThing"]


def test_a_receipt_is_kept_90_days_and_forgotten_by_the_alarm(space: Space) -> None:
    jobs = mapped(space)
    push(jobs, "a")
    jobs.at(DAY_MS)
    push(jobs, "a")
    due = jobs.began_ms + 90 * DAY_MS
    for days, left, next_ms in ((5, 2, due), (90, 1, due + DAY_MS), (91, 0, None)):
        jobs.at(days * DAY_MS)
        jobs.ring()
        assert history_length(space) == left
        assert space.call(SpaceShard.get_alarm) == next_ms
    assert listed(space) == (["a"], None)


def test_many_old_receipts_are_forgotten_a_bounded_number_in_a_turn(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "TIDY_ROWS", 2)
    jobs = mapped(space)
    push(jobs, *"aaaaa")
    left = []
    for minutes in range(4):
        jobs.at(90 * DAY_MS + minutes * shard.TIDY_PAUSE_MS)
        jobs.ring()
        left.append(history_length(space))
    assert left == [3, 1, 0, 0]


def history_length(space: Space) -> int:
    return len(space.call(SpaceShard.entity_history, "Thing", "a", 0, 100).receipts)
