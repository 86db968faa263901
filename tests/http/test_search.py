"""Searching a queue: entries in any state, by what they hold and where they stand, and nothing is changed by it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import trio

from edgequeues.http import searching as route
from edgequeues.space import searching

from .asgi import Client
from .work_queue import JOBS, pull, push, said

LOG = "dxn:queue:demo:log"


async def search(client: Client, query: str = "", queue: str = JOBS) -> dict[str, Any]:
    reply = await client.get(f"{queue}/search{query}")
    assert reply.status == 200, reply.body
    found: dict[str, Any] = reply.json()
    return found


async def ids(client: Client, query: str = "", queue: str = JOBS) -> list[str]:
    """Of all that is found, page by page."""
    found: list[str] = []
    after = ""
    while True:
        page = await search(client, f"{query or '?limit=1000'}{after}", queue)
        found += [one["id"] for one in page["found"]]
        if page["resume"] is None:
            return found
        after = f"&after={page['resume']}"


def where(text: str) -> str:
    return f"?where={quote(text)}"


async def filled(client: Client) -> None:
    """One message in each state, `finished` among them, and one that two wait behind."""
    rules = {"kind": "work", "on_ack": "keep", "consumer": {"ordering": "per_key"}}
    assert (await client.put(f"{JOBS}/config", rules)).status == 200
    await push(
        client,
        {"id": "acked", "data": {"n": 1, "text": "one"}},
        {"id": "failed", "data": {"n": 2}, "key": "k"},
        {"id": "held", "data": {"n": 3}, "type": "order"},
        {"id": "ready", "data": {"n": 4}, "key": "l", "priority": 7},
        {"id": "behind", "data": {"n": 5}, "key": "k"},
        {"id": "late", "data": {"n": 6}, "delay_ms": 60_000},
    )
    leases = {one["id"]: one["lease"] for one in await pull(client, batch=10, worker="anna", lease_ms=60_000)}
    await said(client, "ack", {"leases": [leases["acked"]]})
    await said(
        client,
        "retry",
        {"retries": [{"lease": leases["failed"], "delay_ms": 30_000, "error": "no such thing"}]},
    )
    await said(client, "release", {"leases": [leases["ready"]]})


async def test_an_entry_is_found_as_a_read_gives_it_with_where_it_stands(client: Client) -> None:
    await filled(client)
    entries = {one["id"]: one for one in (await client.get(f"{JOBS}")).json()["entries"]}
    [found] = (await search(client, "?id=failed"))["found"]
    [standing] = found.pop("standings")
    assert found == entries["failed"]
    due, first, last = (standing.pop(name) for name in ("due", "first", "last"))
    assert standing == {
        "consumer": "default",
        "state": "backoff",
        "attempts": 1,
        "worker": "anna",
        "last_error": "no such thing",
    }
    assert first == last == due - 30_000
    [found] = (await search(client, "?id=acked"))["found"]
    [standing] = found["standings"]
    assert (standing.pop("consumer"), standing.pop("state")) == ("default", "finished")
    assert set(standing.values()) == {None}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["acked", "failed", "held", "ready", "behind", "late"]),
        ("?state=finished", ["acked"]),
        ("?state=backoff", ["failed"]),
        ("?state=leased", ["held"]),
        ("?state=ready&state=waiting", ["ready", "behind"]),
        ("?state=scheduled,finished", ["acked", "late"]),
        ("?state=none", []),
        ("?id=held", ["held"]),
        ("?id=held&state=ready", []),
        ("?id=nobody", []),
        ("?key=k", ["failed", "behind"]),
        ("?key=k&state=waiting", ["behind"]),
        ("?key=K", []),
        ("?type=order", ["held"]),
        ("?type=order&key=k", []),
        ("?reverse=true", ["late", "behind", "ready", "held", "failed", "acked"]),
        ("?reverse=true&limit=2", ["late", "behind", "ready", "held", "failed", "acked"]),
        ("?consumer=default&state=leased", ["held"]),
        (where("n > 2 && n < 5"), ["held", "ready"]),
        (where("message.n == 1"), ["acked"]),
        (where('text == "one"'), ["acked"]),
        (where('worker == "anna" && state == "leased"'), ["held"]),
        (where('error == "no such thing"'), ["failed"]),
        (where('key == "k"'), ["failed", "behind"]),
        (where('type == "order"'), ["held"]),
        (where('id == "late"'), ["late"]),
        (where("priority == 7"), ["ready"]),
        (where("attempts > 0"), ["failed", "held"]),
        (where("created_at <= now"), ["acked", "failed", "held", "ready", "behind", "late"]),
        (where("due_at > now"), ["failed", "held", "late"]),
        (where("n == 4") + "&state=leased", []),
    ],
)
async def test_all_that_is_said_must_hold(client: Client, query: str, found: list[str]) -> None:
    await filled(client)
    assert await ids(client, query) == found


async def test_a_search_changes_nothing(client: Client) -> None:
    """Not an attempt, not a lease, not a count, not the tag of the queue."""
    await filled(client)
    await trio.sleep(29)
    before = (await client.get(f"{JOBS}/stats")).json(), (await client.get(f"{JOBS}/peek")).json()
    etag = (await client.get(JOBS)).headers["etag"]
    audit = (await client.get("/admin/audit?tenant_id=demo")).json()
    for query in ("", "?state=leased", where("n > 0"), "?reverse=true", "?id=held"):
        await search(client, query)
    assert ((await client.get(f"{JOBS}/stats")).json(), (await client.get(f"{JOBS}/peek")).json()) == before
    assert (await client.get(JOBS)).headers["etag"] == etag
    assert (await client.get("/admin/audit?tenant_id=demo")).json() == audit


async def test_what_several_consumers_do_with_it_is_told_of_each(client: Client) -> None:
    await client.append(LOG, {"n": 1}, {"n": 2})
    path = f"/v1/{LOG}"
    assert await ids(client, "?state=none", path) == await ids(client, "", path)
    assert [one["standings"] for one in (await search(client, "", path))["found"]] == [[], []]
    for name in ("a", "b"):
        assert (await client.put(f"{path}/consumers/{name}", {"start": "beginning"})).status == 200
    await trio.sleep(1)
    [message] = (await client.post(f"{path}/pull?consumer=a", {})).json()["messages"]
    await client.post(f"{path}/ack", {"leases": [message["lease"]]})
    first, second = (await search(client, "", path))["found"]
    assert [(one["consumer"], one["state"]) for one in first["standings"]] == [
        ("a", "finished"),
        ("b", "ready"),
    ]
    assert [(one["consumer"], one["state"]) for one in second["standings"]] == [
        ("a", "ready"),
        ("b", "ready"),
    ]
    assert await ids(client, "?consumer=a&state=ready", path) == [second["id"]]
    assert await ids(client, "?consumer=b&state=finished", path) == []
    assert await ids(client, where('consumer == "a" && state == "finished"'), path) == [first["id"]]
    [only] = (await search(client, f"?consumer=b&id={first['id']}", path))["found"]
    assert [one["consumer"] for one in only["standings"]] == ["b"]
    assert (await client.get(f"{path}/search?consumer=nobody")).code == "consumer_not_found"


async def test_what_has_expired_is_left_out_unless_it_is_handed_out(client: Client) -> None:
    await push(client, {"id": "held", "data": 1, "ttl_ms": 5_000}, {"id": "gone", "data": 2, "ttl_ms": 5_000})
    await pull(client, batch=1, lease_ms=60_000)
    assert await ids(client) == ["held", "gone"]
    await trio.sleep(5)
    assert await ids(client) == ["held"]


async def test_pages_hold_each_entry_once_and_the_last_has_no_more(client: Client) -> None:
    await push(client, *({"id": f"m{n}", "data": n} for n in range(7)))
    pages, after = [], ""
    while True:
        page = await search(client, f"?limit=3{after}")
        pages.append([one["data"] for one in page["found"]])
        if page["resume"] is None:
            break
        after = f"&after={page['resume']}"
    assert pages == [[0, 1, 2], [3, 4, 5], [6]]
    assert (await search(client, "?limit=7"))["resume"] is None


@pytest.mark.parametrize("reverse", ["", "&reverse=true"])
async def test_a_call_looks_at_so_much_and_says_where_to_go_on(
    client: Client, monkeypatch: pytest.MonkeyPatch, reverse: str
) -> None:
    monkeypatch.setattr(searching, "LOOKED_AT", 3)
    monkeypatch.setattr(route, "TURNS_MAX", 2)
    await push(client, *({"id": f"m{n:02}", "data": {"n": n}} for n in range(20)))
    query = where("n == 9") + reverse
    page, calls = await search(client, query), 1
    found = page["found"]
    while page["resume"] is not None:
        page, calls = await search(client, f"{query}&after={page['resume']}"), calls + 1
        found += page["found"]
    assert [one["id"] for one in found] == ["m09"]
    assert calls == 4


async def test_an_expression_is_computed_of_so_many_entries_a_turn(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "CONDITIONS_MAX", 2)
    monkeypatch.setattr(route, "TURNS_MAX", 1)
    await push(client, *({"id": f"m{n}", "data": {"n": n}, "key": f"k{n % 2}"} for n in range(8)))
    first = await search(client, where("n == 1"))
    assert ([one["id"] for one in first["found"]], first["resume"] is not None) == (["m1"], True)
    assert await ids(client, where("n == 7")) == ["m7"]
    other = await search(client, where("n == 1") + "&key=k1")  # the key is compared first, and costs nothing
    assert (other["found"][0]["id"], other["resume"] > first["resume"]) == ("m1", True)


async def test_an_expression_that_would_take_seconds_is_refused(client: Client) -> None:
    await push(client, {"id": "large", "data": {"a": "x" * 3_000_000, "b": "y"}}, {"id": "small", "data": {}})
    costly = " && ".join(["message.a == message.b"] * 12)
    reply = await client.get(f"{JOBS}/search{where(costly)}")
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert "the entry at position" in reply.json()["detail"]
    assert await ids(client, f"{where(costly)}&id=small") == ["small"]


async def test_a_page_ends_at_about_four_megabytes_of_data(client: Client) -> None:
    for n in range(3):
        await push(client, {"id": f"m{n}", "data": "x" * 3_000_000})
    page = await search(client)
    assert [one["id"] for one in page["found"]] == ["m0", "m1"]
    assert [one["id"] for one in (await search(client, f"?after={page['resume']}"))["found"]] == ["m2"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?state=acked", "invalid_request"),
        ("?where=n+%3D", "invalid_request"),
        ("?where=1", "invalid_request"),
        ("?where=state+%3D%3D+%22nowhere%22", "invalid_request"),
        ("?limit=0", "invalid_request"),
        ("?limit=1001", "invalid_request"),
        ("?after=x", "invalid_request"),
        ("?nonsense=1", "invalid_request"),
        ("?key=", "invalid_request"),
        ("?id=%00", "invalid_id"),
    ],
)
async def test_what_is_no_search_is_refused(client: Client, query: str, code: str) -> None:
    await push(client, {"data": {"n": 1}})
    assert (await client.get(f"{JOBS}/search{query}")).code == code


async def test_there_is_nothing_to_search_in_a_queue_that_is_not_there(client: Client) -> None:
    assert (await client.get(f"{JOBS}/search")).code == "queue_not_found"
    await client.append(LOG, 1)
    assert (await client.get(f"{JOBS}/search")).code == "queue_not_found"
