"""Times as text: exact to the millisecond, in UTC, of any day there is."""

from __future__ import annotations

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
