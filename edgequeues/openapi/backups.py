"""What is said of backups."""

from __future__ import annotations

from edgequeues.core import errors
from edgequeues.http.backups import BACKUP, MEDIA
from edgequeues.openapi.op import ANYTHING, Answer, Op
from shards import errors as shard

HEADERS = {
    "content-length": "Bytes of the file.",
    "content-disposition": "Always an attachment.",
    "cache-control": "Not to be kept.",
    "repr-digest": "SHA-256 of the file, as of RFC 9530.",
    "edgequeues-taken": "Which instant it shows, in unix ms.",
    "x-content-type-options": "It is of no other type.",
}

OPERATIONS = {
    f"GET {BACKUP}": Op(
        {200: Answer("The file, an SQLite database.", {MEDIA.decode(): ANYTHING}, HEADERS)},
        errors=(errors.QueueNotFound, shard.UnusableFile),
    )
}
