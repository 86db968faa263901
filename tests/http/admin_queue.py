"""The queue `jobs` as the tests ask the admin API of it."""

from __future__ import annotations

from typing import Any

from .asgi import Client, Pairs
from .work_queue import pull, push, said

QUEUES = "/admin/queues"
DLQ = f"{QUEUES}/jobs/dlq"
T = "?tenant_id=demo"


async def bury(client: Client, *data: Any, error: str = "no", **options: Any) -> list[str]:
    """Push messages and give them up; the ids of all letters."""
    for start in range(0, len(data), 1_000):
        await push(client, *({"data": one, **options} for one in data[start : start + 1_000]))
    while messages := await pull(client, batch=100):
        retries = [{"lease": one["lease"], "permanent": True, "error": error} for one in messages]
        await said(client, "retry", {"retries": retries})
    return [one["id"] for one in await dead(client)]


async def dead(client: Client, query: str = "") -> list[Any]:
    """Dead letters page by page, to the end."""
    found: list[Any] = []
    after = ""
    while True:
        body = await ask(client, "GET", f"{DLQ}{T}{query}{after}")
        found += body["dead_letters"]
        if "next" not in body:
            return found
        after = f"&after={body['next']}"


async def ask(
    client: Client, method: str, path: str, body: Any = None, headers: Pairs | None = None
) -> dict[str, Any]:
    """What is answered, which must be 200. body: None: nothing is sent."""
    if body is None:
        reply = await client.ask(method, path, headers=headers)
    else:
        reply = await client.post(path, body, *(headers or []))
    assert reply.status == 200, reply.body
    answer: dict[str, Any] = reply.json()
    return answer


async def records(client: Client, query: str = "") -> list[dict[str, Any]]:
    """What is on record."""
    found: list[dict[str, Any]] = (await ask(client, "GET", f"/admin/audit{T}{query}"))["audit"]
    return found
