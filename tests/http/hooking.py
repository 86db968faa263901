"""Webhooks as their senders call them: a server with a spec, and requests signed as each provider signs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from edgequeues.app import open_app
from edgequeues.http.server import Server
from edgequeues.settings import Settings
from shards.testing import InlineDisk, TrioClock

from .asgi import Client, Pairs, Reply
from .fronted import FrontName, behind

SECRET = "pd-dummy-secret-new"
SECRETS = {
    "PD": SECRET,
    "PD_OLD": "pd-dummy-secret-old",
    "GH": "gh-dummy-secret",
    "STRIPE": "whsec_dummyStripeNew",
    "SLACK": "slack-dummy-signing-secret",
    "TWILIO": "twilio-dummy-auth-token",
    "TG": "tg-dummy",
}
QUEUE = """
  queue Incoming {
    message_type { payload: json  headers: map<string, string>  source_ip: string  received_at: time }
    ordering: fifo
    retention { max_age_seconds: 86400  max_depth: 1000 }
    delivery { dead_letter_queue: Graves }
  }
  queue Graves { retention { max_age_seconds: 604800 } }
"""
PD = 'verify_hmac { header: "X-PagerDuty-Signature"  secret_env: ["PD", "PD_OLD"] }'
PAGERDUTY = f"{QUEUE} webhook alert {{ queue: Incoming  {PD} }}"

Header = tuple[bytes, bytes]


def one_hook(name: str, verify: str, header: str, secret: str) -> str:
    """A spec with one webhook."""
    verifying = f'verify_{verify} {{ header: "{header}"  secret_env: "{secret}" }}'
    return f"{QUEUE} webhook {name} {{ queue: Incoming  {verifying} }}"


def hexed(secret: str, signed: bytes, algo: str = "sha256") -> str:
    return hmac.new(secret.encode(), signed, algo).hexdigest()


def pagerduty(body: bytes, secret: str = SECRET) -> Header:
    """The header that PagerDuty sends with a body."""
    return b"x-pagerduty-signature", f"v1={hexed(secret, body)}".encode()


def github(body: bytes, secret: str = SECRETS["GH"]) -> Header:
    return b"x-hub-signature-256", f"sha256={hexed(secret, body)}".encode()


def slack(body: bytes, at_s: int, secret: str = SECRETS["SLACK"]) -> Pairs:
    signed = b"v0:%d:%b" % (at_s, body)
    return [
        (b"x-slack-request-timestamp", b"%d" % at_s),
        (b"x-slack-signature", f"v0={hexed(secret, signed)}".encode()),
    ]


def twilio(body: Mapping[str, str], url: str, secret: str = SECRETS["TWILIO"]) -> Header:
    signed = url + "".join(f"{name}{value}" for name, value in sorted(body.items()))
    digest = hmac.new(secret.encode(), signed.encode(), hashlib.sha1).digest()
    return b"x-twilio-signature", base64.b64encode(digest)


def written(value: object) -> bytes:
    return json.dumps(value).encode()


def event(number: object, **more: object) -> bytes:
    return written({"event": {"id": f"e{number}"} | more})


class Hooked:
    """A server whose spec is an app `ops` in the space `ops`."""

    def __init__(self, client: Client, server: Server, clock: TrioClock) -> None:
        self.client = client
        self.server = server
        self.clock = clock

    @property
    def now_s(self) -> int:
        return self.clock.now_ms() // 1_000

    async def send(self, body: bytes | None, *headers: Header, hook: str = "alert") -> Reply:
        return await self.client.ask("POST", f"/hook/{hook}", body, headers=list(headers))

    async def signed(self, body: bytes, *headers: Header, hook: str = "alert", secret: str = SECRET) -> Reply:
        """Send as PagerDuty does."""
        return await self.send(body, pagerduty(body, secret), *headers, hook=hook)

    async def taken(self, body: bytes, *headers: Header, hook: str = "alert") -> dict[str, Any]:
        """Send what must be taken."""
        reply = await self.signed(body, *headers, hook=hook)
        assert reply.status == 202, reply.body
        found: dict[str, Any] = reply.json()
        return found

    async def entries(self, queue: str = "Incoming") -> list[Any]:
        """What is in a queue."""
        reply = await self.client.get(f"/v1/dxn:queue:ops:{queue}")
        found: list[Any] = reply.json()["entries"]
        return found

    async def messages(self, queue: str = "Incoming") -> list[Any]:
        return [one["data"] for one in await self.entries(queue)]

    async def letters(self, queue: str = "Graves") -> list[Any]:
        reply = await self.client.get(f"/v1/dxn:queue:ops:{queue}/dead")
        return [one["letter"] for one in reply.json()["letters"]]

    async def pull(self, queue: str = "Incoming", batch: int = 1) -> list[Any]:
        reply = await self.client.ask("POST", f"/v1/dxn:queue:ops:{queue}/pull", written({"batch": batch}))
        found: list[Any] = reply.json()["messages"]
        return found

    async def ack(self, *messages: Any, queue: str = "Incoming", **more: object) -> Reply:
        body = {"leases": [one["lease"] for one in messages]} | more
        return await self.client.ask("POST", f"/v1/dxn:queue:ops:{queue}/ack", written(body))

    async def counts(self, hook: str = "alert") -> dict[str, int]:
        """What became of a hook's calls."""
        reply = await self.client.get("/v1/hooks")
        [found] = [one for one in reply.json()["hooks"] if one["name"] == hook]
        counts: dict[str, int] = found["counts"]
        return counts

    async def recent(self, hook: str = "alert") -> list[Any]:
        """What became of the last calls of a hook."""
        reply = await self.client.get("/v1/hooks")
        [found] = [one["recent"] for one in reply.json()["hooks"] if one["name"] == hook]
        return list(found)


@asynccontextmanager
async def hooked(
    folder: Path, text: str, front: FrontName = "app", clock: TrioClock | None = None, **settings: Any
) -> AsyncIterator[Hooked]:
    """A server over a folder, with the spec `app ops { text }`."""
    file = folder / "ops.spec"
    file.write_text(f"app ops {{ {text} }}")
    clock = clock or TrioClock()
    chosen = Settings(spec=[str(file)], secrets_env=list(SECRETS), **settings)
    async with open_app(
        folder / "data",
        chosen,
        clock=clock,
        disk=InlineDisk(),
        randomness=random.Random(1),
        environment=SECRETS,
    ) as server:
        yield Hooked(Client(behind(front, server)), server, clock)
