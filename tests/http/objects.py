"""Objects stored, linked and fetched over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

from .asgi import Client, Pairs, Reply

SPACE, BUCKET, EVENT = "demo", "switchboard-ingress", "ev-00000001"
ORIGIN = "http://localhost:8700"
TEXT = (b"content-type", b"text/plain")


def path(key: str, *, space: str = SPACE, bucket: str = BUCKET) -> str:
    """Where an object is, with nothing left as it is that need not be."""
    return f"/blobs/{space}/{bucket}/" + "/".join(quote(part, safe="") for part in key.split("/"))


def about(event: str = EVENT, filename: str | None = None, media: str = "text/plain") -> Pairs:
    """The headers that tell of an object."""
    named = [] if filename is None else [(b"x-filename", quote(filename, safe="").encode())]
    said = [(b"x-event-id", event.encode()), (b"x-source", b"email"), (b"content-type", media.encode())]
    return [*said, *named]


class Objects:
    """The object store of one space, asked over HTTP."""

    def __init__(self, client: Client, *headers: tuple[bytes, bytes]) -> None:
        self.client = client
        self.headers = list(headers)

    async def put(
        self,
        key: str,
        data: bytes = b"hello",
        *,
        event: str = EVENT,
        filename: str | None = None,
        media: str = "text/plain",
    ) -> Reply:
        """Store an object."""
        headers = [*self.headers, *about(event, filename, media)]
        return await self.client.ask("PUT", path(key), data, headers=headers)

    async def get(self, key: str, *headers: tuple[bytes, bytes]) -> Reply:
        """Fetch an object with what a token may."""
        return await self.client.get(path(key), *self.headers, *headers)

    async def sign(self, key: str, lifetime_s: object = None, **more: object) -> Reply:
        """Ask for a link."""
        lifetime = {} if lifetime_s is None else {"lifetimeS": lifetime_s}
        return await self.client.post(f"/blobs/{SPACE}", {"key": key} | lifetime | more, *self.headers)

    async def link(self, key: str, lifetime_s: int | None = None) -> tuple[str, int]:
        """A link, without the server's name, and the unix ms at which it ends."""
        reply = await self.sign(key, lifetime_s)
        assert reply.status == 200, reply.body
        url = reply.json()["presignedGetUrl"]
        assert url.startswith(ORIGIN)
        return url.removeprefix(ORIGIN), unix_ms(reply.json()["expiresAt"])

    async def listed(self, event: str = EVENT, **query: object) -> list[dict[str, Any]]:
        """The objects of an event."""
        more = "".join(f"&{name}={quote(str(value))}" for name, value in query.items())
        reply = await self.client.get(f"/blobs/{SPACE}?event={event}{more}", *self.headers)
        assert reply.status == 200, reply.body
        found: list[dict[str, Any]] = reply.json()["blobs"]
        return found

    async def erase(self, event: str = EVENT) -> Reply:
        """Erase all that there is of an event."""
        target = f"/blobs/{SPACE}?event={event}"
        return await self.client.ask("DELETE", target, headers=self.headers)


def unix_ms(text: str) -> int:
    """Unix ms of a time as JSON has it."""
    return round(datetime.fromisoformat(text).timestamp() * 1_000)
