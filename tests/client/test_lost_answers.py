"""The server does what it was asked, and its answer is lost: what the client makes of that, verb by verb."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from edgequeues.client import Client, ConfigChange, NewEntry, QueueConfig, Transport, Unreachable
from edgequeues.client.http import random_key
from edgequeues.spec import ir, load

from .script import problem, scripted
from .working import Way, serving

Q = "dxn:queue:demo:jobs"
LOG = "dxn:queue:demo:log"
LOST = httpx.ReadError("cut off")
APPENDED = {"results": [{"id": "a", "position": 1, "version": "v", "outcome": "new"}], "cursor": "c"}
SPEC = b"app shop { queue orders { message_type { order: string }, idempotency_key: order } }"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Client, Way]]:
    async with serving(tmp_path / "data") as both:
        yield both


def keys(request: httpx.Request) -> list[str | None]:
    """The idempotency keys in a request."""
    body: Any = json.loads(request.content)
    return [one.get("idempotency_key") for one in body["entries"]]


async def data(client: Client) -> list[object]:
    return [one.data for one in (await client.peek(Q)).messages]


# -- push ---------------------------------------------------------------------------------------------------


async def test_a_keyed_push_is_repeated_with_the_same_keys_and_doubles_nothing(
    served: tuple[Client, Way],
) -> None:
    client, way = served
    way.instead["push"] = LOST
    answer = await client.push(Q, [{"n": 1}, {"n": 2}], keyed=True)
    assert [one.outcome for one in answer.results] == ["same", "same"]
    first, again = way.requests
    assert first.content == again.content
    assert len(set(keys(first))) == 2
    assert await data(client) == [{"n": 1}, {"n": 2}]


async def test_a_keyed_message_that_was_done_meanwhile_is_not_made_again(served: tuple[Client, Way]) -> None:
    """An id would not do: nothing of the message is left when its push comes again."""
    client, way = served
    await client.make_queue(Q)
    way.instead["push"] = LOST

    async def work() -> None:
        [message] = (await client.pull(Q, wait_s=5)).messages
        await client.ack(Q, [message.lease])
        assert way.paths.count("push") == 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await trio.testing.wait_all_tasks_blocked()
        await client.push(Q, [NewEntry({"n": 1}, id="one")], keyed=True)
    assert way.paths.count("push") == 2
    assert (await client.pull(Q)).messages == []
    assert (await client.stats(Q)).consumers[0].total_in == 1


async def test_the_repeat_comes_after_the_pause_the_server_asks_for_and_with_the_same_keys(
    served: tuple[Client, Way],
) -> None:
    client, way = served
    way.instead["push"] = problem(503, "outcome_unknown", retry_after="7")
    began_s = trio.current_time()
    await client.push(Q, [{"n": 1}], keyed=True)
    assert trio.current_time() - began_s >= 7
    assert keys(way.requests[0]) == keys(way.requests[1]) != [None]
    assert await data(client) == [{"n": 1}]


async def test_without_keys_a_lost_push_is_the_callers_to_judge(served: tuple[Client, Way]) -> None:
    client, way = served
    way.instead["push"] = LOST
    with pytest.raises(Unreachable) as caught:
        await client.push(Q, [{"n": 1}])
    assert caught.value.maybe_done
    assert keys(way.requests[0]) == [None]
    assert await data(client) == [{"n": 1}]


async def test_every_call_of_a_large_push_has_keys_of_its_own(served: tuple[Client, Way]) -> None:
    client, way = served
    way.instead["push"] = LOST
    answers = [one async for one in client.push_all(Q, range(1_001), keyed=True)]
    assert [len(one.results) for one in answers] == [1_000, 1]
    assert way.paths == ["push"] * 3
    made = [key for request in way.requests[1:] for key in keys(request)]
    assert len(set(made)) == 1_001
    assert (await client.stats(Q)).entries == 1_001


async def test_a_key_of_the_callers_own_stays() -> None:
    client, script = scripted(httpx.Response(200, json=APPENDED))
    await client.push(Q, [NewEntry(1, idempotency_key="mine"), NewEntry(2, id="two"), 3], keyed=True)
    mine, *made = keys(script.requests[0])
    assert mine == "mine"
    assert len({len(key or "") for key in made}) == 1
    assert None not in made


async def test_keys_come_from_where_the_transport_was_told() -> None:
    numbers, sent = count(1), list[httpx.Request]()

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json=APPENDED)

    transport = Transport(
        "http://server:1", transport=httpx.MockTransport(answer), new_key=lambda: f"key-{next(numbers)}"
    )
    async with Client("", transport=transport, keyed=True) as client:
        await client.push(Q, [1, 2])
        await client.push(Q, [3], keyed=False)
        await client.append(LOG, [4, NewEntry(5, id="five")])
    assert [keys(one) for one in sent] == [["key-1-1", "key-1-2"], [None], ["key-2-1", None]]


def test_a_random_key_has_128_bits_and_does_not_come_twice() -> None:
    made = [random_key() for _ in range(1_000)]
    assert len(set(made)) == 1_000
    assert {len(bytes.fromhex(key)) for key in made} == {16}


async def test_a_key_that_is_given_counts_instead_of_the_one_a_spec_computes(
    served: tuple[Client, Way],
) -> None:
    """So `keyed` is for queues whose specs compute none."""
    client, _ = served
    spec = load.read_text(SPEC, "shop.spec").spec
    assert spec is not None
    await client.apply_spec("demo", "shop", ir.encode(spec))
    orders = "dxn:queue:demo:orders"
    for keyed in (False, False, True, True):
        await client.push(orders, [{"order": "o1"}], keyed=keyed)
    assert (await client.stats(orders)).entries == 3


# -- append -------------------------------------------------------------------------------------------------


async def test_a_keyed_append_is_repeated_and_doubles_nothing(served: tuple[Client, Way]) -> None:
    client, way = served
    way.instead[LOG] = LOST
    answer = await client.append(LOG, [{"n": 1}, NewEntry(b'{"n":2}'), [3]], keyed=True)
    assert [one.outcome for one in answer.results] == ["same"] * 3
    assert [one.data async for one in client.iterate(LOG)] == [{"n": 1}, {"n": 2}, [3]]


async def test_an_append_of_ids_needs_no_keys(served: tuple[Client, Way]) -> None:
    client, way = served
    way.instead[LOG] = LOST
    answer = await client.append(LOG, [{"id": "a"}, NewEntry(2, id="b")], keyed=True)
    assert [one.outcome for one in answer.results] == ["same", "same"]
    assert keys(way.requests[0]) == [None, None]
    assert (await client.stats(LOG)).entries == 2


async def test_without_ids_or_keys_a_lost_append_is_the_callers_to_judge(served: tuple[Client, Way]) -> None:
    client, way = served
    way.instead[LOG] = LOST
    with pytest.raises(Unreachable) as caught:
        await client.append(LOG, [{"n": 1}])
    assert caught.value.maybe_done
    assert (await client.stats(LOG)).entries == 1


async def test_a_keyed_stream_is_repeated_from_what_was_not_confirmed(served: tuple[Client, Way]) -> None:
    client, way = served
    way.instead[LOG] = LOST
    told = [one async for one in client.append_stream(LOG, range(25), keyed=True)]
    assert [one.through for one in told] == [25]
    assert way.paths == [LOG, LOG]
    assert [one.data async for one in client.iterate(LOG)] == list(range(25))


# -- what is said of leases ---------------------------------------------------------------------------------


async def leased(client: Client) -> str:
    await client.push(Q, [{"n": 1}])
    [message] = (await client.pull(Q, lease_ms=60_000)).messages
    return message.lease


async def test_an_ack_is_repeated_and_the_message_is_done_once(served: tuple[Client, Way]) -> None:
    client, way = served
    lease = await leased(client)
    way.instead["ack"] = LOST
    assert [one.outcome for one in await client.ack(Q, [lease])] == ["finished"]
    [consumer] = await client.consumers(Q)
    assert (consumer.total_acked, await data(client)) == (1, [])


async def test_a_retry_is_repeated_and_costs_one_attempt(served: tuple[Client, Way]) -> None:
    client, way = served
    lease = await leased(client)
    way.instead["retry"] = LOST
    assert [one.outcome for one in await client.retry(Q, [lease], delay_ms=0)] == ["stale"]
    assert (await client.consumers(Q))[0].total_retried == 1
    [message] = (await client.pull(Q)).messages
    assert message.attempts == 2


async def test_a_release_and_an_extend_are_repeated(served: tuple[Client, Way]) -> None:
    client, way = served
    lease = await leased(client)
    way.instead["extend"] = LOST
    assert [one.outcome for one in await client.extend(Q, [lease], 90_000)] == ["done"]
    way.instead["release"] = LOST
    assert [one.outcome for one in await client.release(Q, [lease])] == ["stale"]
    [message] = (await client.pull(Q)).messages
    assert message.attempts == 1


async def test_a_pull_is_not_repeated_and_its_messages_come_again_when_their_leases_lapse(
    served: tuple[Client, Way],
) -> None:
    client, way = served
    await client.push(Q, [{"n": 1}])
    way.instead["pull"] = LOST
    with pytest.raises(Unreachable) as caught:
        await client.pull(Q, lease_ms=60_000)
    assert caught.value.maybe_done
    assert way.paths.count("pull") == 1
    assert (await client.pull(Q)).messages == []
    await trio.sleep(60.001)
    [message] = (await client.pull(Q)).messages
    assert (message.data, message.attempts) == ({"n": 1}, 2)


# -- dead letters, settings, deletes ------------------------------------------------------------------------


async def test_a_replay_is_repeated_and_makes_one_message(served: tuple[Client, Way]) -> None:
    client, way = served
    await client.retry(Q, [await leased(client)], permanent=True)
    [letter] = (await client.dead_letters(f"{Q}-dlq")).letters
    way.instead["replay"] = LOST
    [one] = await client.replay(f"{Q}-dlq", [letter.id])
    assert one.outcome == "already"
    assert [found.id for found in (await client.peek(Q)).messages] == [one.message]


Said = Callable[[Client], Awaitable[object]]
CHANGES: dict[str, tuple[str, Said]] = {
    "delete": (Q, lambda client: client.delete(Q, ids=["a"])),
    "configure": ("config", lambda client: client.configure(Q, QueueConfig(kind="work", delay_ms=5))),
    "reconfigure": ("config", lambda client: client.reconfigure(Q, ConfigChange(delay_ms=5))),
    "make_queue": ("config", lambda client: client.make_queue(Q, settings=ConfigChange(delay_ms=5))),
    "purge": ("purge", lambda client: client.purge(Q)),
    "remove": ("config", lambda client: client.remove(Q)),
}


@pytest.mark.parametrize("verb", CHANGES)
async def test_what_changes_a_queue_is_not_repeated_since_others_may_have_changed_it_meanwhile(
    served: tuple[Client, Way], verb: str
) -> None:
    client, way = served
    await client.push(Q, [NewEntry(1, id="a")])
    leaf, change = CHANGES[verb]
    way.instead[leaf] = LOST
    sent = len(way.requests)
    with pytest.raises(Unreachable) as caught:
        await change(client)
    assert caught.value.maybe_done
    assert len(way.requests) == sent + 1
    if verb == "remove":
        assert [one async for one in client.queues("demo")] == []
    else:
        stats = await client.stats(Q)
        assert (stats.entries == 0) is (verb in ("delete", "purge"))
        assert stats.config.delay_ms == (0 if verb in ("delete", "purge") else 5)
