"""A work queue as the tests ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from .asgi import Client

JOBS = "/v1/dxn:queue:demo:jobs"


async def push(client: Client, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    reply = await client.post(f"{JOBS}/push", {"entries": list(entries)})
    assert reply.status == 200, reply.body
    results: list[dict[str, Any]] = reply.json()["results"]
    return results


async def pull(client: Client, query: str = "", **ask: Any) -> list[dict[str, Any]]:
    reply = await client.post(f"{JOBS}/pull{query}", ask)
    assert reply.status == 200, reply.body
    messages: list[dict[str, Any]] = reply.json()["messages"]
    return messages


@asynccontextmanager
async def waiting(client: Client, queue: str = JOBS) -> AsyncIterator[list[dict[str, Any]]]:
    """Pull beside the block, for half a minute; the list has what was given once the block is left."""
    found: list[dict[str, Any]] = []

    async def wait() -> None:
        found.extend((await client.post(f"{queue}/pull?wait=30", {})).json()["messages"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        yield found


async def said(client: Client, verb: str, body: dict[str, Any]) -> list[str]:
    reply = await client.post(f"{JOBS}/{verb}", body)
    assert reply.status == 200, reply.body
    return [one["outcome"] for one in reply.json()["results"]]
