"""Nobody's address or number is read from a log line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.events import redaction


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("anna@example.com", "a***@example.com"),
        ("to <anna+tag@example.com>, b@x.org!", "to <a***@example.com>, b***@x.org!"),
        ('"anna roe"@example.com', "***@example.com"),
        ("änne@example.com", "ä***@example.com"),
        ("+155512341234", "+1*******1234"),
        ("tel:+15557654321;x", "tel:+1******4321;x"),
        ("From=%2B15557654321", "From=%2B1******4321"),
        ("+1 (555) 765-4321", "+1******4321"),
        ("2026-01-01T00:00:00Z 1 + 2 = 3, 10:30", "2026-01-01T00:00:00Z 1 + 2 = 3, 10:30"),
        ("0b9e0000-0000-4000-8000-555512345678", "0b9e0000-0000-4000-8000-555512345678"),
        ("an @ alone", "an @ alone"),
    ],
)
def test_addresses_and_numbers_are_made_unreadable_where_they_stand(said: str, shown: str) -> None:
    assert redaction.text(said) == shown


def test_the_same_holds_at_any_depth_and_for_names() -> None:
    said: dict[str, Any] = {
        "to": ["anna@example.com", {"anna@example.com": ("+15557654321", 1, None, True, 0.5)}],
        "error": ValueError("no anna@example.com"),
    }
    assert redaction.fields(said) == {
        "to": ["a***@example.com", {"a***@example.com": ["+1******4321", 1, None, True, 0.5]}],
        "error": "no a***@example.com",
    }


def test_what_is_nested_without_end_is_cut() -> None:
    said: list[Any] = []
    said.append(said)
    assert "..." in str(redaction.value(said))


@given(st.text(), st.emails(), st.from_regex(r"\+[1-9][0-9]{7,14}", fullmatch=True), st.text())
def test_nothing_survives_in_any_text(before: str, address: str, number: str, after: str) -> None:
    shown = redaction.text(f"{before} {address} {number} {after}")
    assert f" {address}" not in shown or len(address.split("@", maxsplit=1)[0]) < 2
    assert number not in shown


@pytest.mark.parametrize(
    "said", ["a" * 300_000, "a.@" * 100_000, "+1" * 150_000, '"' * 300_000, "+" + "1 " * 150_000]
)
def test_long_texts_take_no_time(said: str) -> None:
    """With a step for each pair of characters, this would not end today."""
    assert redaction.text(said + " anna@example.com").endswith(" a***@example.com")
