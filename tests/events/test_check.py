"""What an event is: the structs, the rules they cannot say, and the JSON Schema that others check with."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.events import schema
from edgequeues.events.check import MalformedEvent, read
from tests.events import samples

Change = Callable[[dict[str, Any]], object]
WRITTEN = Path(__file__).parents[2] / "docs/protocol/switchboard-event.schema.json"

_FORMATS = jsonschema.FormatChecker(formats=())


def _date_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value) is not None


_FORMATS.checks("date-time", raises=ValueError)(_date_time)

VALIDATOR = jsonschema.Draft202012Validator(schema.schema(), format_checker=_FORMATS)


def fault(body: bytes) -> str:
    """Why a body is no event."""
    with pytest.raises(MalformedEvent) as caught:
        read(body)
    assert caught.value.code == "MALFORMED_EVENT"
    return str(caught.value)


def test_events_of_both_sources_are_read() -> None:
    mail, message = read(samples.body(samples.email())), read(samples.body(samples.sms()))
    assert mail.content.attachments[0].r2.key == samples.KEY
    assert mail.participants.from_email == "jane@example.org"
    assert message.correlation.twilio_message_sid == "SM0123456789abcdefghij0123456789XY"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda e: e.pop("id"), "$: lacks member id"),
        (lambda e: e.update(id="short"), "$.id: "),
        (lambda e: e.update(id=12345678), "$.id: "),
        (lambda e: e.update(priority="urgent"), "$.priority: "),
        (lambda e: e.update(priority=None), "$.priority: "),
        (lambda e: e.update(payload={}), "$: member payload is not known"),
        (lambda e: e["content"].update(html="x"), "$.content: member html is not known"),
        (lambda e: e["content"].update(subject="x" * 999), "$.content.subject: "),
        (lambda e: e["content"].update(text="x" * 65_537), "$.content.text: "),
        (lambda e: e["content"].update(text=None), "$.content.text: null"),
        (lambda e: e["participants"].pop("toEmail"), "$.participants: lacks member toEmail"),
        (lambda e: e["correlation"].pop("threadKey"), "$.correlation: lacks member threadKey"),
        (lambda e: e["content"]["attachments"][0]["r2"].pop("expiresAt"), "$.content.attachments[0].r2: "),
        (
            lambda e: e["content"]["attachments"][0]["r2"].pop("presignedGetUrl"),
            "$.content.attachments[0].r2: ",
        ),
        (
            lambda e: e["content"]["attachments"][0]["r2"].update(expiresAt="2026-02-30T00:00:00Z"),
            "$.content.attachments[0].r2.expiresAt: ",
        ),
        (lambda e: e["content"]["htmlR2"].update(key="mail/x/body.html"), "$.content.htmlR2.key: "),
        (lambda e: e["content"]["htmlR2"].update(key=samples.KEY + "\n"), "$.content.htmlR2.key: "),
        (lambda e: e["content"]["htmlR2"].update(key="email/2026/01/01/../x"), "$.content.htmlR2.key: "),
        (lambda e: e["content"]["htmlR2"].update(key="email/2026/01/01/a@b.c/x"), "$.content.htmlR2.key: "),
    ],
)
def test_a_malformed_event_is_told_by_its_first_fault_and_where_it_is(change: Change, place: str) -> None:
    event = samples.email()
    change(event)
    assert fault(samples.body(event)).startswith(f"MALFORMED_EVENT: {place}")


@pytest.mark.parametrize(
    "text",
    [
        "2025-02-30T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T00:00:60Z",
        "0000-01-01T00:00:00Z",
        "2026-01-01T00:00:00+02:00",
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00z",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00Z",
        "20260101T000000Z",
        "2026-01-01T00:00:00Z\n",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1234567890Z",
        "٢٠٢٦-01-01T00:00:00Z",
        "2026-W01-1T00:00:00Z",
        "now",
        "",
    ],
)
def test_received_at_is_a_time_that_there_is_in_utc(text: str) -> None:
    event = samples.email() | {"receivedAt": text}
    assert fault(samples.body(event)).startswith("MALFORMED_EVENT: $.receivedAt: ")
    assert not VALIDATOR.is_valid(event)


@pytest.mark.parametrize("member", ["fromPhoneE164", "toPhoneE164"])
def test_a_text_message_names_both_numbers(member: str) -> None:
    event = samples.sms()
    del event["participants"][member]
    assert member in fault(samples.body(event))


def test_a_text_message_names_its_sid() -> None:
    event = samples.sms()
    del event["correlation"]["twilioMessageSid"]
    assert fault(samples.body(event)).startswith(
        "MALFORMED_EVENT: $.correlation: lacks member twilioMessageSid"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'{"a":NaN}',
        b"[" * 100_000,
        b'{"id":"\\ud800 half a pair"}',
        b" " * 128_001,
        samples.body(samples.email()).replace(b'"Hello.\\n"', b'"\\ud800"'),
        samples.body(samples.email()).replace(b"12345", b"NaN"),
        samples.body(samples.email()).replace(b"12345", b"12345.0"),
        samples.body(samples.email()).replace(b'"size"', b'"size": 1, "size"'),
        samples.body(samples.email()).replace(b'"tags"', b'"source": "email", "tags"'),
    ],
)
def test_what_is_no_event_at_all_is_malformed_too(body: bytes) -> None:
    assert fault(body).startswith("MALFORMED_EVENT: $")


@pytest.mark.parametrize(
    "twice", [b'"text": "gone"', b'"text": "a \\"quote\\""', b'"\\u0074ext": "gone"', b'"subject": null']
)
@pytest.mark.parametrize("kept", ["plain", 'one "quote"', "\\u0022", "\n"])
def test_no_quotes_in_a_text_hide_a_member_that_is_given_twice(twice: bytes, kept: str) -> None:
    event = samples.email()
    event["content"] = {"text": kept}
    for written in (samples.body(event), samples.body(event).replace(b'\\"', b"\\u0022")):
        assert read(written).content.text == kept
        said = fault(written.replace(b'"content": {', b'"content": {' + twice + b", "))
        assert said.startswith("MALFORMED_EVENT: $.content")


def test_what_is_written_though_it_is_the_default_is_no_fault() -> None:
    event = samples.email() | {"priority": "normal", "tags": []}
    short = {name: one for name, one in event.items() if name not in ("priority", "tags")}
    assert read(samples.body(event)) == read(samples.body(short))


@given(
    st.sampled_from(
        ["id", "receivedAt", "priority", "source", "tags", "participants", "content", "correlation", "reply"]
    ),
    st.sampled_from(
        ["kate@example.net", "+15550001111", {"kate@example.net": 1}, ["+15550001111"], 15550001111]
    ),
)
def test_nothing_that_was_sent_is_told(member: str, secret: object) -> None:
    """Names of members that are not known, values where few are allowed: msgspec quotes both."""
    for event in (samples.email() | {member: secret}, samples.email() | {"kate@example.net": secret}):
        said = ""
        try:
            read(samples.body(event))
        except MalformedEvent as error:
            said = str(error)
        assert not re.search(r"kate|example|5550001111", said)


def test_the_schema_that_is_written_down_is_the_one_of_the_code() -> None:
    assert WRITTEN.read_text() == schema.text()
    jsonschema.Draft202012Validator.check_schema(json.loads(schema.text()))


SPOILT: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2**60),
    st.just(0.5),
    st.text(max_size=12),
    st.sampled_from(
        ["sms", "email", "a@b.c\n", "+15551234567\n", "+0", "x/y\n", samples.KEY, "2026-02-29T00:00:00Z"]
    ),
    st.sampled_from(
        ["2024-02-29T00:00:00Z", "https://x", "http://x y", "SM" + "Z" * 32, "SM" + "Z" * 32 + "\n"]
    ),
    st.just([]),
    st.just({}),
)


def _places(part: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """All paths in a JSON value."""
    found = [path] if path else []
    steps = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for step, one in steps:
        found += _places(one, (*path, step))
    return found


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A sound event of which up to two members are gone, something else, or new."""
    event: dict[str, Any] = copy.deepcopy(draw(st.sampled_from([samples.email(), samples.sms()])))
    for _ in range(draw(st.integers(0, 2))):
        *above, last = draw(st.sampled_from(_places(event)))
        parent: Any = event
        for step in above:
            parent = parent[step]
        what = draw(st.sampled_from(["gone", "changed", "new"]))
        if what == "gone":
            del parent[last]
        elif what == "new" and isinstance(parent, dict):
            parent[draw(st.sampled_from(["x", "subject", "toEmail", "priority", "expiresAt"]))] = draw(SPOILT)
        else:
            parent[last] = draw(SPOILT)
        if not event:
            break
    return event


@given(mutated())
def test_the_schema_and_the_consumer_judge_alike(event: dict[str, Any]) -> None:
    try:
        read(samples.body(event))
        sound = True
    except MalformedEvent:
        sound = False
    assert VALIDATOR.is_valid(event) == sound
