"""What the client sends about sessions, what it makes of the answers, and what it sends again by itself."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx
import pytest
from msgspec import Raw

from edgequeues.client import Inbound, Received, Refused, SessionHead, SessionInfo, SessionPage, Unreachable

from .script import problem, scripted

Q = "dxn:queue:chat:inbound"
INFO: dict[str, Any] = {
    "session_id": "s1",
    "depth": 3,
    "oldest": 5,
    "head": {
        "id": "a",
        "position": 2,
        "origin": "telegram",
        "state": "backoff",
        "failures": 4,
        "due": 9,
        "last_error": "gone",
        "blocked_since": 6,
    },
}
TYPED = SessionInfo("s1", 3, 5, SessionHead("a", 2, "telegram", "backoff", 4, 9, "gone", 6))


def ok(body: object, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=body)


def page(*sessions: object, resume: str | None = None) -> httpx.Response:
    return ok({"sessions": sessions, "resume": resume})


def said(request: httpx.Request) -> Any:
    return json.loads(request.content)


async def test_a_message_is_sent_as_it_is_and_a_repeat_has_no_position() -> None:
    client, script = scripted(
        ok({"id": "a", "position": 2, "duplicate": False}, 202),
        ok({"id": None, "position": None, "duplicate": True}),
    )
    message = Inbound(session_id="s1", origin="telegram", content="Hi", payload=Raw(b'{ "n": 1.0 }'))
    assert await client.enqueue_inbound(Q, message) == Received("a", 2)
    assert await client.enqueue_inbound(Q, message) == Received(None, None)
    assert script.requests[0].url.path == f"/v1/{Q}/inbound"
    assert said(script.requests[0]) == {
        "session_id": "s1",
        "origin": "telegram",
        "content": "Hi",
        "payload": {"n": 1},
    }
    assert b'{ "n": 1.0 }' in script.requests[0].content


async def test_a_message_is_sent_again_only_where_the_server_can_tell_that_it_is_the_same() -> None:
    lost = httpx.ReadError("lost")
    client, script = scripted(lost, ok({"id": "a", "position": 2, "duplicate": False}, 202), lost)
    known = Inbound(session_id="s1", origin="telegram", source_message_id="17")
    assert await client.enqueue_inbound(Q, known) == Received("a", 2)
    with pytest.raises(Unreachable) as unreachable:
        await client.enqueue_inbound(Q, Inbound(session_id="s1", origin="telegram"))
    assert unreachable.value.maybe_done
    assert len(script.requests) == 3


@pytest.mark.parametrize(
    "message",
    [
        Inbound(session_id="", origin="telegram"),
        Inbound(session_id="s1", origin="telegram", content="\ud83d"),
        Inbound(session_id="s1", origin="telegram", payload=Raw(b'1,"content":"x"')),
    ],
)
async def test_a_message_that_cannot_be_is_not_sent(message: Inbound) -> None:
    client, script = scripted()
    with pytest.raises(ValueError, match=r"."):
        await client.enqueue_inbound(Q, message)
    assert script.requests == []


async def test_sessions_are_listed_in_pages_and_one_is_found_by_its_id() -> None:
    client, script = scripted(
        page(INFO, resume="s1"), page(INFO, resume="s1"), page(INFO), page(INFO), page()
    )
    assert await client.sessions(Q, after="s0", limit=1) == SessionPage([TYPED], "s1")
    assert [one async for one in client.iterate_sessions(Q)] == [TYPED, TYPED]
    assert await client.session(Q, "s1") == TYPED
    assert await client.session(Q, "a&b") is None
    asked = [dict(request.url.params) for request in script.requests]
    assert asked == [
        {"after": "s0", "limit": "1"},
        {"limit": "1000"},
        {"after": "s1", "limit": "1000"},
        {"session": "s1"},
        {"session": "a&b"},
    ]


async def test_each_order_has_its_route_its_words_and_its_answer() -> None:
    client, script = scripted(
        ok({"expired": 3}),
        ok({"id": "a"}),
        ok({"id": None}),
        ok({"id": "a"}),
        ok({"reclaimed": 2}),
        ok({"removed": 7}),
    )
    assert await client.close_session(Q, "s1") == 3
    assert await client.skip_session(Q, "s1") == "a"
    assert await client.skip_session(Q, "s1") is None
    assert await client.retry_session(Q, "s1") == "a"
    assert await client.reclaim(Q, "w") == 2
    assert await client.clean_sessions(Q, 5) == 7
    sent = [(one.url.path.rpartition("/")[2], said(one)) for one in script.requests]
    of_session = {"session_id": "s1"}
    assert sent == [
        ("close", of_session),
        ("skip", of_session),
        ("skip", of_session),
        ("retry", of_session),
        ("reclaim", {"worker": "w"}),
        ("clean", {"before": 5}),
    ]


@pytest.mark.parametrize("verb", ["close_session", "skip_session", "reclaim"])
async def test_what_would_hit_something_else_the_second_time_is_not_sent_again(verb: str) -> None:
    client, script = scripted(httpx.ReadError("lost"))
    with pytest.raises(Unreachable):
        await getattr(client, verb)(Q, "s1")
    assert len(script.requests) == 1


async def test_what_is_done_once_however_often_it_is_asked_for_is_sent_again() -> None:
    lost = httpx.ReadError("lost")
    client, _ = scripted(lost, ok({"id": None}), lost, ok({"removed": 1}), lost, page())
    assert await client.retry_session(Q, "s1") is None
    assert await client.clean_sessions(Q, 5) == 1
    assert await client.sessions(Q) == SessionPage([], None)


async def test_a_queue_that_is_none_for_sessions_is_refused_with_its_code() -> None:
    client, _ = scripted(problem(409, "config_conflict"))
    with pytest.raises(Refused, match="config_conflict"):
        await client.sessions(Q)


def test_a_message_is_sent_from_asyncio_as_from_trio() -> None:
    async def send() -> Received:
        client, _ = scripted(ok({"id": "a", "position": 2, "duplicate": False}, 202))
        async with client:
            return await client.enqueue_inbound(Q, Inbound(session_id="s1", origin="telegram"))

    assert anyio.run(send, backend="asyncio") == Received("a", 2)
