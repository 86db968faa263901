"""Cloudflare's API: what an ack may say to this server alone."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from .asgi import Client
from .cloudflare_queue import Queue, find, make, ok, refusal
from .world import World, heeded

EVENT = {"reply": "on its way"}


async def pulled(queue: Queue, *bodies: str) -> list[str]:
    """Push texts, pull them, return their leases."""
    await queue.push(*bodies, content_type="text")
    return [one["lease_id"] for one in await queue.pull()]


def emit(lease: str, key: str = "reply:1", queue: str = "jobs-outbox") -> dict[str, Any]:
    return {"lease_id": lease, "queue": queue, "body": EVENT, "key": key}


async def said(queue: Queue, **body: Any) -> Any:
    return ok(await queue.post("messages/ack", body))


def leases(*some: str) -> list[dict[str, str]]:
    return [{"lease_id": one} for one in some]


async def test_a_pull_says_that_the_server_is_this_one(client: Client) -> None:
    queue = await make(client)
    answer = ok(await queue.post("messages/pull", {}))
    assert answer["metadata"]["metrics"]["edgequeues"] == 1


async def test_what_no_attempt_will_help_is_a_dead_letter_at_once_and_says_why(client: Client) -> None:
    queue = await make(client, dlq="graves", max_retries=9)
    one, other = await pulled(queue, "a", "b")
    answer = await said(
        queue,
        permanent=leases(one),
        retries=[{"lease_id": other, "delay_seconds": 5}],
        errors={one: "MALFORMED_EVENT: $.id is missing", other: "a hiccup"},
    )
    assert (answer["permanentCount"], answer["retryCount"], answer["warnings"]) == (1, 1, {})
    graves = await find(client, "graves")
    ok(await graves.post("consumers", {"type": "http_pull"}))
    [letter] = await graves.pull()
    assert letter["body"] == "a"
    metadata = letter["metadata"]
    assert (metadata["eq-last-error"], metadata["eq-attempts"]) == ("MALFORMED_EVENT: $.id is missing", "1")
    assert metadata["eq-first-seen-at"] <= metadata["eq-last-seen-at"]
    assert await queue.count() == 1
    shown = await client.get("/v1/dxn:queue:demo:graves/dead")
    assert [one["letter"]["reason"] for one in shown.json()["letters"]] == ["malformed"]


async def test_what_is_given_back_counts_no_attempt(client: Client) -> None:
    queue = await make(client)
    [lease] = await pulled(queue, "a")
    assert (await said(queue, releases=leases(lease)))["releaseCount"] == 1
    [again] = await queue.pull()
    assert again["attempts"] == 1


async def test_a_result_is_kept_with_what_was_acked(client: Client) -> None:
    queue = await make(client)
    one, other = await pulled(queue, "a", "b")
    made = {"artifacts": [{"kind": "note"}]}
    await said(queue, acks=leases(one, other), results={one: made})
    reply = await client.get("/admin/queues/jobs/results?tenant_id=demo")
    assert reply.status == 200
    [kept] = reply.json()["results"]
    assert (kept["result"], kept["processed_at"]) == (made, 1_700_000_000)


async def test_a_message_goes_out_with_the_ack_of_another_and_its_queue_is_made(client: Client) -> None:
    queue = await make(client)
    [lease] = await pulled(queue, "a")
    answer = await said(queue, acks=leases(lease), emit=[emit(lease)])
    outbox = await find(client, "jobs-outbox")
    [emitted] = answer["emitted"]
    assert (emitted["lease_id"], emitted["queue_id"], emitted["queue_name"]) == (
        lease,
        outbox.queue_id,
        "jobs-outbox",
    )
    [message] = await outbox.pull()
    assert message["id"] == emitted["id"]
    assert json.loads(base64.b64decode(message["body"])) == EVENT


async def test_an_ack_that_is_repeated_sends_nothing_again(client: Client) -> None:
    queue = await make(client)
    [lease] = await pulled(queue, "a")
    await said(queue, acks=leases(lease), emit=[emit(lease)])
    again = await said(queue, acks=leases(lease), emit=[emit(lease, key="another")])
    assert (again["ackCount"], again["emitted"]) == (1, [])
    assert await (await find(client, "jobs-outbox")).count() == 1


async def test_a_key_goes_out_once_though_its_message_is_acked_twice(client: Client) -> None:
    queue = await make(client)
    one, other = await pulled(queue, "a", "a")
    first = await said(queue, acks=leases(one), emit=[emit(one)])
    second = await said(queue, acks=leases(other), emit=[emit(other)])
    assert first["emitted"][0]["id"] == second["emitted"][0]["id"]
    assert await (await find(client, "jobs-outbox")).count() == 1


async def test_a_message_that_cannot_go_out_leaves_the_other_unacked(client: Client) -> None:
    queue = await make(client)
    outbox = await make(client, "jobs-outbox")
    reply = await client.patch("/v1/dxn:queue:demo:jobs-outbox/config", {"depth_max": 1})
    assert reply.status == 200
    await outbox.push("full")
    one, other = await pulled(queue, "a", "b")
    reply = await queue.post(
        "messages/ack",
        {"acks": leases(one), "retries": [{"lease_id": other, "delay_seconds": 60}], "emit": [emit(one)]},
    )
    assert refusal(reply) == (429, 10250)
    assert (await said(queue, acks=leases(one, other)))["ackCount"] == 2


@pytest.mark.parametrize(
    "body",
    [
        {"emit": [emit("nobody")]},
        {"acks": leases("a"), "emit": [emit("a", queue="no name")]},
        {"acks": leases("a"), "emit": [emit("a", key="")]},
        {"acks": leases("a"), "emit": [{"lease_id": "a", "queue": "q", "key": "k"}]},
        {"results": {"a": 1}},
        {"errors": {"a": "why"}},
        {"permanent": leases("a"), "errors": {"a": 7}},
        {"permanent": [{}]},
        {"results": []},
    ],
)
async def test_what_fits_no_lease_is_refused_with_its_name(client: Client, body: dict[str, Any]) -> None:
    queue = await make(client)
    status, number = refusal(await queue.post("messages/ack", body))
    assert (status, number) == (400, 10207)


async def test_a_message_goes_only_where_its_sender_may_push(world: World) -> None:
    client = await world.open()
    queue = await make(client)
    await make(client, "jobs-outbox")
    [lease] = await pulled(queue, "a")
    body = {"acks": leases(lease), "emit": [emit(lease)]}
    path = f"{queue.path}/messages/ack"
    puller = world.token("pull", name="puller")
    pusher = world.token("pull", "push", name="pusher")
    await heeded()
    assert refusal(await client.post(path, body, puller)) == (403, 9109)
    new = {"acks": leases(lease), "emit": [emit(lease, queue="another")]}
    assert refusal(await client.post(path, new, pusher)) == (404, 11000)
    assert ok(await client.post(path, body, pusher))["ackCount"] == 1
