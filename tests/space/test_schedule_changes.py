"""Schedules as specs change them, as people ask for them, and as a check finds them."""

from __future__ import annotations

import json

import pytest

from edgequeues.core.errors import QueueFull, ScheduleNotFound, SpecConflict
from edgequeues.models import NewEntry
from edgequeues.space import audit, check
from edgequeues.space.shard import SpaceShard
from edgequeues.spec import ir

from .planned import NOW, Planned, ms
from .specs import field
from .world import Space


@pytest.fixture
def planned(space: Space) -> Planned:
    return Planned(space)


# -- specs ---------------------------------------------------------------------------------------------------


def test_a_spec_tells_what_it_does_to_schedules(planned: Planned) -> None:
    first = planned.apply(tick={"cron": "0 * * * *"}, gone={"cron": "0 * * * *"}, stays={"cron": "0 0 * * *"})
    assert {one.schedule: one.change for one in first.schedules} == {
        "tick": "made",
        "gone": "made",
        "stays": "made",
    }
    then = planned.apply(tick={"cron": "30 * * * *"}, stays={"cron": "0 0 * * *"})
    assert [(one.schedule, one.change, one.next) for one in then.schedules] == [
        ("tick", "changed", ms("2026-01-05T09:30")),
        ("stays", "same", ms("2026-01-06T00:00")),
        ("gone", "removed", None),
    ]


def test_a_spec_that_leaves_a_schedule_out_ends_it(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *"})
    planned.apply()
    planned.ring_through("2026-01-05T12:30")
    assert planned.times == []
    assert planned.space.call(SpaceShard.schedules, "", 10).schedules == []


def test_other_times_count_from_now_and_what_was_due_by_the_old_ones_is_not_made(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *"})
    planned.to("2026-01-05T10:00:10")  # due, and not looked at yet
    planned.apply(tick={"cron": "30 * * * *"})
    planned.ring_through("2026-01-05T10:45")
    assert planned.times == ["05 10:30"]


def test_another_message_for_the_same_times_is_made_for_what_is_due(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *"})
    planned.to("2026-01-05T10:00:10")
    planned.apply(tick={"cron": "0 * * * *", "message": {"at": NOW, "new": {"lit": {"bool": True}}}})
    planned.jobs.ring()
    assert planned.space.data("jobs") == [f'{{"at":{ms("2026-01-05T10:00") // 1_000},"new":true}}']


def test_the_same_spec_again_leaves_what_is_due_as_it_is(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *"})
    planned.to("2026-01-05T10:00:10")
    planned.apply(tick={"cron": "0 * * * *"})
    planned.jobs.ring()
    assert planned.times == ["05 10:00"]


def test_a_spec_that_is_only_tried_changes_no_schedule(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *"})
    before = planned.info()
    planned.space.call(SpaceShard.apply, ir.Spec(0, "shop", {"jobs": ir.QueueSpec()}), dry_run=True)
    assert planned.info() == before


def test_a_schedule_of_another_app_is_not_taken_from_it(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *"})
    other = ir.Spec(
        0, "other", {"mine": ir.QueueSpec()}, {}, {}, {"tick": ir.ScheduleSpec("0 1 * * *", "mine")}
    )
    with pytest.raises(SpecConflict, match="schedule tick: app shop declares it"):
        planned.space.call(SpaceShard.apply, other)
    assert planned.info().cron == "0 * * * *"


def test_messages_that_are_worked_here_are_worked_when_they_are_made(planned: Planned) -> None:
    mapped = {
        "to": "command",
        "entity_type": "Report",
        "command": "CreateReport",
        "input_map": {"at": field("at")},
    }
    planned.apply("shop", {"map_to": mapped}, tick={"cron": "0 * * * *"})
    planned.ring_at("2026-01-05T10:00:00")
    assert planned.times == []
    assert planned.space.db.execute("SELECT count(*) FROM entities").get == 1


# -- asked for -----------------------------------------------------------------------------------------------


def test_a_schedule_can_be_run_now_and_its_next_time_stays(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *"})
    made = planned.space.call(SpaceShard.run_schedule, "tick")
    assert made.outcome == "new"
    assert planned.times == ["05 09:00"]  # to the second, which the list does not show
    assert (planned.info().made, planned.info().next) == (1, ms("2026-01-05T10:00"))


def test_what_is_changed_and_run_of_schedules_is_on_record(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *"})
    planned.apply(tick={"cron": "0 * * * *"})
    made = planned.space.call(SpaceShard.run_schedule, "tick")
    found = [(one.action, json.loads(one.detail)) for one in audit.page(planned.space.db, 0, 10)]
    assert [action for action, _ in found] == ["apply_spec", "run_schedule"]
    assert [(one["schedule"], one["change"]) for one in found[0][1]["schedules"]] == [("tick", "made")]
    assert found[1][1] == {"schedule": "tick", "message": made.id}


def test_running_what_is_not_there_or_has_no_room_is_refused(planned: Planned) -> None:
    planned.apply("shop", {"retention": {"max_depth": 1}}, tick={"cron": "0 * * * *"})
    with pytest.raises(ScheduleNotFound):
        planned.space.call(SpaceShard.run_schedule, "tock")
    planned.space.call(SpaceShard.push, "jobs", [NewEntry("1")])
    with pytest.raises(QueueFull):
        planned.space.call(SpaceShard.run_schedule, "tick")
    assert planned.info().made == 0


def test_schedules_are_listed_page_by_page(planned: Planned) -> None:
    planned.apply(**{name: {"cron": "0 * * * *"} for name in ("c", "a", "b")})
    first = planned.space.call(SpaceShard.schedules, "", 2)
    assert ([one.name for one in first.schedules], first.resume) == (["a", "b"], "b")
    rest = planned.space.call(SpaceShard.schedules, "b", 2)
    assert ([one.name for one in rest.schedules], rest.resume) == (["c"], None)


# -- check ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (
            "UPDATE queues SET app = 'other'",
            "schedule tick is for queue jobs, which app shop does not declare",
        ),
        ("UPDATE shard_alarm SET due_ms = NULL", "schedule tick is due at"),
    ],
)
def test_a_check_finds_a_schedule_that_cannot_come(planned: Planned, damage: str, named: str) -> None:
    planned.apply(tick={"cron": "0 * * * *"})
    planned.ring_through("2026-01-05T12:00")
    assert check.problems(planned.space.db) == []
    planned.space.db.execute(damage)
    assert any(named in problem for problem in check.problems(planned.space.db))
