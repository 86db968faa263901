"""Servers that other machines reach, and strangers. In virtual time."""

from __future__ import annotations

import pytest
import trio

from edgequeues.http.auth import Unprotected

from .asgi import NDJSON
from .dxos_queue import Queue, body, note, refused
from .world import World, challenged, cut_short, heeded

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"
ENTRY = {"entries": [{"data": 1}]}
PROXIED = (b"x-forwarded-for", b"203.0.113.9")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "192.0.2.1", "queues.example"])
@pytest.mark.parametrize("auth", ["auto", "off"])
async def test_a_server_others_reach_does_not_start_where_nobody_needs_a_token(
    world: World, host: str, auth: str
) -> None:
    with pytest.raises(
        Unprotected, match=r"other machines reach .* `edgequeues token create NAME`.*--insecure"
    ):
        await world.open(host=host, auth=auth)


async def test_off_leaves_a_server_others_reach_open_however_many_tokens_there_are(world: World) -> None:
    world.token()
    with pytest.raises(Unprotected):
        await world.open(host="0.0.0.0", auth="off")


@pytest.mark.parametrize("auth", ["auto", "required"])
async def test_a_server_others_reach_wants_a_token_from_everybody(world: World, auth: str) -> None:
    token = world.token()
    client = await world.open(host="0.0.0.0", auth=auth)
    assert challenged(await client.get("/v1/spaces"))
    assert (await client.get("/v1/spaces", token)).status == 200


async def test_tokens_that_were_all_revoked_protect_a_server_too(world: World) -> None:
    token = world.token()
    world.revoke()
    client = await world.open(host="0.0.0.0")
    assert challenged(await client.get("/v1/spaces", token))


async def test_required_protects_a_server_before_its_first_token(world: World) -> None:
    client = await world.open(host="0.0.0.0", auth="required")
    assert challenged(await client.get("/v1/spaces"))
    token = world.token()
    await heeded()
    assert (await client.get("/v1/spaces", token)).status == 200


async def test_an_insecure_server_lets_everybody_in_until_there_is_a_token(world: World) -> None:
    client = await world.open(host="0.0.0.0", insecure=True)
    assert (await client.get("/v1/spaces", PROXIED)).status == 200
    await client.append(Q, 1)
    async with client.open("GET", f"{LOG}/subscribe") as exchange:
        assert await exchange.piece()
        await client.append(Q, 2)
        assert await exchange.piece()
        world.token()
        await heeded()
        assert challenged(await client.get("/v1/spaces"))
        assert await cut_short(exchange) == b""


async def test_strangers_make_only_so_many_spaces_a_minute(world: World) -> None:
    client = await world.open(host="0.0.0.0", insecure=True, stranger_spaces_per_minute=2)
    for space in ("a", "b"):
        await client.append(f"dxn:queue:{space}:log", 1)
    queue = "/v1/dxn:queue:c:log"
    for reply in (
        await client.post(queue, ENTRY),
        await client.ask("POST", queue, b'{"data":1}\n', headers=[NDJSON]),
        await client.put(f"{queue}/config", {}),
    ):
        assert (reply.status, reply.code, reply.headers["retry-after"]) == (429, "rate_limited", "5")
        assert reply.json()["retryable"] is True
    other = await Queue(client).send(body([note(1)]))
    assert (other.status, refused(other), other.headers["retry-after"]) == (503, "rate_limited", "5")
    await client.append("dxn:queue:a:other", 1)  # in a space that is there
    await trio.sleep(30)
    await client.append("dxn:queue:c:log", 1)
    assert (await client.post("/v1/dxn:queue:d:log", ENTRY)).status == 429
    await trio.sleep(3_600)
    for space in ("d", "e"):
        await client.append(f"dxn:queue:{space}:log", 1)
    assert (await client.post("/v1/dxn:queue:f:log", ENTRY)).status == 429


async def test_a_grant_to_everybody_makes_strangers_of_them_and_a_token_does_not(world: World) -> None:
    world.let_everybody("append", spaces=["open*"])
    token = world.token()
    client = await world.open(stranger_spaces_per_minute=1)
    assert (await client.post("/v1/dxn:queue:open1:log", ENTRY)).status == 200
    assert (await client.post("/v1/dxn:queue:open2:log", ENTRY)).status == 429
    for number in range(3):
        assert (await client.post(f"/v1/dxn:queue:open{number + 2}:log", ENTRY, token)).status == 200


async def test_programs_of_this_machine_are_no_strangers(world: World) -> None:
    client = await world.open(stranger_spaces_per_minute=0)
    await client.append(Q, 1)
