"""The fronts as the tests of this folder see them: nothing of them shows, and their bytes take no time."""

from __future__ import annotations

import trio

from edgequeues.http.routes import Receive, Send
from edgequeues.http.server import Scope

from .asgi import Client
from .fronted import FrontName, behind, only

PIECES = 64
PIECE = b"x" * 100_000

pytestmark = only("lane", "hypercorn", why="the app alone has no socket")


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Send back what comes, as it comes."""
    headers = [header for header in scope["headers"] if header[0] == b"x-one"]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    more = True
    while more:
        message = await receive()
        more = message["more_body"]
        await send({"type": "http.response.body", "body": message["body"], "more_body": more})


async def test_the_clock_stands_still_while_bytes_are_under_way(front: FrontName) -> None:
    """Else a deadline that sleeps beside them would be over before they have arrived."""
    began = trio.current_time()
    with trio.fail_after(0.001):
        async with Client(behind(front, echo)).open("POST", "/") as exchange:
            for _ in range(PIECES):
                exchange.send(PIECE)
            exchange.end()
            assert await exchange.rest() == PIECE * PIECES
            await exchange.ended.wait()
    assert trio.current_time() == began


async def test_what_is_said_between_pieces_arrives_before_the_next(front: FrontName) -> None:
    async with Client(behind(front, echo)).open("POST", "/", headers=[(b"x-one", b"1")]) as exchange:
        for number in range(100):
            exchange.send(b"%d" % number)
            assert await exchange.piece() == b"%d" % number
        assert exchange.headers["x-one"] == "1"
