"""Dead letters by filter over HTTP: replayed, previewed, purged, turn by turn to the end."""

from __future__ import annotations

from typing import Any

import pytest

from .asgi import Client
from .work_queue import JOBS, pull, push, said

DLQ = "/v1/dxn:queue:demo:jobs-dlq"
EVERYTHING: dict[str, Any] = {}


async def bury(client: Client, *entries: dict[str, Any], error: str = "no") -> None:
    """Push messages and give up what can be pulled."""
    for start in range(0, len(entries), 1_000):
        await push(client, *entries[start : start + 1_000])
    while messages := await pull(client, batch=100):
        retries = [{"lease": one["lease"], "permanent": True, "error": error} for one in messages]
        await said(client, "retry", {"retries": retries})


async def replay(client: Client, **order: Any) -> dict[str, Any]:
    reply = await client.post(f"{DLQ}/replay", order)
    assert reply.status == 200, reply.body
    answer: dict[str, Any] = reply.json()
    return answer


async def dead(client: Client, query: str = "") -> list[Any]:
    return [
        one["letter"]["originalMessage"] for one in (await client.get(f"{DLQ}/dead{query}")).json()["letters"]
    ]


async def test_a_filter_says_which_are_replayed(client: Client) -> None:
    await bury(client, {"data": 1, "key": "a"}, {"data": 2, "key": "b"}, {"data": 3, "key": "a"})
    answer = await replay(client, filter={"key": "a", "reason": ["permanent"]})
    assert (answer["totals"], answer["more"]) == (
        {"replayed": 2, "no_queue": 0, "later": 0, "invalid": 0},
        False,
    )
    messages = await pull(client, batch=10)
    assert [one["data"] for one in messages] == [1, 3]
    assert [one["message"] for one in answer["results"]] == [one["id"] for one in messages]
    assert {one["attempts"] for one in messages} == {1}


async def test_more_than_one_turn_replays_goes_all_the_same_and_the_first_are_told(client: Client) -> None:
    await bury(client, *({"data": n} for n in range(1_300)))
    answer = await replay(client, filter=EVERYTHING)
    assert (answer["totals"]["replayed"], answer["more"], len(answer["results"])) == (1_300, False, 1_000)
    assert (await replay(client, filter=EVERYTHING))["totals"]["replayed"] == 0
    given: list[int] = []
    while messages := await pull(client, batch=100):
        given += [one["data"] for one in messages]
    assert given == list(range(1_300))


async def test_a_list_ends_early_where_errors_are_long(client: Client) -> None:
    """Each letter brings 400 KB of errors along, so ten are about a page, and the list goes on."""
    rules = {"attempts_max": 100, "backoff": {"initial_ms": 0, "max_ms": 0}}
    await client.put(f"{JOBS}/config", {"profile": "work", "consumer": rules})
    await push(client, *({"data": n} for n in range(12)))
    while messages := await pull(client, batch=100):
        retries = [{"lease": one["lease"], "error": "x" * 4_000} for one in messages]
        await said(client, "retry", {"retries": retries})
    first = (await client.get(f"{DLQ}/dead")).json()
    assert 8 <= len(first["letters"]) <= 11
    assert len(first["letters"]) + len(await dead(client, f"?after={first['resume']}")) == 12


async def test_heavy_ones_that_are_named_are_all_replayed(client: Client) -> None:
    """Two of 3 MB are as much as one turn takes."""
    for number in range(3):
        await bury(client, {"data": f"{number}{'x' * 3_000_000}"})
    listed = (await client.get(f"{DLQ}/dead")).json()
    ids = [one["id"] for one in listed["letters"]]
    rest = (await client.get(f"{DLQ}/dead?after={listed['resume']}")).json()
    ids += [one["id"] for one in rest["letters"]]
    answer = await replay(client, ids=[*reversed(ids), "nobody"])
    outcomes = [(one["id"], one["outcome"]) for one in answer["results"]]
    assert outcomes == [("nobody", "unknown"), *((one, "replayed") for one in ids)]


async def test_a_limit_leaves_the_rest_for_the_next_call(client: Client) -> None:
    await bury(client, *({"data": n} for n in range(700)))
    first = await replay(client, filter=EVERYTHING, limit=600)
    assert (first["totals"]["replayed"], first["more"]) == (600, True)
    rest = await replay(client, filter=EVERYTHING, limit=600)
    assert (rest["totals"]["replayed"], rest["more"]) == (100, False)


@pytest.mark.parametrize("named", [True, False])
async def test_a_pace_spreads_what_is_replayed(client: Client, *, named: bool) -> None:
    await bury(client, {"data": 0}, {"data": 1}, {"data": 2})
    ids = [one["id"] for one in (await client.get(f"{DLQ}/dead")).json()["letters"]]
    await replay(client, per_second=0.5, **({"ids": ids} if named else {"filter": EVERYTHING}))
    waiting = (await client.get(f"{JOBS}/peek?state=scheduled")).json()["messages"]
    assert [one["data"] for one in waiting] == [1, 2]
    assert waiting[1]["due"] - waiting[0]["due"] == 2_000
    assert [one["data"] for one in await pull(client, batch=10)] == [0]
    assert [one["data"] for one in await pull(client, "?wait=3", batch=10)] == [1]


async def test_what_a_pace_would_make_too_late_is_left(client: Client) -> None:
    await bury(client, *({"data": n} for n in range(5)))
    await client.patch(f"{JOBS}/config", {"max_age_ms": 4_000})
    answer = await replay(client, filter=EVERYTHING, per_second=1)
    assert (answer["totals"], answer["more"]) == (
        {"replayed": 3, "no_queue": 0, "later": 2, "invalid": 0},
        True,
    )


async def test_a_preview_counts_and_shows_and_changes_nothing(client: Client) -> None:
    await bury(client, *({"data": n} for n in range(2_100)))
    answer = await replay(client, filter=EVERYTHING, preview=True)
    assert answer["count"] == 2_100
    assert [one["letter"]["originalMessage"] for one in answer["letters"]] == list(range(10))
    assert await pull(client) == []
    assert (await replay(client, filter={"key": "x"}, preview=True)) == {"count": 0, "letters": []}


async def test_purge_takes_a_filter(client: Client) -> None:
    await bury(client, *({"data": n} for n in range(2_100)), error="disk full")
    await bury(client, {"data": "other"})
    reply = await client.post(f"{DLQ}/purge", {"filter": {"error": "disk"}})
    assert (reply.status, reply.json()) == (200, {"deleted": 2_100})
    assert await dead(client) == ["other"]
    assert (await client.post(f"{DLQ}/purge", {"filter": EVERYTHING})).json() == {"deleted": 1}


@pytest.mark.parametrize("body", [b"", b"{}"])
async def test_purge_without_a_filter_takes_all(client: Client, body: bytes) -> None:
    await push(client, {"data": 1}, {"data": 2})
    reply = await client.ask("POST", f"{JOBS}/purge", body)
    assert (reply.status, reply.json()) == (200, {"deleted": 2})


@pytest.mark.parametrize(
    ("verb", "body", "about"),
    [
        ("replay", {}, "either ids or filter"),
        ("replay", {"ids": ["a"], "filter": {}}, "either ids or filter"),
        ("replay", {"ids": ["a"], "limit": 5}, "limit"),
        ("replay", {"ids": ["a"], "preview": True}, "preview"),
        ("replay", {"filter": {"replayed": True}}, "replayed"),
        ("replay", {"filter": {"reason": ["bored"]}}, "reason"),
        ("replay", {"filter": {"reason": "skipped"}}, "reason"),
        ("replay", {"filter": {"keys": "k"}}, "keys"),
        ("replay", {"filter": {"key": ""}}, "key"),
        ("replay", {"filter": {"since": -1}}, "since"),
        ("replay", {"filter": {}, "limit": 0}, "limit"),
        ("replay", {"filter": {}, "per_second": 0}, "per_second"),
        ("replay", {"filter": {}, "per_second": 10_001}, "per_second"),
        ("purge", {"filters": {}}, "filters"),
        ("purge", {"filter": {"reason": ["bored"]}}, "reason"),
    ],
)
async def test_what_cannot_be_wanted_is_refused_by_name(
    client: Client, verb: str, body: dict[str, Any], about: str
) -> None:
    await bury(client, {"data": 1})
    reply = await client.post(f"{DLQ}/{verb}", body)
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert about in reply.json()["detail"]
    assert await dead(client) == [1]
    assert await pull(client) == []
