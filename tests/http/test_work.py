"""Work queues over HTTP: what is pushed is pulled, and what became of it is told."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
import trio

from .asgi import Client
from .work_queue import JOBS, pull, push, said, waiting


async def test_a_message_is_pushed_pulled_and_acked(client: Client) -> None:
    await push(client, {"data": {"n": 1}, "id": "a", "key": "k", "headers": {"x": "y"}, "type": "t"})
    [message] = await pull(client, batch=10, lease_ms=5_000, worker="me")
    assert (message["data"], message["id"], message["key"], message["attempts"]) == ({"n": 1}, "a", "k", 1)
    assert (message["headers"], message["type"], message["priority"]) == ({"x": "y"}, "t", 4)
    assert await pull(client) == []
    lease = message["lease"]
    assert await said(client, "ack", {"leases": [lease]}) == ["done"]
    assert await said(client, "ack", {"leases": [lease, "forged"]}) == ["finished", "unknown"]
    assert (await client.get(f"{JOBS}/stats")).json()["entries"] == 0


async def test_a_failed_message_comes_again_after_its_back_off_and_is_dead_in_the_end(client: Client) -> None:
    """Attempts at 0, 1, 3, 7 and 15 s: waits of 1, 2, 4 and 8."""
    await push(client, {"data": 1, "id": "a"})
    start = trio.current_time()
    seen = []
    for _ in range(5):
        [message] = await pull(client, "?wait=60")
        seen.append(round(trio.current_time() - start, 2))
        assert await said(client, "retry", {"retries": [{"lease": message["lease"], "error": "no"}]}) == [
            "done"
        ]
    assert seen == [pytest.approx(at, abs=0.05) for at in (0, 1, 3, 7, 15)]
    dead = (await client.get("/v1/dxn:queue:demo:jobs-dlq/dead")).json()
    [found] = dead["letters"]
    letter = found["letter"]
    assert (letter["originalMessage"], letter["originalMessageId"], letter["originalQueue"]) == (
        1,
        "a",
        "jobs",
    )
    assert (letter["reason"], letter["lastError"], letter["attempts"]) == ("exhausted", "no", 5)
    assert [one["attempt"] for one in letter["errors"]] == [1, 2, 3, 4, 5]


async def test_a_dead_letter_is_replayed_once(client: Client) -> None:
    await push(client, {"data": 1, "id": "a"})
    [message] = await pull(client)
    await said(client, "retry", {"retries": [{"lease": message["lease"], "permanent": True}]})
    dlq = "/v1/dxn:queue:demo:jobs-dlq"
    [letter] = (await client.get(f"{dlq}/dead")).json()["letters"]
    [first] = (await client.post(f"{dlq}/replay", {"ids": [letter["id"]]})).json()["results"]
    [again] = (await client.post(f"{dlq}/replay", {"ids": [letter["id"]]})).json()["results"]
    assert (first["outcome"], again["outcome"], again["message"]) == ("replayed", "already", first["message"])
    [message] = await pull(client)
    assert (message["id"], message["attempts"], message["data"]) == (first["message"], 1, 1)


async def test_a_waiting_pull_is_answered_by_a_push(client: Client) -> None:
    await push(client, {"data": 0})
    await pull(client)
    async with waiting(client) as found:
        await trio.sleep(3)
        assert found == []
        await push(client, {"data": 1})
    assert [one["data"] for one in found] == [1]


async def test_a_waiting_pull_is_answered_when_another_lease_ends(client: Client) -> None:
    await push(client, {"data": 1})
    await pull(client, lease_ms=7_000)
    start = trio.current_time()
    [message] = await pull(client, "?wait=30")
    assert trio.current_time() - start == pytest.approx(7, abs=0.05)
    assert message["attempts"] == 2


async def test_a_waiting_pull_is_answered_when_a_paused_queue_goes_on(client: Client) -> None:
    await push(client, {"data": 1})
    await client.patch(f"{JOBS}/config", {"paused": True})
    async with waiting(client) as found:
        await trio.sleep(3)
        assert found == []
        await client.patch(f"{JOBS}/config", {"paused": False})
    assert [one["data"] for one in found] == [1]


@pytest.mark.parametrize("verb", ["ack", "release", "retry"])
async def test_a_waiting_pull_is_answered_when_a_line_goes_on(client: Client, verb: str) -> None:
    await client.put(f"{JOBS}/config", {"kind": "work"})
    await client.delete(f"{JOBS}/consumers/default")
    await client.put(f"{JOBS}/consumers/default", {"ordering": "fifo", "backoff": {"initial_ms": 2_000}})
    await push(client, {"data": 1}, {"data": 2})
    [held] = await pull(client)
    async with waiting(client) as found:
        await trio.sleep(3)
        assert found == []
        lease = held["lease"]
        body = {"retries": [{"lease": lease}]} if verb == "retry" else {"leases": [lease]}
        assert await said(client, verb, body) == ["done"]
    assert [one["data"] for one in found] == [2 if verb == "ack" else 1]


async def test_messages_pushed_together_reach_all_who_wait(client: Client) -> None:
    await push(client, {"data": 0})
    await pull(client)
    start = trio.current_time()
    async with AsyncExitStack() as stack:
        found = [await stack.enter_async_context(waiting(client)) for _ in range(9)]
        await trio.sleep(3)
        await push(client, *({"data": number} for number in range(9)))
    assert sorted(one["data"] for messages in found for one in messages) == list(range(9))
    assert trio.current_time() - start < 10


async def test_a_pull_that_waits_by_id_is_answered_by_a_push_by_name(client: Client) -> None:
    await push(client, {"data": 0})
    await pull(client)
    queue_id = (await client.get(f"{JOBS}/stats")).json()["id"]
    async with waiting(client, f"/v1/dxn:queue:demo:{queue_id}") as found:
        await trio.sleep(3)
        await push(client, {"data": 1})
    assert [one["data"] for one in found] == [1]


async def test_a_client_that_hung_up_while_it_waited_is_given_nothing(client: Client) -> None:
    await push(client, {"data": 0})
    await pull(client)
    async with client.open("POST", f"{JOBS}/pull?wait=30") as exchange:
        exchange.end(b"{}")
        await trio.sleep(3)
        exchange.hang_up()
        await exchange.ended.wait()
    await push(client, {"data": 1})
    assert [one["data"] for one in await pull(client)] == [1]


async def test_a_waiting_pull_ends_with_nothing(client: Client) -> None:
    await push(client, {"data": 1, "delay_ms": 60_000})
    start = trio.current_time()
    assert await pull(client, "?wait=5") == []
    assert trio.current_time() - start == pytest.approx(5, abs=0.05)


async def test_release_and_extend(client: Client) -> None:
    await push(client, {"data": 1})
    [message] = await pull(client, lease_ms=1_000)
    assert await said(client, "extend", {"leases": [message["lease"]], "lease_ms": 10_000}) == ["done"]
    await trio.sleep(5)
    assert await pull(client) == []
    assert await said(client, "release", {"leases": [message["lease"]]}) == ["done"]
    [message] = await pull(client)
    assert message["attempts"] == 1


async def test_a_paused_queue_gives_nothing_and_says_so(client: Client) -> None:
    await push(client, {"data": 1})
    await client.patch(f"{JOBS}/config", {"paused": True})
    answer = (await client.post(f"{JOBS}/pull", {})).json()
    assert (answer["messages"], answer["paused"], answer["backlog"]) == ([], True, 1)
    await client.patch(f"{JOBS}/config", {"paused": False})
    assert len(await pull(client)) == 1


async def test_consumers_have_their_own_deliveries_and_the_entry_goes_with_the_last(client: Client) -> None:
    await push(client, {"data": 1})
    made = await client.put(f"{JOBS}/consumers/audit", {"start": "beginning", "lease_ms": 1_000})
    assert (made.status, made.json()["name"], made.json()["config"]["lease_ms"]) == (200, "audit", 1_000)
    await trio.sleep(1)
    [mine] = await pull(client, "?consumer=audit")
    [theirs] = await pull(client, "?consumer=default")
    assert await said(client, "ack", {"leases": [mine["lease"]]}) == ["done"]
    assert (await client.get(f"{JOBS}/stats")).json()["entries"] == 1
    assert await said(client, "ack", {"leases": [theirs["lease"]]}) == ["done"]
    assert (await client.get(f"{JOBS}/stats")).json()["entries"] == 0
    assert (await client.delete(f"{JOBS}/consumers/audit")).status == 200
    listed = (await client.get(f"{JOBS}/consumers")).json()["consumers"]
    assert [(one["name"], one["total_acked"]) for one in listed] == [("default", 1)]


async def test_purge_takes_what_is_there_and_ends_its_leases(client: Client) -> None:
    await push(client, *({"data": n} for n in range(5)))
    [held] = await pull(client)
    assert (await client.post(f"{JOBS}/purge", {})).json() == {"deleted": 5}
    assert await said(client, "ack", {"leases": [held["lease"]]}) == ["finished"]
    await push(client, {"data": 9})
    assert [one["data"] for one in await pull(client, batch=10)] == [9]


async def test_a_repeated_push_answers_as_the_first(client: Client) -> None:
    entry = {"data": 1, "idempotency_key": "once"}
    [first] = await push(client, entry)
    [again] = await push(client, entry)
    assert (again["id"], again["outcome"]) == (first["id"], "same")
    reply = await client.post(f"{JOBS}/push", {"entries": [entry | {"data": 2}]})
    assert (reply.status, reply.code) == (409, "idempotency_mismatch")
    assert len(await pull(client, batch=10)) == 1


async def test_a_waiting_pull_is_answered_when_a_delay_ends(client: Client) -> None:
    await push(client, {"data": 1, "delay_ms": 4_000})
    start = trio.current_time()
    [message] = await pull(client, "?wait=30")
    assert trio.current_time() - start == pytest.approx(4, abs=0.05)
    assert message["attempts"] == 1


@pytest.mark.parametrize(
    ("method", "what"), [("POST", "purge"), ("DELETE", "config"), ("DELETE", "consumers/default")]
)
async def test_more_than_one_turn_removes_goes_all_the_same(client: Client, method: str, what: str) -> None:
    for _ in range(2):
        await push(client, *({"data": n} for n in range(1_000)))
    reply = await client.ask(method, f"{JOBS}/{what}")
    assert (reply.status, reply.json()) == (200, {"deleted": 2_000} if what == "purge" else {})
    await push(client, {"data": "new"})
    await client.put(f"{JOBS}/consumers/default", {})
    given = [] if what == "consumers/default" else ["new"]
    assert [one["data"] for one in await pull(client, batch=10)] == given
