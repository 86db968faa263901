"""Sessions over HTTP: what is taken in, what is seen, what is done about one that is stuck, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from edgequeues.models import ENTRY_BYTES_MAX
from edgequeues.models_sessions import SESSIONS_MAX

from .asgi import Client, Reply
from .fronted import only
from .work_queue import JOBS
from .world import World, denied

INBOUND = "/v1/dxn:queue:demo:inbound"
LEASE_MS = 300_000
VERBS = ("close", "skip", "retry", "reclaim", "clean")
BODIES: dict[str, dict[str, Any]] = {
    "close": {"session_id": "s1"},
    "skip": {"session_id": "s1"},
    "retry": {"session_id": "s1"},
    "reclaim": {"worker": "w"},
    "clean": {"before": 0},
}


async def send(client: Client, session_id: str = "s1", **fields: Any) -> Reply:
    message = {"session_id": session_id, "origin": "telegram", **fields}
    return await client.post(f"{INBOUND}/inbound", message)


async def enqueue(client: Client, session_id: str = "s1", **fields: Any) -> int:
    reply = await send(client, session_id, **fields)
    assert reply.status == 202, reply.body
    position: int = reply.json()["position"]
    return position


async def pull(client: Client, worker: str = "w", wait: str = "") -> list[dict[str, Any]]:
    asked = {"batch": 100, "lease_ms": LEASE_MS, "worker": worker}
    reply = await client.post(f"{INBOUND}/pull{wait}", asked)
    assert reply.status == 200, reply.body
    messages: list[dict[str, Any]] = reply.json()["messages"]
    return messages


async def fail(client: Client, message: dict[str, Any], **said: Any) -> str:
    body = {"retries": [{"lease": message["lease"], **said}]}
    [result] = (await client.post(f"{INBOUND}/retry", body)).json()["results"]
    outcome: str = result["outcome"]
    return outcome


async def ask(client: Client, verb: str, **body: Any) -> Any:
    reply = await client.post(f"{INBOUND}/sessions/{verb}", body or BODIES[verb])
    assert reply.status == 200, reply.body
    [value] = reply.json().values()
    return value


async def sessions(client: Client, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get(f"{INBOUND}/sessions{query}")).json()["sessions"]
    return found


async def test_of_each_session_one_message_is_handed_out_and_the_next_when_it_is_done(client: Client) -> None:
    for number in range(3):
        for session in ("s1", "s2"):
            await enqueue(client, session, content=f"{session}-{number}")
    for number in range(3):
        messages = await pull(client)
        assert [(one["key"], one["data"]["content"]) for one in messages] == [
            (session, f"{session}-{number}") for session in ("s1", "s2")
        ]
        assert await pull(client) == []
        await client.post(f"{INBOUND}/ack", {"leases": [one["lease"] for one in messages]})
    assert await sessions(client) == []


async def test_a_payload_is_handed_out_as_it_was_written(client: Client) -> None:
    body = b'{"session_id":"s1","origin":"o","payload":{"half": "\\ud83d", "long": 12345678901234567890.0 }}'
    assert (await client.ask("POST", f"{INBOUND}/inbound", body)).status == 202
    reply = await client.post(f"{INBOUND}/pull", {})
    assert b'{"half": "\\ud83d", "long": 12345678901234567890.0 }' in reply.body


async def test_what_comes_again_is_told_from_what_only_looks_like_it(client: Client) -> None:
    """Also SI-S01: ids of messages are unique in a chat only."""
    one = {"source_message_id": "17", "source_channel_id": "c1"}
    await enqueue(client, **one)
    await enqueue(client, **{**one, "source_channel_id": "c2"})
    await enqueue(client, **{**one, "origin": "discord"})
    for session in ("s1", "s2"):
        reply = await send(client, session, **one)
        assert (reply.status, reply.json()) == (200, {"id": None, "position": None, "duplicate": True})
    await enqueue(client)
    await enqueue(client)
    reply = await send(client, source_message_id="")
    assert (reply.status, reply.code) == (400, "invalid_request")
    [found] = await sessions(client)
    assert found["depth"] == 5


@pytest.mark.parametrize(
    ("body", "status", "code", "word"),
    [
        (b"", 400, "invalid_json", ""),
        (b"[]", 400, "invalid_json", "not an object"),
        (b'{"session_id":"s1","session_id":"s2","origin":"o"}', 400, "invalid_json", "twice"),
        (b'{"session_id":"s1"}', 400, "invalid_request", "origin"),
        (b'{"session_id":"s1","origin":"o","message":"x"}', 400, "invalid_request", "message"),
        (b'{"session_id":"s1","origin":"o","content":"\\ud83d"}', 400, "invalid_request", "content"),
        (
            b'{"session_id":"s1","origin":"o","content":"%b"}' % (b"x" * ENTRY_BYTES_MAX),
            413,
            "too_large",
            str(ENTRY_BYTES_MAX),
        ),
    ],
)
async def test_a_message_that_cannot_be_is_refused_and_makes_no_queue(
    client: Client, body: bytes, status: int, code: str, word: str
) -> None:
    reply = await client.ask("POST", f"{INBOUND}/inbound", body)
    assert (reply.status, reply.code) == (status, code)
    assert word in reply.json()["detail"]
    assert (await client.get("/v1/spaces")).json()["spaces"] == []


async def test_who_may_push_and_not_create_can_write_to_sessions_of_a_queue_that_is_there(
    world: World,
) -> None:
    pusher, owner = world.token("push"), world.token("push", "create", name="owner")
    client = await world.open()
    message = {"session_id": "s1", "origin": "telegram"}
    assert (await client.post(f"{INBOUND}/inbound", message, pusher)).code == "queue_not_found"
    assert (await client.post(f"{INBOUND}/inbound", message, owner)).status == 202
    assert (await client.post(f"{INBOUND}/inbound", message, pusher)).status == 202
    assert denied(await client.post(f"{INBOUND}/sessions/close", BODIES["close"], pusher)) == "forbidden"


async def test_a_session_that_is_blocked_says_since_when_and_why(client: Client) -> None:
    first = await enqueue(client)
    await enqueue(client)
    await enqueue(client, "s2")
    [message, _] = await pull(client)
    began = message["until"] - LEASE_MS
    await trio.sleep(1)
    assert await fail(client, message, error="no answer") == "done"
    blocked, other = await sessions(client)
    head = blocked["head"]
    assert (blocked["session_id"], blocked["depth"], head["position"]) == ("s1", 2, first)
    assert (head["state"], head["failures"], head["last_error"]) == ("backoff", 1, "no answer")
    assert began <= head["blocked_since"] <= began + 1_000
    assert head["due"] == began + 1_000 + 5_000
    assert (other["session_id"], other["depth"], other["head"]["state"]) == ("s2", 1, "leased")
    assert (other["head"]["failures"], other["head"]["blocked_since"]) == (0, None)


async def test_sessions_come_in_pages_by_id_and_one_by_its_name(client: Client) -> None:
    for session in ("b", "a&c", "ä"):
        await enqueue(client, session)
    first = (await client.get(f"{INBOUND}/sessions?limit=2")).json()
    assert ([one["session_id"] for one in first["sessions"]], first["resume"]) == (["a&c", "b"], "b")
    rest = (await client.get(f"{INBOUND}/sessions?limit=2&after=b")).json()
    assert ([one["session_id"] for one in rest["sessions"]], rest["resume"]) == (["ä"], None)
    assert [one["session_id"] for one in await sessions(client, "?session=a%26c")] == ["a&c"]
    assert await sessions(client, "?session=a") == []


@pytest.mark.parametrize(
    "query", ["limit=0", f"limit={SESSIONS_MAX + 1}", "sessions=a", "after=", f"session={'x' * 257}"]
)
async def test_what_no_page_of_sessions_can_be_is_refused(client: Client, query: str) -> None:
    await enqueue(client)
    reply = await client.get(f"{INBOUND}/sessions?{query}")
    assert (reply.status, reply.code) == (400, "invalid_request")


async def test_a_head_that_backs_off_is_delivered_now_on_request(client: Client) -> None:
    await enqueue(client)
    [message] = await pull(client)
    assert await ask(client, "retry") is None, "it is handed out"
    await fail(client, message)
    assert await pull(client) == []
    assert await ask(client, "retry") == message["id"]
    [again] = await pull(client)
    assert (again["id"], again["attempts"]) == (message["id"], 2)


async def test_a_skipped_head_lets_the_session_go_on_and_who_holds_one_keeps_it(client: Client) -> None:
    await enqueue(client)
    second = await enqueue(client)
    [message] = await pull(client)
    assert await ask(client, "skip") is None
    await fail(client, message)
    assert await ask(client, "skip") == message["id"]
    assert [one["position"] for one in await pull(client)] == [second]
    assert await ask(client, "skip", session_id="other") is None


async def test_a_closed_session_expires_whole_and_goes_on_when_it_is_written_to_again(client: Client) -> None:
    """More messages than a turn ends, the one that is handed out among them; other sessions stay."""
    count = 1_203
    entries = [
        {"data": {"session_id": "s1", "origin": "o"}, "key": "s1"} for _ in range(600)
    ]  # quicker than one by one
    await enqueue(client, "s2")
    await enqueue(client)
    for _ in range(2):
        assert (await client.post(f"{INBOUND}/push", {"entries": entries})).status == 200
    await enqueue(client)
    await enqueue(client)
    [_, held] = await pull(client)
    assert held["key"] == "s1"
    assert await ask(client, "close") == count
    assert await ask(client, "close") == 0
    assert await fail(client, held) == "finished"
    assert [one["session_id"] for one in await sessions(client)] == ["s2"]
    after = await enqueue(client)
    assert [one["position"] for one in await pull(client)] == [after]


async def test_what_a_worker_left_is_handed_out_again_at_once_and_counts(client: Client) -> None:
    for session in ("s1", "s2", "s3"):
        await enqueue(client, session)
    await pull(client, "manager")
    await enqueue(client, "s4")
    [other] = await pull(client, "manager-2")
    assert await ask(client, "reclaim", worker="manager") == 3
    assert await ask(client, "reclaim", worker="manager") == 0
    again = await pull(client, "manager")
    assert [(one["key"], one["attempts"]) for one in again] == [("s1", 2), ("s2", 2), ("s3", 2)]
    [result] = (await client.post(f"{INBOUND}/ack", {"leases": [other["lease"]]})).json()["results"]
    assert result["outcome"] == "done"


async def test_what_was_finished_before_a_time_is_removed_and_what_is_unfinished_never(
    client: Client,
) -> None:
    first = await enqueue(client)
    await enqueue(client, "s2")
    messages = await pull(client)
    await client.post(f"{INBOUND}/ack", {"leases": [messages[0]["lease"]]})
    ended = messages[0]["until"] - LEASE_MS
    await trio.sleep(10)
    assert await ask(client, "clean", before=ended) == 0
    kept = (await client.get(INBOUND)).json()["entries"]
    assert first in [one["position"] for one in kept]
    assert await ask(client, "clean", before=ended + 20_000) == 1
    left = (await client.get(INBOUND)).json()["entries"]
    assert [one["key"] for one in left] == ["s2"]


@only("app", why="it is about turns, whatever the way to them")
async def test_what_takes_many_turns_is_done_to_its_end(client: Client) -> None:
    count = 1_100  # a turn does 1,000
    await enqueue(client, "s0")
    data = {"session_id": "s", "origin": "o"}
    entries = [{"data": data, "key": f"s{number}"} for number in range(1, count)]
    for part in (entries[:600], entries[600:]):
        assert (await client.post(f"{INBOUND}/push", {"entries": part})).status == 200
    leases: list[str] = []
    for again in (False, True):
        leases = [one["lease"] for _ in range(count // 100) for one in await pull(client)]
        assert len(leases) == count
        assert again or await ask(client, "reclaim") == count
    for start in range(0, count, 1_000):
        await client.post(f"{INBOUND}/ack", {"leases": leases[start : start + 1_000]})
    await trio.sleep(1)
    [consumer] = (await client.get(f"{INBOUND}/consumers")).json()["consumers"]
    assert (consumer["total_lapsed"], consumer["total_acked"]) == (count, count)
    assert await ask(client, "clean", before=consumer["created"] + 1_000) == count
    assert (await client.get(INBOUND)).json()["entries"] == []


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        *((verb, {}) for verb in VERBS),
        *((verb, {**BODIES[verb], "more": 1}) for verb in VERBS),
        *((verb, {"session_id": "x" * 257}) for verb in ("close", "skip", "retry")),
        ("reclaim", {"worker": ""}),
        ("clean", {"before": -1}),
        ("clean", {"before": "2024-01-31T12:00:00Z"}),
    ],
)
async def test_an_order_that_cannot_be_is_refused(client: Client, verb: str, body: dict[str, Any]) -> None:
    await enqueue(client)
    reply = await client.post(f"{INBOUND}/sessions/{verb}", body)
    assert (reply.status, reply.code) == (400, "invalid_request")


@pytest.mark.parametrize("verb", VERBS)
async def test_an_order_takes_no_parameters_and_wants_a_queue_that_is_there(
    client: Client, verb: str
) -> None:
    reply = await client.post(f"{INBOUND}/sessions/{verb}", BODIES[verb])
    assert (reply.status, reply.code) == (404, "queue_not_found")
    await enqueue(client)
    reply = await client.post(f"{INBOUND}/sessions/{verb}?wait=1", BODIES[verb])
    assert (reply.status, reply.code) == (400, "invalid_request")


async def test_a_queue_that_is_none_for_sessions_has_none(client: Client) -> None:
    assert (await client.post(f"{JOBS}/push", {"entries": [{"data": 1, "key": "s1"}]})).status == 200
    replies = [
        await client.post(f"{JOBS}/inbound", {"session_id": "s1", "origin": "o"}),
        await client.get(f"{JOBS}/sessions"),
        await client.get(f"{JOBS}/sessions?session=s1"),
        *[await client.post(f"{JOBS}/sessions/{verb}", BODIES[verb]) for verb in VERBS],
    ]
    assert [(reply.status, reply.code) for reply in replies] == [(409, "config_conflict")] * len(replies)


async def test_who_closed_skipped_and_retried_is_on_record(client: Client) -> None:
    await enqueue(client)
    await enqueue(client)
    [message] = await pull(client)
    await fail(client, message)
    await ask(client, "retry")
    await ask(client, "skip")
    await ask(client, "close")
    found = (await client.get("/admin/audit?tenant_id=demo")).json()["audit"]
    recorded = [one for one in found if one["queue"] == "inbound"]
    assert [one["action"] for one in recorded] == ["retry_now", "skip", "close_session"]
    assert {one["who"]["id"] for one in recorded} == {"loopback"}


async def test_who_reclaimed_and_cleaned_up_is_on_record(client: Client) -> None:
    await enqueue(client)
    await pull(client, worker="gone")
    assert await ask(client, "reclaim", worker="gone") == 1
    assert await ask(client, "reclaim", worker="gone") == 0
    await ask(client, "close")
    found = (await client.get("/admin/audit?tenant_id=demo")).json()["audit"]
    before = found[-1]["at"] * 1_000 + 10_000
    assert await ask(client, "clean", before=before) == 1
    assert await ask(client, "clean", before=before) == 0
    found = (await client.get("/admin/audit?tenant_id=demo")).json()["audit"]
    assert [(one["action"], one["detail"]) for one in found if one["action"] != "close_session"] == [
        ("reclaim", {"worker": "gone", "count": 1}),
        ("clean_sessions", {"before": before, "count": 1}),
    ]
    assert {one["who"]["id"] for one in found} == {"loopback"}


@only("app", why="it hangs up in the middle of a request by hand")
async def test_a_client_that_hangs_up_ends_a_long_close_between_two_turns(client: Client) -> None:
    entries = [{"data": {"session_id": "s1", "origin": "o"}, "key": "s1"} for _ in range(1_000)]
    await enqueue(client)
    for _ in range(9):
        assert (await client.post(f"{INBOUND}/push", {"entries": entries})).status == 200
    headers = [(b"content-type", b"application/json")]
    async with client.open("POST", f"{INBOUND}/sessions/close", headers=headers) as exchange:
        exchange.end(json.dumps(BODIES["close"]).encode())
        while (await sessions(client))[0]["depth"] > 9_000:
            pass  # until the first turn is over
        exchange.hang_up()
        await exchange.ended.wait()
    [left] = await sessions(client)
    assert 0 < left["depth"] <= 9_000
    assert await ask(client, "close") == left["depth"]
    assert await sessions(client) == []
