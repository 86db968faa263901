"""Faults others reported of mappings: what cannot be mapped is a dead letter that says which field, and why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .hooking import Hooked, hooked, written

SPEC = """
  queue Incidents {
    message_type { title: string  severity: string }
    on_invalid: dead_letter  delivery { dead_letter_queue: Graves }
  }
  queue Graves { retention { max_age_seconds: 60 } }
  webhook alert {
    queue: Incidents  verify: none
    message {
      title: payload.incident.title
      severity: payload.incident.urgency == "high" ? "critical" : "high"
    }
  }
"""
TITLE = "message.title: null where a text is wanted; payload.incident.title is "


@pytest.fixture
async def hooks(tmp_path: Path) -> AsyncIterator[Hooked]:
    async with hooked(tmp_path, SPEC) as found:
        yield found


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({"event": "annotated"}, TITLE + "missing after payload"),
        ({"incident": None}, TITLE + "missing after payload.incident, which is null"),
        ({"incident": {"urgency": "high"}}, TITLE + "missing after payload.incident"),
        ({"incident": {"title": None}}, TITLE + "null"),
        (
            {"incident": {"title": 7}},
            TITLE.replace("null", "an integer") + "an integer",
        ),
        ([], TITLE + "missing after payload, which is a list"),
        ("text", TITLE + "missing after payload, which is a text"),
    ],
)
async def test_ds_s02_what_cannot_be_mapped_says_which_field_from_where_and_what_was_there(
    hooks: Hooked, payload: object, error: str
) -> None:
    """At once: another try would come to the same."""
    reply = await hooks.send(written(payload))
    assert (reply.status, reply.json()["state"], reply.json()["error"]) == (202, "dead", error)
    [letter] = await hooks.letters()
    assert (letter["lastError"], letter["reason"], letter["attempts"]) == (error, "malformed", 0)
    assert letter["originalMessage"] == payload
    assert (await hooks.counts())["dead"] == 1


@pytest.mark.parametrize(
    ("incident", "severity"),
    [
        ({"urgency": "high"}, "critical"),
        ({"urgency": "low"}, "high"),
        ({}, "high"),
        ({"urgency": None}, "high"),
    ],
)
async def test_ds_s02_a_comparison_with_what_is_missing_is_false(
    hooks: Hooked, incident: dict[str, object], severity: str
) -> None:
    reply = await hooks.send(written({"incident": {"title": "t"} | incident}))
    assert reply.status == 202
    assert await hooks.messages("Incidents") == [{"title": "t", "severity": severity}]
