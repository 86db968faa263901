"""Backups with the client: what it takes for whole, and what it asks for again."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

import httpx
import pytest

from edgequeues.client import BadAnswer, Client, Refused, Unreachable

from .script import Pieces, problem, scripted

CONTENT = b"SQLite format 3 and so on"


def answer(*pieces: bytes | Exception, digest: bytes = CONTENT) -> httpx.Response:
    header = f"sha-256=:{b64encode(sha256(digest).digest()).decode()}:"
    return httpx.Response(200, headers={"repr-digest": header}, stream=Pieces(*pieces))


async def whole(client: Client) -> bytes:
    return b"".join([piece async for piece in client.backup("demo")])


async def test_a_backup_is_asked_for_again_until_its_first_byte() -> None:
    busy = problem(503, "overloaded", retry_after="2")
    client, script = scripted(busy, httpx.ReadError("broken"), answer(CONTENT[:9], CONTENT[9:]))
    async with client:
        assert await whole(client) == CONTENT
    assert len(script.requests) == 3
    assert script.pauses[0] >= 2


async def test_a_backup_that_breaks_off_or_has_another_digest_is_none() -> None:
    for given, error in [
        (answer(CONTENT[:9], httpx.ReadError("broken")), Unreachable),
        (answer(CONTENT[:9]), BadAnswer),
        (httpx.Response(200, stream=Pieces(CONTENT)), BadAnswer),
    ]:
        client, script = scripted(given)
        async with client:
            with pytest.raises(error):
                await whole(client)
        assert len(script.requests) == 1


async def test_a_backup_that_is_given_up_closes_its_connection() -> None:
    stream = Pieces(CONTENT[:9], CONTENT[9:])
    client, _ = scripted(httpx.Response(200, stream=stream))
    async with client:
        pieces = client.backup("demo")
        assert await anext(pieces) == CONTENT[:9]
        await pieces.aclose()
    assert stream.closed


async def test_a_restore_is_never_repeated_once_it_was_sent() -> None:
    client, script = scripted(httpx.ReadError("broken"))
    async with client:
        with pytest.raises(Unreachable) as raised:
            await client.restore("demo", [CONTENT], replace=True)
    assert raised.value.maybe_done
    [request] = script.requests
    assert (request.method, request.url.raw_path) == ("PUT", b"/admin/spaces/demo/backup?replace=true")
    assert request.headers["content-type"] == "application/vnd.sqlite3"
    client, script = scripted(problem(409, "space_exists"))
    async with client:
        with pytest.raises(Refused):
            await client.restore("demo", CONTENT, sha256=sha256(CONTENT).hexdigest(), tag="trace")
    [request] = script.requests
    assert request.url.query == b"tag=trace"
    assert request.headers["repr-digest"] == answer().headers["repr-digest"]
