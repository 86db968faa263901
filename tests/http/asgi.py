"""A tiny ASGI client: whole requests, or an exchange whose both sides a test drives step by step."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import trio

from edgequeues.http.routes import App

Pairs = list[tuple[bytes, bytes]]
HOST = (b"host", b"localhost:8700")
JSON = (b"content-type", b"application/json")
NDJSON = (b"content-type", b"application/x-ndjson")


@dataclass
class Reply:
    """A whole answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of a problem."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json()["status"] == self.status
        return str(self.json()["code"])


class Exchange:
    """One request under way. Unless told otherwise the client reads at once whatever the app sends."""

    def __init__(self, ahead: float) -> None:
        self._to_app, self._app_receives = trio.open_memory_channel[MutableMapping[str, Any]](math.inf)
        self._app_sends, self._from_app = trio.open_memory_channel[MutableMapping[str, Any]](ahead)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = trio.Event()  # the app has returned
        self.whole = False  # it sent all of its answer

    # -- the client's side -------------------------------------------------------------------------------

    def send(self, piece: bytes) -> None:
        """Send a part of the body."""
        self._to_app.send_nowait({"type": "http.request", "body": piece, "more_body": True})

    def end(self, piece: bytes = b"") -> None:
        """Send the last part of the body."""
        self._to_app.send_nowait({"type": "http.request", "body": piece, "more_body": False})

    def hang_up(self) -> None:
        """Close the connection."""
        self._to_app.send_nowait({"type": "http.disconnect"})

    async def begun(self) -> int:
        """Wait for the status and the headers."""
        message = await self._from_app.receive()
        assert message["type"] == "http.response.start"
        self.status = message["status"]
        self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        return self.status

    async def piece(self) -> bytes | None:
        """Wait for the next part of the answer; None: there is none, see `whole`."""
        if not self.status:
            await self.begun()
        while not self.whole:
            try:
                message = await self._from_app.receive()
            except trio.EndOfChannel:
                return None
            assert message["type"] == "http.response.body"
            self.whole = not message.get("more_body", False)
            if message["body"]:
                return bytes(message["body"])
        return None

    async def rest(self) -> bytes:
        """Wait for all that is left of the answer."""
        pieces = []
        while (piece := await self.piece()) is not None:
            pieces.append(piece)
        return b"".join(pieces)

    # -- the app's side ----------------------------------------------------------------------------------

    async def run(self, app: App, scope: MutableMapping[str, Any]) -> None:
        async with self._app_sends:
            await app(scope, self._app_receives.receive, self._app_sends.send)
        self.ended.set()


class Client:
    """Calls an ASGI app as a web server would."""

    def __init__(self, app: App) -> None:
        self.app = app

    @asynccontextmanager
    async def open(
        self,
        method: str,
        target: str,
        *,
        headers: Pairs | None = None,
        host: bool = True,
        ahead: float = math.inf,
    ) -> AsyncIterator[Exchange]:
        """Start a request whose body is still to be sent. ahead: messages the app may send before one is read."""
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [*([HOST] if host else []), *(headers or [])],
            "scheme": "http",
            "http_version": "1.1",
            "server": ("127.0.0.1", 8700),
            "client": ("127.0.0.1", 50_000),
            "root_path": "",
        }
        exchange = Exchange(ahead)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exchange.run, self.app, scope)
            yield exchange
            nursery.cancel_scope.cancel()

    async def ask(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *,
        headers: Pairs | None = None,
        host: bool = True,
    ) -> Reply:
        """Send one request and wait for its answer. A body gets its length, and is JSON if nothing else is said."""
        given = list(headers or [])
        if body is not None:
            given.append((b"content-length", b"%d" % len(body)))
            if not any(name == b"content-type" for name, _ in given):
                given.append(JSON)
        async with self.open(method, target, headers=given, host=host) as exchange:
            exchange.end(body or b"")
            await exchange.begun()
            answer = await exchange.rest()
            assert exchange.whole, "the answer was cut short"
            await exchange.ended.wait()
        return Reply(exchange.status, exchange.headers, answer)

    async def get(self, target: str, *headers: tuple[bytes, bytes]) -> Reply:
        return await self.ask("GET", target, headers=list(headers))

    async def delete(self, target: str) -> Reply:
        return await self.ask("DELETE", target)

    async def post(self, target: str, value: Any, *headers: tuple[bytes, bytes]) -> Reply:
        return await self.ask("POST", target, json.dumps(value).encode(), headers=list(headers))

    async def put(self, target: str, value: Any) -> Reply:
        return await self.ask("PUT", target, json.dumps(value).encode())

    async def patch(self, target: str, value: Any) -> Reply:
        return await self.ask("PATCH", target, json.dumps(value).encode())

    async def append(self, queue: str, *data: Any) -> Reply:
        """Append data to a queue, which must be accepted."""
        reply = await self.post(f"/v1/{queue}", {"entries": [{"data": one} for one in data]})
        assert reply.status == 200, reply.body
        return reply

    async def stream(self, target: str, *lines: bytes) -> list[Any]:
        """Append a stream of lines; return the lines of the answer, decoded."""
        reply = await self.ask("POST", target, b"".join(line + b"\n" for line in lines), headers=[NDJSON])
        assert reply.status == 200, reply.body
        return [json.loads(line) for line in reply.body.splitlines()]
