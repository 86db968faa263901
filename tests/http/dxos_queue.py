"""One queue as a DXOS client uses it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from .asgi import Client, Pairs, Reply

SPACE = "BA25QRC2FEWCSAMRP4RZL65LWJ7352CKE"
OTHER_SPACE = "BCBABYAWQDPHIINAIKJ3WN6K22T4GSOVR"
QUEUE = "01M8FK50DY7H0BK6EN34ZJ2H4K"
OTHER_QUEUE = "01M8FK50DY7H0BK6EN34ZJ2H4M"
TYPE = "dxn:type:example.com/type/Note:0.1.0"

NEWER, OLDER = "org.dxos.key.queue-position", "dxos.org/key/queue-position"
POSITION_SOURCES = {NEWER, OLDER}


def path(tag: str = "data", space: str = SPACE, queue: str = QUEUE) -> str:
    return f"/spaces/{tag}/{space}/queue/{queue}"


def oid(number: int) -> str:
    """An object id that numbers 0 to 999,999 give."""
    return f"01M8FKA3WZEBT1AM92PB{number:06d}"


def note(number: int, **more: Any) -> dict[str, Any]:
    """An object as the SDK makes it."""
    return {"id": oid(number), "@type": TYPE, "@meta": {"keys": []}, "n": number, **more}


def body(objects: Iterable[Any]) -> bytes:
    """An insert's, written as JavaScript does."""
    return json.dumps({"objects": list(objects)}, separators=(",", ":")).encode()


class Page(NamedTuple):
    """What a query answered."""

    objects: list[Any]
    next: str | None
    prev: str | None

    @property
    def numbers(self) -> list[int]:
        """Of objects that `note` made."""
        return [one["n"] for one in self.objects]


def page(reply: Reply) -> Page:
    """Take an answer apart, which must be a success."""
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == "application/json"
    answer = reply.json()
    assert answer.keys() == {"success", "data"}
    assert answer["success"] is True
    data = answer["data"]
    assert data.keys() == {"objects", "nextCursor", "prevCursor"}
    return Page(data["objects"], data["nextCursor"], data["prevCursor"])


def refusal_code(text: bytes, *, later: bool) -> str:
    """The code in the words of old clients and of new ones, who ask again later only where there is no `data`."""
    answer = json.loads(text)
    assert answer["success"] is False
    assert answer["reason"] == answer["message"] != ""
    code = answer["errorData"]["type"]
    assert answer.get("data") == (None if later else {"type": code})
    return str(code)


def refused(reply: Reply) -> str:
    """The code of an answer, which must be a refusal."""
    assert reply.status >= 400
    assert reply.headers["content-type"] == "application/json"
    return refusal_code(reply.body, later="retry-after" in reply.headers)


class Queue:
    """A queue at an address; `native` is the same one there."""

    def __init__(self, client: Client, tag: str = "data", space: str = SPACE, queue: str = QUEUE) -> None:
        self.client = client
        self.path = path(tag, space, queue)
        self.native = f"/v1/dxn:queue:{tag}:{space}:{queue}"

    async def insert(self, *objects: Any) -> None:
        reply = await self.send(body(objects))
        assert (reply.status, reply.json()) == (201, {"success": True, "data": {}}), reply.body

    async def send(self, text: bytes, *headers: tuple[bytes, bytes]) -> Reply:
        """Insert with a body as given, in the media type old clients send."""
        given: Pairs = list(headers) or [(b"content-type", b"text/plain;charset=UTF-8")]
        return await self.client.ask("POST", self.path, text, headers=given)

    async def ask(self, query: str = "", *headers: tuple[bytes, bytes]) -> Reply:
        return await self.client.get(self.path + "/query" + query, *headers)

    async def query(self, query: str = "") -> Page:
        return page(await self.ask(query))

    async def delete(self, query: str) -> None:
        reply = await self.client.delete(self.path + query)
        assert (reply.status, reply.json()) == (200, {"success": True, "data": {}}), reply.body

    async def cursor(self, number: int) -> str:
        """The cursor at an object."""
        return str((await self.query(f"?objectIds={oid(number)}")).next)
