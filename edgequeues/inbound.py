"""Messages for sessions: what adapters hand over, how it lies in a queue, and by which key a repeat is known.

The fields are those of seed 4's table `inbound_queue`; the view of that name shows them again.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from edgequeues.core import ids, jsontext
from edgequeues.core.errors import InvalidId, InvalidJson, InvalidRequest
from edgequeues.core.times import utc

MessageType = Literal["text", "voice", "file"]
Status = Literal["pending", "processing", "delivered", "failed", "expired"]

QUEUE = "inbound"  # where no other queue is named
KEPT_MS = 72 * 3_600_000  # of what is finished, and of how repeats are known
LOCK_MS = 300_000  # after which what a worker holds is another one's
RETRIES_MS = (5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000)
NAME_CHARS_MAX = 256  # of everything but content and payload

Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
Url = Annotated[str, Meta(max_length=2_048)]


class Inbound(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A message of a user for a session.

    session_id: its ordering key: a session's messages are delivered one by one, as they came.
    origin: which adapter it came by. payload: any JSON, kept as it is written.
    source_message_id: as its platform calls it; what comes again from that origin and channel is a repeat.
    source_channel_id: the chat, where ids of messages are unique within chats only, as Telegram's are.
    """

    session_id: Name
    origin: Name
    message_type: MessageType = "text"
    content: str = ""
    payload: Raw | UnsetType = UNSET
    actor_id: Name | None = None
    actor_name: Annotated[str, Meta(max_length=NAME_CHARS_MAX)] | None = None
    actor_avatar_url: Url | None = None
    source_message_id: Name | None = None
    source_channel_id: Name | None = None


class InboundRow(TypedDict):
    """A message as a delivery function is given it: columns of the view `inbound_queue`, times ISO 8601 in UTC.

    id: its position. attempt_count: deliveries that failed before this one.
    """

    id: int
    session_id: str
    origin: str
    message_type: MessageType
    content: str
    payload_json: str | None
    actor_id: str | None
    actor_name: str | None
    actor_avatar_url: str | None
    status: Status
    created_at: str
    attempt_count: int
    locked_at: str
    source_message_id: str | None
    source_channel_id: str | None


def read(text: bytes) -> Inbound:
    """A message out of its JSON, checked. Raises InvalidJson, InvalidRequest, which names the field.

    The payload may hold halves of surrogate pairs, which msgspec refuses.
    """
    jsontext.check(text)
    members = jsontext.members(text)
    given = {name: Raw(value) if name == "payload" else jsontext.value(value) for name, value in members}
    if len(given) < len(members):
        raise InvalidJson("a field is given twice")
    return _checked(given)


def check(message: Inbound) -> Inbound:
    """The message itself, as a wire would have let it through. Raises InvalidJson, InvalidRequest, as `read` does."""
    checked = _checked(
        {name: value for name, value in msgspec.structs.asdict(message).items() if value is not UNSET}
    )
    if checked.payload is not UNSET:
        jsontext.check(bytes(checked.payload))
    return checked


def _checked(given: dict[str, Any]) -> Inbound:
    """A message of these fields. Raises InvalidRequest."""
    try:
        checked = msgspec.convert(given, Inbound)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None
    for field, text in given.items():
        try:
            if isinstance(text, str):
                text.encode()
        except UnicodeEncodeError:
            raise InvalidRequest(f"{field}: half of a surrogate pair, which no UTF-8 text can hold") from None
    for field in ("session_id", "origin", "source_message_id", "source_channel_id"):
        text = getattr(checked, field)
        try:
            if text is not None:
                ids.check_key(text)
        except InvalidId as error:
            raise InvalidRequest(f"{field}: {error.detail}") from None
    return checked


def body(message: Inbound) -> str:
    """A message as it lies in the queue: a JSON object of what is given of its fields."""
    return msgspec.json.encode(message).decode()


def repeat_key(message: Inbound) -> str | None:
    """By which a message is known when it comes again, in whichever session; None: by nothing."""
    if message.source_message_id is None:
        return None
    named = [message.origin, message.source_channel_id, message.source_message_id]
    return msgspec.json.encode(named).decode()


def row(
    data: bytes, key: str | None, *, position: int, created_ms: int, locked_ms: int, attempts: int
) -> InboundRow:
    """What a delivery function is given. key: the entry's. attempts: deliveries begun, this one included.

    Raises InvalidJson, InvalidRequest where the entry is no message for a session, as others may have pushed it.
    """
    message = read(data)
    if message.session_id != key:
        raise InvalidRequest("session_id: its ordering key is another one")
    return InboundRow(
        id=position,
        session_id=message.session_id,
        origin=message.origin,
        message_type=message.message_type,
        content=message.content,
        payload_json=None if message.payload is UNSET else bytes(message.payload).decode(),
        actor_id=message.actor_id,
        actor_name=message.actor_name,
        actor_avatar_url=message.actor_avatar_url,
        status="processing",
        created_at=utc(created_ms),
        attempt_count=attempts - 1,
        locked_at=utc(locked_ms),
        source_message_id=message.source_message_id,
        source_channel_id=message.source_channel_id,
    )
