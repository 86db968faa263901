"""From a mail or a text message to its event, and to the blobs that lie beside it.

The ids are made of what the sender's side keeps when it sends again. So a repeat is the same event, with the same
blobs under the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID, uuid5

import msgspec
from msgspec import Struct

from edgequeues.core import times
from edgequeues.events import keys, threads
from edgequeues.events.event import (
    Attachment,
    BlobRef,
    Content,
    Correlation,
    Participants,
    ReplyTo,
    SwitchboardEvent,
)
from edgequeues.ingest.mail import Mail
from edgequeues.ingest.mail_text import cut
from edgequeues.ingest.sms import Sms

EVENT_BYTES_MAX = 120_000  # Cloudflare takes 128,000 of a message

_NAMESPACE = UUID("b0d2a7c6-5f0e-4a55-9d0c-3f6a1f1f7b52")  # of ours alone; changing it makes every repeat new
_DAY = re.compile(r"(?:email|sms)/([0-9]{4})/([0-9]{2})/([0-9]{2})/")


class NewBlob(Struct, frozen=True):
    """What is to be stored. id: of the attachment; "": it is the mail's HTML."""

    id: str
    key: str
    data: bytes
    content_type: str
    filename: str = ""


class Kept(NamedTuple):
    """A blob that is stored, and where."""

    what: NewBlob
    where: BlobRef


def email_id(mail: Mail) -> str:
    """The id of a mail's event, a UUID."""
    return str(uuid5(_NAMESPACE, f"email:{mail.message_id or mail.digest}"))


def other_id(mail: Mail) -> str:
    """The same, where the blobs of the first are those of another mail under the same message id."""
    return str(uuid5(_NAMESPACE, f"email:{mail.message_id}:{mail.digest}"))


def raw_id(digest: str) -> str:
    """The id of what could not be taken apart."""
    return str(uuid5(_NAMESPACE, f"raw:{digest}"))


def sms_id(sid: str) -> str:
    """The id of a text message's event, a UUID."""
    return str(uuid5(_NAMESPACE, f"sms:{sid}"))


def day_of(stored: Iterable[str]) -> int | None:
    """Unix ms of a moment of the day in keys that were given out before; None: there are none."""
    for found in map(_DAY.match, stored):
        if found is not None:
            year, month, day = map(int, found.groups())
            return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1_000)
    return None


def email_blobs(mail: Mail, event_id: str, day_ms: int) -> list[NewBlob]:
    """The blobs of a mail: its HTML, its files, and its text where that is too long for an event."""
    found = []
    if mail.html:
        found.append(NewBlob("", keys.email_html(event_id, day_ms), mail.html.encode(), "text/html"))
    files = [(one.filename, one.content_type, one.data) for one in mail.files]
    if cut(mail.text) != mail.text:
        files.append(("body.txt", "text/plain", mail.text.encode()))
    for number, (filename, content_type, data) in enumerate(files, 1):
        key = keys.email_attachment(event_id, day_ms, number, filename)
        found.append(NewBlob(f"att-{number}", key, data, content_type, filename))
    return found


def sms_blob(sms: Sms, number: int, data: bytes, day_ms: int) -> NewBlob:
    """A medium that was fetched."""
    content_type = sms.media[number].content_type
    return NewBlob(f"media-{number}", keys.sms_media(sms.sid, day_ms, number), data, content_type)


def email_event(
    mail: Mail, event_id: str, received_ms: int, kept: Sequence[Kept], tags: Iterable[str]
) -> SwitchboardEvent:
    """The event of a mail that came at unix ms `received_ms`."""
    sender, subject = mail.sender.address, mail.subject or None
    text = cut(mail.text)
    html = [one.where for one in kept if not one.what.id]
    marks = ["auto-submitted"] * mail.is_automatic + ["text-cut"] * (text != mail.text)
    return SwitchboardEvent(
        id=event_id,
        source="email",
        received_at=times.utc(received_ms),
        priority=mail.priority,
        tags=[*marks, *tags],
        participants=Participants(
            from_email=sender, from_name=mail.sender.name or None, to_email=mail.recipient
        ),
        content=Content(
            subject=subject,
            text=text or None,
            html_r2=html[0] if html else None,
            attachments=_attachments(kept),
        ),
        correlation=Correlation(
            thread_key=threads.email_thread(
                subject, sender, mail.recipient, mail.in_reply_to, mail.references, mail.message_id
            ),
            message_id=mail.message_id,
            in_reply_to=mail.in_reply_to,
            references=mail.references,
        ),
        reply=ReplyTo(channel="email", to_email=mail.reply_to) if mail.reply_to else None,
    )


def sms_event(sms: Sms, received_ms: int, kept: Sequence[Kept], tags: Iterable[str]) -> SwitchboardEvent:
    """The event of a text message that came at unix ms `received_ms`."""
    return SwitchboardEvent(
        id=sms_id(sms.sid),
        source="sms",
        received_at=times.utc(received_ms),
        tags=list(tags),
        participants=Participants(from_phone_e164=sms.sender, to_phone_e164=sms.recipient),
        content=Content(text=cut(sms.text) or None, attachments=_attachments(kept)),
        correlation=Correlation(
            thread_key=threads.sms_thread(sms.sender, sms.recipient), twilio_message_sid=sms.sid
        ),
        reply=ReplyTo(channel="sms", to_phone_e164=sms.sender),
    )


def encoded(event: SwitchboardEvent) -> str:
    """The event as it is queued. One that would get too large has no links: they can be had of the object store."""
    data = msgspec.json.encode(event)
    if len(data) > EVENT_BYTES_MAX:
        data = msgspec.json.encode(_unlinked(event))
    return data.decode()


def _attachments(kept: Sequence[Kept]) -> list[Attachment]:
    return [
        Attachment(
            id=what.id,
            filename=what.filename,
            content_type=what.content_type,
            size=len(what.data),
            r2=where,
        )
        for what, where in kept
        if what.id
    ]


def _unlinked(event: SwitchboardEvent) -> SwitchboardEvent:
    replace, content = msgspec.structs.replace, event.content
    attachments = [
        replace(one, r2=BlobRef(bucket=one.r2.bucket, key=one.r2.key)) for one in content.attachments
    ]
    html = content.html_r2 and BlobRef(bucket=content.html_r2.bucket, key=content.html_r2.key)
    return replace(event, content=replace(content, attachments=attachments, html_r2=html))
