"""Server-sent events, in virtual time."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from edgequeues.http.server import Server

from .asgi import Client, Exchange

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"
SUBSCRIBE = f"{LOG}/subscribe"

Event = tuple[str, Any]  # cursor and entry


def events(text: bytes) -> list[Event]:
    """Take whole events apart as a browser does; comments are left out."""
    found = []
    assert text.endswith(b"\n\n")
    for block in text.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            assert fields["event"] == "entry"
            found.append((fields["id"], json.loads(fields["data"])))
    return found


async def following(exchange: Exchange, count: int) -> list[Event]:
    """The next `count` events."""
    found: list[Event] = []
    while len(found) < count:
        piece = await exchange.piece()
        assert piece is not None
        found += events(piece)
    assert len(found) == count
    return found


def data(found: list[Event]) -> list[Any]:
    return [entry["data"] for _, entry in found]


async def test_a_subscription_gives_what_is_there_and_then_what_comes(client: Client) -> None:
    await client.append(Q, 1, 2)
    async with client.open("GET", SUBSCRIBE) as exchange:
        assert await exchange.begun() == 200
        assert exchange.headers["content-type"] == "text/event-stream"
        assert exchange.headers["cache-control"] == "no-store"
        first = await following(exchange, 2)
        assert [entry for _, entry in first] == (await client.get(LOG)).json()["entries"]
        for n in range(3, 6):
            await client.append(Q, n)
            assert data(await following(exchange, 1)) == [n]


async def test_each_event_carries_its_cursor_and_a_subscription_resumes_from_it(client: Client) -> None:
    await client.append(Q, *range(5))
    async with client.open("GET", SUBSCRIBE) as exchange:
        found = await following(exchange, 5)
    for n, (cursor, _) in enumerate(found[:-1]):
        last_id = [(b"last-event-id", cursor.encode())]
        async with client.open("GET", f"{SUBSCRIBE}?after=nonsense", headers=last_id) as exchange:
            assert data(await following(exchange, 4 - n)) == list(range(n + 1, 5))
        async with client.open("GET", f"{SUBSCRIBE}?after={cursor}") as exchange:
            assert data(await following(exchange, 4 - n)) == list(range(n + 1, 5))
        assert len((await client.get(f"{LOG}?after={cursor}")).json()["entries"]) == 4 - n


async def test_from_the_tail_only_what_comes_is_given(client: Client) -> None:
    await client.append(Q, 1)
    async with client.open("GET", f"{SUBSCRIBE}?after=tail") as exchange:
        await exchange.begun()
        await client.append(Q, 2)
        assert data(await following(exchange, 1)) == [2]


@pytest.mark.parametrize("query", ["", "?after=tail"])
async def test_a_queue_yet_to_be_made_can_be_followed(client: Client, query: str) -> None:
    async with client.open("GET", SUBSCRIBE + query) as exchange:
        await exchange.begun()
        await trio.sleep(1)
        await client.append(Q, 1)
        assert data(await following(exchange, 1)) == [1]


async def test_only_the_type_asked_for_is_given(client: Client) -> None:
    async with client.open("GET", f"{SUBSCRIBE}?type=T") as exchange:
        for n in range(6):
            entry = {"data": n} | ({"type": "T"} if n % 3 == 0 else {})
            await client.post(LOG, {"entries": [entry]})
        assert data(await following(exchange, 2)) == [0, 3]


async def test_more_than_a_page_is_given_in_order(client: Client) -> None:
    await client.stream(LOG, *(b'{"data":%d}' % n for n in range(2_500)))
    async with client.open("GET", SUBSCRIBE, ahead=0) as exchange:
        assert data(await following(exchange, 2_500)) == list(range(2_500))
        await client.append(Q, "next")
        assert data(await following(exchange, 1)) == ["next"]


async def test_a_slow_reader_holds_up_nobody_and_misses_nothing(client: Client) -> None:
    async with client.open("GET", SUBSCRIBE, ahead=0) as exchange:
        for n in range(1_200):
            await client.append(Q, n)
        assert data(await following(exchange, 1_200)) == list(range(1_200))


async def test_data_of_several_lines_is_one_line_of_an_event(client: Client) -> None:
    body = b'{"entries":[{"data":{\r\n "a": "x\\ny",\n "b":\r[ ]}}]}'
    assert (await client.ask("POST", LOG, body)).status == 200
    async with client.open("GET", SUBSCRIBE) as exchange:
        assert data(await following(exchange, 1)) == [{"a": "x\ny", "b": []}]


async def test_a_quiet_subscription_is_kept_alive_by_comments(client: Client) -> None:
    async with client.open("GET", SUBSCRIBE) as exchange:
        start = trio.current_time()
        for n in range(1, 4):
            piece = await exchange.piece()
            assert piece is not None
            assert piece.startswith(b":")
            assert events(piece) == []
            assert trio.current_time() - start == pytest.approx(15 * n)


async def test_events_are_never_held_back_to_be_compressed(client: Client) -> None:
    async with client.open("GET", SUBSCRIBE, headers=[(b"accept-encoding", b"gzip")]) as exchange:
        await exchange.begun()
        assert "content-encoding" not in exchange.headers


async def test_hanging_up_ends_a_subscription(client: Client) -> None:
    async with client.open("GET", SUBSCRIBE) as exchange:
        await exchange.begun()
        exchange.hang_up()
        await exchange.ended.wait()


async def test_a_server_that_stops_ends_its_subscriptions_whole(client: Client, server: Server) -> None:
    async with client.open("GET", SUBSCRIBE) as exchange:
        await exchange.begun()
        server.waits.end()
        assert await exchange.rest() == b""
        assert exchange.whole


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("after=abc", 400, "invalid_cursor"),
        ("limit=1", 400, "invalid_request"),
        ("type=", 400, "invalid_request"),
        ("type=a%00", 400, "invalid_id"),
        ("after=tail&after=tail", 400, "invalid_request"),
    ],
)
async def test_a_bad_parameter_is_refused_before_the_stream_begins(
    client: Client, query: str, status: int, code: str
) -> None:
    await client.append(Q, 1)
    reply = await client.get(f"{SUBSCRIBE}?{query}")
    assert (reply.status, reply.code) == (status, code)


async def test_a_bad_last_event_id_is_refused(client: Client) -> None:
    await client.append(Q, 1)
    foreign = (await client.append("dxn:queue:elsewhere:log", 1)).json()["cursor"]
    assert (await client.get(SUBSCRIBE, (b"last-event-id", b"abc\xff"))).code == "invalid_cursor"
    reply = await client.get(SUBSCRIBE, (b"last-event-id", foreign.encode()))
    assert (reply.status, reply.code) == (410, "cursor_store")
    assert (await client.get(f"/v1/{Q}:a/subscribe")).code == "invalid_dxn"
