"""Every mistake a caller can make. One class per remedy; `code` is public and never renamed.

A leaf's docstring is its message, so it ends with the remedy; `detail` says what and where. HTTP statuses are
chosen in `edgequeues.http.problems`, nowhere else.
"""

from __future__ import annotations

from typing import ClassVar


class EdgeQueuesError(Exception):
    """Root."""

    code: ClassVar[str]
    retryable: ClassVar[bool] = False  # may the same request succeed later, unchanged?

    def __init__(self, detail: str = "") -> None:
        self.detail = detail
        self.remedy = " ".join((type(self).__doc__ or "").split())
        super().__init__(f"{detail}. {self.remedy}" if detail else self.remedy)


class InvalidDxn(EdgeQueuesError):
    """A queue is addressed as dxn:queue:<space>:<queue>, an entry as dxn:queue:<space>:<queue>:<object>."""

    code = "invalid_dxn"


class InvalidId(EdgeQueuesError):
    """Correct the id; docs/protocol/native.md lists what each kind of id may hold."""

    code = "invalid_id"


class InvalidCursor(EdgeQueuesError):
    """Use a cursor exactly as an answer of this queue gave it, or start without one."""

    code = "invalid_cursor"


class CursorStore(EdgeQueuesError):
    """The cursor belongs to another store: the data was restored, imported or copied. Read again from the start."""

    code = "cursor_store"


class InvalidJson(EdgeQueuesError):
    """Send one valid UTF-8 JSON text, nested at most 64 deep, with every number within double range."""

    code = "invalid_json"


class InvalidRequest(EdgeQueuesError):
    """Correct the named field or parameter; nothing was stored."""

    code = "invalid_request"


class DuplicateId(EdgeQueuesError):
    """One call may name each object once. Send the later version in a call of its own."""

    code = "duplicate_id"


class TooLarge(EdgeQueuesError):
    """Send less at once: split the call, or stream it as NDJSON."""

    code = "too_large"


class EntryExists(EdgeQueuesError):
    """This queue does not let an object change. Use a new id, or make the queue mutable."""

    code = "exists"


class VersionAhead(EdgeQueuesError):
    """A stated version may be at most 2^20 above the space's counter. Read the object and use its version."""

    code = "version_ahead"


class QueueNotFound(EdgeQueuesError):
    """No such queue here. Append or push to it once, or check the name with the list of queues."""

    code = "queue_not_found"


class EntryNotFound(EdgeQueuesError):
    """No such object in this queue: it never was, was deleted, or has expired."""

    code = "entry_not_found"


class EntityNotFound(EdgeQueuesError):
    """No command made such an entity here, or one removed it. List those of its type."""

    code = "entity_not_found"


class NameTaken(EdgeQueuesError):
    """Another queue of the space has this name, or one that counts as the same in snake_case. Choose another."""

    code = "name_taken"


class ConfigConflict(EdgeQueuesError):
    """This setting is fixed when the queue is made. Make a new queue instead."""

    code = "config_conflict"


class RouteNotFound(EdgeQueuesError):
    """No such path. The protocol page lists every route."""

    code = "not_found"


class MethodNotAllowed(EdgeQueuesError):
    """The path exists, but not for this method; the Allow header lists those it has."""

    code = "method_not_allowed"


class UnsupportedMedia(EdgeQueuesError):
    """Send the body as it is, not compressed, in a media type that is taken there."""

    code = "unsupported_media_type"


class TooManySpaces(EdgeQueuesError):
    """The server holds as many spaces as it accepts. Raise `spaces_max`, or use an existing space."""

    code = "too_many_spaces"


class RateLimited(EdgeQueuesError):
    """Too much was asked in a short time. Try again later, or with a token."""

    code = "rate_limited"
    retryable = True


class ConsumerNotFound(EdgeQueuesError):
    """This queue has no such consumer. List them, or make one."""

    code = "consumer_not_found"


class NoConsumer(EdgeQueuesError):
    """Nobody works this queue: it is a log. Make a consumer first."""

    code = "no_consumer"


class QueueFull(EdgeQueuesError):
    """The queue holds as many unfinished messages as it may. Try again when some are done."""

    code = "queue_full"
    retryable = True


class InvalidMessage(EdgeQueuesError):
    """The queue's spec does not allow this message. Correct the field that is named; nothing was stored."""

    code = "invalid_message"


class InvalidSpec(EdgeQueuesError):
    """Correct what is named, and apply the spec again; `edgequeues spec check` shows where it stands in the text."""

    code = "invalid_spec"


class SpecNotFound(EdgeQueuesError):
    """No spec of that app holds in this space. List those that do."""

    code = "spec_not_found"


class ScheduleNotFound(EdgeQueuesError):
    """No schedule has this name. A spec declares them; list those of the space."""

    code = "schedule_not_found"


class HookNotFound(EdgeQueuesError):
    """No webhook has this name. A spec declares them; compare the address with the list of hooks."""

    code = "hook_not_found"


class HookBlocked(EdgeQueuesError):
    """What this webhook needs is not set on the server; its log says what. Send it again when that is mended."""

    code = "hook_blocked"
    retryable = True


class HookTaken(EdgeQueuesError):
    """A webhook's name is unique in the server. Give yours another, or remove the other spec."""

    code = "hook_taken"


class BlobNotFound(EdgeQueuesError):
    """No such blob: it never was stored, was erased, or its time is over. List those of its event."""

    code = "blob_not_found"


class BlobConflict(EdgeQueuesError):
    """A stored blob never changes. Store other content under another key."""

    code = "blob_conflict"


class BlobTypeRefused(EdgeQueuesError):
    """Blobs of this type are not taken. Have it added to the setting `blobs_types`."""

    code = "blob_type_refused"


class BlobStoreDown(EdgeQueuesError):
    """The object store does not answer as it should; the server's log says why. Try again later."""

    code = "blob_store_down"
    retryable = True


class LinkInvalid(EdgeQueuesError):
    """The link was not made here, or was changed since. Use it exactly as it was given, or ask for a new one."""

    code = "link_invalid"


class LinkExpired(EdgeQueuesError):
    """The time of the link is over. Ask for a new one."""

    code = "link_expired"


class RangeNotSatisfiable(EdgeQueuesError):
    """The blob has no bytes in this range; Content-Range tells its size."""

    code = "range_not_satisfiable"
    size = 0


class EmailParseFailed(EdgeQueuesError):
    """This is no mail that an event can be made of. It is of no use to send it again as it is."""

    code = "EMAIL_PARSE_FAILED"


class TwilioSignatureInvalid(EdgeQueuesError):
    """The request is not signed as Twilio signs. Compare auth token and address; the server's log says more."""

    code = "TWILIO_SIGNATURE_INVALID"


class MmsMediaTooLarge(EdgeQueuesError):
    """The media of this message have more bytes than are taken. Those that fit are kept."""

    code = "MMS_MEDIA_TOO_LARGE"


class MmsFetchFailed(EdgeQueuesError):
    """The media of the message could not be fetched, so nothing of it was taken. Send it again later."""

    code = "MMS_FETCH_FAILED"
    retryable = True


class R2PutFailed(EdgeQueuesError):
    """The object store did not take what belongs to the message, so no message was made. Send it again later."""

    code = "R2_PUT_FAILED"
    retryable = True


class QueuePublishFailed(EdgeQueuesError):
    """The queue did not take the message. Send it again later; it becomes one message, however often it is sent."""

    code = "QUEUE_PUBLISH_FAILED"
    retryable = True


class BadSignature(EdgeQueuesError):
    """The request is not signed as this webhook wants it. Compare the secrets; the server's log says more."""

    code = "bad_signature"


class SpecConflict(EdgeQueuesError):
    """Messages would be lost or stranded, so nothing was applied. Do what is said, or keep the queue as it is."""

    code = "spec_conflict"


class InvalidBackup(EdgeQueuesError):
    """That is no whole and sound backup of a space, and nothing was changed. Send one that is."""

    code = "invalid_backup"


class QueueGone(EdgeQueuesError):
    """Its queue was removed, so it cannot go back there. Push what is of use in it to another queue, or delete it."""

    code = "queue_gone"


class CommandRejected(EdgeQueuesError):
    """The command cannot be carried out as things are. Correct what it is given, or send it again later."""

    code = "command_rejected"


class CommandFailed(EdgeQueuesError):
    """What carries the command out failed, so nothing was changed here. Send it again later."""

    code = "command_failed"
    retryable = True


class IdempotencyMismatch(EdgeQueuesError):
    """This idempotency key was used with another message. Use a key of its own for each message."""

    code = "idempotency_mismatch"


def reason(fault: BaseException) -> str:
    """What the fault says, or else the nearest of its causes that says anything, as for a bad certificate.

    Of what the system refused, its reason alone: which file or address it was is said beside it.
    """
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
        if text := str(cause):
            return text
        cause = cause.__cause__ or cause.__context__
    return type(fault).__name__
