"""The DXOS dialect's WebSocket: accepted and kept, so that clients do not ask for it again and again."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from edgequeues.http.dxos import SOCKET_SILENCE_S
from edgequeues.http.server import SOCKET_REFUSED_S, Server

from .asgi import HOST, Client, Pairs
from .dxos_queue import refused

WS = "/ws/" + "a1" * 65 + "/" + "b2" * 65
OFFERED = ["edge-ws-v0", "edge-ws-v1"]
Message = MutableMapping[str, Any]


class Peer:
    """The client's side of one WebSocket."""

    def __init__(self) -> None:
        self._to_app, self._app_receives = trio.open_memory_channel[Message](math.inf)
        self._app_sends, self._from_app = trio.open_memory_channel[Message](math.inf)
        self.ended = trio.Event()  # the app has returned
        self._to_app.send_nowait({"type": "websocket.connect"})

    async def run(self, app: Server, scope: Message) -> None:
        async with self._app_sends:
            await app(scope, self._app_receives.receive, self._app_sends.send)
        self.ended.set()

    async def next(self) -> Message:
        """What the app says next."""
        return await self._from_app.receive()

    def silent(self) -> bool:
        """Has the app nothing said that was not taken?"""
        return self._from_app.statistics().current_buffer_used == 0

    def text(self, text: str) -> None:
        self._to_app.send_nowait({"type": "websocket.receive", "text": text, "bytes": None})

    def binary(self, data: bytes) -> None:
        self._to_app.send_nowait({"type": "websocket.receive", "text": None, "bytes": data})

    def hang_up(self) -> None:
        self._to_app.send_nowait({"type": "websocket.disconnect", "code": 1006})


@asynccontextmanager
async def connecting(
    server: Server, path: str = WS, *, offered: Sequence[str] = OFFERED, headers: Pairs | None = None
) -> AsyncIterator[Peer]:
    """A WebSocket that was asked for."""
    peer = Peer()
    scope = {
        "type": "websocket",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [HOST, *(headers or [])],
        "subprotocols": offered,
    }
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.run, server, scope)
        yield peer
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Peer]:
    """A WebSocket that was accepted."""
    async with connecting(server) as peer:
        assert (await peer.next())["type"] == "websocket.accept"
        yield peer


@pytest.mark.parametrize(
    ("offered", "spoken"),
    [
        (OFFERED, "edge-ws-v1"),
        (["edge-ws-v0"], "edge-ws-v0"),
        (["edge-ws-v0", "base64url.bearer.authorization.dxos.org.e30"], "edge-ws-v0"),
        (["edge-ws-v9"], None),
        ([], None),
    ],
)
async def test_it_is_accepted_in_the_newest_protocol_that_is_offered_and_known(
    server: Server, offered: list[str], spoken: str | None
) -> None:
    async with connecting(server, offered=offered) as peer:
        accept = await peer.next()
        assert (accept["type"], accept["subprotocol"]) == ("websocket.accept", spoken)


async def test_a_ping_gets_a_pong_for_as_long_as_they_come(server: Server) -> None:
    async with connected(server) as peer:
        for _ in range(50):
            await trio.sleep(4)
            peer.text("__ping__")
            message = await peer.next()
            assert (message["type"], message["text"]) == ("websocket.send", "__pong__")


async def test_messages_are_taken_and_not_answered(server: Server) -> None:
    async with connected(server) as peer:
        for _ in range(5):
            await trio.sleep(SOCKET_SILENCE_S - 1)  # each is a sign of life
            peer.binary(b"\x00__ping__")
            peer.text("hello")
        await trio.sleep(1)
        assert peer.silent()
        peer.text("__ping__")
        assert (await peer.next())["text"] == "__pong__"


async def test_it_is_closed_after_a_minute_of_silence(server: Server) -> None:
    async with connected(server) as peer:
        peer.text("__ping__")
        await peer.next()
        since = trio.current_time()
        assert await peer.next() == {"type": "websocket.close", "code": 1001}
        assert trio.current_time() - since == pytest.approx(SOCKET_SILENCE_S)
        await peer.ended.wait()


async def test_it_is_closed_when_the_server_stops(server: Server) -> None:
    async with connected(server) as peer:
        await trio.sleep(1)
        since = trio.current_time()
        server.waits.end()
        assert await peer.next() == {"type": "websocket.close", "code": 1001}
        await peer.ended.wait()
        assert trio.current_time() == since


async def test_nothing_is_sent_to_a_client_that_hung_up(server: Server) -> None:
    async with connected(server) as peer:
        peer.hang_up()
        await peer.ended.wait()
        assert peer.silent()


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (WS, [(b"origin", b"https://example.org")]),
        ("/ws/one", []),
        ("/v1/spaces", []),
        ("/spaces/%FF/ws", []),
    ],
)
async def test_a_refusal_comes_late_so_that_clients_do_not_come_back_at_once(
    server: Server, path: str, headers: Pairs
) -> None:
    async with connecting(server, path, headers=headers) as peer:
        since = trio.current_time()
        assert await peer.next() == {"type": "websocket.close", "code": 1008}
        assert trio.current_time() - since == pytest.approx(SOCKET_REFUSED_S)
        await peer.ended.wait()


async def test_a_refusal_does_not_hold_up_a_server_that_stops(server: Server) -> None:
    async with connecting(server, "/ws/one") as peer:
        await trio.sleep(1)
        since = trio.current_time()
        server.waits.end()
        assert await peer.next() == {"type": "websocket.close", "code": 1008}
        assert trio.current_time() == since


async def test_a_page_that_may_ask_is_accepted(server: Server) -> None:
    async with connecting(server, headers=[(b"origin", b"http://localhost:5173")]) as peer:
        assert (await peer.next())["type"] == "websocket.accept"


async def test_a_request_that_is_no_websocket_is_told_so_without_a_challenge(client: Client) -> None:
    """Clients look there for an authentication challenge first; anything but a 401 says there is none."""
    reply = await client.get(WS)
    assert (reply.status, refused(reply), reply.headers["upgrade"]) == (426, "upgrade_required", "websocket")
    assert "www-authenticate" not in reply.headers
