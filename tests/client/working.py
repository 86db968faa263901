"""A server in virtual time and a client of it, with a way between them that can be closed."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx

from edgequeues.app import open_app
from edgequeues.client import Client, Transport
from edgequeues.http.server import Server
from shards.testing import InlineDisk, TrioClock


class Way(httpx.AsyncBaseTransport):
    """Requests to an app; `closed` lets none through. `paths` has the last part of each one's path, in order."""

    def __init__(self, server: Server) -> None:
        self._app = httpx.ASGITransport(cast(Any, server))
        self.closed = False
        self.paths: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path.rpartition("/")[2])
        if self.closed:
            raise httpx.ConnectError("closed")
        return await self._app.handle_async_request(request)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Client, Way]]:
    async with open_app(folder, clock=TrioClock(), disk=InlineDisk(), randomness=random.Random(1)) as server:
        way = Way(server)
        async with Client("", transport=Transport("http://127.0.0.1:8700", transport=way)) as client:
            yield client, way
