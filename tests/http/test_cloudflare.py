"""Cloudflare's API: messages, leases and retries, exact to the millisecond."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import trio

from .asgi import Client
from .cloudflare_queue import Queue, encoded, find, make, ok, refusal
from .work_queue import JOBS
from .world import World

BATCHES = [
    ("text", "plain \u2603", "plain \u2603"),
    ("json", {"a": [1, None]}, encoded({"a": [1, None]})),
    ("json", None, encoded(None)),
    ("bytes", "AP8=", "AP8="),
    ("v8", "/w9JAg==", "/w9JAg=="),
]


@pytest.mark.parametrize(("content_type", "body", "given"), BATCHES)
async def test_pl_s01_bodies_are_handed_out_as_their_content_type_says(
    client: Client, content_type: str, body: Any, given: str
) -> None:
    queue = await make(client)
    await queue.push(body, content_type=content_type)
    [message] = await queue.pull()
    assert (message["body"], message["metadata"]["CF-Content-Type"]) == (given, content_type)


async def test_a_json_body_keeps_its_bytes(client: Client) -> None:
    queue = await make(client)
    raw = rb'{"body": {"n" : 1.50, "half": "\ud800"}, "content_type": "json"}'
    ok(await client.ask("POST", f"{queue.path}/messages", raw))
    [body] = await queue.bodies()
    assert body == "eyJuIiA6IDEuNTAsICJoYWxmIjogIlx1ZDgwMCJ9"  # base64 of just these bytes


@pytest.mark.parametrize("name", ["visibility_timeout_ms", "visibility_timeout"])
async def test_pl_s02_a_lease_is_given_in_milliseconds(client: Client, name: str) -> None:
    queue = await make(client)
    await queue.push("x", content_type="text")
    assert await queue.bodies(**{name: 30_000}) == ["x"]
    await trio.sleep(29.999)
    assert await queue.bodies() == []
    await trio.sleep(0.001)
    assert await queue.bodies() == ["x"]


async def test_a_lease_that_says_nothing_lasts_as_long_as_the_consumer_has_it(client: Client) -> None:
    queue = await make(client, visibility_timeout_ms=2_000)
    await queue.push("x", content_type="text")
    assert len(await queue.pull()) == 1
    await trio.sleep(1.999)
    assert await queue.pull() == []
    await trio.sleep(0.001)
    [again] = await queue.pull()
    assert again["attempts"] == 2


async def test_pl_s06_an_ack_tells_of_each_lease_that_did_nothing(client: Client) -> None:
    queue = await make(client)
    await queue.push("a", "b", content_type="text")
    a, b = await queue.pull()
    said = await queue.say(
        [a["lease_id"], "nonsense"], [{"lease_id": b["lease_id"], "delay_seconds": 0}, "other"]
    )
    assert (said["ackCount"], said["retryCount"]) == (1, 1)
    assert set(said["warnings"]) == {"nonsense", "other"}


async def test_a_repeated_ack_counts_and_says_that_the_message_was_finished(client: Client) -> None:
    queue = await make(client)
    await queue.push("a", content_type="text")
    [a] = await queue.pull()
    assert (await queue.say([a["lease_id"]]))["warnings"] == {}
    again = await queue.say([a["lease_id"]])
    assert again["ackCount"] == 1
    assert "finished already" in again["warnings"][a["lease_id"]]


async def test_pl_s12_a_late_ack_counts_and_a_late_retry_does_not(client: Client) -> None:
    queue = await make(client)
    await queue.push("a", "b", content_type="text")
    first, second = await queue.pull(visibility_timeout_ms=1_000)
    await trio.sleep(1)
    [again, other] = await queue.pull(visibility_timeout_ms=60_000)
    late = await queue.say([first["lease_id"]], [second["lease_id"]])
    assert (late["ackCount"], late["retryCount"]) == (1, 0)
    assert set(late["warnings"]) == {second["lease_id"]}
    assert await queue.pull() == []  # the second is still leased by whom it was given to last
    assert (await queue.say([other["lease_id"]]))["ackCount"] == 1
    assert (await queue.say([again["lease_id"]]))["ackCount"] == 1
    assert await queue.count() == 0


async def test_a_lapse_waits_for_the_retry_delay_of_the_consumer(client: Client) -> None:
    queue = await make(client, retry_delay=10)
    await queue.push("x", content_type="text")
    await queue.pull(visibility_timeout_ms=1_000)
    await trio.sleep(10.999)
    assert await queue.pull() == []
    await trio.sleep(0.001)
    assert len(await queue.pull()) == 1


async def test_a_retry_waits_as_it_says_else_as_the_consumer_has_it(client: Client) -> None:
    queue = await make(client, retry_delay=10)
    await queue.push("x", content_type="text")
    [message] = await queue.pull()
    await queue.say(retries=[{"lease_id": message["lease_id"], "delay_seconds": 0}])
    [message] = await queue.pull()
    await queue.say(retries=[message["lease_id"]])
    await trio.sleep(9.999)
    assert await queue.pull() == []
    await trio.sleep(0.001)
    assert len(await queue.pull()) == 1


async def test_a_message_is_delivered_once_more_than_it_may_be_retried(client: Client) -> None:
    queue = await make(client, dlq="dead", max_retries=2)
    await queue.push({"job": 1}, content_type="json")
    for attempt in (1, 2, 3):
        [message] = await queue.pull()
        assert message["attempts"] == attempt
        await queue.say(retries=[message["lease_id"]])
    assert await queue.pull() == []
    assert await queue.count() == 0
    assert await (await find(client, "dead")).count() == 1


async def test_a_dead_letter_tells_why_it_died(client: Client) -> None:
    queue = await make(client, dlq="dead", max_retries=0)
    await queue.push("x", content_type="text")
    assert await queue.bodies(visibility_timeout_ms=1_000) == ["x"]
    await trio.sleep(1)
    dead = await find(client, "dead")
    ok(await dead.post("consumers", {"type": "http_pull"}))
    [peeked] = ok(await dead.post("messages/peek", {}))["messages"]
    [letter] = await dead.pull()
    assert peeked["metadata"] == letter["metadata"]
    told = letter["metadata"]
    assert (letter["body"], letter["attempts"], told["CF-Content-Type"]) == ("x", 1, "text")
    assert told["eq-last-error"] == "the lease lapsed without an answer"
    assert (told["eq-attempts"], told["eq-original-queue"]) == ("1", "jobs")
    assert told["eq-first-seen-at"] == told["eq-last-seen-at"]
    assert told["eq-first-seen-at"].endswith("Z")


async def test_a_dead_letter_is_shown_in_its_envelope_where_the_rules_say_so(client: Client) -> None:
    queue = await make(client, dlq="dead", max_retries=0)
    await queue.push("x", content_type="text")
    [message] = await queue.pull()
    await queue.say(retries=[message["lease_id"]])
    rules = {"dead_letter_body": "envelope", "start": "beginning"}
    assert (await client.put("/v1/dxn:queue:demo:dead/consumers/default", rules)).status == 200
    [letter] = await (await find(client, "dead")).pull()
    assert letter["metadata"]["CF-Content-Type"] == "json"
    assert letter["body"].startswith("eyJvcmlnaW5hbE1lc3NhZ2UiOiJ4Ii")  # {"originalMessage":"x"...


async def test_without_a_queue_for_them_dead_letters_are_deleted_and_counted(client: Client) -> None:
    queue = await make(client, max_retries=0)
    await queue.push("x", content_type="text")
    [message] = await queue.pull()
    await queue.say(retries=[message["lease_id"]])
    assert await queue.count() == 0
    [consumer] = (await client.get(f"{JOBS}/consumers")).json()["consumers"]
    assert consumer["total_exhausted"] == 1


async def test_delays_of_a_message_win_over_its_batch_and_that_over_its_queue(client: Client) -> None:
    queue = await make(client)
    await queue.set(delivery_delay=30)
    await queue.push("queue", content_type="text")
    await queue.push("now", content_type="text", delay_seconds=0)
    messages = [
        {"body": "batch", "content_type": "text"},
        {"body": "own", "content_type": "text", "delay_seconds": 5},
    ]
    ok(await queue.post("messages/batch", {"messages": messages, "delay_seconds": 10}))
    assert await queue.bodies(visibility_timeout_ms=60_000) == ["now"]
    for pause_s, body in ((5, "own"), (5, "batch"), (20, "queue")):
        await trio.sleep(pause_s - 0.001)
        assert await queue.bodies() == []
        await trio.sleep(0.001)
        assert await queue.bodies(visibility_timeout_ms=60_000) == [body]


async def test_a_delay_of_its_own_is_told_in_the_metadata(client: Client) -> None:
    queue = await make(client)
    await queue.push("x", content_type="text", delay_seconds=20)
    await trio.sleep(20)
    [message] = await queue.pull()
    assert message["metadata"]["CF-msg-delay-secs"] == "20"


async def test_an_extended_lease_lasts_longer_and_counts_no_attempt(client: Client) -> None:
    queue = await make(client)
    await queue.push("x", content_type="text")
    [message] = await queue.pull(visibility_timeout_ms=10_000)
    await trio.sleep(9)
    body = {
        "extend": [{"lease_id": message["lease_id"]}, {"lease_id": "no"}],
        "visibility_timeout_ms": 20_000,
    }
    answer = ok(await queue.post("messages/extend", body))
    [extended] = answer["messages"]
    assert extended["previous_lease_id"] == message["lease_id"]
    assert set(answer["warnings"]) == {"no"}
    await trio.sleep(19.999)
    assert await queue.pull() == []
    assert (await queue.say([extended["lease_id"]]))["warnings"] == {}


async def test_a_paused_queue_takes_pushes_and_acks_but_hands_out_nothing(client: Client) -> None:
    queue = await make(client)
    await queue.push("before", content_type="text")
    [message] = await queue.pull()
    await queue.set(delivery_paused=True)
    reply = await queue.post("messages/pull", {})
    assert refusal(reply) == (409, 10252)
    assert "queue_delivery_paused" in reply.json()["errors"][0]["message"]
    assert reply.headers["x-should-retry"] == "false"
    await queue.push("during", content_type="text")
    assert (await queue.say([message["lease_id"]]))["ackCount"] == 1
    await queue.set(delivery_paused=False)
    assert await queue.bodies() == ["during"]


async def test_a_peek_changes_nothing_and_its_references_delete(client: Client) -> None:
    queue = await make(client)
    await queue.push("keep", "drop", content_type="text")
    await queue.push("later", content_type="text", delay_seconds=60)
    seen = ok(await queue.post("messages/peek", {}))["messages"]
    assert [(one["body"], one["attempts"]) for one in seen] == [("keep", 0), ("drop", 0)]
    assert "lease_id" not in seen[0]
    refs = {"refs": [{"ref": seen[1]["ref"]}]}
    assert ok(await queue.post("messages/purge", refs)) == {"errors": [], "warnings": {}}
    assert set(ok(await queue.post("messages/purge", refs))["warnings"]) == {seen[1]["ref"]}
    assert await queue.bodies() == ["keep"]


async def test_peek_and_purge_work_under_their_old_names(client: Client) -> None:
    queue = await make(client)
    await queue.push("x", content_type="text")
    [seen] = ok(await queue.post("messages/preview", {"batch_size": 1}))["messages"]
    acks = {"acks": [{"lease_id": seen["lease_id"]}]}
    assert ok(await queue.post("messages/preview/ack", acks)) == {"warnings": {}}
    assert await queue.count() == 0


async def test_a_purge_takes_what_is_leased_and_delayed_and_nothing_that_comes_later(client: Client) -> None:
    queue = await make(client)
    await queue.push(*("x" * 3), content_type="text")
    await queue.push("later", content_type="text", delay_seconds=60)
    [message] = await queue.pull(batch_size=1)
    assert ok(await client.get(f"{queue.path}/purge"))["completed"] == "false"  # there was none
    assert ok(await queue.post("purge", {"delete_messages_permanently": True}))["complete"] is True
    await queue.push("after", content_type="text")
    assert ok(await client.get(f"{queue.path}/purge"))["completed"] == "true"
    assert (await queue.say([message["lease_id"]]))["warnings"] != {}
    assert await queue.bodies() == ["after"]
    assert refusal(await queue.post("purge", {})) == (400, 10026)


async def test_what_was_pushed_natively_is_pulled_with_its_headers(client: Client) -> None:
    entry = {"id": "invoice.7", "data": {"n": 7}, "headers": {"trace": "abc"}}
    assert (await client.post(f"{JOBS}/push", {"entries": [entry]})).status == 200
    queue = await find(client, "jobs")
    [message] = await queue.pull()
    assert message["body"] == encoded({"n": 7})
    assert message["metadata"] == {"CF-Content-Type": "json", "CF-sourceMessageSource": "api", "trace": "abc"}
    assert len(message["id"]) == 32
    assert (await queue.say([message["lease_id"]]))["ackCount"] == 1


WIRES: list[tuple[dict[str, Any], Any]] = [
    ({}, ("json", encoded({"n": 1}), 4, 5)),
    ({"cloudflare_json_body": "plain"}, ("json", '{"n": 1}', 4, 5)),
    ({"cloudflare_max_retries": "deliveries"}, ("json", encoded({"n": 1}), 3, 5)),
    ({"cloudflare_batch_size": 9}, ("json", encoded({"n": 1}), 4, 9)),
]


@pytest.mark.parametrize(("settings", "expected"), WIRES)
async def test_what_the_documents_leave_open_is_a_setting(
    world: World, settings: dict[str, Any], expected: Any
) -> None:
    client = await world.open(**settings)
    queue = await make(client)
    await client.ask("POST", f"{queue.path}/messages", b'{"body": {"n": 1}}')
    [message] = await queue.pull()
    [native] = (await client.get(f"{JOBS}/consumers")).json()["consumers"]
    [consumer] = ok(await client.get(f"{queue.path}/consumers"))
    assert consumer["settings"]["max_retries"] == 3
    seen = (message["metadata"]["CF-Content-Type"], message["body"])
    assert (*seen, native["config"]["attempts_max"], consumer["settings"]["batch_size"]) == expected


async def test_a_push_without_a_content_type_may_be_text(world: World) -> None:
    queue = await make(await world.open(cloudflare_content_type="text"))
    await queue.push("x")
    [message] = await queue.pull()
    assert (message["body"], message["metadata"]["CF-Content-Type"]) == ("x", "text")


async def test_the_backlog_may_count_only_what_can_be_pulled(world: World) -> None:
    queue = await make(await world.open(cloudflare_backlog="ready"))
    await queue.push("now", content_type="text")
    await queue.push("later", content_type="text", delay_seconds=60)
    assert await queue.count() == 1
    await queue.pull()
    assert await queue.count() == 0


async def test_a_token_for_one_queue_reaches_it_by_its_bits(world: World) -> None:
    admin = world.token("configure", "read", name="admin")
    client = await world.open()
    reply = await client.post("/client/v4/accounts/demo/queues", {"queue_name": "jobs"}, admin)
    queue = Queue(client, ok(reply)["queue_id"])
    stats = await client.get(f"{JOBS}/stats", admin)
    mine = world.token("push", queues=[stats.json()["id"]], name="mine")
    other = world.token("push", queues=["other"], name="other")
    await trio.sleep(1)
    body = {"body": "x", "content_type": "text"}
    assert (await client.post(f"{queue.path}/messages", body, mine)).status == 200
    assert refusal(await client.post(f"{queue.path}/messages", body, other)) == (403, 9109)
    assert refusal(await client.post(f"{queue.path}/messages", body)) == (401, 10000)


async def test_a_batch_as_an_edge_worker_pushes_it_comes_due_and_is_given_as_it_should(
    client: Client,
) -> None:
    queue = await make(client)
    batch = {
        "messages": [
            {"body": {"n": 1}, "content_type": "json"},
            {"body": "plain \u00fc", "content_type": "text", "delay_seconds": 5},
            {"body": "AAEC/w==", "content_type": "bytes"},
            {"body": {"n": 4}},
        ],
        "delay_seconds": 2,
    }
    ok(await queue.post("messages/batch", batch))
    assert await queue.bodies() == []
    await trio.sleep(2)
    assert await queue.bodies(visibility_timeout_ms=60_000) == [
        encoded({"n": 1}),
        "AAEC/w==",
        encoded({"n": 4}),
    ]
    await trio.sleep(3)
    assert await queue.bodies() == ["plain \u00fc"]


async def test_an_event_of_a_mail_comes_through_as_it_was_pushed(client: Client) -> None:
    queue = await make(client)
    event = {
        "id": "0b9e0000-0000-4000-8000-00000000e001",
        "source": "email",
        "receivedAt": "2026-01-01T00:00:00.000Z",
        "email": {
            "from": {"address": "jane.roe@example.org", "name": "R\u00f6e, Jane"},
            "subject": "Re: \u8acb\u6c42\u66f8 + caf\u00e9",
            "attachments": [{"filename": "../../R\u00e9sum\u00e9 (1).pdf", "size": 12345}],
        },
    }
    await queue.push(event, content_type="json", delay_seconds=0)
    [message] = await queue.pull()
    assert message["metadata"]["CF-Content-Type"] == "json"
    assert json.loads(base64.b64decode(message["body"])) == event
