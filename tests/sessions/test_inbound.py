"""A message for a session: which can be, what comes out of the queue again, and how a repeat is known."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from edgequeues import inbound
from edgequeues.core.errors import InvalidJson, InvalidRequest
from edgequeues.inbound import Inbound

LEAST = Inbound(session_id="s1", origin="telegram")
HALF = "\ud83d"  # of a surrogate pair


def read(**fields: Any) -> Inbound:
    return inbound.read(json.dumps({"session_id": "s1", "origin": "telegram", **fields}).encode())


def row(message: Inbound) -> inbound.InboundRow:
    return inbound.row(
        inbound.body(message).encode(),
        message.session_id,
        position=7,
        created_ms=0,
        locked_ms=61_001,
        attempts=3,
    )


def test_a_message_comes_out_as_it_went_in_with_times_of_one_width() -> None:
    message = read(
        content="Hi", message_type="voice", actor_id="u", source_message_id="17", payload={"a": []}
    )
    assert row(message) == {
        "id": 7,
        "session_id": "s1",
        "origin": "telegram",
        "message_type": "voice",
        "content": "Hi",
        "payload_json": '{"a": []}',
        "actor_id": "u",
        "actor_name": None,
        "actor_avatar_url": None,
        "status": "processing",
        "created_at": "1970-01-01T00:00:00.000Z",
        "attempt_count": 2,
        "locked_at": "1970-01-01T00:01:01.001Z",
        "source_message_id": "17",
        "source_channel_id": None,
    }


@pytest.mark.parametrize("payload", ['{"text": "\\ud83d"}', "null", "1e5", "[ 1,\n2 ]", '"\\u0000"'])
def test_a_payload_is_kept_as_it_is_written_whatever_json_it_is(payload: str) -> None:
    text = '{"session_id":"s1","origin":"telegram","payload":%s}' % payload  # noqa: UP031 (braces)
    message = inbound.read(text.encode())
    assert row(message)["payload_json"] == payload
    assert inbound.check(message) == message


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"session_id": ""}, "session_id"),
        ({"session_id": "x" * 257}, "session_id"),
        ({"session_id": "a\x00b"}, "session_id"),
        ({"session_id": None}, "session_id"),
        ({"origin": ""}, "origin"),
        ({"message_type": "video"}, "message_type"),
        ({"content": None}, "content"),
        ({"content": HALF}, "content"),
        ({"actor_id": ""}, "actor_id"),
        ({"actor_name": HALF}, "actor_name"),
        ({"actor_avatar_url": "x" * 2_049}, "actor_avatar_url"),
        ({"source_message_id": ""}, "source_message_id"),
        ({"source_channel_id": HALF}, "source_channel_id"),
        ({"sesion": "s1"}, "sesion"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        read(**fields)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'"text"',
        b'{"session_id":"a","session_id":"b","origin":"o"}',
        b'{"session_id":"a","origin":"o","payload":1e999}',
        b'{"session_id":"a","origin":"o","payload":%b1%b}' % (b"[" * 65, b"]" * 65),
    ],
)
def test_what_is_no_object_of_json_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidJson):
        inbound.read(text)


def test_a_payload_that_is_no_json_would_change_the_message_around_it_and_is_refused() -> None:
    for payload in (b"", b"{", b'1,"content":"other"'):
        with pytest.raises(InvalidJson):
            inbound.check(msgspec.structs.replace(LEAST, payload=Raw(payload)))


def test_an_entry_that_is_no_message_is_told_from_one() -> None:
    for data in (b"1", b'{"text":"hello"}', b'{"session_id":"s1"}'):
        with pytest.raises((InvalidJson, InvalidRequest)):
            inbound.row(data, "s1", position=1, created_ms=0, locked_ms=0, attempts=1)
    for key in ("s2", None):
        with pytest.raises(InvalidRequest, match="ordering key"):
            inbound.row(inbound.body(LEAST).encode(), key, position=1, created_ms=0, locked_ms=0, attempts=1)


def test_a_repeat_is_known_by_origin_channel_and_source_message_in_whichever_session() -> None:
    keys = [
        inbound.repeat_key(read(source_message_id="17", **more))
        for more in (
            {},
            {"session_id": "s2"},
            {"source_channel_id": "c1"},
            {"source_channel_id": "c2"},
            {"origin": "discord"},
        )
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(keys) - 1
    assert inbound.repeat_key(read(source_channel_id="c1")) is None
