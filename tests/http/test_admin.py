"""The admin API: how queues are doing, which space is meant, who may ask, and what is on record of it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from edgequeues.core.ids import is_ulid

from .admin_queue import DLQ, QUEUES, T, ask, bury, records
from .asgi import Client
from .work_queue import JOBS, pull, push, said
from .world import World, denied


async def queue(client: Client) -> dict[str, Any]:
    """How `jobs` is doing."""
    [found] = [one for one in (await ask(client, "GET", f"{QUEUES}{T}"))["queues"] if one["name"] == "jobs"]
    answer: dict[str, Any] = found
    return answer


# -- how queues are doing -----------------------------------------------------------------------------------


async def test_a_queue_is_listed_with_what_waits_and_what_is_worked(client: Client) -> None:
    await push(client, {"data": 1}, {"data": 2}, {"data": 3, "delay_ms": 600_000}, {"data": 4})
    first, _ = await pull(client, batch=2, lease_ms=600_000)
    await trio.sleep(7)
    await said(client, "retry", {"retries": [{"lease": first["lease"], "delay_ms": 60_000}]})
    found = await queue(client)
    rates, queue_id = found.pop("rates"), found.pop("id")
    assert is_ulid(queue_id)
    assert found == {
        "name": "jobs",
        "kind": "work",
        "paused": False,
        "entries": 4,
        "depth": 3,
        "in_flight": 1,
        "states": {"scheduled": 1, "waiting": 0, "ready": 1, "leased": 1, "backoff": 1},
        "oldest_message_age_seconds": 7,
        "oldest_ready_age_seconds": 7,
        "messages_per_minute": 4,
    }
    assert rates == {"in": [*[0] * 52, 4, *[0] * 7], "out": [0] * 60}


async def test_what_comes_in_and_what_is_acked_is_told_second_by_second(client: Client) -> None:
    await push(client, {"data": 1}, {"data": 2}, {"data": 3})
    await trio.sleep(10)
    first, second, _ = await pull(client, batch=3)
    await said(client, "ack", {"leases": [first["lease"], second["lease"]]})
    await trio.sleep(5)
    await push(client, {"data": 4})
    rates = (await queue(client))["rates"]
    assert [(n, rate) for n, rate in enumerate(rates["in"]) if rate] == [(44, 3), (59, 1)]
    assert [(n, rate) for n, rate in enumerate(rates["out"]) if rate] == [(54, 2)]
    await trio.sleep(60)
    assert (await queue(client))["rates"] == {"in": [0] * 60, "out": [0] * 60}


async def test_the_next_that_could_be_pulled_is_no_older_than_it_has_been_ready(client: Client) -> None:
    await push(client, {"data": 1, "delay_ms": 10_000})
    await trio.sleep(9)
    found = await queue(client)
    assert (found["oldest_message_age_seconds"], found["oldest_ready_age_seconds"]) == (9, None)
    await trio.sleep(4)
    found = await queue(client)
    assert (found["oldest_message_age_seconds"], found["oldest_ready_age_seconds"]) == (13, 3)


async def test_queues_are_found_by_a_part_of_their_names(client: Client) -> None:
    for name in ("orders", "Orders-eu", "jobs", "reorder", "mails"):
        await client.append(f"dxn:queue:demo:{name}", 1)
        await trio.sleep(0.001)  # ids of one millisecond are in any order

    async def named(part: str) -> list[str]:
        return [one["name"] for one in (await ask(client, "GET", f"{QUEUES}{T}&name={part}"))["queues"]]

    assert await named("order") == ["orders", "Orders-eu", "reorder"]
    assert await named("ORDER") == ["orders", "Orders-eu", "reorder"]
    assert await named("%25") == await named("_") == await named("no-such") == []
    page = await ask(client, "GET", f"{QUEUES}{T}&name=order&limit=2")
    assert [one["name"] for one in page["queues"]] == ["orders", "Orders-eu"]
    page = await ask(client, "GET", f"{QUEUES}{T}&name=order&limit=2&after={page['next']}")
    assert ([one["name"] for one in page["queues"]], "next" in page) == (["reorder"], False)
    reply = await client.get(f"{QUEUES}{T}&name={'x' * 129}")
    assert (reply.status, reply.code) == (400, "invalid_request")


async def test_an_empty_queue_has_no_oldest_message(client: Client) -> None:
    await push(client, {"data": 1})
    [message] = await pull(client)
    await said(client, "ack", {"leases": [message["lease"]]})
    found = await queue(client)
    assert (found["depth"], found["in_flight"], found["oldest_message_age_seconds"]) == (0, 0, None)


async def test_messages_per_minute_are_those_of_the_last_sixty_seconds(client: Client) -> None:
    await push(client, {"data": 1}, {"data": 2})
    await trio.sleep(30)
    await push(client, {"data": 3})
    assert (await queue(client))["messages_per_minute"] == 3
    await trio.sleep(30)
    assert (await queue(client))["messages_per_minute"] == 1
    await trio.sleep(30)
    assert (await queue(client))["messages_per_minute"] == 0


async def test_what_is_refused_does_not_count_as_a_message_of_the_minute(client: Client) -> None:
    await client.put(f"{JOBS}/config", {"kind": "work", "depth_max": 2})
    await push(client, {"data": 1}, {"data": 2})
    for _ in range(3):
        assert (await client.post(f"{JOBS}/push", {"entries": [{"data": 3}]})).code == "queue_full"
    assert (await queue(client))["messages_per_minute"] == 2


async def test_a_log_that_nobody_works_has_all_its_entries_waiting(client: Client) -> None:
    await client.append("dxn:queue:demo:log", 1, 2, 3)
    [found] = (await ask(client, "GET", f"{QUEUES}{T}"))["queues"]
    assert (found["name"], found["depth"], found["in_flight"]) == ("log", 3, 0)


async def test_queues_come_in_pages(client: Client) -> None:
    for name in "abcde":
        await client.append(f"dxn:queue:demo:{name}", 1)
    names: list[str] = []
    after = ""
    for _ in range(3):
        page = await ask(client, "GET", f"{QUEUES}{T}&limit=2{after}")
        names += [one["name"] for one in page["queues"]]
        after = f"&after={page.get('next')}"
    assert sorted(names) == list("abcde")
    assert "next" not in page


async def test_one_queue_tells_of_its_dead_letters_too(client: Client) -> None:
    first, _ = await bury(client, 1, 2)
    await ask(client, "POST", f"{DLQ}/{first}/replay{T}", {})
    found = await ask(client, "GET", f"{QUEUES}/jobs{T}")
    assert (found["depth"], found["dead_letters"], found["dead_letter_queues"]) == (1, 1, ["jobs-dlq"])
    assert (found["paused"], len(found["id"])) == (False, 26)
    assert (await client.get(f"{QUEUES}/nobody{T}")).code == "queue_not_found"


# -- which space --------------------------------------------------------------------------------------------


def spec(app: str) -> dict[str, Any]:
    return {"version": 0, "app": app, "queues": {"jobs": {}}}


async def test_without_a_tenant_the_only_space_with_a_spec_is_meant(client: Client) -> None:
    await client.put("/v1/spaces/demo/specs/shop", spec("shop"))
    await client.append("dxn:queue:other:log", 1)
    assert [one["name"] for one in (await ask(client, "GET", QUEUES))["queues"]] == ["jobs"]
    await client.put("/v1/spaces/second/specs/app2", spec("app2"))
    reply = await client.get(QUEUES)
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert "tenant_id: say which space is meant; specs hold in demo, second" in reply.json()["detail"]


async def test_without_any_spec_a_tenant_must_be_named(client: Client) -> None:
    await push(client, {"data": 1})
    reply = await client.get(DLQ)
    assert (reply.status, "a spec holds in none" in reply.json()["detail"]) == (400, True)


@pytest.mark.parametrize("path", [QUEUES, f"{QUEUES}/jobs", DLQ, f"{DLQ}/x", "/admin/audit"])
async def test_an_unknown_tenant_is_not_found_and_none_is_made(client: Client, path: str) -> None:
    reply = await client.get(f"{path}?tenant_id=nobody")
    assert (reply.status, reply.code) == (404, "queue_not_found")
    assert (await client.get("/v1/spaces")).json()["spaces"] == []


@pytest.mark.parametrize(
    "path",
    [
        f"{QUEUES}{T}&limti=1",
        f"{QUEUES}{T}&limit=101",
        f"{QUEUES}?tenant_id=",
        f"{QUEUES}?tenant_id=a&tenant_id=b",
        f"{QUEUES}/jobs{T}&limit=1",
        f"{DLQ}{T}&reasons=permanent",
        f"{DLQ}{T}&reason=bored",
        f"{DLQ}{T}&replayed=yes",
        f"{DLQ}{T}&after=12",
        f"{DLQ}{T}&where=attempts%20%3E",
        f"{DLQ}{T}&where=attempts",
        f"/admin/audit{T}&verb=x",
    ],
)
async def test_what_is_misspelt_is_refused(client: Client, path: str) -> None:
    await bury(client, 1)
    reply = await client.get(path)
    assert (reply.status, reply.code) == (400, "invalid_request")


# -- who may ask --------------------------------------------------------------------------------------------


async def test_a_token_reaches_as_far_as_its_space_and_its_queues(world: World) -> None:
    client = await world.open()
    [letter] = await bury(client, 1)
    mine = world.token("read", "push", spaces=["demo"], queues=["jobs"])
    await trio.sleep(1)
    one = f"{DLQ}/{letter}"
    assert (await client.get(f"{one}{T}", mine)).status == 200
    assert denied(await client.get(f"{QUEUES}/other/dlq{T}", mine)) == "forbidden"
    assert denied(await client.get(f"{DLQ}?tenant_id=other", mine)) == "forbidden"
    assert denied(await client.get(DLQ, mine)) == "forbidden"  # no spec holds, so it could be any space
    assert denied(await client.get(f"/admin/audit{T}", mine)) == "forbidden"
    assert denied(await client.ask("DELETE", f"{one}{T}", headers=[mine])) == "forbidden"
    assert denied(await client.get(f"{one}{T}")) == "unauthenticated"
    assert (await client.post(f"{one}/replay{T}", {}, mine)).json()["ok"] is True


# -- on record ----------------------------------------------------------------------------------------------


async def test_whatever_way_it_was_done_it_is_on_record_with_who_did_it(world: World) -> None:
    client = await world.open()
    first, second, third = await bury(client, 1, 2, 3)
    header = world.token("read", "push", "delete", "configure", "spec", "list", name="anna")
    await trio.sleep(1)
    await ask(client, "POST", f"{DLQ}/{first}/replay{T}", {"message": 5}, [header])
    await client.post(f"{JOBS}-dlq/replay", {"ids": [second]}, header)
    await client.ask("DELETE", f"{DLQ}/{third}{T}", headers=[header])
    await client.post(f"{JOBS}-dlq/purge", {}, header)
    await client.ask("PATCH", f"{JOBS}/config", b'{"paused":true}', headers=[header])
    await client.ask(
        "PUT", "/v1/spaces/demo/specs/shop", b'{"version":0,"app":"shop","queues":{"q":{}}}', headers=[header]
    )
    await client.ask("DELETE", "/v1/spaces/demo/specs/shop", headers=[header])
    found = (await ask(client, "GET", f"/admin/audit{T}", None, [header]))["audit"]
    token_id = header[1].decode().split("_")[1]
    assert {(one["who"]["id"], one["who"]["name"]) for one in found} == {(token_id, "anna")}
    assert [(one["action"], one["queue"]) for one in found] == [
        ("replay", "jobs-dlq"),
        ("replay", "jobs-dlq"),
        ("delete_letters", "jobs-dlq"),
        ("purge", "jobs-dlq"),
        ("pause", "jobs"),
        ("apply_spec", None),
        ("remove_spec", None),
        ("remove", found[-1]["queue"]),
    ]
    assert found[0]["detail"]["edited"] is True
    assert found[3]["detail"] == {"deleted": 2}
    secret = header[1].decode().split("_", 2)[2]
    assert secret not in str(found)


async def test_without_tokens_it_was_whoever_is_on_this_machine(client: Client) -> None:
    await client.put(f"{JOBS}/config", {"kind": "work"})
    [record] = await records(client)
    assert record["who"] == {"id": "loopback", "name": ""}


async def test_who_has_no_token_is_anybody(world: World) -> None:
    world.let_everybody("configure", "read")
    client = await world.open()
    await client.put(f"{JOBS}/config", {"kind": "work"})
    assert [one["who"]["id"] for one in await records(client)] == ["anybody"]


async def test_the_cloudflare_dialect_is_on_record_too(client: Client) -> None:
    account = "/client/v4/accounts/demo/queues"
    made = (await client.post(account, {"queue_name": "cf"})).json()["result"]["queue_id"]
    await client.post(f"{account}/{made}/consumers", {"type": "http_pull"})
    await client.post(f"{account}/{made}/purge", {"delete_messages_permanently": True})
    await client.delete(f"{account}/{made}")
    found = await records(client)
    assert [one["action"] for one in found] == ["configure", "set_consumer", "purge", "remove"]
    assert {one["who"]["id"] for one in found} == {"loopback"}


async def test_the_record_comes_in_pages_and_by_queue(client: Client) -> None:
    for number, name in enumerate(("a", "b", "a", "c", "a")):
        await client.put(f"/v1/dxn:queue:demo:{name}/config", {"max_entries": number + 1})
    first = await ask(client, "GET", f"/admin/audit{T}&limit=3")
    rest = await ask(client, "GET", f"/admin/audit{T}&limit=3&after={first['next']}")
    assert [one["queue"] for one in first["audit"] + rest["audit"]] == ["a", "b", "a", "c", "a"]
    assert "next" not in rest
    assert [one["id"] for one in await records(client, "&queue=a")] == [1, 3, 5]
    assert await records(client, "&queue=nobody") == []


async def test_the_record_is_read_backwards_from_the_newest(client: Client) -> None:
    for number, name in enumerate(("a", "b", "a", "c", "a")):
        await client.put(f"/v1/dxn:queue:demo:{name}/config", {"max_entries": number + 1})
    first = await ask(client, "GET", f"/admin/audit{T}&limit=3&reverse=true")
    rest = await ask(client, "GET", f"/admin/audit{T}&limit=3&reverse=true&after={first['next']}")
    assert [one["id"] for one in first["audit"] + rest["audit"]] == [5, 4, 3, 2, 1]
    assert "next" not in rest
    assert [one["id"] for one in await records(client, "&queue=a&reverse=true")] == [5, 3, 1]
    await client.delete("/v1/dxn:queue:demo:c/config")
    assert [one["action"] for one in await records(client, "&queue=c&reverse=true")] == [
        "remove",
        "configure",
    ]
