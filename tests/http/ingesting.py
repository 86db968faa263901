"""Mails and text messages as they come in: a server, what its inbox holds, and senders that sign as Twilio does."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
from twilio.request_validator import RequestValidator  # type: ignore[import-untyped]

from edgequeues.app import open_app
from edgequeues.settings import Settings
from shards.disk import Disk
from shards.testing import InlineDisk, TrioClock

from .asgi import Client, Pairs, Reply
from .fronted import FrontName, behind

TOKEN = "twilio-dummy-auth-token"
FORM = (b"content-type", b"application/x-www-form-urlencoded")
MAIL = (b"content-type", b"message/rfc822")
BASE = "https://hooks.example.com"
HOSTS = ["http://localhost:1"]
SMS = {
    "MessageSid": "SM" + "0" * 31 + "1",
    "AccountSid": "AC" + "0" * 31 + "1",
    "From": "+15550100001",
    "To": "+15550100002",
    "Body": "Hi \U0001f600 100% + sure & caf\u00e9",
    "NumMedia": "0",
}

Answer = Callable[[httpx.Request], httpx.Response]


def media(*types: str) -> dict[str, str]:
    """The fields of so many media."""
    fields = {"NumMedia": str(len(types)), "MessageSid": "MM" + "0" * 31 + "2"}
    for number, kind in enumerate(types):
        fields |= {f"MediaUrl{number}": f"http://localhost:1/{number}", f"MediaContentType{number}": kind}
    return SMS | fields


def mail(*headers: str, body: str = "Hello.") -> bytes:
    """A mail from Ann to the desk; these headers come first, and count where one is asked for."""
    usual = [
        "From: Ann <ann@example.com>",
        "To: desk@example.org",
        "Subject: Question",
        "Message-ID: <m1@example.com>",
    ]
    given = {one.partition(":")[0].lower() for one in headers}
    kept = [one for one in usual if one.partition(":")[0].lower() not in given]
    return "\r\n".join([*headers, *kept, "", body]).encode()


def with_parts(*parts: str, headers: tuple[str, ...] = ()) -> bytes:
    """A mail with these parts, each with its headers."""
    inside = "".join(f"--b\r\n{part}\r\n" for part in parts)
    return mail(*headers, 'Content-Type: multipart/mixed; boundary="b"', body=f"{inside}--b--\r\n")


PNG_MAIL = with_parts(  # with a picture of 8 bytes
    "Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n"
    "Content-Disposition: attachment; filename=smoke.png\r\n\r\niVBORw0KGgo=",
    headers=("Message-ID: <png@example.com>",),
)


class Desk:
    """A server and its inbox. answer: how media are answered; may be changed."""

    def __init__(self, client: Client, clock: TrioClock, disk: Disk) -> None:
        self.client = client
        self.clock = clock
        self.disk = disk

    async def email(self, raw: bytes, *headers: tuple[bytes, bytes], media: bytes = MAIL[1]) -> Reply:
        return await self.client.ask(
            "POST", "/ingest/email", raw, headers=[(b"content-type", media), *headers]
        )

    async def taken(self, raw: bytes, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
        """Hand a mail over that must be taken, and give its event."""
        reply = await self.email(raw, *headers)
        assert reply.status == 202, reply.body
        [event] = [one for one in await self.events() if one["id"] == reply.json()["eventId"]]
        return event

    async def sms(
        self, fields: Mapping[str, str], secret: str = TOKEN, url: str = f"{BASE}/ingest/sms"
    ) -> Reply:
        """Send a text message as Twilio does, signed by Twilio's own library."""
        signature = RequestValidator(secret).compute_signature(url, dict(fields))
        return await self.form(urlencode(fields).encode(), [(b"x-twilio-signature", signature.encode())])

    async def form(self, body: bytes, headers: Pairs) -> Reply:
        return await self.client.ask("POST", "/ingest/sms", body, headers=[FORM, *headers])

    async def events(self) -> list[dict[str, Any]]:
        """What is in the inbox."""
        reply = await self.client.get("/v1/dxn:queue:switchboard:switchboard-inbox")
        return [] if reply.status == 404 else [one["data"] for one in reply.json()["entries"]]

    async def dead(self) -> list[dict[str, Any]]:
        """Its dead letters."""
        reply = await self.client.get("/v1/dxn:queue:switchboard:switchboard-inbox-dlq/dead")
        return [one["letter"] for one in reply.json()["letters"]] if reply.status == 200 else []

    async def stored(self, event_id: str) -> list[dict[str, Any]]:
        """what is known of an event's blobs."""
        reply = await self.client.get(f"/blobs/switchboard?event={event_id}")
        found: list[dict[str, Any]] = reply.json()["blobs"]
        return found

    async def fetched(self, ref: Mapping[str, str]) -> bytes:
        """The blob that a link of an event leads to."""
        url = httpx.URL(ref["presignedGetUrl"])
        reply = await self.client.get(url.raw_path.decode())
        assert reply.status == 200, reply.body
        return reply.body


@asynccontextmanager
async def desk(
    folder: Path,
    front: FrontName = "app",
    answer: Answer | None = None,
    environment: Mapping[str, str] | None = None,
    clock: TrioClock | None = None,
    disk: Disk | None = None,
    **settings: Any,
) -> AsyncIterator[Desk]:
    """A server over a folder. answer: what hosts of media answer."""
    clock, disk = clock or TrioClock(), disk or InlineDisk()
    chosen = Settings(**({"public_base_url": BASE, "ingest_media_hosts": HOSTS} | settings))
    async with open_app(
        folder / "data",
        chosen,
        clock=clock,
        disk=disk,
        randomness=random.Random(1),
        environment={"TWILIO_AUTH_TOKEN": TOKEN} if environment is None else environment,
        network=httpx.MockTransport(answer or (lambda _: httpx.Response(404))),
    ) as server:
        yield Desk(Client(behind(front, server)), clock, disk)
