from __future__ import annotations

import httpx
import pytest

from edgequeues.client import ConfigChange, NewEntry, QueueConfig, Refused, Space

from .script import entry_json, problem, scripted

Q = "dxn:queue:demo:log"
CONFIG = {"name": "log", "kind": "log", "max_age_ms": 5, "max_entries": None, "mutable": True}
STATS = {
    "id": "01J0000000000000000000000A",
    "dxn": Q,
    "config": CONFIG,
    "created": 1,
    "entries": 2,
    "bytes": 3,
    "oldest": None,
    "cursor": "c",
}


def ok(body: object) -> httpx.Response:
    return httpx.Response(200, json=body)


def page(*positions: int) -> httpx.Response:
    ordered = sorted(positions)
    return ok(
        {
            "entries": [entry_json(position) for position in positions],
            "nextCursor": f"c{ordered[-1]}" if ordered else "same",
            "prevCursor": f"c{ordered[0]}" if ordered else "same",
        }
    )


async def test_iterating_goes_through_pages_until_one_is_not_full() -> None:
    client, script = scripted(page(1, 2), page(3, 4), page(5))
    seen = [entry.position async for entry in client.iterate(Q, before="end", page_size=2)]
    assert seen == [1, 2, 3, 4, 5]
    asked = [(r.url.params.get("after"), r.url.params.get("before")) for r in script.requests]
    assert asked == [(None, "end"), ("c2", "end"), ("c4", "end")]


async def test_iterating_in_reverse_goes_on_before_the_lowest() -> None:
    client, script = scripted(page(4, 3), page(2, 1), page())
    seen = [entry.position async for entry in client.iterate(Q, after="front", reverse=True, page_size=2)]
    assert seen == [4, 3, 2, 1]
    asked = [(r.url.params.get("after"), r.url.params.get("before")) for r in script.requests]
    assert asked == [("front", None), ("front", "c3"), ("front", "c1")]


async def test_iterating_stops_at_its_limit_without_asking_for_more() -> None:
    client, script = scripted(page(1, 2), page(3))
    assert len([entry async for entry in client.iterate(Q, limit=3, page_size=2)]) == 3
    assert [request.url.params["limit"] for request in script.requests] == ["2", "1"]


@pytest.mark.parametrize("one", [{"a": 1}, b"{}", "text", NewEntry(1)])
async def test_one_entry_given_instead_of_a_list_is_refused(one: object) -> None:
    client, _ = scripted()
    with pytest.raises(TypeError, match="list"):
        await client.append(Q, one)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="list"):
        await anext(client.append_stream(Q, one))  # type: ignore[arg-type]


async def test_an_object_is_fetched_by_its_dxn_or_by_queue_and_id() -> None:
    client, script = scripted(ok(entry_json(1)), ok(entry_json(1)), problem(404, "entry_not_found"))
    assert await client.get(f"{Q}:a") == await client.get(Q, "a")
    assert script.requests[0].url == script.requests[1].url
    with pytest.raises(Refused, match="entry_not_found"):
        await client.get(Q, "b")


async def test_deleting_many_ids_takes_several_requests_and_one_count() -> None:
    client, script = scripted(ok({"deleted": 50}), ok({"deleted": 3}))
    assert await client.delete(Q, ids=[f"e{n}" for n in range(53)]) == 53
    assert [len(request.url.params.get_list("id")) for request in script.requests] == [50, 3]
    assert all(len(request.url.raw_path) < 8192 for request in script.requests)


async def test_deleting_a_range_or_an_object_is_one_request() -> None:
    client, script = scripted(ok({"deleted": 9}), ok({"deleted": 1}))
    assert await client.delete(Q, after="a", through="b") == 9
    assert await client.delete(f"{Q}:x") == 1
    assert dict(script.requests[0].url.params) == {"after": "a", "through": "b"}
    assert script.requests[1].url.path == f"/v1/{Q}:x"


async def test_settings_are_read_replaced_and_changed() -> None:
    client, script = scripted(ok(CONFIG), ok(CONFIG), ok(CONFIG))
    config = QueueConfig(name="log", max_age_ms=5)
    assert await client.config(Q) == config
    assert await client.configure(Q, config) == config
    assert await client.reconfigure(Q, ConfigChange(max_entries=None, mutable=False)) == config
    assert [request.method for request in script.requests] == ["GET", "PUT", "PATCH"]
    assert script.requests[2].content == b'{"max_entries":null,"mutable":false}'


async def test_queues_and_spaces_are_listed_through_all_pages() -> None:
    client, script = scripted(
        ok({"queues": [STATS], "resume": "r"}),
        ok({"queues": [STATS], "resume": None}),
        ok({"spaces": [{"id": "demo", "tag": "data"}], "resume": "demo"}),
        ok({"spaces": [], "resume": None}),
    )
    assert [queue.entries async for queue in client.queues("demo", tag="trace")] == [2, 2]
    assert [space async for space in client.spaces()] == [Space("demo", "data")]
    assert [request.url.params.get("after") for request in script.requests] == [None, "r", None, "demo"]
    assert script.requests[0].url.params["tag"] == "trace"


async def test_stats_are_typed() -> None:
    client, _ = scripted(ok(STATS))
    stats = await client.stats(Q)
    assert (stats.entries, stats.config.max_age_ms, stats.oldest, stats.cursor) == (2, 5, None, "c")


async def test_health_tells_ready_from_not_ready() -> None:
    client, script = scripted(ok({"status": "ok"}), problem(503, "not_ready", retry_after="2"))
    assert (await client.health()).ready
    health = await client.health()
    assert (health.ready, health.detail, script.pauses) == (False, "d", [])
