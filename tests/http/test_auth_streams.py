"""Answers that go on, when their token does not. In virtual time."""

from __future__ import annotations

import json

import pytest
import trio

from edgequeues.http.reading import KEEP_ALIVE_S

from .asgi import NDJSON
from .world import World, cut_short, heeded

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"
ENTRY = {"entries": [{"data": 1}]}
CHUNKED = (b"transfer-encoding", b"chunked")


async def test_a_subscription_whose_token_was_revoked_gets_no_further_entry_and_ends(world: World) -> None:
    owner, reader = world.token(name="owner"), world.token("read", name="reader")
    client = await world.open()
    await client.post(LOG, {"entries": [{"data": "seen"}]}, owner)
    async with client.open("GET", f"{LOG}/subscribe", headers=[reader]) as exchange:
        assert b'"seen"' in (await exchange.piece() or b"")
        await client.post(LOG, {"entries": [{"data": "later"}]}, owner)
        assert b'"later"' in (await exchange.piece() or b"")
        world.revoke("reader")
        await heeded()
        await client.post(LOG, {"entries": [{"data": "unseen"}]}, owner)
        assert await cut_short(exchange) == b""


async def test_a_subscription_to_a_quiet_queue_ends_with_its_token_too(world: World) -> None:
    owner, reader = world.token(), world.token("read", expires_in_ms=10_000)
    client = await world.open()
    await client.post(LOG, ENTRY, owner)
    async with client.open("GET", f"{LOG}/subscribe", headers=[reader]) as exchange:
        assert await exchange.piece()
        since = trio.current_time()
        assert await cut_short(exchange) == b""
        assert trio.current_time() - since <= KEEP_ALIVE_S


async def test_a_read_that_waits_gets_nothing_that_came_after_its_token_was_revoked(world: World) -> None:
    owner, reader = world.token(name="owner"), world.token("read", name="reader")
    client = await world.open()
    await client.post(LOG, ENTRY, owner)
    after = (await client.get(LOG, owner)).json()["nextCursor"]
    async with client.open("GET", f"{LOG}?wait=30&after={after}", headers=[reader]) as exchange:
        exchange.end()
        await heeded()
        world.revoke("reader")
        await heeded()
        await client.post(LOG, {"entries": [{"data": "unseen"}]}, owner)
        assert await exchange.begun() == 401
        assert b"unseen" not in await exchange.rest()


@pytest.mark.parametrize("revoked", ["reader", "other"])
async def test_a_subscription_heeds_only_its_own_token(world: World, revoked: str) -> None:
    for name in ("reader", "other"):
        world.token("read", name=name)
    owner, reader = world.token(name="owner"), world.token("read", name="mine")
    client = await world.open()
    await client.post(LOG, ENTRY, owner)
    async with client.open("GET", f"{LOG}/subscribe", headers=[reader]) as exchange:
        assert await exchange.piece()
        world.revoke(revoked)
        await heeded()
        await client.post(LOG, {"entries": [{"data": "later"}]}, owner)
        assert b'"later"' in (await exchange.piece() or b"")


async def test_a_streamed_append_ends_with_its_token_and_is_no_bug(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    writer = world.token("append")
    client = await world.open()
    async with client.open("POST", LOG, headers=[NDJSON, CHUNKED, writer]) as exchange:
        exchange.send(b'{"data":1}\n')
        assert json.loads(await exchange.piece() or b"")["through"] == 1
        world.revoke()
        await heeded()
        exchange.send(b'{"data":2}\n')
        assert await cut_short(exchange) == b""
    assert [record.levelname for record in caplog.records] == ["WARNING"]
