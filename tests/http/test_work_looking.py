"""Work queues over HTTP: their settings, what is seen of them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from .asgi import Client, Reply
from .work_queue import JOBS, pull, push, said
from .world import World


async def test_a_line_is_seen_explained_and_skipped(client: Client) -> None:
    await client.put("/v1/dxn:queue:demo:jobs/config", {"kind": "work"})
    await client.delete(f"{JOBS}/consumers/default")
    await client.put(f"{JOBS}/consumers/default", {"ordering": "per_key"})
    await push(
        client, {"data": 1, "id": "a", "key": "k", "delay_ms": 60_000}, {"data": 2, "id": "b", "key": "k"}
    )
    assert await pull(client, batch=10) == []
    [line] = (await client.get(f"{JOBS}/lines")).json()["lines"]
    assert (line["key"], line["waiting"], line["state"]) == ("k", 1, "scheduled")
    [why] = (await client.get(f"{JOBS}/explain?id=b")).json()["consumers"]
    assert (why["why"], why["behind"], why["key"]) == ("behind", 1, "k")
    peeked = (await client.get(f"{JOBS}/peek?state=waiting")).json()["messages"]
    assert [one["id"] for one in peeked] == ["b"]
    assert (await client.post(f"{JOBS}/skip", {"id": "a"})).status == 200
    assert [one["id"] for one in await pull(client, batch=10)] == ["b"]


async def test_a_message_that_waits_for_its_time_is_ready_at_once_where_that_is_asked(client: Client) -> None:
    await client.put(f"{JOBS}/config", {"kind": "work"})
    await client.delete(f"{JOBS}/consumers/default")
    await client.put(f"{JOBS}/consumers/default", {"ordering": "per_key", "attempts_max": 3})
    await push(
        client, {"data": 1, "id": "a", "key": "k", "delay_ms": 60_000}, {"data": 2, "id": "b", "key": "k"}
    )
    waits = await client.post(f"{JOBS}/hurry", {"id": "b"})
    assert (waits.status, waits.code) == (400, "invalid_request")
    assert "it is waiting" in waits.json()["detail"]
    assert (await client.post(f"{JOBS}/hurry", {"id": "a"})).status == 200
    [first] = await pull(client, batch=10)
    assert (first["id"], first["attempts"]) == ("a", 1)
    held = await client.post(f"{JOBS}/hurry", {"id": "a"})
    assert "it is leased" in held.json()["detail"]
    await client.post(f"{JOBS}/retry", {"retries": [{"lease": first["lease"], "delay_ms": 3_600_000}]})
    assert await pull(client, batch=10) == []
    assert (await client.post(f"{JOBS}/hurry", {"id": "a", "consumer": "default"})).status == 200
    [again] = await pull(client, batch=10)
    assert (again["id"], again["attempts"]) == ("a", 2)
    records = (await client.get("/admin/audit?tenant_id=demo&queue=jobs")).json()["audit"]
    done = [(one["action"], one["detail"]) for one in records if one["action"] == "retry_now"]
    assert done == [("retry_now", {"consumer": "default", "id": "a"})] * 2


async def test_lines_go_on_after_a_key_whatever_is_in_it(client: Client) -> None:
    await client.put(f"{JOBS}/config", {"kind": "work"})
    await client.delete(f"{JOBS}/consumers/default")
    await client.put(f"{JOBS}/consumers/default", {"ordering": "per_key"})
    await push(client, *({"data": 1, "key": key} for key in ("a&b", "a&b", "ä", "ä")))
    found = (await client.get(f"{JOBS}/lines")).json()
    assert ([one["key"] for one in found["lines"]], found["resume"]) == (["a&b", "ä"], None)
    for after, keys in (("a%26b", ["ä"]), ("%C3%A4", []), ("0", ["a&b", "ä"])):
        lines = (await client.get(f"{JOBS}/lines?after={after}")).json()["lines"]
        assert [one["key"] for one in lines] == keys


async def test_a_consumer_that_ages_hands_out_what_starved(client: Client) -> None:
    await push(client, {"data": 1, "priority": 0})
    reply = await client.put(f"{JOBS}/consumers/default", {"starvation_after_ms": 60_000})
    assert reply.json()["config"]["starvation_after_ms"] == 60_000
    assert (await client.put(f"{JOBS}/consumers/default", {"starvation_after_ms": 0})).status == 400
    await trio.sleep(60)
    await push(client, {"data": 2, "priority": 9})
    assert [one["data"] for one in await pull(client, batch=2)] == [1, 2]


async def test_a_full_queue_refuses_and_says_when_to_come_again(client: Client) -> None:
    await client.put(f"{JOBS}/config", {"kind": "work", "depth_max": 2})
    await push(client, {"data": 1}, {"data": 2})
    reply = await client.post(f"{JOBS}/push", {"entries": [{"data": 3}]})
    assert (reply.status, reply.code, reply.headers["retry-after"]) == (503, "queue_full", "5")


@pytest.mark.parametrize(
    ("verb", "body", "status", "code", "about"),
    [
        ("pull", {"batch": 0}, 400, "invalid_request", "batch"),
        ("pull", {"batch": 101}, 400, "invalid_request", "batch"),
        ("pull", {"lease_ms": 0}, 400, "invalid_request", "lease_ms"),
        ("pull", {"lease_ms": 43_200_001}, 400, "invalid_request", "lease_ms"),
        ("pull", {"lease": 1}, 400, "invalid_request", "lease"),
        ("pull?wait=61", {}, 400, "invalid_request", "wait"),
        ("pull?consumer=nobody", {}, 404, "consumer_not_found", "nobody"),
        ("ack", {"leases": []}, 400, "invalid_request", "leases"),
        ("ack", {"leases": ["x"] * 1_001}, 413, "too_large", "1001"),
        ("ack", {"leases": ["x"] * 1_001, "results": {"y": 1}}, 413, "too_large", "1001"),
        ("ack", {"leases": ["x"], "results": {"y": 1}}, 400, "invalid_request", "results"),
        ("ack", {"leases": ["x"], "results": {"x": "a" * 65_536}}, 413, "too_large", "65538"),
        ("ack", {}, 400, "invalid_request", "leases"),
        ("retry", {"retries": [{"lease": "x", "delay_ms": -1}]}, 400, "invalid_request", "delay_ms"),
        ("retry", {"retries": [{"lease": "x", "error": "x" * 4_097}]}, 400, "invalid_request", "error"),
        ("extend", {"leases": ["x"], "lease_ms": 0}, 400, "invalid_request", "lease_ms"),
        ("skip", {"id": "a b"}, 400, "invalid_id", "object id"),
        ("replay", {"ids": []}, 400, "invalid_request", "ids"),
        ("replay", {"ids": ["x"] * 1_001}, 413, "too_large", "1001"),
        ("extend", {"leases": ["x"]}, 400, "invalid_request", "lease_ms"),
        ("push", {"entries": [{"data": 1, "priority": 10}]}, 400, "invalid_request", "priority"),
        ("skip", {"id": "nobody"}, 404, "entry_not_found", "nobody"),
    ],
)
async def test_what_cannot_be_is_refused_by_name(
    client: Client, verb: str, body: dict[str, Any], status: int, code: str, about: str
) -> None:
    await push(client, {"data": 1})
    reply = await client.post(f"{JOBS}/{verb}", body)
    assert (reply.status, reply.code) == (status, code)
    assert about in reply.json()["detail"]


@pytest.mark.parametrize("dead_letters", ["nowhere", "jobs"])
async def test_dead_letters_go_to_another_queue_that_is_there(client: Client, dead_letters: str) -> None:
    await push(client, {"data": 1})
    reply = await client.put(f"{JOBS}/consumers/default", {"dead_letters": dead_letters})
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert dead_letters in reply.json()["detail"]


async def test_a_log_that_nobody_works_has_nothing_to_pull(client: Client) -> None:
    await client.append("dxn:queue:demo:log", 1)
    reply: Reply = await client.post("/v1/dxn:queue:demo:log/pull", {})
    assert (reply.status, reply.code) == (409, "no_consumer")
    assert (await client.post("/v1/dxn:queue:other:log/pull", {})).code == "queue_not_found"


async def test_a_body_of_another_media_type_is_refused(client: Client) -> None:
    await push(client, {"data": 1})
    reply = await client.ask("POST", f"{JOBS}/pull", b"{}", headers=[(b"content-type", b"text/plain")])
    assert (reply.status, reply.code) == (415, "unsupported_media_type")
    assert len(await pull(client)) == 1


async def test_a_thousand_leases_are_answered_one_by_one(client: Client) -> None:
    await push(client, {"data": 1})
    assert await said(client, "ack", {"leases": ["x"] * 1_000}) == ["unknown"] * 1_000


async def test_a_push_makes_a_queue_only_where_the_caller_may_create(world: World) -> None:
    pusher, maker = world.token("push"), world.token("push", "create")
    client = await world.open()
    body = b'{"entries":[{"data":1}]}'
    before = await client.ask("POST", f"{JOBS}/push", body, headers=[pusher])
    assert (before.status, before.code) == (404, "queue_not_found")
    assert (await client.ask("POST", f"{JOBS}/push", body, headers=[maker])).status == 200
    assert (await client.ask("POST", f"{JOBS}/push", body, headers=[pusher])).status == 200
    beside = await client.ask("POST", "/v1/dxn:queue:demo:others/push", body, headers=[pusher])
    assert (beside.status, beside.code) == (404, "queue_not_found")


async def test_settings_of_a_work_queue_are_its_own_where_not_named(client: Client) -> None:
    made = (await client.put(f"{JOBS}/config", {"kind": "work"})).json()
    assert (made["on_ack"], made["mutable"]) == ("delete", False)
    kept = (await client.put(f"{JOBS}/config", {"kind": "work", "on_ack": "keep", "mutable": True})).json()
    assert (kept["on_ack"], kept["mutable"]) == ("keep", True)


async def test_stats_count_the_consumers_of_a_queue_that_has_some(client: Client) -> None:
    await client.append("dxn:queue:demo:log", 1)
    assert "consumers" not in (await client.get("/v1/dxn:queue:demo:log/stats")).json()
    await push(client, {"data": 1}, {"data": 2})
    await pull(client)
    [one] = (await client.get(f"{JOBS}/stats")).json()["consumers"]
    assert (one["name"], one["ready"], one["leased"], one["total_in"]) == ("default", 1, 1, 2)


async def test_a_removed_queue_is_gone_and_can_be_made_again(client: Client) -> None:
    await push(client, {"data": 1}, {"data": 2})
    await pull(client)
    assert (await client.delete(f"{JOBS}/config")).status == 200
    assert (await client.get(f"{JOBS}/stats")).code == "queue_not_found"
    assert (await client.delete(f"{JOBS}/config")).code == "queue_not_found"
    await push(client, {"data": 3})
    assert [one["data"] for one in await pull(client, batch=10)] == [3]


async def test_peek_goes_on_where_it_stopped_and_changes_nothing(client: Client) -> None:
    await push(client, *({"data": n} for n in range(3)))
    first = (await client.get(f"{JOBS}/peek?limit=2")).json()
    assert [one["data"] for one in first["messages"]] == [0, 1]
    rest = (await client.get(f"{JOBS}/peek?limit=2&after={first['resume']}")).json()
    assert ([one["data"] for one in rest["messages"]], rest["resume"]) == ([2], None)
    assert [one["attempts"] for one in await pull(client, batch=10)] == [1, 1, 1]


async def test_lists_end_early_where_they_are_heavy(client: Client) -> None:
    """Two of 3 MB: more than a page takes with the second, so the third is on the next one."""
    for number in range(3):
        await push(client, {"id": f"m{number}", "data": "x" * 3_000_000})
    first = (await client.get(f"{JOBS}/peek")).json()
    assert [one["id"] for one in first["messages"]] == ["m0", "m1"]
    rest = (await client.get(f"{JOBS}/peek?after={first['resume']}")).json()
    assert [one["id"] for one in rest["messages"]] == ["m2"]


@pytest.mark.parametrize(
    ("query", "status", "about"),
    [
        ("peek?limit=0", 400, "limit"),
        ("peek?limit=1001", 400, "limit"),
        ("peek?after=-1", 400, "after"),
        ("peek?state=gone", 400, "state"),
        ("peek?states=ready", 400, "states"),
        ("peek?consumer=nobody", 404, "nobody"),
        ("lines?limit=0", 400, "limit"),
        ("dead?limit=0", 400, "limit"),
        ("explain", 400, "id"),
        ("explain?id=a%20b", 400, "object id"),
        ("explain?id=nobody", 404, "nobody"),
    ],
)
async def test_what_cannot_be_looked_at_is_refused_by_name(
    client: Client, query: str, status: int, about: str
) -> None:
    await push(client, {"data": 1})
    reply = await client.get(f"{JOBS}/{query}")
    assert reply.status == status
    assert about in reply.json()["detail"]


@pytest.mark.parametrize(
    ("rules", "code", "about"),
    [
        (b'{"lease_ms":0}', "invalid_request", "lease_ms"),
        (b'{"attempts_max":0}', "invalid_request", "attempts_max"),
        (b'{"start":"middle"}', "invalid_request", "middle"),
        (b'{"leases":1}', "invalid_request", "leases"),
        (b'{"lease_ms":1,"lease_ms":2}', "invalid_json", "lease_ms"),
        (b'{"ordering":"fifo"}', "invalid_request", "ordering"),
    ],
)
async def test_rules_that_cannot_be_are_refused_by_name(
    client: Client, rules: bytes, code: str, about: str
) -> None:
    await push(client, {"data": 1})
    reply = await client.ask("PUT", f"{JOBS}/consumers/default", rules)
    assert (reply.status, reply.code) == (400, code)
    assert about in reply.json()["detail"]
    assert (await client.delete(f"{JOBS}/consumers/nobody")).code == "consumer_not_found"
