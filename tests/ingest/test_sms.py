"""A form of Twilio's is a text message, or is refused without a number or a word of it being repeated."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core.errors import InvalidRequest
from edgequeues.ingest.sms import Medium, parse
from tests.core.captures import capture

FIELDS = {
    "MessageSid": "SM" + "a" * 32,
    "AccountSid": "AC" + "b" * 32,
    "From": "+15550100001",
    "To": "+15550100002",
    "Body": "Hello",
    "NumMedia": "0",
}


def form(**fields: str) -> bytes:
    return urlencode(FIELDS | fields).encode()


def test_a_captured_message_is_read_with_its_media() -> None:
    """But for a digit that its id has too many."""
    found = parse(capture("twilio").request.body.replace(b"MMdummy0", b"MMdummy"))
    assert (found.sender, found.recipient) == ("+15550100001", "+15550100002")
    assert found.text == "Hi \U0001f600 100% + sure & caf\u00e9"
    assert found.media == [
        Medium(0, "https://media.example.com/1?x=1&y=2", "image/jpeg"),
        Medium(1, "https://media.example.com/2", "text/x-vcard"),
    ]


def test_a_body_may_be_empty_and_media_may_be_of_no_known_kind() -> None:
    found = parse(form(Body="", NumMedia="1", MediaUrl0="https://x.example/1", MediaContentType0="?"))
    assert (found.text, found.media[0].content_type) == ("", "application/octet-stream")
    without = {name: value for name, value in FIELDS.items() if name not in ("Body", "NumMedia")}
    assert parse(urlencode(without).encode()).media == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("From", "12345"),
        ("From", "+0155501"),
        ("From", "+1555010000123456"),
        ("From", "+15550100001\n"),
        ("From", "whatsapp:+15550100001"),
        ("From", "+\u0661\u0662\u0663\u0664"),
        ("To", ""),
        ("MessageSid", "SM123"),
        ("MessageSid", "../" + "a" * 31),
        ("AccountSid", "XX" + "b" * 32),
        ("NumMedia", "-1"),
        ("NumMedia", "1e9"),
        ("NumMedia", "101"),
        ("NumMedia", "1"),
    ],
)
def test_what_is_not_as_twilio_sends_it_is_refused(field: str, value: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(form(**{field: value}))
    assert "MediaUrl0" in caught.value.detail or field in caught.value.detail
    assert "555" not in str(caught.value)


@given(
    st.binary(max_size=200)
    | st.dictionaries(st.sampled_from(sorted(FIELDS)), st.text()).map(lambda d: form(**d))
)
def test_any_form_is_a_text_message_or_is_refused(body: bytes) -> None:
    try:
        found = parse(body)
    except InvalidRequest:
        return
    found.text.encode()
    assert found.sender.startswith("+")
