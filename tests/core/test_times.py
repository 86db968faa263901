"""Times as text: exact to the millisecond, in UTC, of any day there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core import times


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_text_and_milliseconds_stand_for_one_another(unix_ms: int) -> None:
    assert times.unix_ms(times.utc(unix_ms)) == unix_ms
    assert times.unix_ms(times.utc(unix_ms, "microseconds")) == unix_ms


def test_times_are_written_as_everybody_reads_them() -> None:
    assert times.utc(1_769_903_999_999) == "2026-01-31T23:59:59.999Z"
    assert times.utc(0, "microseconds") == "1970-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    "text", ["2025-02-30T00:00:00Z", "2026-01-01T25:00:00Z", "2026-01-01T00:00:00", "Z", ""]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        times.unix_ms(text)


@given(
    st.integers(-60_000_000_000_000, 250_000_000_000_000),
    st.integers(-1_439, 1_439),
    st.text("0123456789", max_size=12),
)
def test_a_moment_is_the_same_with_any_offset_and_any_number_of_digits(
    unix_ms: int, offset: int, digits: str
) -> None:
    """SI-S02."""
    unix_ms -= unix_ms % 1_000
    moment = datetime.fromisoformat(times.utc(unix_ms)).astimezone(timezone(timedelta(minutes=offset)))
    whole, zone = moment.isoformat()[:19], moment.isoformat()[19:]
    text = f"{whole}.{digits}{zone}" if digits else f"{whole}{zone}"
    expected = unix_ms + int(digits.ljust(3, "0")[:3])
    assert times.moment_ms(text) == expected
    assert times.moment_ms(moment) == unix_ms
    assert times.moment_ms(unix_ms) == unix_ms


def test_a_moment_before_1970_is_cut_off_to_the_earlier_millisecond() -> None:
    assert times.moment_ms("1969-12-31T23:59:59.9995Z") == -1
    assert times.moment_ms(datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)) == -1


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        ("2026-01-01T00:00:00", "offset"),
        ("2026-01-01", "offset"),
        (datetime(2026, 1, 1), "time zone"),
        ("soon", "ISO 8601"),
        ("2025-02-30T00:00:00Z", "ISO 8601"),
        (True, "unix milliseconds"),
        (1.5, "unix milliseconds"),
    ],
)
def test_what_may_be_any_of_several_moments_is_refused_with_what_to_give(moment: str, told: str) -> None:
    """SI-S03."""
    with pytest.raises(ValueError, match=told):
        times.moment_ms(moment)
