"""Queues as the tests ask for them over Cloudflare's API."""

from __future__ import annotations

import base64
import json
from typing import Any

from .asgi import Client, Reply

QUEUES = "/client/v4/accounts/demo/queues"


def encoded(value: Any) -> str:
    """A JSON body as it is handed out."""
    return base64.b64encode(json.dumps(value).encode()).decode()


def ok(reply: Reply) -> Any:
    """What an answer gives."""
    answer = reply.json()
    assert (reply.status, answer["success"], answer["errors"]) == (200, True, []), answer
    return answer["result"]


def refusal(reply: Reply) -> tuple[int, int]:
    """Status and number of a refusal."""
    answer = reply.json()
    assert (answer["success"], answer["result"], answer["messages"]) == (False, None, [])
    [error] = answer["errors"]
    assert error["message"]
    return reply.status, error["code"]


class Queue:
    """One queue, by its id."""

    def __init__(self, client: Client, queue_id: str) -> None:
        self.client = client
        self.queue_id = queue_id
        self.path = f"{QUEUES}/{queue_id}"

    async def post(self, path: str, body: Any) -> Reply:
        return await self.client.post(f"{self.path}/{path}", body)

    async def push(self, *bodies: Any, **options: Any) -> None:
        for body in bodies:
            ok(await self.post("messages", {"body": body, **options}))

    async def pull(self, **ask: Any) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = ok(await self.post("messages/pull", {"batch_size": 100, **ask}))[
            "messages"
        ]
        return messages

    async def bodies(self, **ask: Any) -> list[str]:
        return [one["body"] for one in await self.pull(**ask)]

    async def say(self, acks: list[str] | None = None, retries: list[Any] | None = None) -> Any:
        body = {
            "acks": [{"lease_id": one} for one in acks or []],
            "retries": [one if isinstance(one, dict) else {"lease_id": one} for one in retries or []],
        }
        return ok(await self.post("messages/ack", body))

    async def count(self) -> int:
        count: int = ok(await self.client.get(f"{self.path}/metrics"))["backlog_count"]
        return count

    async def set(self, **settings: Any) -> Any:
        reply = await self.client.ask("PATCH", self.path, json.dumps({"settings": settings}).encode())
        return ok(reply)


async def make(
    client: Client, name: str = "jobs", *, consumer: bool = True, dlq: str = "", **settings: Any
) -> Queue:
    """Make a queue, and its consumer with these settings."""
    queue = Queue(client, ok(await client.post(QUEUES, {"queue_name": name}))["queue_id"])
    if consumer:
        ok(
            await queue.post(
                "consumers", {"type": "http_pull", "dead_letter_queue": dlq, "settings": settings}
            )
        )
    return queue


async def find(client: Client, name: str) -> Queue:
    """The queue of this name."""
    [queue] = ok(await client.get(f"{QUEUES}?name={name}"))
    return Queue(client, queue["queue_id"])
