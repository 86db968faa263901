"""Long polls, in virtual time."""

from __future__ import annotations

import json

import pytest
import trio

from edgequeues.http.server import Server

from .asgi import Client, Exchange

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"


async def answer(exchange: Exchange) -> list[object]:
    assert await exchange.begun() == 200
    return [one["data"] for one in json.loads(await exchange.rest())["entries"]]


async def test_a_wait_ends_with_the_first_append(client: Client) -> None:
    cursor = (await client.append(Q, 1)).json()["cursor"]
    async with client.open("GET", f"{LOG}?wait=60&after={cursor}") as exchange:
        start = trio.current_time()
        await trio.sleep(10)
        await client.append(Q, 2)
        assert await answer(exchange) == [2]
        assert trio.current_time() - start == pytest.approx(10)


async def test_what_is_there_is_given_at_once(client: Client) -> None:
    await client.append(Q, 1)
    start = trio.current_time()
    assert len((await client.get(f"{LOG}?wait=60")).json()["entries"]) == 1
    assert trio.current_time() == start


async def test_a_wait_in_vain_ends_in_time_with_an_empty_answer(client: Client) -> None:
    cursor = (await client.append(Q, 1)).json()["cursor"]
    start = trio.current_time()
    reply = await client.get(f"{LOG}?wait=2.5&after={cursor}")
    assert trio.current_time() - start == pytest.approx(2.5)
    assert reply.json() == {"entries": [], "nextCursor": cursor, "prevCursor": None}
    again = await client.get(
        f"{LOG}?wait=1&after={cursor}", (b"if-none-match", reply.headers["etag"].encode())
    )
    assert again.status == 304


@pytest.mark.parametrize("before", [[], ["dxn:queue:demo:other"], ["dxn:queue:trace:demo:log"]])
async def test_a_new_queue_or_space_ends_a_wait_for_it(client: Client, before: list[str]) -> None:
    for queue in before:
        await client.append(queue, 0)
    async with client.open("GET", f"{LOG}?wait=60") as exchange:
        await trio.sleep(1)
        await client.append(Q, 1)
        assert await answer(exchange) == [1]


async def test_a_wait_by_id_is_ended_by_an_append_by_name_and_the_other_way_round(client: Client) -> None:
    cursor = (await client.append(Q, 1)).json()["cursor"]
    queue_id = (await client.get(f"{LOG}/stats")).json()["id"]
    by_id = f"dxn:queue:demo:{queue_id}"
    for wait_for, append_to in ((by_id, Q), (Q, by_id)):
        async with client.open("GET", f"/v1/{wait_for}?wait=60&after={cursor}") as exchange:
            await trio.sleep(1)
            cursor = (await client.append(append_to, "x")).json()["cursor"]
            assert await answer(exchange) == ["x"]


async def test_what_does_not_match_does_not_end_a_wait(client: Client) -> None:
    async with client.open("GET", f"{LOG}?wait=60&type=T") as exchange:
        for n in range(5):
            await trio.sleep(1)
            await client.append(Q, n)
        await client.post(LOG, {"entries": [{"data": "typed", "type": "T"}]})
        assert await answer(exchange) == ["typed"]


async def test_a_change_of_an_object_ends_a_wait(client: Client) -> None:
    cursor = (await client.append(Q, {"id": "a", "n": 1})).json()["cursor"]
    async with client.open("GET", f"{LOG}?wait=60&after={cursor}") as exchange:
        await trio.sleep(1)
        await client.append(Q, {"id": "a", "n": 2})
        assert await answer(exchange) == [{"id": "a", "n": 2}]


async def test_a_wait_outlives_the_closing_of_its_space(client: Client) -> None:
    """An idle space is closed after a minute; who waits for it is not forgotten."""
    cursor = (await client.append(Q, 1)).json()["cursor"]
    await trio.sleep(200)
    async with client.open("GET", f"{LOG}?wait=60&after={cursor}") as exchange:
        await trio.sleep(59)
        await client.append(Q, 2)
        assert await answer(exchange) == [2]


async def test_more_than_a_page_that_arrives_during_a_wait_is_given_whole(client: Client) -> None:
    async with client.open("GET", f"{LOG}?wait=60", ahead=0) as exchange:
        await trio.sleep(1)
        await client.stream(LOG, *(b'{"data":%d}' % n for n in range(1_500)))
        got = await answer(exchange)
        assert got == list(range(len(got)))


async def test_a_client_that_hangs_up_ends_its_wait(client: Client) -> None:
    async with client.open("GET", f"{LOG}?wait=60") as exchange:
        start = trio.current_time()
        await trio.sleep(1)
        exchange.hang_up()
        await exchange.ended.wait()
        assert trio.current_time() - start == pytest.approx(1)
        with pytest.raises(trio.EndOfChannel):
            await exchange.begun()


async def test_a_server_that_stops_ends_all_waits_and_is_not_ready(client: Client, server: Server) -> None:
    async with client.open("GET", f"{LOG}?wait=60") as exchange:
        start = trio.current_time()
        await trio.sleep(1)
        server.waits.end()
        assert await answer(exchange) == []
        assert trio.current_time() - start == pytest.approx(1)
    assert (await client.get(f"{LOG}?wait=60")).json()["entries"] == []
    reply = await client.get("/readyz")
    assert (reply.status, reply.code, reply.headers["retry-after"]) == (503, "not_ready", "2")
    assert (await client.get("/healthz")).status == 200
