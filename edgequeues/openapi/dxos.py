"""What is said of the DXOS edge protocol."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from edgequeues.core import errors
from edgequeues.core.dxn import Tag
from edgequeues.http import problems
from edgequeues.openapi.op import JSON, Answer, Chapter, Op, Param, Text, Whole, json, ok

ULID = Annotated[str, Meta(pattern="^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$")]
IDS = Annotated[str, Meta(pattern="^[0-7][0-9A-HJKMNP-TV-Z]{25}(,[0-7][0-9A-HJKMNP-TV-Z]{25})*$")]


class ObjectsIn(Struct, frozen=True):
    """Objects to append, each with `id`, a ULID, and `@type`."""

    objects: list[dict[str, Any]]


class DxosDone(Struct, frozen=True):
    """It is done."""

    success: Literal[True]
    data: dict[str, Any]


class DxosObjects(Struct, frozen=True, rename="camel"):
    """A range of objects, with their positions in `@meta.keys`."""

    objects: list[dict[str, Any]]
    next_cursor: str | None
    prev_cursor: str | None


class DxosRange(Struct, frozen=True):
    """A range."""

    success: Literal[True]
    data: DxosObjects


class DxosWhat(Struct, frozen=True):
    """type: one of the codes of the native protocol."""

    type: str


class DxosRefusal(Struct, frozen=True, rename="camel"):
    """No, in the words of old clients and of new ones. data: left out where trying again may help."""

    success: Literal[False]
    reason: str
    message: str
    error_data: DxosWhat
    data: DxosWhat | UnsetType = UNSET


SEGMENT = Annotated[str, Meta(min_length=1)]
CURSORS = (errors.InvalidCursor, errors.CursorStore)
AFTER = Param("after", Text, "A cursor; the range begins behind it.")
BEFORE = Param("before", Text, "A cursor; the range ends before it.")
QUEUE = "/spaces/{tag}/{space}/queue/{queue}"
SEEN = {"etag": "Of what there is now."}

OPERATIONS = {
    f"POST {QUEUE}": Op(
        {201: Answer("All are on disk.", {JSON: DxosDone})},
        body=json(
            ObjectsIn,
            {"objects": [{"id": "01J00J9B45YHYSGZQTQMSKMGJ6", "@type": "dxn:type:example.com/Note"}]},
        ),
        errors=(
            errors.EntryExists,
            errors.VersionAhead,
            errors.DuplicateId,
            errors.InvalidMessage,
            errors.QueueFull,
            errors.TooManySpaces,
            errors.RateLimited,
        ),
    ),
    f"GET {QUEUE}/query": Op(
        {
            200: Answer("A range; that of an unknown queue is empty.", {JSON: DxosRange}, SEEN),
            304: Answer("It is as it was.", headers=SEEN),
        },
        query=(
            AFTER,
            BEFORE,
            Param("limit", Whole, "At most so many."),
            Param("reverse", bool, "The newest first."),
            Param("objectIds", IDS, "Only these, joined by commas or repeated.", many=True),
        ),
        headers=(Param("if-none-match", str, "Tags that are known."),),
        errors=CURSORS,
    ),
    f"DELETE {QUEUE}": Op(
        ok(DxosDone),
        query=(Param("ids", IDS, "Which objects, joined by commas or repeated.", many=True), AFTER, BEFORE),
        errors=CURSORS,
    ),
    "GET /ws/{identity}/{device}": Op({}, errors=(problems.UpgradeRequired,)),
}

CHAPTER = Chapter(
    "The DXOS edge protocol: queues of typed objects. In words: `docs/protocol/dxos.md`.",
    OPERATIONS,
    {
        "tag": Param("tag", Tag, "The space's own queues, or those of its traces.", example="data"),
        "space": Param("space", Annotated[str, Meta(pattern="^B[A-Z2-7]{32}$")], "A space's id."),
        "queue": Param("queue", ULID, "A queue's id."),
        "identity": Param("identity", SEGMENT, "Whose WebSocket."),
        "device": Param("device", SEGMENT, "Of which device."),
    },
    strict=False,
    problem=DxosRefusal,
    problem_media=JSON,
    coded=False,
)
