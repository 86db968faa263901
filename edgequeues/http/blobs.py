"""Blobs over HTTP, at `/blobs`: store, fetch by link or token, link, list, erase. docs/protocol/blobs.md.

What is served here may be a stranger's HTML, so it is always an attachment, of the type it was stored as, sandboxed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from edgequeues.blobs.about import BUCKET, About, Blob
from edgequeues.core import jsontext
from edgequeues.core.errors import InvalidRequest, LinkInvalid, RangeNotSatisfiable, UnsupportedMedia
from edgequeues.core.times import utc
from edgequeues.http import codec, hook_body, params, problems
from edgequeues.http.auth import Auth
from edgequeues.http.ranges import wanted
from edgequeues.http.routes import Dialect, Request, Response, Route, json_body
from edgequeues.workers.blobs import Blobs

ITEM = "/blobs/{space}/{bucket}/{key...}"
LISTED, LISTED_MAX = 100, 1_000
BODY_BYTES_MAX = 8 * 1024  # of a request for a link


class SignIn(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which blob a link is wanted to, and for how many seconds."""

    key: str
    bucket: str = BUCKET
    lifetime_s: int | None = None


class SignOut(Struct, frozen=True, rename="camel"):
    """A link, in the words of an event's `r2`."""

    bucket: str
    key: str
    presigned_get_url: str
    expires_at: str


class BlobOut(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A blob as it is shown. size: bytes. Times are ISO 8601, UTC."""

    bucket: str
    key: str
    event_id: str
    source: str
    content_type: str
    size: int
    sha256: str
    created_at: str
    kept_until: str
    filename: str | None = None
    media_width: int | None = None
    media_height: int | None = None


def dialect(blobs: Blobs, auth: Auth, base_url: str) -> Dialect:
    """The table. base_url: as for webhooks; a scheme alone: the host of links is that of the request for them."""

    async def put(request: Request) -> Response:
        """Store a blob: 201 new, 200 it was there."""
        params.only(request.query, ())
        space, bucket, key = _place(request)
        about = blobs.checked(bucket, key, _about(request.headers))
        data = await _data(request, blobs.rules.bytes_max)
        stranger = request.caller.stranger
        blob, new = await blobs.place(space, bucket, key, data, about, stranger=stranger)
        return Response(codec.encode(_shown(blob)), status=201 if new else 200)

    async def get(request: Request) -> Response:
        """Fetch a blob, with a link or a token that may read."""
        params.only(request.query, ("expires", "signature"))
        space, bucket, key = _place(request)
        if request.query:
            return _fetched(blobs, space, await _linked(blobs, request), request)

        def check() -> None:
            auth.caller(request.headers).require("read", space, None)

        check()
        response = _fetched(blobs, space, await blobs.get(space, bucket, key), request)
        response.recheck = check
        return response

    async def erase(request: Request) -> Response:
        """Erase a blob."""
        params.only(request.query, ())
        await blobs.erase(*_place(request), request.caller.who)
        return Response(status=204)

    async def sign(request: Request) -> Response:
        """Make a link to a blob."""
        params.only(request.query, ())
        ask = _sign_in(await json_body(request, BODY_BYTES_MAX))
        base = hook_body.base_of(base_url, request)
        space = request.params["space"]
        signed = await blobs.sign(space, ask.bucket, ask.key, ask.lifetime_s, base_url=base)
        answer = SignOut(ask.bucket, ask.key, signed.url, utc(signed.expires_ms))
        return Response(codec.encode(answer))

    async def listed(request: Request) -> Response:
        """List the blobs of an event."""
        params.only(request.query, ("event", "after", "limit"))
        limit = params.integer(request.query, "limit", low=1, high=LISTED_MAX) or LISTED
        bucket, _, key = (params.text(request.query, "after") or "").partition("/")
        found = await blobs.page(request.params["space"], _event(request), (bucket, key), limit + 1)
        shown = [_shown(one) for one in found[:limit]]
        resume = f"{shown[-1].bucket}/{shown[-1].key}" if len(found) > limit else None
        return Response(codec.encode({"blobs": shown, "resume": resume}))

    async def erase_event(request: Request) -> Response:
        """Erase all that there is of an event: blobs, messages and dead letters."""
        params.only(request.query, ("event",))
        event = _event(request)
        erased = await blobs.erase_event(request.params["space"], event, request.caller.who)
        answer = {"event": event, "blobs": erased.blobs, "messages": erased.messages}
        return Response(codec.encode(answer))

    table = [
        Route("PUT", ITEM, put, "append"),
        Route("GET", ITEM, get, None),  # which asks for itself: a link is as good as a token
        Route("DELETE", ITEM, erase, "delete"),
        Route("POST", "/blobs/{space}", sign, "read"),
        Route("GET", "/blobs/{space}", listed, "read"),
        Route("DELETE", "/blobs/{space}", erase_event, "delete"),
    ]
    return Dialect("blobs", ("/blobs/",), table, problems.refuse)


# -- in -----------------------------------------------------------------------------------------------------


def _place(request: Request) -> tuple[str, str, str]:
    return request.params["space"], request.params["bucket"], request.params["key"]


def _sign_in(body: bytes) -> SignIn:
    """Raises InvalidJson, InvalidRequest."""
    jsontext.check(body)
    try:
        asked = msgspec.json.decode(body, type=SignIn)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from error
    codec.names(body)
    return asked


def _event(request: Request) -> str:
    event = params.text(request.query, "event")
    if event is None:
        raise InvalidRequest("event is missing: whose blobs?")
    return event


def _about(headers: Mapping[bytes, bytes]) -> About:
    """What the headers say of a blob. Raises InvalidRequest, UnsupportedMedia."""
    coding = headers.get(b"content-encoding", b"identity")
    if coding.lower() != b"identity":
        raise UnsupportedMedia(f"a body encoded as {coding[:100].decode('latin-1')!r} is not accepted")
    name = headers.get(b"x-filename")
    return About(
        event_id=_header(headers, b"x-event-id"),
        source=_header(headers, b"x-source"),
        content_type=headers.get(b"content-type", b"application/octet-stream").decode("latin-1"),
        filename=None if name is None else _decoded(name),
        media_width=_pixels(headers, b"x-media-width"),
        media_height=_pixels(headers, b"x-media-height"),
    )


def _header(headers: Mapping[bytes, bytes], name: bytes) -> str:
    given = headers.get(name)
    if given is None:
        raise InvalidRequest(f"the header {name.decode()} is missing")
    return _decoded(given)


def _decoded(given: bytes) -> str:
    try:
        return unquote(given.decode("ascii"), errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidRequest("a header is not UTF-8, percent-encoded") from error


def _pixels(headers: Mapping[bytes, bytes], name: bytes) -> int | None:
    given = headers.get(name)
    if given is not None and not (given.isdigit() and len(given) <= 9):
        raise InvalidRequest(f"{name.decode()} must be a whole number")
    return None if given is None else int(given)


async def _data(request: Request, limit: int) -> bytes:
    """The body, as long as it says. Raises as `Request.body`, and InvalidRequest."""
    data = await request.body(limit)
    stated = request.headers.get(b"content-length")
    if stated is not None and stated != b"%d" % len(data):
        raise InvalidRequest(f"the body has {len(data)} bytes, and not as many as Content-Length says")
    return data


async def _linked(blobs: Blobs, request: Request) -> Blob:
    try:
        expires = params.integer(request.query, "expires")
        signature = params.text(request.query, "signature", length_max=100)
    except InvalidRequest as error:
        raise LinkInvalid(error.detail) from error
    if expires is None or signature is None:
        raise LinkInvalid("it has either no end or no signature")
    blob = await blobs.linked(*_place(request), expires, signature)
    if blob is None:
        raise LinkInvalid
    return blob


# -- out ----------------------------------------------------------------------------------------------------


def _fetched(blobs: Blobs, space: str, blob: Blob, request: Request) -> Response:
    """The blob, a range of it, or that it is as it was. Raises RangeNotSatisfiable."""
    tag = f'"{blob.sha256}"'.encode()
    headers = [
        (b"etag", tag),
        (b"accept-ranges", b"bytes"),
        (b"cache-control", b"private, no-cache"),
        (b"content-disposition", _disposition(blob.filename or blob.key.rpartition("/")[2])),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", b"sandbox"),
        (b"referrer-policy", b"no-referrer"),
    ]
    known = [
        one.strip().removeprefix(b"W/") for one in request.headers.get(b"if-none-match", b"").split(b",")
    ]
    if tag in known or b"*" in known:
        return Response(status=304, headers=headers)
    start, stop, status = 0, blob.size, 200
    given = request.headers.get(b"range")
    if request.method == "GET" and given is not None and request.headers.get(b"if-range", tag) == tag:
        part = wanted(given, blob.size)
        if part is not None:
            start, stop = part
            if start >= stop:
                error = RangeNotSatisfiable()
                error.size = blob.size
                raise error
            status = 206
            headers.append((b"content-range", b"bytes %d-%d/%d" % (start, stop - 1, blob.size)))
    headers.append((b"content-length", b"%d" % (stop - start)))
    body = blobs.read(space, blob, start, stop)
    return Response(body, status=status, media=blob.content_type.encode(), headers=headers, compress=False)


def _disposition(filename: str) -> bytes:
    """How a file is to be saved: RFC 6266, in the coding of RFC 8187 alone, which all who read the one read."""
    name = "".join("_" if unicodedata.category(char) in ("Cc", "Cf") else char for char in filename)
    return b"attachment; filename*=UTF-8''" + quote(name, safe="").encode()


def _shown(blob: Blob) -> BlobOut:
    return BlobOut(
        blob.bucket,
        blob.key,
        blob.event_id,
        blob.source,
        blob.content_type,
        blob.size,
        blob.sha256,
        utc(blob.created),
        utc(blob.kept_until),
        blob.filename,
        blob.media_width,
        blob.media_height,
    )
