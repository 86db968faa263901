"""A spec holds: its queues are made and changed by it, and no message is lost or stranded by a later one."""

from __future__ import annotations

import pytest

from edgequeues.core.errors import ConfigConflict, SpecConflict
from edgequeues.models import ConsumerConfig, NewEntry, QueueConfig
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .specs import TYPED, Shop, field
from .world import Space

SECOND = 1_000
HOUR = 3_600


def refusal(shop: Shop, **queues: object) -> str:
    """What is said against a spec. Nothing changes by it."""
    before = dump(shop.space)
    with pytest.raises(SpecConflict) as caught:
        shop.apply(**queues)  # type: ignore[arg-type]
    assert dump(shop.space) == before
    return caught.value.detail


def dump(space: Space) -> list[object]:
    """All rows about queues and consumers."""
    return [
        row
        for table in ("queues", "consumers", "queue_entries", "deliveries", "dead_letters")
        for row in space.db.execute(f"SELECT * FROM {table}").fetchall()
    ]


def test_queues_are_made_with_what_the_spec_says(space: Space) -> None:
    delivery = {
        "max_attempts": 3,
        "initial_backoff_ms": 10,
        "max_backoff_ms": 40,
        "lease_ms": 7_000,
        "batch": 20,
        "dead_letter_queue": "graves",
    }
    retention = {"max_age_seconds": 60, "max_depth": 5}
    jobs = {"ordering": "fifo", "delay_ms": 9, "retention": retention, "delivery": delivery}
    shop = Shop(space)
    assert shop.changes(jobs=jobs, graves={}) == {"jobs": "made", "graves": "made"}
    made = space.call(SpaceShard.stats, "jobs").config
    assert made == QueueConfig(
        name="jobs", kind="work", max_age_ms=60_000, mutable=False, on_ack="delete", delay_ms=9, depth_max=5
    )
    rules = space.call(SpaceShard.rules, "jobs")
    assert (rules.ordering, rules.lease_ms, rules.batch, rules.attempts_max) == ("fifo", 7_000, 20, 3)
    assert (rules.backoff.initial_ms, rules.backoff.max_ms, rules.dead_letters) == (10, 40, "graves")
    # Of a queue of dead letters nothing is said: its own are not given up again.
    assert space.call(SpaceShard.rules, "graves") == ConsumerConfig(
        batch=10, attempts_max=None, dead_letters=""
    )


def test_the_same_spec_again_changes_nothing(space: Space) -> None:
    shop = Shop(space, jobs=TYPED)
    assert shop.changes(jobs=TYPED) == {"jobs": "same"}
    assert shop.changes(jobs=TYPED | {"delay_ms": 5}) == {"jobs": "changed"}


def test_a_dry_run_says_what_would_be_and_changes_nothing(space: Space) -> None:
    shop = Shop(space, jobs=TYPED, old={})
    before = dump(space)
    would = shop.would(jobs=TYPED | {"retention": {"max_age_seconds": 9}}, new={})
    assert [(one.queue, one.change, one.fields) for one in would.queues] == [
        ("jobs", "changed", ["retention.max_age_seconds"]),
        ("new", "made", []),
        ("old", "removed", []),
    ]
    assert dump(space) == before


def test_messages_in_flight_are_finished_under_a_new_spec(space: Space) -> None:
    shop = Shop(space, jobs={"delivery": {"max_attempts": 2}})
    shop.push("jobs", '"a"', '"b"')
    jobs = Jobs(space)
    [held] = jobs.pull(1)
    shop.apply(jobs={"delivery": {"max_attempts": 7, "lease_ms": 90_000}, "retention": {"max_depth": 9}})
    assert jobs.ack(held) == ["done"]
    assert jobs.given() == ['"b"']
    assert jobs.info.config.attempts_max == 7


def test_a_queue_that_was_paused_stays_so(space: Space) -> None:
    shop = Shop(space, jobs={})
    space.call(SpaceShard.reconfigure, "jobs", {"paused": True})
    shop.apply(jobs={"delay_ms": 3})
    assert space.call(SpaceShard.stats, "jobs").config.paused


def test_a_queue_that_was_there_before_is_taken_over_with_its_messages(space: Space) -> None:
    Jobs(space).push('{"id":"1"}')
    shop = Shop(space)
    assert shop.changes(jobs=TYPED) == {"jobs": "changed"}
    assert Jobs(space).given() == ['{"id":"1"}']


def test_another_order_waits_until_there_is_nothing_to_be_ordered(space: Space) -> None:
    shop = Shop(space, jobs={})
    shop.push("jobs", "1", "2")
    said = refusal(shop, jobs={"ordering": "fifo"})
    assert said.startswith("queue jobs: unfinished messages in unordered order: 2;")
    jobs = Jobs(space)
    jobs.ack(*jobs.pull(2))
    shop.apply(jobs={"ordering": "fifo"})
    assert jobs.info.config.ordering == "fifo"
    shop.push("jobs", "3", "4")
    assert jobs.given() == ["3"]


def test_a_shorter_life_that_would_end_messages_is_refused(space: Space) -> None:
    shop = Shop(space, jobs={"retention": {}})
    shop.push("jobs", "1")
    space.clock.advance(100 * SECOND)
    said = refusal(shop, jobs={"retention": {"max_age_seconds": 100}})
    assert "messages up to 100 s old would expire at once" in said
    shop.apply(jobs={"retention": {"max_age_seconds": 101}})
    assert Jobs(space).given() == ["1"]


def test_a_type_that_waiting_messages_are_not_of_is_refused_with_the_first_of_them(space: Space) -> None:
    shop = Shop(space, jobs={})
    good, bad = shop.push("jobs", '{"id":"1"}', '{"id":2}').results
    said = refusal(shop, jobs=TYPED)
    assert said.startswith(
        f"queue jobs: unfinished messages that are not of the new message_type: 1, the first is {bad.id} ("
    )
    assert "message.id" in said
    space.call(SpaceShard.delete_ids, "jobs", [bad.id])
    shop.apply(jobs=TYPED)
    assert [one.entry.id for one in Jobs(space).pull(9)] == [good.id]


def test_a_type_that_takes_all_of_the_old_one_needs_no_look(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgequeues.space.spec_verbs.LOOKED_AT", 1)
    shop = Shop(space, jobs=TYPED)
    shop.push("jobs", '{"id":"1"}', '{"id":"2"}')
    wider = {
        "id": {"type": "json"},
        "n": {"type": "float", "optional": True},
        "more": {"default": 3, "type": "int"},
    }
    shop.apply(jobs={"message_type": wider})
    narrower = {"message_type": {"id": {"type": "string"}, "n": {"type": "int"}}}
    assert "unfinished messages of another message_type: 2, too many to look at" in refusal(
        shop, jobs=narrower
    )


def test_a_queue_is_left_out_only_when_it_is_empty(space: Space) -> None:
    shop = Shop(space, jobs={}, other={})
    shop.push("jobs", "1")
    said = refusal(shop, other={})
    assert said == "queue jobs: messages in it: 1; finish, replay or purge them before you leave it out"
    jobs = Jobs(space)
    jobs.ack(jobs.one())
    assert shop.changes(other={}) == {"other": "same", "jobs": "removed"}
    assert shop.names() == {"other"}


def test_a_queue_whose_dead_letters_could_not_go_back_is_not_left_out(space: Space) -> None:
    named = {"delivery": {"dead_letter_queue": "graves"}}
    shop = Shop(space, jobs=named, graves={})
    shop.push("jobs", "1")
    jobs = Jobs(space)
    jobs.fail(jobs.one(), permanent=True)
    said = refusal(shop, graves={})
    assert said.startswith(
        "queue jobs: dead letters that come from it and could not be replayed any more: 1;"
    )


def test_all_that_speaks_against_a_spec_is_said_at_once(space: Space) -> None:
    shop = Shop(space, jobs={}, other={})
    shop.push("jobs", "1")
    shop.push("other", "1")
    space.put("plain", "1")
    said = refusal(shop, jobs={"ordering": "fifo"}, plain={})
    assert [part.split(":")[0] for part in said.split("; ") if part.startswith("queue")] == [
        "queue jobs",
        "queue plain",
        "queue other",
    ]


def test_two_apps_share_a_space_but_no_queue(space: Space) -> None:
    shop = Shop(space, jobs={})
    shop.apply_other(more={})
    with pytest.raises(SpecConflict, match="queue jobs: app shop declares it"):
        shop.apply_other(more={}, jobs={})
    assert shop.changes(jobs={}) == {"jobs": "same"}
    with pytest.raises(SpecConflict, match="counts as the same as that of jobs"):
        shop.apply_other(Jobs={})


def test_a_queue_of_a_spec_is_neither_renamed_nor_removed_by_others(space: Space) -> None:
    Shop(space, jobs={})
    with pytest.raises(ConfigConflict, match="app shop"):
        space.call(SpaceShard.reconfigure, "jobs", {"name": "tasks"})
    with pytest.raises(ConfigConflict, match="app shop"):
        space.call(SpaceShard.remove, "jobs")


def test_where_dead_letters_go_may_be_turned_round(space: Space) -> None:
    """At no moment do they come round, whichever queue is changed first."""
    shop = Shop(space, a={"delivery": {"dead_letter_queue": "b"}}, b={})
    shop.apply(a={}, b={"delivery": {"dead_letter_queue": "a"}})
    assert space.call(SpaceShard.rules, "b").dead_letters == "a"


def test_a_declared_queue_of_the_implicit_name_takes_the_dead_letters(space: Space) -> None:
    shop = Shop(space, **{"jobs": {}, "jobs-dlq": {"retention": {"max_age_seconds": 9}}})
    shop.push("jobs", "1")
    jobs = Jobs(space)
    jobs.fail(jobs.one(), permanent=True)
    assert jobs.dlq.data == ["1"]
    assert shop.names() == {"jobs", "jobs-dlq"}


def test_computed_keys_priorities_and_times_are_those_of_the_message(space: Space) -> None:
    rules = {
        "ordering": "per_key",
        "ordering_key": field("who"),
        "priority": field("rank"),
        "schedule": field("when"),
        "idempotency_key": field("id"),
    }
    shop = Shop(space, jobs=rules)
    now_s = space.clock.now_ms() // 1_000
    shop.push("jobs", f'{{"who":"ann","rank":"high","when":{now_s + HOUR},"id":7}}', '{"who":3}')
    late, early = space.all("jobs")
    assert (late.key, late.priority, late.due) == ("ann", 7, (now_s + HOUR) * 1_000)
    assert (early.key, early.priority, early.due) == ("3", 4, None)
    assert shop.outcomes("jobs", f'{{"who":"ann","rank":"high","when":{now_s + HOUR},"id":7}}') == ["same"]
    [given] = space.call(
        SpaceShard.push, "jobs", [NewEntry('{"who":"ann","rank":1}', key="bob", priority=9)]
    ).results
    entry = space.call(SpaceShard.get, "jobs", given.id)
    assert (entry.key, entry.priority) == ("bob", 9)
