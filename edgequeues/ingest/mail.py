"""A mail, RFC 5322 and MIME, taken apart: who wrote to whom, its text, its HTML, and every other part as a file.

What comes is from anybody. Any bytes are either a mail or raise EmailParseFailed, within bounds of time and memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.generator import BytesGenerator
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from hashlib import sha256
from io import BytesIO

from msgspec import Struct

from edgequeues.core.errors import EmailParseFailed
from edgequeues.ingest import mail_headers as header
from edgequeues.ingest.mail_headers import Headers, Mailbox, Priority
from edgequeues.ingest.mail_text import clean, decoded, text_of

RAW_BYTES_MAX = 40 * 1024 * 1024
HEAD_BYTES_MAX = 256 * 1024  # of the mail's own headers
TYPE_BYTES_MAX = 4 * 1024  # of a header that says of a part what it is, or how it is called
LINES_MAX = 1_500_000
NESTS_MAX = 32  # parts that hold parts; each costs time for every line within it
DEPTH_MAX = 16
PARTS_MAX = 200
FILES_MAX = 50
FILENAME_CHARS_MAX = 255

_HEADER = re.compile(rb"[\x21-\x39\x3b-\x7e]+:")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_NEST = re.compile(rb"(?:\A|[\r\n])content-type:\s*(?:multipart|message)/", re.IGNORECASE)
_TYPE = re.compile(
    rb"(?:\A|[\r\n])content-(?:type|disposition):[^\r\n]*(?:(?:\r\n?|\n)[ \t][^\r\n]*)*", re.IGNORECASE
)
_MEDIA = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}")


class File(Struct, frozen=True):
    """A part of a mail that is neither its text nor its HTML. filename: as its sender has it, "" for none."""

    filename: str
    content_type: str
    data: bytes


class Mail(Struct, frozen=True):
    """What a mail says. digest: of what stays the same when it is sent again, in hexadecimal.

    reply_to: who is to be answered; empty where nobody sent it. text: of the mail, or made of its HTML.
    """

    message_id: str | None
    in_reply_to: str | None
    references: str | None
    digest: str
    sender: Mailbox
    recipient: str
    reply_to: list[str]
    subject: str
    text: str
    html: str | None
    files: list[File]
    priority: Priority
    is_automatic: bool


def parse(raw: bytes, sent_by: str | None = None, sent_to: str | None = None) -> Mail:
    """Take a mail apart. sent_by, sent_to: addresses of its envelope, if known. Raises EmailParseFailed."""
    raw = _bounded(raw)
    try:
        message = BytesParser(policy=compat32).parsebytes(raw)
        leaves = list(_leaves(message))
        headers = header.gathered(list(message.raw_items()))
        return _mail(raw, headers, leaves, sent_by, sent_to)
    except EmailParseFailed:
        raise
    except Exception as error:  # Python's parser has no class of errors for what trips it
        raise EmailParseFailed(f"mail: cannot be taken apart ({type(error).__name__})") from error


def _mail(
    raw: bytes, headers: Headers, leaves: list[Message], sent_by: str | None, sent_to: str | None
) -> Mail:
    writers = header.mailboxes(headers, "from", "sender") or ([Mailbox(sent_by)] if sent_by else [])
    if not writers:
        raise EmailParseFailed("header From: no address")
    readers = header.mailboxes(headers, "delivered-to", "x-original-to", "to", "cc")
    recipient = sent_to or (readers[0].address if readers else None)
    if recipient is None:
        raise EmailParseFailed("header To: no address, and the envelope's recipient was not given")
    is_automatic = header.is_automatic(headers)
    answered = header.mailboxes(headers, "reply-to") or writers[:1]
    texts, html, files = _sorted(leaves)
    text = clean("\n\n".join(texts)).strip()
    return Mail(
        message_id=header.message_id(headers),
        in_reply_to=header.in_reply_to(headers),
        references=header.references(headers),
        digest=_digest(raw, headers),
        sender=writers[0],
        recipient=recipient,
        reply_to=[] if is_automatic else [one.address for one in answered[: header.REPLY_MAX]],
        subject=header.text(headers, "subject", header.LINE_CHARS_MAX),
        text=text or ("" if html is None else clean(text_of(html))),
        html=html,
        files=files,
        priority=header.priority(headers),
        is_automatic=is_automatic,
    )


def _bounded(raw: bytes) -> bytes:
    """The mail without an mbox line before it. Raises EmailParseFailed for what would cost too much to look at."""
    if len(raw) > RAW_BYTES_MAX:
        raise EmailParseFailed(f"mail: {len(raw)} bytes, at most {RAW_BYTES_MAX} are taken")
    if raw.startswith((b"From ", b">From ")):
        raw = raw.partition(b"\n")[2]
    if not _HEADER.match(raw):
        raise EmailParseFailed("mail: it does not begin with a header")
    if _head_end(raw) > HEAD_BYTES_MAX:
        raise EmailParseFailed(f"mail: its headers have more than {HEAD_BYTES_MAX} bytes")
    if raw.count(b"\n") > LINES_MAX or raw.count(b"\r") > LINES_MAX:
        raise EmailParseFailed(f"mail: more than {LINES_MAX} lines")
    if any(found.end() - found.start() > TYPE_BYTES_MAX for found in _TYPE.finditer(raw)):
        raise EmailParseFailed(f"mail: a part whose type or name has more than {TYPE_BYTES_MAX} bytes")
    if sum(1 for _ in _NEST.finditer(raw)) > NESTS_MAX:
        raise EmailParseFailed(f"mail: more than {NESTS_MAX} parts that hold parts")
    return raw


def _head_end(raw: bytes) -> int:
    found = _HEAD_END.search(raw)
    return len(raw) if found is None else found.start()


def _digest(raw: bytes, headers: Headers) -> str:
    """Relays add headers of their own, so only these count, and the body."""
    named = [headers.get(name, []) for name in ("from", "to", "date", "subject", "message-id")]
    return sha256(repr(named).encode() + raw[_head_end(raw) :].strip()).hexdigest()


def _leaves(message: Message) -> Iterator[Message]:
    """The parts that hold no others, in order; a mail within the mail is one. Raises EmailParseFailed."""
    waiting = [(message, 0)]
    seen = 0
    while waiting:
        part, depth = waiting.pop()
        seen += 1
        if depth > DEPTH_MAX:
            raise EmailParseFailed(f"mail: parts within parts, more than {DEPTH_MAX} deep")
        if seen > PARTS_MAX:
            raise EmailParseFailed(f"mail: more than {PARTS_MAX} parts")
        held = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(held, list):
            waiting += [(one, depth + 1) for one in reversed(held) if isinstance(one, Message)]
        else:
            yield part


def _sorted(leaves: list[Message]) -> tuple[list[str], str | None, list[File]]:
    """The texts, the HTML, and all other parts. Raises EmailParseFailed for too many of those."""
    texts: list[str] = []
    html: str | None = None
    files: list[File] = []
    for part in leaves:
        filename = _filename(part)
        media = part.get_content_type().lower()
        is_body = not filename and part.get_content_disposition() != "attachment"
        data = _data(part)
        if is_body and media == "text/plain":
            texts.append(decoded(data, _charset(part)))
        elif is_body and media == "text/html" and html is None:
            html = decoded(data, _charset(part))
        elif data or filename:
            files.append(
                File(filename, media if _MEDIA.fullmatch(media) else "application/octet-stream", data)
            )
    if len(files) > FILES_MAX:
        raise EmailParseFailed(f"mail: {len(files)} attachments, at most {FILES_MAX} are taken")
    return texts, html, files


def _data(part: Message) -> bytes:
    """The content of a part, decoded as far as it can be; of a mail within the mail, that mail."""
    held: object = part.get_payload()
    if isinstance(held, list):
        out = BytesIO()
        for one in held:
            BytesGenerator(out, mangle_from_=False, policy=compat32).flatten(one)
        return out.getvalue()
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _charset(part: Message) -> str | None:
    try:
        return part.get_content_charset()
    except (LookupError, UnicodeError, ValueError):
        return None


def _filename(part: Message) -> str:
    """The name a part was given, in whatever way; "" where it has none."""
    try:
        given = part.get_filename("") or ""
    except Exception:  # of a parameter from anywhere, Python's reader raises whatever it trips over
        return "unnamed"
    named = header.text({"subject": [str(given)[: header.HEADER_CHARS_MAX]]}, "subject", FILENAME_CHARS_MAX)
    return named.encode("utf-8", "replace").decode()
