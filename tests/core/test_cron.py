"""When a cron expression comes round, also where clocks are set; and what is told of one that will not do."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given
from hypothesis import strategies as st

from edgequeues.core import cron
from edgequeues.core.cron import CronFault

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Kolkata",
)
YEARS = st.integers(0, 2_200_000_000_000)  # unix ms, up to 2039


def ms(text: str) -> int:
    """Unix ms of a time in UTC or with an offset."""
    moment = datetime.fromisoformat(text)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


def coming(text: str, zone: str, after: str, count: int) -> list[str]:
    """The next times, as the clocks in that zone show them, with their offsets."""
    found, at = [], ms(after)
    for _ in range(count):
        next_ms = cron.next_after(text, zone, at)
        assert next_ms is not None
        at = next_ms
        moment = datetime.fromtimestamp(at / 1_000, ZoneInfo(zone))
        found.append(moment.isoformat(timespec="minutes"))
    return found


def fault(text: str) -> CronFault:
    with pytest.raises(CronFault) as caught:
        cron.check(text)
    return caught.value


# -- clocks are set ------------------------------------------------------------------------------------------


def test_in_berlin_a_fixed_time_that_is_left_out_in_spring_comes_at_the_end_of_the_gap() -> None:
    assert coming("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00", 3) == [
        "2026-03-28T02:30+01:00",
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]


def test_in_berlin_a_fixed_time_that_there_is_twice_in_autumn_comes_once() -> None:
    assert coming("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00", 3) == [
        "2026-10-24T02:30+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]


def test_in_new_york_fixed_times_come_once_each_in_spring_and_in_autumn() -> None:
    assert coming("0,30 2 * * *", "America/New_York", "2026-03-08T00:00", 3) == [
        "2026-03-08T03:00-04:00",  # both of them, and it is one time
        "2026-03-09T02:00-04:00",
        "2026-03-09T02:30-04:00",
    ]
    assert coming("30 1 * * *", "America/New_York", "2026-11-01T00:00", 2) == [
        "2026-11-01T01:30-04:00",
        "2026-11-02T01:30-05:00",
    ]


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-28T23:00", 23),
        ("Europe/Berlin", "2026-10-24T22:00", 25),
        ("America/New_York", "2026-03-08T05:00", 23),
        ("America/New_York", "2026-11-01T04:00", 25),
    ],
)
def test_every_hour_comes_as_often_as_the_day_has_hours(zone: str, day: str, hours: int) -> None:
    times = coming("0 * * * *", zone, day, 30)
    assert sum(one[:10] == times[0][:10] for one in times) + 1 == hours  # midnight itself is not after itself


def test_every_quarter_of_an_hour_that_is_left_out_is_left_out() -> None:
    times = coming("*/15 2 * * *", "Europe/Berlin", "2026-03-28T12:00", 1)
    assert times == ["2026-03-30T02:00+02:00"]


def test_every_quarter_of_an_hour_that_there_is_twice_comes_twice() -> None:
    times = coming("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", 5)
    assert times == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T02:30+01:00",
        "2026-10-26T02:00+01:00",
    ]


def test_a_server_that_starts_in_the_second_of_two_hours_makes_up_for_none_of_the_first() -> None:
    assert coming("30 2 * * *", "Europe/Berlin", "2026-10-25T02:10+01:00", 1) == ["2026-10-26T02:30+01:00"]


# -- what always holds ---------------------------------------------------------------------------------------


def part(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    return st.one_of(
        st.just("*"),
        numbers.map(str),
        st.lists(numbers.map(str), min_size=1, max_size=3).map(",".join),
        st.integers(1, high).map(lambda step: f"*/{step}"),
        st.tuples(numbers, numbers).map(lambda two: f"{min(two)}-{max(two)}"),
    )


EXPRESSIONS = st.builds(
    "{} {} {} {} {}".format, part(0, 59), part(0, 23), part(1, 28), part(1, 12), part(0, 7)
)


@given(EXPRESSIONS, st.sampled_from(ZONES), YEARS)
@example("30 2 * * *", "Europe/Berlin", 1_792_891_800_000)
def test_the_next_time_is_later_a_whole_minute_and_the_same_from_anywhere_before_it(
    text: str, zone: str, at: int
) -> None:
    found = cron.next_after(text, zone, at)
    assert found is not None
    assert found > at
    assert found % cron.MINUTE_MS == 0
    assert cron.next_after(text, zone, at + (found - at) // 2) == found
    assert cron.next_after(text, zone, found - 1) == found


@given(EXPRESSIONS, st.sampled_from(ZONES), YEARS)
def test_one_after_the_other_they_are_what_the_library_counts_up_each_time_once(
    text: str, zone: str, at: int
) -> None:
    start = datetime.fromtimestamp(at // 1_000, ZoneInfo(zone))
    counted: list[int] = []
    for moment in islice(CronSim(text, start), 12):
        moment_ms = round(moment.timestamp()) * 1_000
        if moment_ms > max([at, *counted]):
            counted.append(moment_ms)
    found, last = [], at
    for _ in counted:
        next_ms = cron.next_after(text, zone, last)
        assert next_ms is not None
        found.append(last := next_ms)
    assert found == counted


@given(EXPRESSIONS, st.sampled_from(ZONES), YEARS, st.integers(0, 300))
def test_the_latest_of_those_that_passed_is_the_last_that_is_counted_up(
    text: str, zone: str, at: int, hours: int
) -> None:
    first = cron.next_after(text, zone, at)
    assert first is not None
    end = first + hours * 3_600_000 // 10
    counted = [first]
    while (found := cron.next_after(text, zone, counted[-1])) is not None and found <= end:
        counted.append(found)
    assert cron.latest(text, zone, first, end) == counted[-1]


def test_a_year_of_minutes_is_passed_over_without_counting_them() -> None:
    first, end = ms("2026-01-01T00:00"), ms("2027-01-01T00:00:59")
    assert cron.latest("* * * * *", "Europe/Berlin", first, end) == ms("2027-01-01T00:00")


def test_a_leap_day_comes_every_four_years() -> None:
    times = coming("0 12 29 2 *", "UTC", "2026-01-01T00:00", 2)
    assert [one[:10] for one in times] == ["2028-02-29", "2032-02-29"]


# -- what will not do ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 31 2,9,11 */2"])
def test_a_day_that_no_year_has_never_comes(text: str) -> None:
    assert fault(text).what == f"`{text}` never comes: no year has such a day"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("61 * * * *", "`61` is no minute of a cron expression"),
        ("0 24 * * *", "`24` is no hour of a cron expression"),
        ("0 0 0 * *", "`0` is no day of month of a cron expression"),
        ("0 0 * JANUARY *", "`JANUARY` is no month of a cron expression"),
        ("0 0 * * 8", "`8` is no day of week of a cron expression"),
        ("*/0 * * * *", "`*/0` is no minute of a cron expression"),
        ("0 0 9-5 * *", "`9-5` is no day of month of a cron expression"),
        ("@daily", "a cron expression has five fields, and `@daily` has 1"),
        ("0 0 3 * * *", "a cron expression has five fields, and `0 0 3 * * *` has 6"),
        ("", "a cron expression has five fields, and `` has 0"),
    ],
)
def test_it_is_told_which_field_will_not_do(text: str, what: str) -> None:
    found = fault(text)
    assert found.what == what
    assert found.remedy


@given(st.text("0123456789*/,-#LWMONJANSU ²\u0660", max_size=24))
def test_whatever_is_written_is_an_expression_that_comes_or_a_fault(text: str) -> None:
    try:
        cron.check(text)
    except CronFault:
        return
    assert cron.next_after(text, "Europe/Berlin", 0) is not None


def test_a_zone_that_this_machine_does_not_know_is_a_fault_that_names_it() -> None:
    for name in ("Europe/Atlantis", "../etc/passwd", "/etc/localtime", "Europe"):
        with pytest.raises(CronFault, match="knows no time zone"):
            cron.next_after("* * * * *", name, 0)
        assert name not in cron.zones()
    assert {"UTC", "Europe/Berlin"} <= cron.zones()


def test_after_the_last_year_there_is_nothing() -> None:
    assert cron.next_after("0 0 1 1 *", "Europe/Berlin", ms("9999-06-01T00:00")) is None
