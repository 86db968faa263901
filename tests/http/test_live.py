"""How queues are doing, as server-sent events: what is told, how often, to whom, and until when. In virtual time."""

from __future__ import annotations

import json
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from edgequeues.http import watching
from edgequeues.http.reading import KEEP_ALIVE_S
from edgequeues.http.server import Server
from edgequeues.http.tenants import Space
from edgequeues.http.waits import Waits
from edgequeues.http.watching import REFRESH_S
from edgequeues.space.shard import SpaceShard
from shards.hub import Hub

from .admin_queue import QUEUES, T, ask
from .asgi import Client, Exchange
from .fronted import only
from .work_queue import JOBS, pull, push, said
from .world import World, cut_short

LIVE = f"/admin/live{T}"
ONE = f"{QUEUES}/jobs/live{T}"


class Listener:
    """What comes over a stream, with the time at which each event came."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def next(self) -> tuple[str, Any, float]:
        """The next event: its name, its data, and seconds."""
        while True:
            piece = await self._exchange.piece()
            assert piece is not None
            if piece.startswith(b":"):
                continue
            name, data, *rest = piece.decode().split("\n")
            assert rest == ["", ""]
            return (
                name.removeprefix("event: "),
                json.loads(data.removeprefix("data: ")),
                trio.current_time(),
            )

    async def quiet(self, seconds: float) -> bool:
        """Is nothing told for so long, not even that the stream is alive?"""
        with trio.move_on_after(seconds):
            await self._exchange.piece()
            return False
        return True


async def listening(exchange: Exchange) -> Listener:
    exchange.end()
    assert await exchange.begun() == 200
    assert exchange.headers["content-type"] == "text/event-stream"
    assert exchange.headers["cache-control"] == "no-store"
    return Listener(exchange)


async def test_the_list_is_told_at_once_and_again_when_it_is_different(client: Client) -> None:
    await push(client, {"data": 1})
    async with client.open("GET", LIVE) as exchange:
        listener = await listening(exchange)
        name, body, _ = await listener.next()
        assert (name, body) == ("queues", await ask(client, "GET", f"{QUEUES}{T}"))
        await trio.sleep(0.001)  # ids of one millisecond are in any order
        await client.append("dxn:queue:demo:log", 1)
        name, body, _ = await listener.next()
        assert (name, [one["name"] for one in body["queues"]]) == ("queues", ["jobs", "log"])


async def test_whatever_happens_is_told_once_a_second_at_most(client: Client) -> None:
    await push(client, {"data": 1})
    async with client.open("GET", LIVE) as exchange:
        listener = await listening(exchange)
        _, _, last = await listener.next()

        async def busy() -> None:
            for n in range(100):
                await push(client, {"data": n})
                await trio.sleep(0.1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy)
            depths = []
            for _ in range(10):
                _, body, at = await listener.next()
                assert 1 <= at - last < 1.2
                depths.append(body["queues"][0]["depth"])
                last = at
        assert depths == sorted(set(depths))
        _, body, _ = await listener.next()
        assert body["queues"][0]["depth"] == 101  # the last change is not lost


async def test_a_change_is_told_within_a_second(client: Client) -> None:
    await client.put(f"{JOBS}/config", {"kind": "work"})
    async with client.open("GET", LIVE) as exchange:
        listener = await listening(exchange)
        await listener.next()
        await trio.sleep(30)
        began = trio.current_time()
        await client.patch(f"{JOBS}/config", {"paused": True})
        _, body, at = await listener.next()
        assert body["queues"][0]["paused"]
        assert at - began <= 1


async def test_what_ages_is_told_anew_every_few_seconds(client: Client) -> None:
    await push(client, {"data": 1})
    async with client.open("GET", LIVE) as exchange:
        listener = await listening(exchange)
        ages = []
        for _ in range(4):
            _, body, _ = await listener.next()
            ages.append(body["queues"][0]["oldest_ready_age_seconds"])
    gaps = [late - early for early, late in pairwise(ages)]
    assert all(1 <= gap <= REFRESH_S for gap in gaps)


async def test_rates_go_on_until_the_minute_has_passed_and_then_it_is_quiet(client: Client) -> None:
    await push(client, {"data": 1})
    [message] = await pull(client)
    await said(client, "ack", {"leases": [message["lease"]]})
    async with client.open("GET", LIVE) as exchange:
        listener = await listening(exchange)
        rates: list[list[int]] = []
        while not rates or any(rates[-1]):
            _, body, _ = await listener.next()
            rates.append(body["queues"][0]["rates"]["out"])
        assert 60 / REFRESH_S <= len(rates) <= 60 / REFRESH_S + 3
        assert await listener.quiet(KEEP_ALIVE_S - 1)
        assert not await listener.quiet(2)  # a comment: the stream is alive


async def test_where_nothing_changes_the_space_is_left_alone(
    client: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A space that is idle may be closed, though somebody watches it."""
    await client.put(f"{JOBS}/config", {"kind": "work"})
    looks = 0
    doing = SpaceShard.doing

    def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return doing(*args)

    monkeypatch.setattr(SpaceShard, "doing", counted)
    async with client.open("GET", LIVE) as exchange:
        listener = await listening(exchange)
        await listener.next()
        await trio.sleep(600)
        assert looks <= 3
        await client.patch(f"{JOBS}/config", {"paused": True})
        _, body, _ = await listener.next()
        assert body["queues"][0]["paused"]


async def test_a_page_and_a_part_of_a_name_are_followed_too(client: Client) -> None:
    for name in ("a1", "a2", "b1", "a3"):
        await client.append(f"dxn:queue:demo:{name}", 1)
        await trio.sleep(0.001)  # ids of one millisecond are in any order
    async with client.open("GET", f"{LIVE}&name=a&limit=2") as exchange:
        listener = await listening(exchange)
        _, body, _ = await listener.next()
        assert [one["name"] for one in body["queues"]] == ["a1", "a2"]
        assert "next" in body


async def test_one_queue_is_followed_with_its_consumers(client: Client) -> None:
    await push(client, {"data": 1})
    async with client.open("GET", ONE) as exchange:
        listener = await listening(exchange)
        name, body, _ = await listener.next()
        assert name == "queue"
        assert body.pop("consumers") == (await ask(client, "GET", f"{JOBS}/consumers"))["consumers"]
        assert body == await ask(client, "GET", f"{QUEUES}/jobs{T}")
        [message] = await pull(client)
        _, body, _ = await listener.next()
        assert (body["states"]["leased"], body["consumers"][0]["leased"]) == (1, 1)
        await said(client, "retry", {"retries": [{"lease": message["lease"], "permanent": True}]})
        _, body, _ = await listener.next()
        assert (body["dead_letters"], body["dead_letter_queues"]) == (1, ["jobs-dlq"])


async def test_a_queue_that_goes_is_said_to_be_gone(client: Client) -> None:
    await push(client, {"data": 1})
    async with client.open("GET", ONE) as exchange:
        listener = await listening(exchange)
        await listener.next()
        assert (await client.delete(f"{JOBS}/config")).status == 200
        name, _, _ = await listener.next()
        while name != "gone":
            name, _, _ = await listener.next()
        assert await exchange.rest() == b""
        assert exchange.whole


async def test_what_is_not_there_is_refused_before_anything_is_streamed(client: Client) -> None:
    await push(client, {"data": 1})
    assert (await client.get(f"{QUEUES}/nobody/live{T}")).code == "queue_not_found"
    assert (await client.get("/admin/live?tenant_id=nobody")).code == "queue_not_found"
    assert (await client.get(f"{LIVE}&limit=101")).code == "invalid_request"
    assert (await client.get(f"{LIVE}&state=x")).code == "invalid_request"


async def test_streams_end_with_the_server(client: Client, server: Server) -> None:
    await push(client, {"data": 1})
    async with client.open("GET", LIVE) as first, client.open("GET", ONE) as second:
        for exchange in (first, second):
            await (await listening(exchange)).next()
        await trio.sleep(3)
        server.waits.end()
        for exchange in (first, second):
            with trio.fail_after(1):
                await exchange.rest()
            assert exchange.whole


async def test_who_may_not_see_it_any_more_is_told_nothing_more(world: World) -> None:
    token = world.token()
    client = await world.open()
    await client.ask("POST", f"{JOBS}/push", b'{"entries":[{"data":1}]}', headers=[token])
    async with client.open("GET", LIVE, headers=[token]) as exchange:
        await (await listening(exchange)).next()
        world.revoke()
        await cut_short(exchange)


@only("app", why="it counts what the server itself holds")
async def test_there_are_so_many_streams_at_once_and_no_more(
    client: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LIVE_MAX", 2)
    await push(client, {"data": 1})
    async with client.open("GET", LIVE) as first, client.open("GET", ONE) as second:
        for exchange in (first, second):
            await (await listening(exchange)).next()
        reply = await client.get(LIVE)
        assert (reply.status, reply.code) == (503, "overloaded")
        first.hang_up()
        with trio.fail_after(60):
            await first.ended.wait()
        async with client.open("GET", LIVE) as third:
            await (await listening(third)).next()


async def test_where_many_watch_and_looking_is_slow_each_looks_less_often() -> None:
    """Eight streams, and a look that takes 0.1 s: together they may look for a quarter of the time."""
    hub, waits, looks = Hub(), Waits(), 0
    live = watching.Live(lambda name: hub.watch(name, "changed"), waits)

    async def look() -> watching.Seen:
        nonlocal looks
        await trio.sleep(0.1)
        looks += 1
        return watching.Seen(b"%d" % looks, moves=True)

    async def follow() -> None:
        space = cast(Space, SimpleNamespace(name="demo"))
        response = await live.response(space, "queues", look)
        assert not isinstance(response.body, bytes)
        async for _ in response.body:
            hub.emit("demo", ["changed"])

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(follow)
        await trio.sleep(10)
        before = looks
        await trio.sleep(100)
        assert 100 / 4 * 0.7 <= (looks - before) * 0.1 <= 100 / 4
        waits.end()


async def test_however_slow_looking_is_a_change_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "PACE_S_MAX", KEEP_ALIVE_S + 1)
    hub, waits, looks = Hub(), Waits(), 0
    live = watching.Live(lambda name: hub.watch(name, "changed"), waits)

    async def look() -> watching.Seen:
        nonlocal looks
        await trio.sleep(60)
        looks += 1
        return watching.Seen(b"%d" % looks, moves=False)

    response = await live.response(cast(Space, SimpleNamespace(name="demo")), "queues", look)
    assert not isinstance(response.body, bytes)
    told = 0
    async for piece in response.body:
        told += piece.startswith(b"event")
        if told < 5:
            hub.emit("demo", ["changed"])
        else:
            waits.end()
    assert told == 5
