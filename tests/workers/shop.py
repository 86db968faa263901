"""A server in this process whose spec has commands, asked as its users ask it; time is real."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from edgequeues.app import open_app
from edgequeues.settings import Settings
from tests.http.asgi import Client, Reply

HERE = "tests.workers.functions_for_tests"
SIGN = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PATIENCE_S = 60.0


def mapped(function: str, *, attempts: int = 3, timeout_ms: int = 20_000) -> str:
    """A queue `jobs` whose messages a Python function is run for."""
    return f"""
      queue jobs {{
        delivery {{ max_attempts: {attempts}  initial_backoff_ms: 10  max_backoff_ms: 10 }}
        map_to: command Order.Ship {{ id: payload.id  seconds: payload.seconds + 0  by: payload.by + "" }}
      }}
      queue done {{}}
      command Order.Ship {{ run: python "{HERE}:{function}"  timeout_ms: {timeout_ms} }}
    """


async def until(holds: Callable[[], Awaitable[object]]) -> None:
    """Wait for something."""
    with trio.fail_after(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110 - a server does it
            await trio.sleep(0.01)


class Shop:
    """The space `shop`, with the app `shop`."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def push(self, *payloads: dict[str, Any]) -> None:
        lines = [{"data": {"payload": one}} for one in payloads]
        reply = await self.client.ask("POST", "/v1/dxn:queue:shop:jobs/push", _json({"entries": lines}))
        assert reply.status == 200, reply.body

    async def hook(self, payload: object, hook: str = "now") -> Reply:
        return await self.client.ask("POST", f"/hook/{hook}", _json(payload))

    async def left(self, queue: str = "jobs") -> int:
        """How many messages are unfinished."""
        [one] = (await self.client.get(f"/v1/dxn:queue:shop:{queue}/consumers")).json()["consumers"]
        return sum(one[state] for state in ("scheduled", "waiting", "ready", "leased", "backoff"))

    async def data(self, queue: str) -> list[Any]:
        reply = await self.client.get(f"/v1/dxn:queue:shop:{queue}")
        return [one["data"] for one in reply.json()["entries"]]

    async def letters(self) -> list[Any]:
        reply = await self.client.get("/v1/dxn:queue:shop:jobs-dlq/dead")
        return [one["letter"] for one in reply.json()["letters"]] if reply.status == 200 else []

    async def leased(self) -> int:
        """How many messages of `jobs` are being worked."""
        [one] = (await self.client.get("/v1/dxn:queue:shop:jobs/consumers")).json()["consumers"]
        count: int = one["leased"]
        return count

    async def finished(self) -> None:
        """Wait until no message is left to be worked."""

        async def none_is_left() -> bool:
            return await self.left() == 0

        await until(none_is_left)


@asynccontextmanager
async def shop(folder: Path, text: str, **settings: Any) -> AsyncIterator[Shop]:
    """A server over a folder, with the spec `app shop { text }`."""
    file = folder / "shop.spec"
    file.write_text(f"app shop {{ {text} }}")
    chosen = Settings(**{"spec": [str(file)], "secrets_env": ["SIGN"], "commands_modules": [HERE]} | settings)
    async with open_app(folder / "data", chosen, environment={"SIGN": SIGN}) as server:
        yield Shop(Client(server))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
