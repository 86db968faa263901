"""Errors as answers: one total table from error class to status, and the RFC 9457 body they all share.

A dialect says the same in its own words, see `Dialect.refuse`. The errors that only a transport can make are here
too; docs/protocol/native.md lists every code.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import msgspec
from msgspec import Struct

from edgequeues.core import errors as core
from edgequeues.core.errors import EdgeQueuesError
from shards import errors as shard
from shards.errors import ShardError

MEDIA = b"application/problem+json"

log = logging.getLogger("edgequeues.http")


class Misdirected(EdgeQueuesError):
    """The Host header is not a name of this server. Ask for its address, or add the name to `allowed_hosts`."""

    code = "misdirected"


class ForbiddenOrigin(EdgeQueuesError):
    """Web pages of this origin may not call this server. Serve the page from localhost, or add to `cors_origins`."""

    code = "forbidden_origin"


class ForeignPage(ForbiddenOrigin):
    """A sign-in counts for the pages of this server alone. Open them at its own address; programs send a token."""


class Unauthenticated(EdgeQueuesError):
    """Send `Authorization: Bearer <token>` with a token that `edgequeues token create` gave and that still holds."""

    code = "unauthenticated"


class Forbidden(EdgeQueuesError):
    """This token does not reach that far. Use another, or make one with `edgequeues token create`."""

    code = "forbidden"


class HeadersTooLarge(EdgeQueuesError):
    """The request line and the headers are too long together. Name fewer ids at once, send fewer headers."""

    code = "headers_too_large"


class UpgradeRequired(EdgeQueuesError):
    """Only WebSockets are served here. Ask with `Upgrade: websocket`."""

    code = "upgrade_required"


class RequestTimeout(EdgeQueuesError):
    """The request came too slowly. Send it again."""

    code = "request_timeout"
    retryable = True


class NotReady(EdgeQueuesError):
    """The server does not take work now; `detail` says why. Try again later."""

    code = "not_ready"
    retryable = True


class Fault(NamedTuple):
    """How one class of error is answered. retry_after_s: for those that may succeed later."""

    status: int
    code: str
    title: str
    retry_after_s: int | None = None


INTERNAL = Fault(500, "internal", "Internal error")
INTERNAL_DETAIL = "The request met a bug. The server's log has the details; what it did before is unknown."


def _mistake(status: int, kind: type[EdgeQueuesError], title: str, retry_after_s: int | None = None) -> Fault:
    return Fault(status, kind.code, title, retry_after_s)


TABLE: dict[type[Exception], Fault] = {
    core.InvalidDxn: _mistake(400, core.InvalidDxn, "Not a queue's address"),
    core.InvalidId: _mistake(400, core.InvalidId, "Not a valid id"),
    core.InvalidCursor: _mistake(400, core.InvalidCursor, "Not a cursor of this queue"),
    core.CursorStore: _mistake(410, core.CursorStore, "Cursor of another store"),
    core.InvalidJson: _mistake(400, core.InvalidJson, "Not valid JSON"),
    core.InvalidRequest: _mistake(400, core.InvalidRequest, "Not a valid request"),
    core.DuplicateId: _mistake(400, core.DuplicateId, "Object named twice"),
    core.TooLarge: _mistake(413, core.TooLarge, "Too large"),
    core.EntryExists: _mistake(409, core.EntryExists, "Object exists"),
    core.VersionAhead: _mistake(400, core.VersionAhead, "Version too far ahead"),
    core.QueueNotFound: _mistake(404, core.QueueNotFound, "No such queue"),
    core.EntryNotFound: _mistake(404, core.EntryNotFound, "No such object"),
    core.EntityNotFound: _mistake(404, core.EntityNotFound, "No such entity"),
    core.NameTaken: _mistake(409, core.NameTaken, "Name taken"),
    core.ConfigConflict: _mistake(409, core.ConfigConflict, "Setting is fixed"),
    core.RouteNotFound: _mistake(404, core.RouteNotFound, "No such path"),
    core.MethodNotAllowed: _mistake(405, core.MethodNotAllowed, "Method not allowed"),
    core.UnsupportedMedia: _mistake(415, core.UnsupportedMedia, "Unsupported media type"),
    core.TooManySpaces: _mistake(507, core.TooManySpaces, "Too many spaces"),
    core.RateLimited: _mistake(429, core.RateLimited, "Too many requests", 5),
    core.ConsumerNotFound: _mistake(404, core.ConsumerNotFound, "No such consumer"),
    core.NoConsumer: _mistake(409, core.NoConsumer, "No consumer"),
    core.QueueFull: _mistake(503, core.QueueFull, "Queue is full", 5),
    core.InvalidMessage: _mistake(400, core.InvalidMessage, "Not a message of this queue"),
    core.InvalidSpec: _mistake(400, core.InvalidSpec, "Spec will not do"),
    core.SpecNotFound: _mistake(404, core.SpecNotFound, "No such spec"),
    core.ScheduleNotFound: _mistake(404, core.ScheduleNotFound, "No such schedule"),
    core.HookNotFound: _mistake(404, core.HookNotFound, "No such webhook"),
    core.HookBlocked: _mistake(503, core.HookBlocked, "Webhook is blocked", 60),
    core.HookTaken: _mistake(409, core.HookTaken, "Webhook exists"),
    core.BadSignature: _mistake(401, core.BadSignature, "Not signed as it must be"),
    core.BlobNotFound: _mistake(404, core.BlobNotFound, "No such blob"),
    core.BlobConflict: _mistake(409, core.BlobConflict, "Blob has other content"),
    core.BlobTypeRefused: _mistake(415, core.BlobTypeRefused, "Type of blob refused"),
    core.BlobStoreDown: _mistake(503, core.BlobStoreDown, "Object store is down", 5),
    core.LinkInvalid: _mistake(403, core.LinkInvalid, "Link is not valid"),
    core.LinkExpired: _mistake(403, core.LinkExpired, "Link has expired"),
    core.RangeNotSatisfiable: _mistake(416, core.RangeNotSatisfiable, "No such range"),
    core.EmailParseFailed: _mistake(422, core.EmailParseFailed, "Not a mail"),
    core.TwilioSignatureInvalid: _mistake(401, core.TwilioSignatureInvalid, "Not signed by Twilio"),
    core.MmsMediaTooLarge: _mistake(413, core.MmsMediaTooLarge, "Media too large"),
    core.MmsFetchFailed: _mistake(503, core.MmsFetchFailed, "Media not fetched", 30),
    core.R2PutFailed: _mistake(503, core.R2PutFailed, "Object not stored", 30),
    core.QueuePublishFailed: _mistake(503, core.QueuePublishFailed, "Message not queued", 30),
    core.InvalidBackup: _mistake(400, core.InvalidBackup, "Not a backup of a space"),
    core.SpecConflict: _mistake(409, core.SpecConflict, "Spec would lose messages"),
    core.CommandRejected: _mistake(409, core.CommandRejected, "Command rejected"),
    core.CommandFailed: _mistake(500, core.CommandFailed, "Command failed", 5),
    core.QueueGone: _mistake(409, core.QueueGone, "Queue is gone"),
    core.IdempotencyMismatch: _mistake(409, core.IdempotencyMismatch, "Key of another message"),
    Misdirected: _mistake(421, Misdirected, "Misdirected request"),
    ForbiddenOrigin: _mistake(403, ForbiddenOrigin, "Forbidden origin"),
    Unauthenticated: _mistake(401, Unauthenticated, "Unauthenticated"),
    Forbidden: _mistake(403, Forbidden, "Forbidden"),
    HeadersTooLarge: _mistake(431, HeadersTooLarge, "Headers too large"),
    UpgradeRequired: _mistake(426, UpgradeRequired, "Upgrade required"),
    RequestTimeout: _mistake(408, RequestTimeout, "Request timeout", 1),
    NotReady: _mistake(503, NotReady, "Not ready", 2),
    shard.Overloaded: Fault(503, "overloaded", "Overloaded", 1),
    shard.DiskFull: Fault(503, "disk_full", "Disk full", 10),
    shard.ShardBroken: Fault(503, "outcome_unknown", "Outcome unknown", 2),
    shard.ShardClosed: Fault(503, "shutting_down", "Shutting down", 2),
    shard.Moved: Fault(503, "moved", "Moved to another node", 1),
    shard.ShardBusy: Fault(503, "busy", "Busy", 1),
    shard.NeedsRepair: Fault(503, "space_damaged", "Space needs repair"),
    shard.UnusableFile: Fault(503, "space_damaged", "Space is damaged"),
    shard.SchemaTooNew: Fault(503, "space_too_new", "Space of a newer version"),
    shard.ShardExists: Fault(409, "space_exists", "Space exists"),
    shard.InvalidName: Fault(400, "invalid_id", "Not a valid id"),
    # These mean a bug of ours, or were to stop the server before it took a request.
    shard.NotACopy: INTERNAL,  # it is told as core.InvalidBackup
    shard.Fenced: INTERNAL,
    shard.FolderLocked: INTERNAL,
    shard.TurnRefused: INTERNAL,
    shard.UnsupportedSQLite: INTERNAL,
}


class Problem(Struct, frozen=True, kw_only=True):
    """The body of every error. Clients switch on `code`; `detail` is for people."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    retryable: bool


def fault(error: BaseException) -> Fault:
    """Look an error up, or what it derives from; whatever is not in the table is a bug of ours."""
    for kind in type(error).__mro__:
        if kind in TABLE:
            return TABLE[kind]
    return INTERNAL


def report(error: BaseException, what: str) -> Fault:
    """Look an error up; a bug is logged, with its traceback and without what the client sent."""
    found = fault(error)
    if found is INTERNAL:
        log.error("%s failed", what, exc_info=error)
    return found


def problem(error: BaseException) -> Problem:
    """Describe an error to a client, without what only the operator may see (files, tracebacks)."""
    found = fault(error)
    if found is INTERNAL:
        detail = INTERNAL_DETAIL
    elif isinstance(error, ShardError):
        detail = " ".join((type(error).__doc__ or "").split())
    else:
        detail = str(error)
    return Problem(
        title=found.title,
        status=found.status,
        code=found.code,
        detail=detail,
        retryable=found is not INTERNAL and bool(getattr(error, "retryable", False)),
    )


def body(error: BaseException) -> bytes:
    """Encode the problem."""
    return msgspec.json.encode(problem(error))


class Refusal(NamedTuple):
    """A request refused, in the words of a dialect."""

    status: int
    media: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


def refuse(error: BaseException) -> Refusal:
    """Refuse as RFC 9457 has it, which is how the native protocol does it."""
    return Refusal(fault(error).status, MEDIA, headers(error), body(error))


def headers(error: BaseException) -> list[tuple[bytes, bytes]]:
    """Return the headers that say what to do next, in every dialect."""
    found: list[tuple[bytes, bytes]] = []
    wait_s = fault(error).retry_after_s
    if wait_s is not None:
        found.append((b"retry-after", b"%d" % wait_s))
    if isinstance(error, Unauthenticated):
        found.append((b"www-authenticate", b'Bearer realm="edgequeues"'))
    elif isinstance(error, UpgradeRequired):
        found.append((b"upgrade", b"websocket"))
    elif isinstance(error, core.RangeNotSatisfiable):
        found.append((b"content-range", b"bytes */%d" % error.size))
    return found
