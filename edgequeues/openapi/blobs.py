"""What is said of blobs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from edgequeues.blobs.about import EVENT_CHARS_MAX
from edgequeues.core import errors
from edgequeues.http import problems
from edgequeues.http.blobs import BlobOut, SignIn, SignOut
from edgequeues.openapi.op import (
    ANYTHING,
    JSON,
    Answer,
    Body,
    Chapter,
    Op,
    Page,
    Param,
    Text,
    Whole,
    json,
    ok,
)
from edgequeues.openapi.spaces import SPACE

PIXELS = Annotated[str, Meta(pattern="^[0-9]{1,9}$")]
BYTES = "*/*"
HEADERS = {
    "etag": "Of the content.",
    "accept-ranges": "That ranges are served.",
    "cache-control": "Not for others.",
    "content-disposition": "Always an attachment.",
    "x-content-type-options": "It is of no other type.",
    "content-security-policy": "It runs nothing.",
    "referrer-policy": "It tells nobody.",
}


class BlobsOut(Struct, frozen=True):
    """Blobs of an event. resume: pass it as `after`; null at the end."""

    blobs: list[BlobOut]
    resume: str | None


class ErasedOut(Struct, frozen=True):
    """What there was of an event, and is no more."""

    event: str
    blobs: int
    messages: int


EVENT_ID = Annotated[str, Meta(min_length=1, max_length=3 * EVENT_CHARS_MAX)]
SOURCE = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
BUCKET = Annotated[str, Meta(pattern="^[a-z0-9]([a-z0-9-]{1,61}[a-z0-9])$")]
EVENT = Param(
    "event",
    Annotated[str, Meta(min_length=1, max_length=EVENT_CHARS_MAX)],
    "The id of an event.",
    required=True,
)
DOWN = (errors.BlobStoreDown,)
ITEM = "/blobs/{space}/{bucket}/{key...}"

OPERATIONS = {
    f"PUT {ITEM}": Op(
        {
            200: Answer("It was there.", {JSON: BlobOut}),
            201: Answer("It is stored.", {JSON: BlobOut}),
        },
        headers=(
            Param("x-event-id", EVENT_ID, "Of the event it belongs to, percent-encoded.", required=True),
            Param("x-source", SOURCE, "Where it is from.", required=True),
            Param("x-filename", str, "What it is to be called, percent-encoded."),
            Param("x-media-width", PIXELS, "In pixels."),
            Param("x-media-height", PIXELS, "In pixels."),
        ),
        body=Body({BYTES: ANYTHING}),
        errors=(
            *DOWN,
            errors.UnsupportedMedia,
            errors.BlobConflict,
            errors.BlobTypeRefused,
            errors.TooManySpaces,
            errors.RateLimited,
        ),
    ),
    f"GET {ITEM}": Op(
        {
            200: Answer("The blob, of the type it was stored as.", {BYTES: ANYTHING}, HEADERS),
            206: Answer("A range of it.", {BYTES: ANYTHING}, HEADERS | {"content-range": "Which bytes."}),
            304: Answer("It is as it was.", headers=HEADERS),
        },
        query=(
            Param("expires", Whole, "Of a link: until when it holds, in unix seconds."),
            Param("signature", Annotated[str, Meta(min_length=1, max_length=100)], "Of a link."),
        ),
        headers=(
            Param("if-none-match", str, "Tags that are known."),
            Param("range", str, "Which bytes."),
            Param("if-range", str, "Only where this tag holds."),
        ),
        errors=(
            *DOWN,
            problems.Unauthenticated,
            problems.Forbidden,
            errors.BlobNotFound,
            errors.LinkInvalid,
            errors.LinkExpired,
            errors.RangeNotSatisfiable,
        ),
    ),
    f"DELETE {ITEM}": Op({204: Answer("It is gone.")}, errors=(*DOWN, errors.BlobNotFound)),
    "POST /blobs/{space}": Op(
        ok(SignOut, "The link."),
        body=json(SignIn, {"key": "raw/mail/2026/01/01/01J00J9B45YHYSGZQTQMSKMGJ6.eml"}),
        errors=(errors.UnsupportedMedia, errors.BlobNotFound),
    ),
    "GET /blobs/{space}": Op(
        ok(BlobsOut),
        query=(
            EVENT,
            Param("after", Text, "The `resume` of the page before."),
            Param("limit", Page, "At most so many; 100 where it is not said."),
        ),
    ),
    "DELETE /blobs/{space}": Op(ok(ErasedOut), query=(EVENT,), errors=DOWN),
}

CHAPTER = Chapter(
    "Blobs: store, fetch by link or token, link, list, erase. In words: `docs/protocol/blobs.md`.",
    OPERATIONS,
    {
        "space": SPACE,
        "bucket": Param("bucket", BUCKET, "A bucket's name."),
        "key": Param("key", Text, "A blob's key. Its slashes may stand as they are."),
    },
)
