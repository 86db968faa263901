"""A server in virtual time, a client of it with a way between that can be closed, a handler that remembers."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import trio

from edgequeues.app import open_app
from edgequeues.client import Client, ClientError, Handled, Message, Transport
from edgequeues.http.server import Server
from shards.testing import InlineDisk, TrioClock


class Way(httpx.AsyncBaseTransport):
    """Requests to an app; `closed` lets none through. `paths` has the last part of each one's path, in order.

    instead: what comes instead of the answer to the next request whose path ends so; it is carried out all the same.
    delays_s: how long the next request whose path ends so is held up. late_s: how long its answer is.
    """

    def __init__(self, server: Server) -> None:
        self._app = httpx.ASGITransport(cast(Any, server))
        self.closed = False
        self.paths: list[str] = []
        self.requests: list[httpx.Request] = []
        self.instead: dict[str, httpx.Response | httpx.TransportError] = {}
        self.delays_s: dict[str, float] = {}
        self.late_s: dict[str, float] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self.paths.append(request.url.path.rpartition("/")[2])
        verb = self.paths[-1]
        await trio.sleep(self.delays_s.pop(verb, 0.0))
        if self.closed:
            raise httpx.ConnectError("closed")
        answer = await self._app.handle_async_request(request)
        await trio.sleep(self.late_s.pop(verb, 0.0))
        instead = self.instead.pop(verb, answer)
        if isinstance(instead, httpx.TransportError):
            raise instead
        return instead


@asynccontextmanager
async def serving(folder: Path, clock: TrioClock | None = None) -> AsyncIterator[tuple[Client, Way]]:
    async with open_app(
        folder, clock=clock or TrioClock(), disk=InlineDisk(), randomness=random.Random(1)
    ) as server:
        way = Way(server)
        async with Client("", transport=Transport("http://127.0.0.1:8700", transport=way)) as client:
            yield client, way


class Log:
    """A handler that remembers what it began and ended, and what the worker said of it."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.takes_s = takes_s
        self.begun: list[object] = []
        self.ended: list[object] = []
        self.at_once = 0
        self.told: list[Handled] = []
        self.away: list[ClientError | None] = []
        self.something = trio.Event()
        self._running = 0

    async def __call__(self, message: Message) -> None:
        self.begun.append(message.data)
        self.something.set()
        self._running += 1
        self.at_once = max(self.at_once, self._running)
        try:
            await trio.sleep(self.takes_s)
        finally:
            self._running -= 1
        self.ended.append(message.data)

    @property
    def did(self) -> list[str]:
        return [one.did for one in self.told]
