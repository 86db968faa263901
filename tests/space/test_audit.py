"""The audit: what somebody did is on record, in the transaction that did it, and within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgequeues.core.errors import ConfigConflict, SpecConflict
from edgequeues.core.who import SERVER, Who
from edgequeues.models import ConsumerConfig, QueueConfig
from edgequeues.models_letters import LetterFilter
from edgequeues.space import audit
from edgequeues.space.dead_verbs import ReplayAsk
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by

from .jobs import Jobs
from .specs import TYPED, Shop, spec
from .world import Space, turn

ANNA = Who("tok1", "anna")


def records(space: Space) -> list[tuple[str, str | None, Any]]:
    """Action, queue and detail of all there are."""
    return [(one.action, one.queue_name, json.loads(one.detail)) for one in rows(space)]


def rows(space: Space) -> list[audit.Record]:
    return audit.page(space.db, 0, 1_000_000)


def test_who_asked_is_on_record_and_the_server_where_nobody_did(space: Space) -> None:
    space.call(by(ANNA, SpaceShard.configure), "log", QueueConfig())
    space.call(SpaceShard.configure, "other", QueueConfig())
    assert [(one.who_id, one.who_name) for one in rows(space)] == [ANNA, SERVER]


def test_a_turn_that_is_undone_leaves_no_record(space: Space) -> None:
    space.configure("log")
    with pytest.raises(ConfigConflict):
        turn(space, by(ANNA, SpaceShard.reconfigure), "log", {"kind": "work"})
    assert len(records(space)) == 1
    assert space.shard.who == SERVER


def test_settings_are_recorded_as_they_were_and_as_they_are(space: Space) -> None:
    space.configure("log")
    space.configure("log", max_entries=5)
    space.configure("log", max_entries=5)
    space.call(SpaceShard.reconfigure, "log", {"paused": True})
    space.call(SpaceShard.reconfigure, "log", {"paused": False})
    assert records(space) == [
        ("configure", "log", {"made": True}),
        ("configure", "log", {"changes": {"max_entries": [None, 5]}}),
        ("pause", "log", {}),
        ("resume", "log", {}),
    ]


def test_consumers_are_recorded(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1")
    space.call(SpaceShard.consume, "jobs", "default", ConsumerConfig(batch=7))
    space.call(SpaceShard.consume, "jobs", "default", ConsumerConfig(batch=7))
    [message] = jobs.push("2")
    space.call(SpaceShard.skip, "jobs", None, message)
    space.call(SpaceShard.dismiss, "jobs", "default")
    assert records(space) == [
        ("set_consumer", "jobs", {"consumer": "default", "changes": {"batch": [1, 7]}}),
        ("skip", "jobs", {"consumer": "default", "id": message}),
        ("remove_consumer", "jobs", {"consumer": "default"}),
    ]


def test_a_replay_names_each_letter_with_its_message(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1", "2", "3")
    ids = jobs.dlq.ids
    [first] = jobs.dlq.replay(ids[0])
    jobs.dlq.replay(ids[0])  # once more does nothing
    asked = ReplayAsk(LetterFilter(error="no"), per_second=5.0)
    found = space.call(SpaceShard.replay_some, "jobs-dlq", asked)
    messages = {one.id: one.message for one in found.results}
    assert records(space) == [
        ("replay", "jobs-dlq", {"count": 1, "messages": {ids[0]: first.message}}),
        (
            "replay",
            "jobs-dlq",
            {"count": 2, "messages": messages, "filter": {"error": "no"}, "per_second": 5.0},
        ),
    ]


def test_what_is_deleted_of_dead_letters_is_recorded_however_it_is_deleted(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1", "2", "3")
    ids = jobs.dlq.ids
    space.call(SpaceShard.delete_ids, "jobs-dlq", [ids[0], "nobody"])
    space.call(SpaceShard.purge_letters, "jobs-dlq", LetterFilter(reason=("permanent",), queue="jobs"))
    space.call(SpaceShard.purge_letters, "jobs-dlq", LetterFilter())  # there are none
    jobs.bury("4")
    [last] = jobs.dlq.ids
    space.call(SpaceShard.delete_range, "jobs-dlq", None, None, None)
    assert records(space) == [
        ("delete_letters", "jobs-dlq", {"count": 1, "ids": [ids[0]]}),
        (
            "delete_letters",
            "jobs-dlq",
            {"count": 2, "ids": ids[1:], "filter": {"reason": ["permanent"], "queue": "jobs"}},
        ),
        ("delete_letters", "jobs-dlq", {"count": 1, "ids": [last]}),
    ]


def test_entries_that_are_no_dead_letters_are_deleted_without_a_record(space: Space) -> None:
    space.fill("log", 3)
    space.call(SpaceShard.delete_ids, "log", ["o0"])
    space.call(SpaceShard.delete_range, "log", None, None, None)
    assert records(space) == []


def test_messages_of_a_work_queue_that_are_deleted_by_hand_are_recorded(space: Space) -> None:
    jobs = Jobs(space)
    made = jobs.push("0", "1", "2", "3", "4")
    space.call(SpaceShard.delete_ids, "jobs", made[:2])
    space.call(SpaceShard.delete_ids, "jobs", [made[2], "nobody"])
    space.call(SpaceShard.delete_ids, "jobs", ["nobody"])
    space.call(SpaceShard.delete_range, "jobs", None, None, None)
    assert [one for one in records(space) if one[0] == "delete"] == [
        ("delete", "jobs", {"count": 2, "ids": made[:2]}),
        ("delete", "jobs", {"count": 1}),
        ("delete", "jobs", {"count": 2}),
    ]


def test_a_record_names_a_hundred_at_most_and_counts_all(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury(*map(str, range(130)))
    jobs.dlq.replay(*jobs.dlq.ids)
    space.call(SpaceShard.purge_letters, "jobs-dlq", LetterFilter())
    (_, _, replayed), (_, _, deleted) = records(space)
    assert (replayed["count"], len(replayed["messages"])) == (130, 100)
    assert (deleted["count"], len(deleted["ids"])) == (130, 100)


def test_each_turn_of_a_purge_and_of_a_removal_says_what_it_took(space: Space) -> None:
    space.fill("log", 1_500)
    space.call(SpaceShard.purge, "log")
    space.call(SpaceShard.purge, "log", begun=True)
    space.fill("log", 1_500)
    while space.call(SpaceShard.remove, "log"):
        pass
    assert records(space) == [
        ("purge", "log", {"deleted": 1_000}),
        ("purge", "log", {"deleted": 500}),
        ("remove", "log", {"deleted": 1_000, "more": True}),
        ("remove", "log", {"deleted": 500}),
    ]


def test_specs_are_recorded_with_what_they_changed(space: Space) -> None:
    shop = Shop(space, orders=TYPED, other={})
    shop.apply(orders={**TYPED, "ordering": "fifo"}, other={})
    shop.would(orders={})
    shop.push("other", "1")
    with pytest.raises(SpecConflict):
        turn(space, SpaceShard.apply, spec("shop", orders=TYPED))
    made, changed = records(space)
    assert made == (
        "apply_spec",
        None,
        {
            "app": "shop",
            "queues": [
                {"queue": "orders", "change": "made", "fields": []},
                {"queue": "other", "change": "made", "fields": []},
            ],
        },
    )
    assert changed[2]["queues"] == [{"queue": "orders", "change": "changed", "fields": ["ordering"]}]


def test_what_a_server_applies_at_each_start_is_recorded_where_it_changes_something(space: Space) -> None:
    for _ in range(2):
        space.call(SpaceShard.apply, spec("shop", orders=TYPED))
    assert len(records(space)) == 1
    space.call(by(ANNA, SpaceShard.apply), spec("shop", orders=TYPED))
    assert [one.who_name for one in rows(space)] == ["", "anna"]


def test_records_go_after_ninety_days_by_themselves_but_for_the_last(space: Space) -> None:
    space.configure("log")
    space.clock.advance(audit.KEPT_MS - 1)
    space.configure("log", max_entries=5)
    assert len(rows(space)) == 2
    space.clock.advance(1)
    assert space.alarm_due()
    space.sweep()
    assert [one.audit_id for one in rows(space)] == [2]
    space.clock.advance(audit.KEPT_MS)
    space.sweep()
    assert [one.audit_id for one in rows(space)] == [2]
    assert not space.alarm_due()


def test_there_are_never_more_than_so_many(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "ROWS_MAX", 5)
    for number in range(12):
        space.configure("log", max_entries=number + 1)
        assert len(rows(space)) == min(number + 1, 5)
    assert rows(space)[-1].audit_id == 12


def test_records_are_found_by_queue_and_by_the_name_of_one_that_is_gone(space: Space) -> None:
    space.configure("log")
    space.configure("other")
    space.call(SpaceShard.reconfigure, "log", {"name": "renamed"})
    queue_id = space.call(SpaceShard.stats, "renamed").id
    assert [one.audit_id for one in audit.of_queue(space.db, queue_id, 0, 10)] == [1, 3]
    assert [one.audit_id for one in audit.of_queue(space.db, queue_id, 1, 10)] == [3]
    assert [one.audit_id for one in audit.of_name(space.db, "log", 0, 10)] == [1]
