"""Cloudflare's API: queues, consumers, and what is refused, with its number."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from .asgi import Client
from .cloudflare_queue import QUEUES, Queue, find, make, ok, refusal
from .work_queue import JOBS

ULID = "01hzy3v0000000000000000001"
NO_QUEUE = f"{QUEUES}/{'0' * 32}"


async def test_a_new_queue_has_the_defaults_of_the_service(client: Client) -> None:
    queue = await make(client, consumer=False)
    shown = ok(await client.get(queue.path))
    assert shown["settings"] == {
        "delivery_delay": 0,
        "delivery_paused": False,
        "message_retention_period": 345_600,
    }
    assert shown["created_on"] == shown["modified_on"]
    assert (shown["consumers"], shown["producers"]) == ([], [])


async def test_patch_changes_what_it_names_and_put_everything(client: Client) -> None:
    queue = await make(client, consumer=False)
    await queue.set(delivery_delay=9, message_retention_period=7_200)
    assert (await queue.set(delivery_paused=True))["settings"] == {
        "delivery_delay": 9,
        "delivery_paused": True,
        "message_retention_period": 7_200,
    }
    put = ok(await client.put(queue.path, {"queue_name": "works", "settings": {"delivery_delay": 4}}))
    assert put["queue_name"] == "works"
    assert put["settings"] == {
        "delivery_delay": 4,
        "delivery_paused": False,
        "message_retention_period": 345_600,
    }


async def test_settings_of_ours_are_left_alone_by_a_put(client: Client) -> None:
    queue = await make(client, consumer=False)
    await client.ask(
        "PATCH", f"{JOBS}/config", b'{"depth_max": 7}', headers=[(b"content-type", b"application/json")]
    )
    ok(await client.put(queue.path, {"settings": {}}))
    assert (await client.get(f"{JOBS}/config")).json()["depth_max"] == 7


async def test_queues_are_listed_all_at_once_by_page_or_by_name(client: Client) -> None:
    for number in range(5):
        await make(client, f"q{number}", consumer=False)
        await trio.sleep(0.001)  # they are listed by age
    assert len(ok(await client.get(QUEUES))) == 5
    page = (await client.get(f"{QUEUES}?page=2&per_page=2")).json()
    assert [one["queue_name"] for one in page["result"]] == ["q2", "q3"]
    assert page["result_info"] == {"page": 2, "per_page": 2, "count": 2, "total_count": 5, "total_pages": 3}
    named = ok(await client.get(f"{QUEUES}?page=1&name=q3&name=missing&name=q1"))
    assert [one["queue_name"] for one in named] == ["q3", "q1"]
    assert ok(await client.get(f"{QUEUES}?name=Q3")) == []
    assert ok(await client.get("/client/v4/accounts/nobody/queues")) == []
    assert refusal(await client.get(f"{QUEUES}?page=0")) == (400, 10026)


async def test_a_queue_whose_id_has_no_hex_form_is_not_shown(client: Client) -> None:
    """The 32 digits of a ULID in lower case are those of another, in upper case."""
    assert (await client.post(f"/v1/dxn:queue:demo:{ULID}", {"entries": [{"data": 1}]})).status == 200
    assert ok(await client.get(QUEUES)) == []


@pytest.mark.parametrize(
    "name", ["", "Upper", "under_score", "-lead", "trail-", "x" * 64, "a" * 32, ULID, 7, None, "a b"]
)
async def test_names_are_judged_by_the_rules_of_both(client: Client, name: Any) -> None:
    status, number = refusal(await client.post(QUEUES, {"queue_name": name}))
    assert (status, number) == (400, 10026 if name == 7 else 11003)


async def test_a_name_is_given_once(client: Client) -> None:
    first = await make(client, "jobs", consumer=False)
    other = await make(client, "other", consumer=False)
    taken = await client.post(QUEUES, {"queue_name": "jobs"})
    assert refusal(taken) == (409, 11009)
    assert "already taken" in taken.json()["errors"][0]["message"]
    assert refusal(await client.put(other.path, {"queue_name": "jobs"})) == (409, 11009)
    ok(await client.ask("DELETE", first.path))
    ok(await client.put(other.path, {"queue_name": "jobs"}))


async def test_deleting_a_queue_finishes_what_is_in_flight(client: Client) -> None:
    queue = await make(client)
    await queue.push("x", content_type="text")
    [message] = await queue.pull()
    ok(await client.ask("DELETE", queue.path))
    assert refusal(await queue.post("messages/ack", {"acks": [{"lease_id": message["lease_id"]}]})) == (
        404,
        11000,
    )
    again = await make(client)
    assert (await again.say([message["lease_id"]]))["warnings"] != {}
    assert await again.count() == 0


# -- consumers ----------------------------------------------------------------------------------------------


async def test_a_queue_has_one_consumer(client: Client) -> None:
    queue = await make(client)
    second = await queue.post("consumers", {"type": "worker", "script_name": "w"})
    assert refusal(second) == (409, 11004)
    assert "jobs" in second.json()["errors"][0]["message"]


async def test_a_consumer_is_given_what_waits_and_leaves_what_it_did_not_finish(client: Client) -> None:
    queue = await make(client, consumer=False)
    await queue.push("a", "b", content_type="text")
    assert refusal(await queue.post("messages/pull", {})) == (405, 10405)
    consumer = ok(await queue.post("consumers", {"type": "http_pull"}))
    [a] = await queue.pull(batch_size=1)
    await queue.say([a["lease_id"]])
    ok(await client.ask("DELETE", f"{queue.path}/consumers/{consumer['consumer_id']}"))
    assert await queue.count() == 1
    ok(await queue.post("consumers", {"type": "http_pull"}))
    assert await queue.bodies() == ["b"]


async def test_a_consumer_is_replaced_as_a_whole(client: Client) -> None:
    queue = await make(client, dlq="dead", max_retries=9, retry_delay=5, batch_size=7)
    [consumer] = ok(await client.get(f"{queue.path}/consumers"))
    path = f"{queue.path}/consumers/{consumer['consumer_id']}"
    changed = ok(await client.put(path, {"type": "http_pull", "settings": {"max_retries": 1}}))
    assert changed["consumer_id"] == consumer["consumer_id"]
    assert changed["dead_letter_queue"] == ""
    assert changed["settings"] == {
        "batch_size": 5,
        "max_retries": 1,
        "retry_delay": 0,
        "visibility_timeout_ms": 30_000,
    }
    assert ok(await client.get(path)) == changed
    assert refusal(await client.get(f"{queue.path}/consumers/{'0' * 32}")) == (404, 11005)


async def test_rules_of_ours_are_left_alone_by_a_put(client: Client) -> None:
    queue = await make(client)
    [consumer] = ok(await client.get(f"{queue.path}/consumers"))
    ours = {"dead_letter_body": "envelope", "starvation_after_ms": 60_000}
    assert (await client.put(f"{JOBS}/consumers/default", ours)).status == 200
    path = f"{queue.path}/consumers/{consumer['consumer_id']}"
    ok(await client.put(path, {"type": "http_pull", "settings": {"max_retries": 1}}))
    [native] = (await client.get(f"{JOBS}/consumers")).json()["consumers"]
    kept = {name: native["config"][name] for name in ours}
    assert (kept, native["config"]["attempts_max"]) == (ours, 2)


async def test_a_worker_is_kept_and_shown_but_nobody_pulls_for_it(client: Client) -> None:
    queue = await make(client, consumer=False)
    body = {
        "type": "worker",
        "script_name": "w",
        "settings": {"max_wait_time_ms": 2_000, "max_concurrency": None},
    }
    shown = ok(await queue.post("consumers", body))
    assert (shown["script"], shown["script_name"]) == ("w", "w")
    assert shown["settings"] == {
        "batch_size": 10,
        "max_retries": 3,
        "retry_delay": 0,
        "max_wait_time_ms": 2_000,
        "max_concurrency": None,
    }
    assert refusal(await queue.post("messages/pull", {})) == (405, 10405)


async def test_the_queue_for_dead_letters_is_made_and_shown_by_its_present_name(client: Client) -> None:
    queue = await make(client, dlq="dead")
    dead = await find(client, "dead")
    ok(await client.put(dead.path, {"queue_name": "buried"}))
    [consumer] = ok(await client.get(f"{queue.path}/consumers"))
    assert consumer["dead_letter_queue"] == "buried"


async def test_dead_letters_do_not_come_round_again(client: Client) -> None:
    queue = await make(client, dlq="dead")
    own = {"type": "http_pull", "dead_letter_queue": "jobs"}
    dead = await find(client, "dead")
    assert refusal(await dead.post("consumers", own))[0] == 400
    alone = await make(client, "alone", consumer=False)
    reply = await alone.post("consumers", {"type": "http_pull", "dead_letter_queue": "alone"})
    assert refusal(reply)[0] == 400
    assert ok(await client.get(f"{alone.path}/consumers")) == []
    assert await queue.count() == 0


BAD_CONSUMERS: list[tuple[dict[str, Any], int]] = [
    ({}, 10026),
    ({"type": "carrier_pigeon"}, 10026),
    ({"type": "worker"}, 10026),
    ({"type": "http_pull", "dead_letter_queue": "Not A Name"}, 11003),
    ({"type": "http_pull", "settings": []}, 100127),
    ({"type": "http_pull", "settings": {"max_retries": 101}}, 100127),
    ({"type": "http_pull", "settings": {"max_retries": -1}}, 100127),
    ({"type": "http_pull", "settings": {"batch_size": 0}}, 100127),
    ({"type": "http_pull", "settings": {"visibility_timeout_ms": 43_200_001}}, 100127),
    ({"type": "http_pull", "settings": {"retry_delay": 86_401}}, 100127),
    ({"type": "http_pull", "settings": {"retry_delay": "soon"}}, 100127),
]


@pytest.mark.parametrize(("body", "number"), BAD_CONSUMERS)
async def test_a_consumer_that_is_not_right_is_not_made(
    client: Client, body: dict[str, Any], number: int
) -> None:
    queue = await make(client, consumer=False)
    assert refusal(await queue.post("consumers", body)) == (400, number)
    assert ok(await client.get(f"{queue.path}/consumers")) == []


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"delivery_delay": 86_401},
        {"delivery_delay": -1},
        {"message_retention_period": 59},
        {"message_retention_period": 1_209_601},
        {"message_retention_period": 60.5},
        {"delivery_paused": "yes"},
    ],
)
async def test_settings_out_of_range_change_nothing(client: Client, settings: dict[str, Any]) -> None:
    queue = await make(client, consumer=False)
    before = ok(await client.get(queue.path))
    reply = await client.ask("PATCH", queue.path, json.dumps({"settings": settings}).encode())
    assert refusal(reply) == (400, 100_128)
    assert ok(await client.get(queue.path)) == before


TEXT = {"body": "x", "content_type": "text"}
BAD_PUSHES: list[tuple[str, Any, tuple[int, int], str]] = [
    ("messages", b'{"body": ', (400, 10208), "byte 9"),
    ("messages", b'{"body": 1e999}', (400, 10208), "double range"),
    ("messages", [1, 2], (400, 10207), "object"),
    ("messages", {"content_type": "text"}, (400, 10207), "body is missing"),
    ("messages", b'{"body": "x", "body": "y"}', (400, 10207), "twice"),
    ("messages", {"body": {"n": 1}, "content_type": "text"}, (400, 10207), "string"),
    ("messages", {"body": "!", "content_type": "bytes"}, (400, 10207), "base64"),
    ("messages", {"body": "x", "content_type": "xml"}, (400, 10203), "json, text, bytes, v8"),
    ("messages", TEXT | {"delay_seconds": 86_401}, (400, 10203), "0 to 86400"),
    ("messages", TEXT | {"delay_seconds": -1}, (400, 10203), "0 to 86400"),
    ("messages", TEXT | {"delay_seconds": True}, (400, 10203), "0 to 86400"),
    ("messages", TEXT | {"body": "a" * 128_001}, (413, 10204), "128001 bytes, at most 128000"),
    ("messages", TEXT | {"body": "\u2603" * 42_667}, (413, 10204), "128001 bytes, at most 128000"),
    ("messages/batch", {"messages": []}, (400, 10207), "at least one"),
    ("messages/batch", {"messages": [TEXT] * 101}, (413, 10206), "101, at most 100"),
    (
        "messages/batch",
        {"messages": [TEXT | {"body": "a" * 100_000}] * 3},
        (413, 10205),
        "300000 bytes, at most 256000",
    ),
    (
        "messages/batch",
        {"messages": [TEXT, {"body": 1, "content_type": "text"}]},
        (400, 10207),
        "messages[1].body",
    ),
    ("messages/batch", {"messages": [TEXT], "delay_seconds": 86_401}, (400, 10202), "0 to 86400"),
    ("messages/pull", {"batch_size": 0}, (400, 10207), "1 to 100"),
    ("messages/pull", {"batch_size": 101}, (400, 10207), "1 to 100"),
    ("messages/pull", {"visibility_timeout_ms": 0}, (400, 10207), "1 to 43200000"),
    ("messages/pull", {"visibility_timeout_ms": 43_200_001}, (400, 10207), "1 to 43200000"),
    ("messages/ack", {"acks": "x"}, (400, 10207), "acks must be an array"),
    ("messages/ack", {"acks": ["x"]}, (400, 10207), "acks[0]"),
    ("messages/ack", {"acks": [{}]}, (400, 10207), "acks[0].lease_id is missing"),
    ("messages/ack", {"retries": [{"lease_id": "x", "delay_seconds": 86_401}]}, (400, 10203), "retries[0]"),
    ("messages/ack", {"acks": [{"lease_id": "x"}] * 1_001}, (413, 10206), "1001, at most 1000"),
]


@pytest.mark.parametrize(("path", "body", "said", "words"), BAD_PUSHES)
async def test_pl_s13_a_mistake_is_told_by_number_with_limit_and_actual(
    client: Client, path: str, body: Any, said: tuple[int, int], words: str
) -> None:
    queue = await make(client)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = await client.ask("POST", f"{queue.path}/{path}", raw)
    assert refusal(reply) == said
    assert words in reply.json()["errors"][0]["message"]
    assert await queue.count() == 0


async def test_whole_numbers_may_come_as_floats(client: Client) -> None:
    queue = await make(client)
    await queue.push("x", content_type="text", delay_seconds=0.0)
    assert await queue.bodies(batch_size=1.0, visibility_timeout_ms=30_000.0) == ["x"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("DELETE", "", None),
        ("PUT", "", {}),
        ("GET", "/consumers", None),
        ("POST", "/consumers", {"type": "http_pull"}),
        ("POST", "/messages", TEXT),
        ("POST", "/messages/batch", {"messages": [TEXT]}),
        ("POST", "/messages/pull", {}),
        ("POST", "/messages/ack", {"acks": [{"lease_id": "x"}]}),
        ("POST", "/messages/extend", {"extend": []}),
        ("POST", "/messages/peek", {}),
        ("POST", "/messages/purge", {"refs": []}),
        ("GET", "/metrics", None),
        ("POST", "/purge", {"delete_messages_permanently": True}),
        ("GET", "/purge", None),
    ],
)
async def test_an_unknown_queue_is_not_found_whatever_is_asked_of_it(
    client: Client, method: str, path: str, body: Any
) -> None:
    raw = None if body is None else json.dumps(body).encode()
    assert refusal(await client.ask(method, NO_QUEUE + path, raw)) == (
        404,
        11000,
    )  # nor is there such a space
    await make(client)
    assert refusal(await client.ask(method, NO_QUEUE + path, raw)) == (404, 11000)


async def test_an_id_that_is_none_is_told_from_one_that_is_not_there(client: Client) -> None:
    assert refusal(await client.get(f"{QUEUES}/jobs")) == (400, 10107)
    assert refusal(await client.get("/client/v4/accounts/no.such/queues")) == (400, 10107)
    assert refusal(await client.get("/client/v4/accounts/demo")) == (404, 7003)


async def test_event_subscriptions_are_an_empty_list(client: Client) -> None:
    path = "/client/v4/accounts/demo/event_subscriptions/subscriptions"
    answer = (await client.get(f"{path}?queue_id={'0' * 32}&page=1&per_page=20")).json()
    assert (answer["result"], answer["result_info"]["total_count"]) == ([], 0)
    assert refusal(await client.post(path, {})) == (405, 10405)


async def test_one_queue_is_the_same_in_every_dialect(client: Client) -> None:
    queue = await make(client)
    await queue.push({"n": 1}, content_type="json")
    [entry] = (await client.get("/v1/dxn:queue:demo:jobs")).json()["entries"]
    assert entry["data"] == {"n": 1}
    assert isinstance(queue, Queue)
