"""Schedules: each time has its message once, whatever stops, is full, is set back or is changed meanwhile."""

from __future__ import annotations

import json

import pytest

from edgequeues.space import schedule_verbs, schedules
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.scheduling import ALL_MS

from .jobs import Dead
from .planned import NOW, Planned, ms
from .world import Space, SpaceFile


@pytest.fixture
def planned(space: Space) -> Planned:
    return Planned(space)


# -- when it is due ------------------------------------------------------------------------------------------


def test_a_message_is_made_when_its_time_comes_and_not_before(planned: Planned) -> None:
    planned.apply(tick={"cron": "*/5 * * * *"})
    planned.ring_at("2026-01-05T09:04:59.999")
    assert planned.times == []
    planned.ring_at("2026-01-05T09:05:00")
    assert planned.times == ["05 09:05"]
    assert (planned.info().next, planned.info().last) == (ms("2026-01-05T09:10"), ms("2026-01-05T09:05"))


def test_the_alarm_is_set_to_when_the_next_one_is_due(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 12 * * *"}, later={"cron": "0 13 * * *"})
    planned.jobs.ring()
    assert planned.space.shard.get_alarm() == ms("2026-01-05T12:00")
    planned.ring_through("2026-01-06T12:30")
    assert planned.times == ["05 12:00", "05 13:00", "06 12:00"]


@pytest.mark.parametrize(
    ("zone", "start", "until", "times"),
    [
        ("Europe/Berlin", "2026-03-28T00:00", "2026-03-30T23:00", ["28 01:30", "29 01:00", "30 00:30"]),
        ("Europe/Berlin", "2026-10-24T00:00", "2026-10-26T23:00", ["24 00:30", "25 00:30", "26 01:30"]),
        ("America/New_York", "2026-03-07T03:00", "2026-03-09T23:00", ["07 07:30", "08 07:00", "09 06:30"]),
        ("America/New_York", "2026-10-31T03:00", "2026-11-02T23:00", ["31 06:30", "01 07:30", "02 07:30"]),
    ],
)
def test_where_clocks_are_set_each_day_has_its_message_once(
    planned: Planned, zone: str, start: str, until: str, times: list[str]
) -> None:
    planned.to(start)
    planned.apply(tick={"cron": "30 2 * * *", "timezone": zone})
    planned.ring_through(until)
    assert planned.times == times


def test_where_clocks_are_set_hours_go_by_real_time(planned: Planned) -> None:
    planned.to("2026-10-24T22:30")
    planned.apply(tick={"cron": "0 * * * *", "timezone": "Europe/Berlin"})
    planned.ring_through("2026-10-25T23:15")
    assert len(planned.times) == len(set(planned.times)) == 25


def test_a_turn_makes_a_bounded_number_of_messages_and_the_next_one_goes_on(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_verbs, "RUNS_MAX", 3)
    planned.apply(**{f"tick{number}": {"cron": "0 10 * * *"} for number in range(8)})
    planned.to("2026-01-05T10:00")
    made = []
    while planned.space.alarm_due():
        planned.space.run_alarm()
        made.append(len(planned.times))
    assert made[-1] == 8
    assert max(after - before for before, after in zip([0, *made], made, strict=False)) == 3


def test_a_turn_makes_a_bounded_part_of_all_that_one_schedule_missed(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_verbs, "RUNS_MAX", 3)
    planned.apply(tick={"cron": "* * * * *", "missed": "all"})
    planned.to("2026-01-05T09:08")
    made = []
    while planned.space.alarm_due():
        planned.space.run_alarm()
        made.append(len(planned.times))
    assert made[-1] == 8
    assert max(after - before for before, after in zip([0, *made], made, strict=False)) == 3


# -- what was missed -----------------------------------------------------------------------------------------


def test_what_fell_due_while_the_server_was_down_is_made_once_for_the_latest_time(
    space_file: SpaceFile,
) -> None:
    planned = Planned(space_file)
    planned.apply(tick={"cron": "0 * * * *"})
    planned.jobs.ring()
    space_file.close()
    planned.to("2026-01-07T15:20")
    space_file.open()
    planned.jobs.ring()
    assert planned.times == ["07 15:00"]
    assert planned.info().next == ms("2026-01-07T16:00")


def test_a_schedule_that_skips_makes_up_for_nothing_but_does_not_mind_being_a_little_late(
    planned: Planned,
) -> None:
    planned.apply(tick={"cron": "0 * * * *", "missed": "skip"})
    planned.ring_at("2026-01-05T10:00:45")
    assert planned.times == ["05 10:00"]
    planned.ring_at("2026-01-05T13:01:01")
    assert planned.times == ["05 10:00"]
    planned.ring_at("2026-01-05T14:00:00")
    assert planned.times == ["05 10:00", "05 14:00"]


def test_a_schedule_that_wants_all_has_each_time_that_was_missed(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *", "missed": "all"})
    planned.ring_at("2026-01-05T12:30")
    assert planned.times == ["05 10:00", "05 11:00", "05 12:00"]


def test_all_that_was_missed_goes_back_a_week_and_else_to_the_latest(planned: Planned) -> None:
    planned.apply(
        tick={"cron": "0 0 * * *", "missed": "all"},
        yearly={"cron": "0 0 6 1 *", "missed": "all", "message": {}},
    )
    planned.ring_at("2026-02-10T12:00")
    days = [json.loads(one).get("at") for one in planned.space.data("jobs")]
    assert days.count(None) == 1  # of the yearly one, though it is five weeks ago
    since = ms("2026-02-10T12:00") - ALL_MS
    assert [one for one in days if one] == [
        at // 1_000 for at in range(ms("2026-02-04T00:00"), ms("2026-02-11T00:00"), 86_400_000)
    ]
    assert min(one for one in days if one) * 1_000 > since


def test_a_paused_queue_is_not_filled_and_has_one_message_when_it_goes_on(planned: Planned) -> None:
    planned.apply(tick={"cron": "*/5 * * * *"})
    planned.space.call(SpaceShard.reconfigure, "jobs", {"paused": True})
    planned.ring_through("2026-01-05T11:00:30")
    assert planned.times == []
    assert planned.info().last_error == "waiting: queue jobs is paused"
    planned.space.call(SpaceShard.reconfigure, "jobs", {"paused": False})
    planned.ring_through("2026-01-05T11:00:45")
    assert planned.times == ["05 11:00"]
    assert planned.info().last_error is None


def test_a_full_queue_loses_nothing_and_nothing_piles_up(planned: Planned) -> None:
    planned.apply("shop", {"retention": {"max_depth": 2}}, tick={"cron": "* * * * *"})
    planned.ring_through("2026-01-05T09:30:30")
    assert planned.times == ["05 09:01", "05 09:02"]
    assert planned.info().last_error == "waiting: queue jobs holds 2 of at most 2 messages"
    planned.jobs.ack(planned.jobs.pull(1)[0])
    planned.ring_through("2026-01-05T09:30:45")
    assert planned.times == ["05 09:02", "05 09:30"]


# -- what goes wrong -----------------------------------------------------------------------------------------


def test_a_message_that_cannot_be_made_is_told_and_the_next_time_is_tried(planned: Planned) -> None:
    wrong = {"div": [{"lit": {"int": 1}}, {"sub": [NOW, {"lit": {"int": ms("2026-01-05T10:00") // 1_000}}]}]}
    planned.apply(tick={"cron": "0 * * * *", "message": {"at": NOW, "n": wrong}}, other={"cron": "0 * * * *"})
    planned.ring_through("2026-01-05T10:30")
    assert planned.times == ["05 10:00"]  # of the other
    assert "n: " in (planned.info().last_error or "")
    assert (planned.info().made, planned.info().next) == (0, ms("2026-01-05T11:00"))
    planned.ring_through("2026-01-05T11:30")
    assert (planned.info().made, planned.info().last_error) == (1, None)


def test_a_message_that_the_queue_does_not_take_is_told(planned: Planned) -> None:
    planned.apply("shop", {"message_type": {"at": {"type": "string"}}}, tick={"cron": "0 * * * *"})
    planned.ring_through("2026-01-05T10:30")
    assert planned.times == []
    assert (planned.info().last_error or "").startswith("message.at: ")
    assert planned.info().next == ms("2026-01-05T11:00")


def test_where_the_queue_buries_what_it_does_not_take_it_is_a_dead_letter_and_told(planned: Planned) -> None:
    typed = {"message_type": {"at": {"type": "string"}}, "on_invalid": "dead_letter"}
    planned.apply("shop", typed, tick={"cron": "0 * * * *"})
    planned.ring_through("2026-01-05T10:30")
    assert len(Dead(planned.space, "jobs-dlq").letters()) == 1
    assert (planned.info().last_error or "").startswith("a dead letter: message.at: ")


def test_a_time_zone_that_this_machine_does_not_know_is_told_and_looked_for_again(planned: Planned) -> None:
    planned.apply(tick={"cron": "0 * * * *"}, other={"cron": "0 * * * *"})
    db = planned.space.db
    row = schedules.get(db, "tick")
    assert row is not None
    schedules.put(db, row._replace(spec=row.spec.replace('"jobs"', '"jobs","timezone":"Mars/Base"')))
    planned.ring_through("2026-01-05T10:30")
    assert planned.times == ["05 10:00"]  # of the other
    assert (planned.info().last_error or "").startswith("this machine knows no time zone `Mars/Base`")
    schedules.put(db, row._replace(look_ts=ms("2026-01-05T11:00")))
    planned.ring_through("2026-01-05T11:30")
    assert planned.info().last == ms("2026-01-05T11:00")


def test_a_clock_that_is_set_back_has_no_time_come_twice(planned: Planned) -> None:
    planned.apply(tick={"cron": "*/5 * * * *"})
    planned.ring_through("2026-01-05T09:21")
    before = planned.times
    planned.to("2026-01-05T09:02")
    planned.ring_through("2026-01-05T09:50")
    assert len(planned.times) == len(set(planned.times))
    assert planned.times[: len(before)] == before
    assert planned.times[-1] > "05 09:20"


def test_what_the_spec_of_a_queue_filters_is_not_made(planned: Planned) -> None:
    planned.apply("shop", {"filter": {"lit": {"bool": False}}}, tick={"cron": "0 * * * *"})
    planned.ring_through("2026-01-05T10:30")
    assert (planned.times, planned.info().made, planned.info().last_error) == ([], 0, None)
