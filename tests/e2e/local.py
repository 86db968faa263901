"""The server in this process, behind real sockets, and bytes to send to it."""

from __future__ import annotations

import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import trio

from edgequeues.app import open_app
from edgequeues.http.listen import TlsFiles, serve
from edgequeues.http.server import Server
from edgequeues.http.waits import Waits
from edgequeues.http.wire import Deadlines

from . import fronts

UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)

GUARD_S = 60.0  # against hanging; nothing is said of how long anything takes
QUICK = Deadlines(head_s=0.5, idle_s=1.0, write_s=1.0, linger_s=0.5, sweep_s=0.05)


@dataclass
class Running:
    """A server, and what ends it."""

    url: str
    shutdown: trio.Event
    ended: trio.Event

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def secure(self, trust: ssl.SSLContext) -> trio.SSLStream[trio.SocketStream]:
        """Connect with TLS; the handshake is yet to come."""
        return trio.SSLStream(await self.connect(), trust, server_hostname="localhost", https_compatible=True)

    async def raw(self, request: bytes) -> bytes:
        """Send bytes, then take what comes until the server closes."""
        stream = await self.connect()
        await stream.send_all(request)
        with trio.fail_after(GUARD_S):
            answer = await until_end(stream)
        await stream.aclose()
        return answer


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    grace_s: float = 0.5,
    connections_max: int = 100,
    deadlines: Deadlines | None = None,
    tls: TlsFiles | None = None,
) -> AsyncIterator[Running]:
    """Serve the folder."""
    more: dict[str, Any] = {
        "grace_s": grace_s,
        "connections_max": connections_max,
        "deadlines": deadlines,
        "tls": tls,
    }
    async with open_app(folder) as app, listening(app, **more) as running:
        yield running


class Bare:
    """An ASGI app with nothing around it."""

    def __init__(self, answer: Callable[[Any, Any, Any], Awaitable[None]]) -> None:
        self.waits = Waits()
        self.rest = answer

    async def serve(self, *_args: object) -> bool:
        """It has no routes: all is for `rest`."""
        return False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await self.rest(scope, receive, send)
            return
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})


@asynccontextmanager
async def listening(
    app: Server | Bare, *, deadlines: Deadlines | None = None, **more: Any
) -> AsyncIterator[Running]:
    """Serve an app, at the front that the test is about."""
    shutdown, ended = trio.Event(), trio.Event()

    async def run(*, task_status: trio.TaskStatus[str]) -> None:
        await serve(
            cast(Server, app),
            "127.0.0.1",
            0,
            shutdown=shutdown,
            deadlines=deadlines or Deadlines(),
            lane=fronts.chosen == "lane",
            task_status=task_status,
            **more,
        )
        ended.set()

    async with trio.open_nursery() as nursery:
        url = await nursery.start(run)
        yield Running(url, shutdown, ended)
        shutdown.set()


def head(method: str, path: str, *more: str) -> bytes:
    """A request's line and headers."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *more, "", ""]).encode()


async def until_end(stream: trio.abc.ReceiveStream) -> bytes:
    """Everything until the server closes."""
    answer = b""
    while piece := await stream.receive_some():
        answer += piece
    return answer


def frame(opcode: int, payload: bytes, *, final: bool = True, masked: bool = True) -> bytes:
    """A frame: a client's, masked with zeros, or a server's."""
    size, mask = len(payload), 0x80 if masked else 0
    if size < 126:
        length = bytes([mask | size])
    elif size < 65_536:
        length = bytes([mask | 126]) + struct.pack("!H", size)
    else:
        length = bytes([mask | 127]) + struct.pack("!Q", size)
    return bytes([(0x80 if final else 0) | opcode]) + length + (bytes(4) if masked else b"") + payload
