from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from edgequeues.client import ConfigChange, LetterFilter, QueueConfig, Replayed, Unreachable

from .script import scripted

Q = "dxn:queue:demo:jobs"


def ok(body: object) -> httpx.Response:
    return httpx.Response(200, json=body)


def sent(request: httpx.Request) -> Any:
    return json.loads(request.content)


def letter(position: int) -> dict[str, object]:
    error = {"attempt": 1, "at": 2, "worker": None, "ending": "failed", "message": "e"}
    said = {
        "originalMessage": {"n": position},
        "originalMessageId": "o",
        "originalQueue": "jobs",
        "consumer": "default",
        "reason": "permanent",
        "lastError": "e",
        "errors": [error],
        "attempts": 1,
        "firstSeenAt": 1,
        "lastSeenAt": 1,
        "failedAt": 2,
        "replayedAt": None,
        "newMessageId": None,
    }
    return {"id": f"d{position}", "position": position, "letter": said}


async def test_dead_letters_are_listed_through_all_pages_and_replayed() -> None:
    client, script = scripted(
        ok({"letters": [letter(1), letter(2)], "resume": 2}),
        ok({"letters": [letter(3)], "resume": None}),
        ok({"results": [{"id": "d1", "message": "m", "outcome": "replayed"}]}),
    )
    letters = [one async for one in client.iterate_dead_letters(Q, page_size=2)]
    assert [(one.id, one.raw, one.errors[0].message) for one in letters] == [
        ("d1", b'{"n":1}', "e"),
        ("d2", b'{"n":2}', "e"),
        ("d3", b'{"n":3}', "e"),
    ]
    assert [dict(request.url.params) for request in script.requests] == [
        {"limit": "2"},
        {"after": "2", "limit": "2"},
    ]
    assert await client.replay(Q, ["d1"]) == [Replayed("d1", "m", "replayed")]


async def test_dead_letters_are_replayed_and_purged_by_filter() -> None:
    replayed = {"id": "d1", "message": "m", "outcome": "later"}
    done = {"totals": {"replayed": 2, "no_queue": 0, "later": 1}, "more": True, "results": [replayed]}
    client, script = scripted(
        ok({"count": 12, "letters": [letter(1)]}), ok(done), ok(done), ok({"deleted": 3}), ok({"results": []})
    )
    where = LetterFilter(reason=("skipped",), error="e", since=5)
    preview = await client.preview_replay(Q)
    assert (preview.count, [one.id for one in preview.letters]) == (12, ["d1"])
    found = await client.replay_where(Q, where, limit=2, per_second=0.5)
    assert (found.totals.replayed, found.totals.later, found.more) == (2, 1, True)
    assert found.results == [Replayed("d1", "m", "later")]
    await client.replay_where(Q)
    assert await client.purge(Q, LetterFilter(replayed=True)) == 3
    await client.replay(Q, ["d1"], per_second=2)
    assert [sent(request) for request in script.requests] == [
        {"filter": {}, "preview": True},
        {"filter": {"reason": ["skipped"], "since": 5, "error": "e"}, "limit": 2, "per_second": 0.5},
        {"filter": {}},
        {"filter": {"replayed": True}},
        {"ids": ["d1"], "per_second": 2},
    ]


async def test_a_replay_by_filter_is_repeated_only_without_a_limit() -> None:
    client, script = scripted(httpx.ReadError("cut"), ok({"totals": {}, "more": False, "results": []}))
    await client.replay_where(Q)
    assert len(script.requests) == 2
    client, _ = scripted(httpx.ReadError("cut"))
    with pytest.raises(Unreachable):
        await client.replay_where(Q, limit=5)


async def test_a_work_queue_is_made_by_a_profile_and_what_is_said_beside_it() -> None:
    client, script = scripted(ok({"kind": "work", "depth_max": 5}), ok({"kind": "work"}))
    made = await client.make_queue(
        Q, "webhook", settings=ConfigChange(depth_max=5), rules={"ordering": "unordered"}
    )
    assert made == QueueConfig(kind="work", depth_max=5)
    await client.make_queue(Q)
    assert [(request.method, sent(request)) for request in script.requests] == [
        ("PUT", {"depth_max": 5, "profile": "webhook", "consumer": {"ordering": "unordered"}}),
        ("PUT", {"profile": "work"}),
    ]
