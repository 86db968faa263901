"""Links to objects: they work until they end and not after, and nobody makes or changes one by himself."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
import trio

from edgequeues.http.listen import DEADLINES, Front

from .asgi import Client, Reply
from .fronted import FrontName, connect, only
from .objects import BUCKET, ORIGIN, SPACE, Objects, about, path
from .world import World, cut_short, heeded, worlds

DAY_S = 86_400
NAMES = [
    "Scan 2024-03-07 at 9.12.png",
    "a+b.txt",
    "50%.csv",
    "c++/x",
    "q?x=1#f.txt",
    "semi;colon&amp.txt",
    "Käse",
]


@pytest.fixture
async def objects(world: World) -> Objects:
    return Objects(await world.open())


async def fetched(objects: Objects, link: str) -> tuple[int, str | None]:
    """The status of a link, and the code of what is wrong with it."""
    reply = await objects.client.get(link)
    return reply.status, None if reply.status == 200 else reply.code


@pytest.mark.parametrize("lifetime_s", [None, 1, 60, 7 * DAY_S, 30 * DAY_S])
async def test_bl_s02_a_link_works_until_it_ends_and_not_after(
    world: World, objects: Objects, lifetime_s: int | None
) -> None:
    await objects.put("a")
    began = world.clock.now_ms()
    link, ends = await objects.link("a", lifetime_s)
    assert ends - began == (lifetime_s or 7 * DAY_S) * 1_000
    assert await fetched(objects, link) == (200, None)
    world.clock.skew_ms = ends - began - (500 if lifetime_s == 1 else 1_000)
    assert await fetched(objects, link) == (200, None)
    world.clock.skew_ms = ends - began + 1_000
    assert await fetched(objects, link) == (403, "link_expired")


@pytest.mark.parametrize("lifetime_s", [30 * DAY_S + 1, 31 * DAY_S, 366 * DAY_S])
async def test_bl_s02_no_link_lives_longer_than_thirty_days_and_each_says_how_long(
    world: World, objects: Objects, lifetime_s: int
) -> None:
    await objects.put("a")
    began = world.clock.now_ms()
    link, ends = await objects.link("a", lifetime_s)
    assert ends - began == 30 * DAY_S * 1_000
    world.clock.skew_ms = (30 * DAY_S - 1) * 1_000
    assert await fetched(objects, link) == (200, None)
    world.clock.skew_ms += 2_000
    assert await fetched(objects, link) == (403, "link_expired")


@pytest.mark.parametrize("lifetime_s", [0, -1, 10**12, 1.5, "7", True])
async def test_bl_s02_a_lifetime_that_is_none_is_refused(objects: Objects, lifetime_s: object) -> None:
    await objects.put("a")
    refused = await objects.sign("a", lifetime_s)
    assert (refused.status, refused.code) == (400, "invalid_request")


async def test_bl_s02_what_is_signed_counts_and_no_other_end(objects: Objects) -> None:
    await objects.put("a")
    await objects.put("b")
    link, ends = await objects.link("a", 60)
    other, _ = await objects.link("b", 60)
    signature = parse_qs(urlsplit(link).query)["signature"][0]
    forged = [
        link.replace(str(ends), str(ends + 1)),
        link.replace(str(ends), f"0{ends}") + "x",
        link.replace(str(ends), ""),
        link.replace(f"expires={ends}&", ""),
        link.partition("&")[0],
        link[:-1] + ("A" if link[-1] != "A" else "B"),
        link + "%00",
        link.replace(signature, quote("é" * 43)),
        link.replace("/a?", "/b?"),
        link.replace("/a?", "/none?"),
        link.replace(f"/{SPACE}/", "/other/"),
        link.replace(BUCKET, "other-bucket"),
        link.partition("?")[0] + "?" + other.partition("?")[2],
        link + f"&expires={ends}",
    ]
    await trio.sleep(50)
    for one in forged:
        assert await fetched(objects, one) == (403, "link_invalid"), one
    assert await fetched(objects, link) == (200, None)
    await trio.sleep(20)
    assert await fetched(objects, link.replace(str(ends), str(ends + 10**6))) == (403, "link_invalid")


async def test_bl_s02_a_clock_that_is_behind_does_not_change_what_was_signed(
    world: World, objects: Objects
) -> None:
    await objects.put("a")
    link, ends = await objects.link("a", 600)
    world.clock.skew_ms -= 60_000
    sooner, sooner_ends = await objects.link("a", 600)
    assert await fetched(objects, sooner) == (200, None)
    assert sooner_ends >= ends  # the time of a space never falls
    await trio.sleep(661)
    assert await fetched(objects, link) == (403, "link_expired")


async def test_a_link_is_for_all_ways_to_write_its_path(objects: Objects) -> None:
    await objects.put("a b/c")
    link, _ = await objects.link("a b/c")
    for written in ("a%20b/c", "a%20b%2Fc", "%61%20b/%63"):
        assert (await objects.client.get(link.replace("a%20b/c", written))).body == b"hello"
    for another in ("a%2520b/c", "a+b/c", "A%20b/c"):
        assert await fetched(objects, link.replace("a%20b/c", another)) == (403, "link_invalid")


async def test_a_link_takes_a_range_and_a_head_and_stores_nothing(objects: Objects) -> None:
    await objects.put("a")
    link, _ = await objects.link("a")
    assert (await objects.client.get(link, (b"range", b"bytes=1-2"))).body == b"el"
    assert (await objects.client.ask("HEAD", link)).headers["content-length"] == "5"
    assert (await objects.client.ask("PUT", link, b"other", headers=about())).code == "invalid_request"
    assert (await objects.client.delete(link)).code == "invalid_request"


async def test_a_link_can_be_made_anew_while_the_object_is_there(objects: Objects) -> None:
    await objects.put("a")
    link, _ = await objects.link("a", 60)
    await trio.sleep(61)
    assert await fetched(objects, link) == (403, "link_expired")
    again, _ = await objects.link("a", 60)
    assert await fetched(objects, again) == (200, None)
    assert (await objects.client.delete(path("a"))).status == 204
    assert (await objects.sign("a")).code == "blob_not_found"
    assert await fetched(objects, again) == (404, "blob_not_found")


async def test_who_may_read_may_have_links_and_who_has_one_needs_nothing_else(world: World) -> None:
    everything = world.token()
    objects = Objects(await world.open(), everything)
    reader, writer = world.token("read", spaces=[SPACE], name="r"), world.token("append", "list", name="w")
    elsewhere = world.token("read", spaces=["other"], name="e")
    await objects.put("a")
    target, ask = path("a"), {"key": "a"}
    assert (await objects.client.get(target)).status == 401
    assert (await objects.client.get(target, writer)).status == 403
    assert (await objects.client.get(target, elsewhere)).status == 403
    assert (await objects.client.get(target, reader)).body == b"hello"
    assert (await objects.client.post(f"/blobs/{SPACE}", ask)).status == 401
    assert (await objects.client.post(f"/blobs/{SPACE}", ask, writer)).status == 403
    signed: Reply = await objects.client.post(f"/blobs/{SPACE}", ask, reader)
    assert (await objects.client.get(signed.json()["presignedGetUrl"].removeprefix(ORIGIN))).body == b"hello"


@only("app", why="a front reads ahead of its client")
async def test_a_download_ends_with_the_token_that_it_was_begun_with(world: World) -> None:
    owner, reader = world.token(name="owner"), world.token("read", name="reader")
    objects = Objects(await world.open(), owner)
    await objects.put("a", bytes(2_000_000))
    async with objects.client.open("GET", path("a"), headers=[reader], ahead=0) as exchange:
        assert await exchange.piece()
        world.revoke("reader")
        await heeded()
        assert len(await cut_short(exchange)) < 1_000_000


async def test_links_are_to_where_the_server_is_reached_from_outside(world: World) -> None:
    objects = Objects(await world.open(public_base_url="https://mail.example.com/"))
    await objects.put("a")
    url = (await objects.sign("a")).json()["presignedGetUrl"]
    assert url.startswith(f"https://mail.example.com/blobs/{SPACE}/{BUCKET}/a?")


async def test_a_link_holds_after_a_restart(tmp_path: Path, front: FrontName) -> None:
    async with worlds(tmp_path, front) as world:
        objects = Objects(await world.open())
        await objects.put("a")
        link, _ = await objects.link("a")
    async with worlds(tmp_path, front) as world:
        assert (await (await world.open()).get(link)).body == b"hello"


# -- as clients write them ----------------------------------------------------------------------------------


@pytest.fixture
async def address(world: World) -> tuple[Client, Front]:
    server = await world.server()
    return Client(server), Front(server, 1, DEADLINES, None, lane=world.front == "lane")


@only("lane", "hypercorn", why="it is about the bytes of a request")
@pytest.mark.parametrize("name", NAMES)
async def test_bl_s01_a_link_opens_as_it_is_given_whatever_the_name(
    address: tuple[Client, Front], name: str
) -> None:
    client, front = address
    objects = Objects(client)
    await objects.put(f"att/1-{name}", name.encode(), filename=name)
    link, _ = await objects.link(f"att/1-{name}")
    assert link.isascii()
    assert " " not in link
    request = httpx.Request("GET", f"{ORIGIN}{link}")
    assert request.url.raw_path.decode() == link  # httpx sends it as it is
    async with trio.open_nursery() as nursery, connect(front, nursery) as stream:
        await stream.send_all(f"GET {link} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join([piece async for piece in stream])
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == name.encode()
    assert f"filename*=UTF-8''{quote(name, safe='')}".encode() in head
