"""Dead letters through the admin API: listed, inspected, tried, edited, replayed, deleted; one and many."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
import trio

from .admin_queue import DLQ, QUEUES, T, ask, bury, dead
from .asgi import Client
from .work_queue import JOBS, pull, push, said


def where(expression: str) -> str:
    return f"&where={quote(expression, safe='')}"


# -- looking ------------------------------------------------------------------------------------------------


async def test_a_dead_letter_is_listed_as_the_seed_shows_it(client: Client) -> None:
    data = {"payload": {"incident": {"title": "down"}}}
    [letter] = await bury(client, data, error="Command failed: guard rejected")
    [listed] = (await ask(client, "GET", f"{DLQ}{T}"))["dead_letters"]
    inspected = await ask(client, "GET", f"{DLQ}/{letter}{T}")
    assert listed == {
        "id": letter,
        "failed_at": inspected["letter"]["failedAt"] // 1_000,
        "error": "Command failed: guard rejected",
        "attempts": 1,
        "preview": data,
    }


async def test_letters_come_in_pages_and_next_is_there_only_where_there_is_more(client: Client) -> None:
    letters = await bury(client, *range(7))
    assert len(letters) == 7
    pages: list[list[Any]] = []
    after = ""
    for _ in range(3):
        page = await ask(client, "GET", f"{DLQ}{T}&limit=3{after}")
        pages.append([one["preview"] for one in page["dead_letters"]])
        after = f"&after={page.get('next')}"
    assert pages == [[0, 1, 2], [3, 4, 5], [6]]
    assert "next" not in page
    assert "next" not in await ask(client, "GET", f"{DLQ}{T}&limit=7")


async def test_the_queue_of_dead_letters_can_be_named_itself(client: Client) -> None:
    letters = await bury(client, 1, 2)
    page = await ask(client, "GET", f"{QUEUES}/jobs-dlq/dlq{T}")
    assert [one["id"] for one in page["dead_letters"]] == letters
    assert (await ask(client, "GET", f"{QUEUES}/jobs-dlq/dlq/{letters[0]}{T}"))["id"] == letters[0]


async def test_a_preview_is_bounded_and_keeps_the_shape(client: Client) -> None:
    many = {"payload": {"text": "x" * 5_000, "list": list(range(5_000)), "deep": {"a": {"b": "y" * 500}}}}
    await bury(client, many, "z" * 100_000, ["long", *("w" * 300 for _ in range(50))])
    shown = [one["preview"] for one in await dead(client)]
    assert all(len(json.dumps(one)) < 3_000 for one in shown)
    assert shown[0]["payload"]["text"] == "x" * 200 + "…"
    assert shown[0]["payload"]["list"][:3] == [0, 1, 2]
    assert shown[0]["payload"]["list"][-1].startswith("…")
    assert shown[1] == '"' + "z" * 999 + "…"
    assert shown[2][0] == "long"


async def test_a_letter_is_inspected_with_its_attempts_and_what_became_of_it(client: Client) -> None:
    await push(client, {"data": 1, "key": "k", "headers": {"h": "v"}})
    [message] = await pull(client, worker="w1")
    await said(client, "retry", {"retries": [{"lease": message["lease"], "error": "one", "delay_ms": 0}]})
    [message] = await pull(client, worker="w2")
    await said(client, "retry", {"retries": [{"lease": message["lease"], "error": "two", "permanent": True}]})
    [first] = [one["id"] for one in await dead(client)]
    new = (await ask(client, "POST", f"{DLQ}/{first}/replay{T}"))["new_message_id"]
    [message] = await pull(client)
    await said(client, "retry", {"retries": [{"lease": message["lease"], "error": "3", "permanent": True}]})
    found = await ask(client, "GET", f"{DLQ}/{first}{T}")
    assert (found["error"], found["attempts"], found["key"], found["headers"]) == ("two", 2, "k", {"h": "v"})
    assert [(one["worker"], one["message"]) for one in found["letter"]["errors"]] == [
        ("w1", "one"),
        ("w2", "two"),
    ]
    assert found["letter"]["newMessageId"] == new
    assert found["forerunners"] == []
    [later] = found["descendants"]
    assert (later["error"], later["replayed_at"], later["dead_letter_queue"]) == ("3", None, "jobs-dlq")
    assert (
        later["failed_at"] * 1_000
        <= (await ask(client, "GET", f"{DLQ}/{later['id']}{T}"))["letter"]["failedAt"]
    )
    again = await ask(client, "GET", f"{DLQ}/{later['id']}{T}")
    assert [one["id"] for one in again["forerunners"]] == [first]
    assert (await client.get(f"{DLQ}/nobody{T}")).code == "entry_not_found"


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (where("message >= 3"), [3, 4]),
        (where('error == "no" && attempts == 1 && message < 2'), [0, 1]),
        ("&error=no&replayed=false" + where("message == 1"), [1]),
        ("&replayed=true", []),
        ("&reason=permanent&until=4102444800", [0, 1, 2, 3, 4]),
        ("&since=4102444800", []),
        ("&key=other", []),
    ],
)
async def test_a_list_takes_a_filter(client: Client, query: str, numbers: list[int]) -> None:
    await bury(client, *range(5))
    assert [one["preview"] for one in await dead(client, query)] == numbers


async def test_a_list_that_finds_little_says_where_to_go_on(client: Client) -> None:
    """Twenty turns of five hundred letters are looked at in one request."""
    await bury(client, *range(10_300))
    page = await ask(client, "GET", f"{DLQ}{T}{where('message == 10200')}")
    assert page["dead_letters"] == []
    rest = await ask(client, "GET", f"{DLQ}{T}{where('message == 10200')}&after={page['next']}")
    assert [one["preview"] for one in rest["dead_letters"]] == [10_200]
    assert "next" not in rest


# -- one ----------------------------------------------------------------------------------------------------


async def test_dl_s06_a_second_replay_tells_of_the_same_message_and_makes_none(client: Client) -> None:
    [letter] = await bury(client, 1)
    replies: list[dict[str, Any]] = []

    async def operator() -> None:
        replies.append(await ask(client, "POST", f"{DLQ}/{letter}/replay{T}", {}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(operator)
        nursery.start_soon(operator)
    replies.append(await ask(client, "POST", f"{DLQ}/{letter}/replay{T}"))
    assert len({one["new_message_id"] for one in replies}) == 1
    assert [one.get("already", False) for one in replies].count(False) == 1
    [message] = await pull(client, batch=10)
    assert message["id"] == replies[0]["new_message_id"]
    await said(client, "retry", {"retries": [{"lease": message["lease"], "permanent": True}]})
    [open_letter] = await dead(client, "&replayed=false")
    found = await ask(client, "GET", f"{DLQ}/{open_letter['id']}{T}")
    assert [one["id"] for one in found["forerunners"]] == [letter]
    assert await ask(client, "DELETE", f"{DLQ}/{letter}{T}") == {"ok": True}
    gone = await client.post(f"{DLQ}/{letter}/replay{T}", {})
    assert (gone.status, gone.code) == (404, "entry_not_found")
    assert (await client.delete(f"{DLQ}/{letter}{T}")).status == 404


async def test_dl_s04_a_replayed_message_starts_afresh_and_the_letter_keeps_its_errors(
    client: Client,
) -> None:
    await client.put(f"{JOBS}/config", {"profile": "work", "consumer": {"attempts_max": 5}})
    await push(client, {"data": 1})

    async def fail(error: str) -> int:
        found = await pull(client, "?wait=60")
        [message] = found
        await said(client, "retry", {"retries": [{"lease": message["lease"], "error": error}]})
        attempts: int = message["attempts"]
        return attempts

    assert [await fail(f"e{number}") for number in range(5)] == [1, 2, 3, 4, 5]
    [letter] = await dead(client)
    assert letter["attempts"] == 5
    await ask(client, "POST", f"{DLQ}/{letter['id']}/replay{T}", {})
    began = trio.current_time()
    assert await fail("f1") == 1
    [message] = await pull(client, "?wait=60")
    assert (message["attempts"], trio.current_time() - began) == (2, 1.0)
    await said(client, "ack", {"leases": [message["lease"]]})
    found = await ask(client, "GET", f"{DLQ}/{letter['id']}{T}")
    assert [one["message"] for one in found["letter"]["errors"]] == ["e0", "e1", "e2", "e3", "e4"]
    assert found["letter"]["replayedAt"] is not None
    assert found["descendants"] == []


async def test_replay_where_the_queue_is_gone_is_a_conflict_that_says_so(client: Client) -> None:
    [letter] = await bury(client, 1)
    await client.delete(f"{JOBS}/config")
    for name in ("jobs", "jobs-dlq"):
        for verb in ("replay", "dry-run"):
            reply = await client.post(f"{QUEUES}/{name}/dlq/{letter}/{verb}{T}", {})
            assert (reply.status, reply.code) == (409, "queue_gone")
            assert f"dead letter {letter} came from queue jobs" in reply.json()["detail"]
    answer = await ask(client, "POST", f"{DLQ}/replay{T}", {"all": True})
    assert answer["totals"]["no_queue"] == 1
    assert (await client.delete(f"{DLQ}/{letter}{T}")).json() == {"ok": True}


async def test_an_edited_letter_is_replayed_once_with_the_new_data_byte_for_byte(client: Client) -> None:
    [letter] = await bury(client, {"n": 1})
    path = f"{DLQ}/{letter}/replay{T}"
    reply = await client.ask("POST", path, b'{"message": {"n":2.50, "s":"\\u00e9"}}')
    first = reply.json()
    assert (reply.status, first["ok"], "already" in first) == (200, True, False)
    again = await ask(client, "POST", path, {"message": {"n": 3}})
    assert again == {"ok": True, "new_message_id": first["new_message_id"], "already": True}
    raw = await client.post(f"{JOBS}/pull", {"batch": 10})
    assert b'"data":{"n":2.50, "s":"\\u00e9"}' in raw.body


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"massage": 1}', "invalid_request"),
        (b'{"message": 1, "message": 2}', "invalid_json"),
        (b'{"message": 1e999}', "invalid_json"),
        (b"[]", "invalid_request"),
        (b"{", "invalid_json"),
    ],
)
async def test_an_edit_that_is_none_is_refused(client: Client, body: bytes, code: str) -> None:
    [letter] = await bury(client, 1)
    reply = await client.ask("POST", f"{DLQ}/{letter}/replay{T}", body)
    assert (reply.status, reply.code) == (400, code)
    assert await pull(client) == []


TYPED: dict[str, Any] = {
    "version": 0,
    "app": "shop",
    "queues": {
        "jobs": {
            "message_type": {"id": {"type": "string"}, "n": {"type": "json", "optional": True}},
        }
    },
}
MAPPED = {
    "to": "command",
    "entity_type": "Order",
    "command": "Create",
    "input_map": {"id": {"var": {"input": {"field": "id"}}}, "n": {"var": {"input": {"field": "n"}}}},
}


async def test_an_edit_is_judged_by_the_type_of_the_queue(client: Client) -> None:
    await client.put("/v1/spaces/demo/specs/shop", TYPED)
    [letter] = await bury(client, {"id": "a"})
    reply = await client.post(f"{DLQ}/{letter}/replay", {"message": {"id": 5}})
    assert (reply.status, reply.code) == (400, "invalid_message")
    assert "message.id: an integer where a text is wanted" in reply.json()["detail"]
    assert await pull(client) == []


# -- trying -------------------------------------------------------------------------------------------------


async def test_a_dry_run_tells_what_the_mapping_of_now_would_make_and_does_nothing(client: Client) -> None:
    await client.put("/v1/spaces/demo/specs/shop", TYPED)
    good, bad = await bury(client, {"id": "a", "n": 2}, {"id": "b"})
    mapped = {**TYPED, "queues": {"jobs": {**TYPED["queues"]["jobs"], "map_to": MAPPED}}}
    assert (await client.put("/v1/spaces/demo/specs/shop", mapped)).status == 200
    assert await ask(client, "POST", f"{DLQ}/{good}/dry-run{T}") == {
        "ok": True,
        "command": "Order.Create",
        "input": {"id": "a", "n": 2},
    }
    found = await ask(client, "POST", f"{DLQ}/{bad}/dry-run{T}", {})
    assert found["ok"] is False
    assert found["error"] == {
        "field": "n",
        "expression": "n",
        "path": "n",
        "found": "missing",
        "error": "n: nothing where a value is needed; n is missing",
    }
    assert found["errors"] == [found["error"]]
    assert await ask(client, "POST", f"{DLQ}/{bad}/dry-run{T}", {"message": {"id": "b", "n": 1}}) == {
        "ok": True,
        "command": "Order.Create",
        "input": {"id": "b", "n": 1},
    }
    assert len(await dead(client, "&replayed=false")) == 2


async def test_a_dry_run_takes_another_mapping_as_text_or_json(client: Client) -> None:
    [letter] = await bury(client, {"id": "a", "n": 2})
    path = f"{DLQ}/{letter}/dry-run{T}"
    text = "queue Next { it: id  more: n + 1 }"
    assert await ask(client, "POST", path, {"map_to": text}) == {
        "ok": True,
        "queue": "Next",
        "input": {"it": "a", "more": 3},
    }
    assert (await ask(client, "POST", path, {"map_to": MAPPED}))["command"] == "Order.Create"


@pytest.mark.parametrize(
    ("map_to", "about"),
    [
        ("command Order.Create { id: }", "map_to: line 1, column 28"),
        ("Order.Create", "`command` or `queue` can"),
        ({"to": "nowhere"}, "map_to"),
        ({"to": "queue", "queue": "q", "message": {"a": {"nonsense": 1}}}, "map_to: a:"),
        (5, "map_to"),
    ],
)
async def test_a_mapping_that_is_none_is_refused(client: Client, map_to: Any, about: str) -> None:
    [letter] = await bury(client, {"id": "a"})
    reply = await client.post(f"{DLQ}/{letter}/dry-run{T}", {"map_to": map_to})
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert about in reply.json()["detail"]


async def test_a_queue_without_a_mapping_has_none_to_try(client: Client) -> None:
    [letter] = await bury(client, 1)
    reply = await client.post(f"{DLQ}/{letter}/dry-run{T}", {})
    assert (reply.status, "map_to: queue jobs has none" in reply.json()["detail"]) == (400, True)
