"""The verbs about blobs, a part of `Client`: files kept beside the queues, by space, bucket and key."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from urllib.parse import quote

import msgspec
from msgspec import Struct

from edgequeues.client import answers
from edgequeues.client.http import Transport
from edgequeues.client.wire import JSON, RANGE_DELETE_PATIENCE_S, Call, pairs
from edgequeues.core import times

BUCKET = "switchboard-ingress"
PAGE_BLOBS = 1_000


class Blob(Struct, frozen=True):
    """A stored blob. event_id: what it belongs to, and is erased with. size: bytes. sha256: in hexadecimal.

    created, kept_until: unix ms; it is gone from the latter on. filename: as its sender had it. media_width,
    media_height: pixels.
    """

    bucket: str
    key: str
    event_id: str
    source: str
    content_type: str
    size: int
    sha256: str
    created: int
    kept_until: int
    filename: str | None = None
    media_width: int | None = None
    media_height: int | None = None


class BlobPage(Struct, frozen=True):
    """Blobs by bucket and key. resume: what to go on after; None: that was the last."""

    blobs: list[Blob]
    resume: str | None


class BlobLink(Struct, frozen=True):
    """Who has `url` may fetch the blob until unix ms `expires`, and needs nothing else: treat it as a secret."""

    bucket: str
    key: str
    url: str
    expires: int


class Erased(Struct, frozen=True):
    """What there was of an event: blobs, and messages with dead letters."""

    blobs: int
    messages: int


class _Blob(Struct, rename="camel"):
    bucket: str
    key: str
    event_id: str
    source: str
    content_type: str
    size: int
    sha256: str
    created_at: datetime
    kept_until: datetime
    filename: str | None = None
    media_width: int | None = None
    media_height: int | None = None


class _Page(Struct):
    blobs: list[_Blob]
    resume: str | None = None


class _Link(Struct, rename="camel"):
    bucket: str
    key: str
    presigned_get_url: str
    expires_at: datetime


class BlobVerbs:
    """Every verb may raise Refused: `forbidden` without a token that reaches the whole space."""

    _transport: Transport

    async def put_blob(
        self,
        space: str,
        key: str,
        data: bytes,
        *,
        event_id: str,
        source: str,
        bucket: str = BUCKET,
        content_type: str = "application/octet-stream",
        filename: str | None = None,
        media_width: int | None = None,
        media_height: int | None = None,
    ) -> Blob:
        """Store a blob; when this returns it is on disk. The same bytes again change nothing, so it can be repeated.

        key: up to 1,024 bytes; segments between slashes. source: where it comes from, as `email`. The rest as Blob
        has it. Raises Refused: `blob_conflict` for other bytes under the key, `blob_type_refused`, `too_large`.
        """
        said: dict[str, str | int | None] = {
            "x-event-id": quote(event_id, safe=""),
            "x-source": quote(source, safe=""),
            "content-type": _one_line(content_type),
            "x-filename": None if filename is None else quote(filename, safe="", errors="replace"),
            "x-media-width": media_width,
            "x-media-height": media_height,
        }
        path = _path(space, bucket, key)
        call = Call("PUT", path, headers=pairs(**said), body=bytes(data), repeatable=True)
        answer = await self._transport.send(call)
        return _blob(answers.decoded(answer, _Blob, statuses=(200, 201)))

    async def get_blob(self, space: str, key: str, *, bucket: str = BUCKET) -> bytes:
        """The bytes of a blob, all in memory. Strangers may have sent them. Raises Refused: `blob_not_found`."""
        answer = await self._transport.send(Call("GET", _path(space, bucket, key), repeatable=True))
        return answers.checked(answer)

    async def link_blob(
        self, space: str, key: str, *, bucket: str = BUCKET, lifetime_s: int | None = None
    ) -> BlobLink:
        """Make a link to a blob, which is kept for as long as the link lives.

        lifetime_s: seconds; None: as the server has it. Raises Refused: `blob_not_found`.
        """
        said = {"bucket": bucket, "key": key, "lifetimeS": lifetime_s}
        body = msgspec.json.encode({name: value for name, value in said.items() if value is not None})
        call = Call("POST", _space(space), headers=(JSON,), body=body, repeatable=True)
        found = answers.decoded(await self._transport.send(call), _Link)
        return BlobLink(found.bucket, found.key, found.presigned_get_url, times.moment_ms(found.expires_at))

    async def blobs(
        self, space: str, event_id: str, *, after: str | None = None, limit: int | None = None
    ) -> BlobPage:
        """The blobs of an event. after: as `resume` gives it. limit: 1 to 1,000. None: 100."""
        query = pairs(event=event_id, after=after, limit=limit)
        call = Call("GET", _space(space), query=query, repeatable=True)
        found = answers.decoded(await self._transport.send(call), _Page)
        return BlobPage([_blob(one) for one in found.blobs], found.resume)

    async def iterate_blobs(self, space: str, event_id: str) -> AsyncGenerator[Blob, None]:
        """Yield all blobs of an event, page by page."""
        after: str | None = None
        while True:
            page = await self.blobs(space, event_id, after=after, limit=PAGE_BLOBS)
            for one in page.blobs:
                yield one
            after = page.resume
            if after is None:
                return

    async def erase_blob(self, space: str, key: str, *, bucket: str = BUCKET) -> None:
        """Erase a blob, and its links with it. Never repeated by itself. Raises Refused: `blob_not_found`."""
        answers.checked(
            await self._transport.send(Call("DELETE", _path(space, bucket, key))), statuses=(204,)
        )

    async def erase_event(self, space: str, event_id: str) -> Erased:
        """Erase all that there is of an event in a space: blobs, messages in every queue, dead letters.

        Never repeated by itself. After Unavailable `blob_store_down` nobody gets the blobs any more, but their bytes
        are still there, and perhaps messages: ask again.
        """
        query = pairs(event=event_id)
        call = Call("DELETE", _space(space), query=query, patience_s=RANGE_DELETE_PATIENCE_S)
        return answers.decoded(await self._transport.send(call), Erased)


def _blob(found: _Blob) -> Blob:
    return Blob(
        found.bucket,
        found.key,
        found.event_id,
        found.source,
        found.content_type,
        found.size,
        found.sha256,
        times.moment_ms(found.created_at),
        times.moment_ms(found.kept_until),
        found.filename,
        found.media_width,
        found.media_height,
    )


def _space(space: str) -> str:
    return f"/blobs/{quote(space, safe='')}"


def _path(space: str, bucket: str, key: str) -> str:
    """Raises ValueError for a key that an address cannot have: it would lead to another blob."""
    if any(segment in ("", ".", "..") for segment in key.split("/")):
        raise ValueError(f"{key!r} is no key of a blob: no segment between slashes is empty, . or ..")
    return f"{_space(space)}/{quote(bucket, safe='')}/{quote(key)}"


def _one_line(text: str) -> str:
    """Raises ValueError for what a header cannot hold."""
    if not (text.isascii() and text.isprintable()):
        raise ValueError(f"{text!r} is no content type: it is written type/subtype")
    return text
