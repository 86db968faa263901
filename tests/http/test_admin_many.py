"""Dead letters by the many through the admin API: previewed, replayed in their order, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from .admin_queue import DLQ, T, ask, bury, dead
from .asgi import Client
from .work_queue import JOBS, pull, push, said

BULK = f"{DLQ}/replay{T}"


@pytest.mark.parametrize("named", [True, False])
async def test_ob_s05_a_bulk_replay_goes_in_original_order_and_one_at_a_time(
    client: Client, *, named: bool
) -> None:
    rules = {"ordering": "per_key", "batch": 10}
    await client.put(f"{JOBS}/config", {"profile": "work", "consumer": rules})
    letters = await bury(client, *(f"k/{number}" for number in range(1, 6)), key="k")
    await push(client, {"data": "k/6", "key": "k"})
    order = {"ids": [letters[index] for index in (2, 0, 4, 1, 3)]} if named else {"where": 'key == "k"'}
    answer = await ask(client, "POST", BULK, order)
    assert answer["totals"]["replayed"] == 5
    new = [one["new_message_id"] for one in answer["results"]]
    assert [one["id"] for one in answer["results"]] == letters
    given: list[tuple[str, str]] = []
    while messages := await pull(client, batch=10):
        assert len(messages) == 1
        given.append((messages[0]["id"], messages[0]["data"]))
        await said(client, "ack", {"leases": [messages[0]["lease"]]})
    assert [data for _, data in given] == ["k/6", "k/1", "k/2", "k/3", "k/4", "k/5"]
    assert [one for one, _ in given[1:]] == new


async def test_ob_s05_replayed_one_by_one_they_run_one_at_a_time_as_they_were_replayed(
    client: Client,
) -> None:
    rules = {"ordering": "per_key", "batch": 10}
    await client.put(f"{JOBS}/config", {"profile": "work", "consumer": rules})
    letters = await bury(client, *(f"k/{number}" for number in range(1, 6)), key="k")
    await push(client, {"data": "k/6", "key": "k"})
    for index in (2, 0, 4, 1, 3):
        await ask(client, "POST", f"{DLQ}/{letters[index]}/replay{T}", {})
    given: list[str] = []
    while messages := await pull(client, batch=10):
        given += [one["data"] for one in messages]
        assert len(messages) == 1
        await said(client, "ack", {"leases": [messages[0]["lease"]]})
    assert given == ["k/6", "k/3", "k/1", "k/5", "k/2", "k/4"]


async def test_a_bulk_replay_is_previewed_before_it_is_done(client: Client) -> None:
    await bury(client, *range(15))
    order = {"where": "message >= 3"}
    looked = await ask(client, "POST", BULK, {**order, "preview": True})
    assert (looked["count"], [one["preview"] for one in looked["dead_letters"]]) == (12, [*range(3, 13)])
    assert await pull(client) == []
    done = await ask(client, "POST", BULK, {**order, "limit": 5, "per_second": 1})
    assert (done["totals"]["replayed"], done["more"]) == (5, True)
    rest = await ask(client, "POST", BULK, order)
    assert (rest["totals"]["replayed"], rest["more"]) == (7, False)


async def test_an_unknown_id_among_others_is_told_and_the_others_are_replayed(client: Client) -> None:
    [letter] = await bury(client, 1)
    answer = await ask(client, "POST", BULK, {"ids": [letter, "nobody", letter]})
    outcomes = {one["id"]: (one["outcome"], one["new_message_id"] is None) for one in answer["results"]}
    assert outcomes == {"nobody": ("unknown", True), letter: ("replayed", False)}


async def test_many_letters_are_deleted_by_id_or_by_filter(client: Client) -> None:
    letters = await bury(client, *range(6))
    path = f"{DLQ}/purge{T}"
    assert await ask(client, "POST", path, {"ids": [letters[0], "nobody"]}) == {"ok": True, "deleted": 1}
    assert await ask(client, "POST", path, {"where": "message == 3"}) == {"ok": True, "deleted": 1}
    await ask(client, "POST", f"{DLQ}/{letters[1]}/replay{T}", {})
    assert await ask(client, "POST", path, {"replayed": True}) == {"ok": True, "deleted": 1}
    assert [one["preview"] for one in await dead(client)] == [2, 4, 5]
    assert await ask(client, "POST", path, {"all": True}) == {"ok": True, "deleted": 3}


@pytest.mark.parametrize("verb", ["replay", "purge"])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ids": []},
        {"ids": ["a"], "where": "true"},
        {"all": True, "error": "no"},
        {"all": False},
        {"where": "attempts >"},
        {"were": "true"},
        {"since": 1.5},
        {"ids": ["a"], "preview": True},
    ],
)
async def test_what_does_not_say_clearly_which_letters_is_refused(
    client: Client, verb: str, body: dict[str, Any]
) -> None:
    await bury(client, 1)
    reply = await client.post(f"{DLQ}/{verb}{T}", body)
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert len(await dead(client, "&replayed=false")) == 1
