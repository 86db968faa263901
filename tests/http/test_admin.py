"""The admin API: how queues are doing, what has failed in them, and mending it."""

from __future__ import annotations

from typing import Any

import pytest

from shards.testing import TrioClock

from .asgi import Client
from .work_queue import JOBS, pull, push, said
from .world import World, denied

QUEUES = "/admin/queues"
DLQ = f"{QUEUES}/jobs/dlq"
T = "?tenant_id=demo"


async def bury(client: Client, *data: Any, error: str = "no", **options: Any) -> list[str]:
    """Push messages and give them up; the ids of all letters."""
    await push(client, *({"data": one, **options} for one in data))
    while messages := await pull(client, batch=100):
        retries = [{"lease": one["lease"], "permanent": True, "error": error} for one in messages]
        await said(client, "retry", {"retries": retries})
    return [one["id"] for one in await dead(client)]


async def dead(client: Client, query: str = "") -> list[Any]:
    """Dead letters page by page, to the end."""
    found: list[Any] = []
    after = ""
    while True:
        body = (await client.get(f"{DLQ}{T}{query}{after}")).json()
        found += body["dead_letters"]
        if "next" not in body:
            return found
        after = f"&after={body['next']}"


async def ask(client: Client, method: str, path: str, body: Any = None) -> dict[str, Any]:
    reply = await (client.post(path, body) if method == "POST" else client.ask(method, path))
    assert reply.status == 200, reply.body
    answer: dict[str, Any] = reply.json()
    return answer


# -- how queues are doing -----------------------------------------------------------------------------------


async def test_queues_are_listed_with_what_the_seed_says_of_them(client: Client, clock: TrioClock) -> None:
    await push(client, {"data": 1}, {"data": 2}, {"data": 3, "delay_ms": 60_000})
    await pull(client)
    clock_start = clock.now_ms()
    [one] = (await client.get(f"{QUEUES}{T}")).json()["queues"]
    assert clock.now_ms() == clock_start
    assert one == {
        "name": "jobs",
        "depth": 2,
        "in_flight": 1,
        "oldest_message_age_seconds": 0,
        "messages_per_minute": 3,
    }
