"""Whatever a mail holds, it takes neither long nor much to read it, and nothing but EmailParseFailed is raised."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core.errors import EmailParseFailed
from edgequeues.ingest.mail import DEPTH_MAX, FILES_MAX, HEAD_BYTES_MAX, NESTS_MAX, Mail, parse

from .test_mail import USUAL, lines, parts


def nested(depth: int) -> bytes:
    text = "\r\nHello."
    for level in range(depth):
        text = f"Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n{text}\r\n--b{level}--\r\n"
    return "\r\n".join([*USUAL, text]).encode()


def test_parts_within_parts_have_an_end() -> None:
    assert parse(nested(DEPTH_MAX)).text == "Hello."
    for depth in (DEPTH_MAX + 1, NESTS_MAX + 1, 5_000):
        with pytest.raises(EmailParseFailed, match="parts"):
            parse(nested(depth))


def test_there_is_a_limit_to_everything() -> None:
    one_file = "Content-Type: image/png\r\n\r\nx"
    assert len(parse(parts(*[one_file] * FILES_MAX)).files) == FILES_MAX
    for raw in (
        parts(*[one_file] * (FILES_MAX + 1)),
        parts(*["\r\n"] * 201),
        lines("X: " + "x" * HEAD_BYTES_MAX),
        lines("Content-Type: text/plain; " + "a=b; " * 1_000),
        lines("Content-Type: text/plain;" + "\r\n a=b;" * 1_000),
        b"From: a@example.com\n" + b"\n" * 1_500_001,
        b"x" * (40 * 1024 * 1024 + 1),
    ):
        with pytest.raises(EmailParseFailed):
            parse(raw)


EVIL = [
    "(",
    '"',
    "<",
    ". ",
    "@",
    "a@b,",
    "=?utf-8?q?a?= ",
    "[a]",
    "a:",
    "(\\",
    ";a=",
    "\\",
    "=?",
    "&#",
    "<a ",
    "<!--",
    "</",
]


@pytest.mark.parametrize("text", EVIL)
def test_nothing_takes_long_to_read(text: str) -> None:
    """Some of these take Python's own readers minutes. The bound here is far above what is needed."""
    much = text * (250_000 // len(text))
    began = time.process_time()
    for raw in (
        lines(f"From: ann@example.com {much[:100_000]}", f"Subject: {much[:100_000]}"),
        lines(f"Content-Type: text/plain; name={much[:4_000]}"),
        lines("Content-Type: text/html", body=much),
        parts(f"Content-Type: image/png; {much[:3_000]}\r\n\r\nx"),
    ):
        with suppress(EmailParseFailed):
            parse(raw)
    assert time.process_time() - began < 20


PIECES = st.sampled_from(
    [
        *(
            b"From: ",
            b"To: ",
            b"a@b.example",
            b"<",
            b">",
            b'"',
            b"(",
            b"Subject: ",
            b"=?utf-8?q?",
            b"?=",
            b"\xff",
        ),
        *(
            b"Message-ID: <",
            b"Content-Type: ",
            b"multipart/mixed",
            b"; boundary=",
            b"b",
            b"--b",
            b"--b--",
            b"text/html",
        ),
        *(
            b"message/rfc822",
            b"Content-Transfer-Encoding: base64",
            b"; charset=",
            b"utf-7",
            b"; name*0*=",
            b"%C3",
        ),
        *(
            b"\n",
            b"\r\n",
            b"\r",
            b"\n\n",
            b" ",
            b"\x00",
            b"message/delivery-status",
            b"; filename=",
            b"begin 644 x\n",
        ),
        *(
            b"Content-Disposition: attachment",
            b"References: ",
            b"Reply-To: ",
            b"x-uuencode",
            b"idna",
            b"undefined",
        ),
    ]
)


def whole(found: Mail) -> None:
    """What is made of it fits what an event holds."""
    assert found.sender.address
    assert found.recipient
    for text in (
        found.text,
        found.subject,
        found.sender.name,
        found.html or "",
        *(one.filename for one in found.files),
    ):
        text.encode()
    assert all(len(one.filename) <= 255 for one in found.files)


@given(st.binary(max_size=300) | st.lists(PIECES | st.binary(max_size=4), max_size=40).map(b"".join))
def test_any_bytes_are_a_mail_or_are_none(raw: bytes) -> None:
    for candidate in (raw, b"From: a@b.example\nTo: c@d.example\n" + raw):
        with suppress(EmailParseFailed):
            whole(parse(candidate))
