"""The envelope: what became of a mail or a text message on its way to a handler.

The shape is that of seed 1's `SwitchboardEvent`; its JSON Schema is made from these structs, see `schema`. Names on
the wire are camelCase. Large bodies are in the object store, and the event says where.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Source = Literal["email", "sms"]
Priority = Literal["low", "normal", "high"]

TEXT_CHARS_MAX = 65_536
ATTACHMENTS_MAX = 200

# Patterns end in `$(?!\n)`: in Python, `$` alone lets a newline at the end pass.
# An `E.164` number, https://www.itu.int/rec/T-REC-E.164
Phone = Annotated[str, Meta(pattern=r"^\+[1-9][0-9]{1,14}$(?!\n)")]
Address = Annotated[str, Meta(min_length=1, max_length=320)]  # RFC 3696, errata 1690
MessageId = Annotated[str, Meta(max_length=998)]  # a line of a mail, RFC 5322, 2.1.1
UtcTime = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$(?!\n)",
        extra_json_schema={"format": "date-time"},
    ),
]
# Of an object, see `keys`: no addresses, no numbers, and no way out of where it lies.
Key = Annotated[
    str,
    Meta(
        pattern=r"^(?!.*/\.{1,2}(/|$))(email|sms)/[0-9]{4}/[0-9]{2}/[0-9]{2}"
        r"/[^/@+\x00-\x1f\x7f]+/[^@+\x00-\x1f\x7f]+$(?!\n)",
        max_length=1024,
    ),
]


class BlobRef(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Where an object lies, and a link to it with its end, or neither: one can be had of the object store."""

    bucket: Annotated[str, Meta(min_length=1, max_length=63)]
    key: Key
    presigned_get_url: Annotated[str, Meta(pattern=r"^https?://[^\s]+$(?!\n)", max_length=4096)] | None = None
    expires_at: UtcTime | None = None


class Attachment(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a mail, or a medium of a text message. size: bytes. filename: as its sender had it."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    filename: Annotated[str, Meta(max_length=255)]
    content_type: Annotated[
        str, Meta(pattern=r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$(?!\n)", max_length=255)
    ]
    size: Annotated[int, Meta(ge=0, le=2**53 - 1)]
    r2: BlobRef


class Participants(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Who wrote to whom."""

    from_email: Address | None = None
    from_name: Annotated[str, Meta(max_length=256)] | None = None
    to_email: Address | None = None
    from_phone_e164: Phone | None = None
    to_phone_e164: Phone | None = None


class Content(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """What was written. html_r2: where the mail's HTML lies."""

    subject: Annotated[str, Meta(max_length=998)] | None = None
    text: Annotated[str, Meta(max_length=TEXT_CHARS_MAX)] | None = None
    html_r2: BlobRef | None = None
    attachments: Annotated[list[Attachment], Meta(max_length=ATTACHMENTS_MAX)] = []


class Correlation(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """What belongs together. thread_key: the same for all messages of one conversation."""

    thread_key: Annotated[str, Meta(min_length=1, max_length=64)]
    message_id: MessageId | None = None
    in_reply_to: MessageId | None = None
    references: Annotated[str, Meta(max_length=8192)] | None = None
    twilio_message_sid: Annotated[str, Meta(pattern=r"^(SM|MM)[0-9A-Za-z]{32}$(?!\n)")] | None = None


class ReplyTo(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Where an answer goes unless the handler says otherwise."""

    channel: Source
    to_email: Annotated[list[Address], Meta(min_length=1, max_length=100)] | None = None
    to_phone_e164: Phone | None = None


class SwitchboardEvent(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """One mail or text message. id: what every log line, metric and object of it is found by."""

    id: Annotated[str, Meta(min_length=8, max_length=128)]
    source: Source
    received_at: UtcTime
    priority: Priority = "normal"
    tags: Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=64)] = []
    participants: Participants
    content: Content
    correlation: Correlation
    reply: ReplyTo | None = None
