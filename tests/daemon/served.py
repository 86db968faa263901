"""The real server in this process, in virtual time, and httpx's way to it."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from edgequeues.app import open_app
from shards.testing import InlineDisk, TrioClock
from tests.http import cloudflare_queue
from tests.http.asgi import Client
from tests.http.cloudflare_queue import Queue

ORIGIN = "http://localhost:8700"


class Bridge(httpx.AsyncBaseTransport):
    """Takes requests of httpx to an app."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        target = request.url.raw_path.decode()
        reply = await self.client.ask(request.method, target, body if request.method == "POST" else None)
        return httpx.Response(reply.status, headers=reply.headers, content=reply.body)


class Served:
    """A server with an inbox, whose messages have ten attempts, and a queue for its dead letters."""

    def __init__(self, client: Client, inbox: Queue, dead: Queue) -> None:
        self.transport = Bridge(client)
        self.inbox, self.dead = inbox, dead

    def rules(self, **more: Any) -> dict[str, Any]:
        """What a daemon over it is opened with."""
        places = {"url": ORIGIN + self.inbox.path, "dead_url": ORIGIN + self.dead.path}
        return {**places, "dead": True, **more}

    async def errors(self) -> list[str]:
        """The last errors of all dead letters, whether the server made them or the daemon pushed them."""
        found = []
        while messages := await self.dead.pull():
            for one in messages:
                said = json.loads(base64.b64decode(one["body"]))
                found.append(one["metadata"].get("eq-last-error") or said["lastError"])
            await self.dead.say(acks=[one["lease_id"] for one in messages])
        return found


@asynccontextmanager
async def serving(folder: Path, **settings: Any) -> AsyncIterator[Served]:
    """Run the server. settings: of the inbox's consumer."""
    disk, chance = InlineDisk(), random.Random(1)
    async with open_app(folder / "data", clock=TrioClock(), disk=disk, randomness=chance) as app:
        client = Client(app)
        dead = await cloudflare_queue.make(client, "inbox-dlq")
        inbox = await cloudflare_queue.make(
            client, "inbox", dlq="inbox-dlq", **{"max_retries": 9, **settings}
        )
        yield Served(client, inbox, dead)
