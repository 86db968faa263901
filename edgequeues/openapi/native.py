"""What is said of the native protocol: logs and their settings here, the rest beside."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from edgequeues.core import errors
from edgequeues.http.codec import EntryOut, Stats
from edgequeues.http.envelope import EntriesIn
from edgequeues.http.intake import Progress
from edgequeues.http.native import LIMIT_MAX, WAIT_S_MAX
from edgequeues.models import AppendAnswer, ConsumerConfig, QueueConfig
from edgequeues.openapi import spaces, work
from edgequeues.openapi.op import (
    EVENTS,
    JSON,
    NDJSON,
    Answer,
    Body,
    Chapter,
    Op,
    Param,
    Text,
    Whole,
    json,
    ok,
)
from edgequeues.openapi.work import ANY_DXN, DXN, NO_BODY, NO_QUEUE, OBJECT_ID, SPACES_FULL

ProfileName = Literal["work", "switchboard", "webhook", "inbound"]


class EntriesOut(Struct, frozen=True, rename="camel"):
    """A range. next_cursor, prev_cursor: where it ends and begins; null where there is nothing to point at."""

    entries: list[EntryOut]
    next_cursor: str | None
    prev_cursor: str | None


class DeletedOut(Struct, frozen=True):
    """How many there were, and are no more."""

    deleted: int


class ConfigIn(QueueConfig, frozen=True, forbid_unknown_fields=True):
    """All settings of a queue; what is not named is as the profile has it, and without one as the kind has it.

    consumer: rules of its consumer `default`; with them, or with a profile, the queue is a work queue.
    """

    profile: ProfileName | UnsetType = UNSET
    consumer: ConsumerConfig | UnsetType = UNSET


ACTOR = Param(
    "actor", Annotated[str, Meta(pattern="^[a-z0-9-]{1,32}$")], "Who writes: the actor of the versions made."
)
TYPE = Param("type", Annotated[str, Meta(min_length=1, max_length=512)], "Only entries of this type.")
AFTER = Param("after", Text, "A cursor; the range begins behind it.")
BEFORE = Param("before", Text, "A cursor; the range ends before it.")
CURSORS = (errors.InvalidCursor, errors.CursorStore)
ONE_ENTRY = (errors.DuplicateId, errors.EntryExists, errors.VersionAhead, errors.InvalidMessage)
KNOWN = Param("if-none-match", str, "Tags that are known; where one still holds, the answer is 304.")
SEEN = {
    "etag": "Of what there is now.",
    "cache-control": "Ask again each time.",
    "vary": "What it depends on.",
}

LOGS = {
    "POST /v1/{dxn}": Op(
        {
            200: Answer(
                "What became of each entry. A stream is answered line by line, cumulatively.",
                {JSON: AppendAnswer, NDJSON: Progress},
            )
        },
        query=(ACTOR,),
        body=Body(
            {JSON: EntriesIn, NDJSON: {"type": "string", "description": "One entry a line."}},
            {"entries": [{"data": {"n": 1}, "id": "one"}]},
        ),
        errors=(*ONE_ENTRY, errors.UnsupportedMedia, errors.InvalidDxn, errors.QueueFull, *SPACES_FULL),
    ),
    "GET /v1/{dxn}": Op(
        {
            200: Answer(
                "A range, or the object whose address was given.",
                {JSON: (EntriesOut, EntryOut)},
                SEEN,
            ),
            304: Answer("It is as it was.", headers=SEEN),
        },
        paths=(ANY_DXN,),
        query=(
            AFTER,
            BEFORE,
            Param("limit", Annotated[int, Meta(ge=1, le=LIMIT_MAX)], "At most so many entries; else all."),
            Param("reverse", bool, "The newest first."),
            TYPE,
            Param("since", Whole, "First appended at this unix ms, or later."),
            Param("until", Whole, "First appended at this unix ms, or before."),
            Param("id", OBJECT_ID, "Only these objects.", many=True),
            Param(
                "wait",
                Annotated[float, Meta(ge=0, le=WAIT_S_MAX)],
                "Seconds to wait for an entry, if there is none.",
            ),
        ),
        headers=(KNOWN,),
        errors=(*CURSORS, *NO_QUEUE, errors.EntryNotFound),
    ),
    "DELETE /v1/{dxn}": Op(
        ok(DeletedOut, "How many there were."),
        paths=(ANY_DXN,),
        query=(
            Param("id", OBJECT_ID, "These objects.", many=True),
            AFTER,
            BEFORE,
            Param("through", Text, "A cursor; the range ends with its entry."),
        ),
        errors=(*CURSORS, *NO_QUEUE),
    ),
    "GET /v1/{dxn}/subscribe": Op(
        {
            200: Answer(
                "Entries as server-sent events, for as long as the client listens.",
                {EVENTS: {"type": "string"}},
            )
        },
        query=(Param("after", Text, "A cursor, or `tail`: from now on."), TYPE),
        headers=(Param("last-event-id", str, "The last event that came; wins over `after`."),),
        errors=(*CURSORS, errors.InvalidDxn),
        streams=True,
    ),
    "GET /v1/{dxn}/config": Op(ok(QueueConfig, "The settings."), errors=NO_QUEUE),
    "PUT /v1/{dxn}/config": Op(
        ok(QueueConfig, "The settings as they are now."),
        body=json(ConfigIn, {"kind": "log", "max_age_ms": 86_400_000}),
        errors=(
            *NO_BODY,
            errors.InvalidDxn,
            errors.NameTaken,
            errors.ConfigConflict,
            errors.NoConsumer,
            *SPACES_FULL,
        ),
    ),
    "PATCH /v1/{dxn}/config": Op(
        ok(QueueConfig, "The settings as they are now."),
        body=json(QueueConfig, {"paused": True}),
        errors=(*NO_BODY, *NO_QUEUE, errors.NameTaken, errors.ConfigConflict),
    ),
    "DELETE /v1/{dxn}/config": Op(ok(work.Nothing), errors=NO_QUEUE),
    "GET /v1/{dxn}/stats": Op(ok(Stats, "The settings, the counts and the tail."), errors=NO_QUEUE),
}

CHAPTER = Chapter(
    "The native protocol, `/v1`: everything, addressed by DXN. In words: `docs/protocol/native.md`.",
    LOGS | work.OPERATIONS | spaces.OPERATIONS,
    {"dxn": DXN, "consumer": work.CONSUMER, **spaces.PATHS},
)
