from __future__ import annotations

import time
from datetime import UTC, datetime

import click
import pytest

from edgequeues.cli import params
from edgequeues.cli.render import clean, size


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500),
        ("10s", 10_000),
        ("1.5h", 5_400_000),
        ("2m", 120_000),
        ("7d", 604_800_000),
        ("1w", 604_800_000),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, ms: int) -> None:
    assert params.duration(text) == ms


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "1 year", "1e3s", "٣s"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter):
        params.duration(text)


@pytest.mark.parametrize("text", ["9" * 20 + "ms", "9" * 400 + "w"])
def test_a_duration_beyond_all_reckoning_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="too long"):
        params.duration(text)
    with pytest.raises(click.BadParameter, match="too long"):
        params.time(text)


def test_a_time_is_unix_ms_iso_8601_or_so_long_ago() -> None:
    assert params.time("1700000000000") == 1_700_000_000_000
    assert params.time("2024-01-31T12:00:00+00:00") == round(
        datetime(2024, 1, 31, 12, tzinfo=UTC).timestamp() * 1000
    )
    assert abs(params.time("10m") - (time.time() - 600) * 1000) < 60_000


@pytest.mark.parametrize("text", ["", "now", "2024-13-01", "-5"])
def test_anything_else_is_no_time(text: str) -> None:
    with pytest.raises(click.BadParameter):
        params.time(text)


def test_sizes_have_the_unit_that_fits() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1_572_864)] == ["0 B", "1023 B", "1.0 KiB", "1.5 MiB"]


def test_clean_text_has_nothing_a_terminal_obeys() -> None:
    assert clean("a\x1b[2J\n\u202eü\ud800") == "a\\x1b[2J\\x0a\\x202eü\\xd800"
