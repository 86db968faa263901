"""What is said of backups."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgequeues.core import errors
from edgequeues.core.dxn import Tag
from edgequeues.http.backups import BACKUP, CONTROL, MEDIA, RestoredOut
from edgequeues.http.problems import NotReady
from edgequeues.openapi.op import ANYTHING, JSON, Answer, Body, Op, Param
from shards import errors as shard

DIGEST = Annotated[str, Meta(pattern="^sha-256=:[A-Za-z0-9+/]{43}=:$")]
HEADERS = {
    "content-length": "Bytes of the file.",
    "content-disposition": "Always an attachment.",
    "cache-control": "Not to be kept.",
    "repr-digest": "SHA-256 of the file, as of RFC 9530.",
    "x-content-type-options": "It is of no other type.",
}
TAKEN = {"edgequeues-taken": "Which instant it shows, in unix ms."}
TAG = Param("tag", Tag, "The space's own queues, or those of its traces.")

OPERATIONS = {
    f"GET {CONTROL}": Op(
        {200: Answer("The file, an SQLite database.", {MEDIA.decode(): ANYTHING}, HEADERS)},
        errors=(NotReady,),
    ),
    f"GET {BACKUP}": Op(
        {200: Answer("The file, an SQLite database.", {MEDIA.decode(): ANYTHING}, HEADERS | TAKEN)},
        query=(TAG,),
        errors=(errors.QueueNotFound, shard.UnusableFile),
    ),
    f"PUT {BACKUP}": Op(
        {
            200: Answer("It was replaced.", {JSON: RestoredOut}),
            201: Answer("There was none.", {JSON: RestoredOut}),
        },
        query=(Param("replace", bool, "May it take the place of a space that is there?"), TAG),
        headers=(
            Param("repr-digest", DIGEST, "SHA-256 of the file, as of RFC 9530: checked where it is said."),
        ),
        body=Body({MEDIA.decode(): ANYTHING, "application/octet-stream": ANYTHING}),
        errors=(
            errors.UnsupportedMedia,
            errors.TooManySpaces,
            errors.RateLimited,
            errors.InvalidBackup,
            shard.ShardExists,
        ),
    ),
}
