"""The fronts as the tests of this folder see them: nothing of them shows, and their bytes take no time."""

from __future__ import annotations

import pytest
import trio

from edgequeues.control import Control
from edgequeues.http.auth import Auth
from edgequeues.http.hosts import Hosts, Origins
from edgequeues.http.listen import DEADLINES, Front
from edgequeues.http.routes import Receive, Scope, Send
from edgequeues.http.server import Server
from edgequeues.http.waits import Waits
from shards.clock import SystemClock
from tests.e2e.local import UPGRADE, frame, head

from .asgi import Client
from .fronted import FrontName, behind, connect, only
from .raw import small_server
from .test_dxos_socket import WS

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


@pytest.fixture
def client(control: Control, front: FrontName) -> Client:
    auth = Auth("off", "127.0.0.1", control, SystemClock())
    server = Server([], echo, Waits(), auth=auth, hosts=Hosts("127.0.0.1"), origins=Origins())
    return Client(behind(front, server))


async def test_the_clock_stands_still_while_bytes_are_under_way(client: Client) -> None:
    """Else a deadline that sleeps beside them would be over before they have arrived."""
    began = trio.current_time()
    with trio.fail_after(0.001):
        async with client.open("POST", "/") as exchange:
            for _ in range(PIECES):
                exchange.send(PIECE)
            exchange.end()
            assert await exchange.rest() == PIECE * PIECES
            await exchange.ended.wait()
    assert trio.current_time() == began


async def test_what_is_said_between_pieces_arrives_before_the_next(client: Client) -> None:
    async with client.open("POST", "/", headers=[(b"x-one", b"1")]) as exchange:
        for number in range(100):
            exchange.send(b"%d" % number)
            assert await exchange.piece() == b"%d" % number
        assert exchange.headers["x-one"] == "1"


async def until(stream: trio.SocketStream, end: bytes) -> bytes:
    """What comes up to these bytes."""
    came = b""
    with trio.fail_after(1):
        while not came.endswith(end):
            came += (piece := await stream.receive_some())
            assert piece, came
    return came


async def test_a_client_that_asks_first_is_told_to_continue_once_each_time(
    control: Control, front: FrontName
) -> None:
    door = Front(small_server(control, []), 1, DEADLINES, None, lane=front == "lane")
    lines = ("Content-Length: 3", "Expect: 100-Continue")
    async with trio.open_nursery() as nursery, connect(door, nursery) as stream:
        for _ in range(3):
            await stream.send_all(head("POST", "/echo", *lines))
            assert (await until(stream, b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            await stream.send_all(b"abc")
            assert (await until(stream, b"\r\n\r\nabc")).startswith(b"HTTP/1.1 200 ")


async def test_a_websocket_is_opened_however_its_bytes_come_and_whatever_came_before(
    server: Server, front: FrontName
) -> None:
    sent = head("GET", "/healthz") + head("GET", WS, *UPGRADE)
    for at in range(0, len(sent), 7):
        door = Front(server, 1, DEADLINES, None, lane=front == "lane")
        async with trio.open_nursery() as nursery, connect(door, nursery) as stream:
            for piece in (sent[:at], sent[at:]):
                await stream.send_all(piece)
                await trio.sleep(0.001)
            came = b""
            while b"HTTP/1.1 101 " not in came:
                came += (piece := await stream.receive_some())
                assert piece, came
            assert came.startswith(b"HTTP/1.1 200 ")
            await stream.send_all(frame(1, b"__ping__") * 2)
            await until(stream, b"__pong__\x81\x08__pong__")
