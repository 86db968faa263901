from __future__ import annotations

import asyncio
import random

import httpx
import pytest

from edgequeues.client import Client, NewEntry, Refused, Retry, Transport, Unavailable, Unreachable

from .script import problem, scripted

Q = "dxn:queue:demo:log"
EMPTY: dict[str, object] = {"entries": [], "nextCursor": None, "prevCursor": None}
DONE = {"results": [{"id": "a", "position": 1, "version": "v", "outcome": "new"}], "cursor": "c"}
NAMED = [NewEntry(1, id="a")]


def ok(body: object) -> httpx.Response:
    return httpx.Response(200, json=body)


async def test_a_read_is_repeated_after_a_broken_connection_and_after_503() -> None:
    client, script = scripted(httpx.ReadError("reset"), problem(503, "overloaded"), ok(EMPTY))
    assert (await client.read(Q)).entries == []
    assert len(script.requests) == 3


async def test_an_append_whose_entries_have_ids_is_repeated_with_the_same_body() -> None:
    client, script = scripted(httpx.ReadTimeout("slow"), ok(DONE))
    answer = await client.append(Q, NAMED)
    assert [(one.id, one.outcome) for one in answer.results] == [("a", "new")]
    assert script.requests[0].content == script.requests[1].content


async def test_an_append_without_ids_is_never_repeated_once_it_may_have_arrived() -> None:
    client, script = scripted(httpx.ReadError("reset"))
    with pytest.raises(Unreachable, match="http://server:1") as caught:
        await client.append(Q, [1])
    assert caught.value.maybe_done
    assert len(script.requests) == 1


@pytest.mark.parametrize("code", ["overloaded", "outcome_unknown"])
async def test_an_append_without_ids_is_not_repeated_after_503(code: str) -> None:
    client, _ = scripted(problem(503, code, retry_after="1"))
    with pytest.raises(Unavailable) as caught:
        await client.append(Q, [1])
    assert (caught.value.code, caught.value.retry_after_s) == (code, 1.0)


async def test_any_request_that_never_left_is_repeated() -> None:
    client, script = scripted(httpx.ConnectError("refused"), ok(DONE))
    await client.append(Q, [1])
    assert len(script.requests) == 2


async def test_repeats_end_after_the_last_attempt() -> None:
    client, script = scripted(*[httpx.ConnectError("refused")] * 9, retry=Retry(attempts_max=3))
    with pytest.raises(Unreachable) as caught:
        await client.read(Q)
    assert not caught.value.maybe_done
    assert (len(script.requests), len(script.pauses)) == (3, 2)


async def test_what_is_refused_is_never_repeated() -> None:
    client, script = scripted(problem(404, "queue_not_found"))
    with pytest.raises(Refused, match="queue_not_found"):
        await client.stats(Q)
    assert script.pauses == []


async def test_pauses_double_up_to_their_maximum_less_a_random_share_of_up_to_a_half() -> None:
    retry = Retry(attempts_max=7, delay_first_s=1.0, delay_max_s=8.0)
    client, script = scripted(*[httpx.ConnectError("refused")] * 7, retry=retry)
    with pytest.raises(Unreachable):
        await client.read(Q)
    for pause_s, full_s in zip(script.pauses, [1, 2, 4, 8, 8, 8], strict=True):
        assert full_s / 2 <= pause_s <= full_s
    assert len(set(script.pauses)) == 6


async def test_the_pause_is_never_shorter_than_the_server_asks_for() -> None:
    client, script = scripted(problem(503, "overloaded", retry_after="7"), ok(EMPTY))
    await client.read(Q)
    assert script.pauses == [7.0]


async def test_a_server_that_asks_for_a_long_pause_is_believed_and_reported() -> None:
    client, script = scripted(problem(503, "not_ready", retry_after="3600"))
    with pytest.raises(Unavailable) as caught:
        await client.read(Q)
    assert (caught.value.retry_after_s, script.pauses) == (3600.0, [])


async def test_a_long_poll_waits_longer_for_its_answer_than_other_reads() -> None:
    client, script = scripted(ok(EMPTY), ok(EMPTY))
    await client.read(Q)
    await client.read(Q, wait_s=60)
    short, long = (request.extensions["timeout"]["read"] for request in script.requests)
    assert long == short + 60


@pytest.mark.parametrize("bad", ["", "127.0.0.1:8700", "ftp://x", "http://", "http://h:x", "localhost"])
def test_what_is_no_http_address_is_refused_at_once(bad: str) -> None:
    with pytest.raises(ValueError, match="server address"):
        Client(bad)


def test_the_client_works_on_asyncio_too() -> None:
    async def main() -> int:
        transport = Transport(
            "http://server:1",
            retry=Retry(delay_first_s=0.001),
            chance=random.Random(1),
            transport=httpx.MockTransport(script),
        )
        async with Client("", transport=transport) as client:
            return (await client.append(Q, NAMED)).results[0].position

    _, script = scripted(httpx.ConnectError("refused"), ok(DONE))
    assert asyncio.run(main()) == 1
