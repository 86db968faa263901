"""Of a mail, all that is in it is there, however it was written."""

from __future__ import annotations

from email.message import EmailMessage
from email.policy import SMTP

import pytest

from edgequeues.core.errors import EmailParseFailed
from edgequeues.ingest.mail import parse

USUAL = ("From: Ann <ann@example.com>", "To: desk@example.org", "Message-ID: <m1@example.com>")


def lines(*text: str, body: str = "Hello.") -> bytes:
    """A mail; these headers count where one is usual too."""
    given_names = {one.partition(":")[0].lower() for one in text}
    usual = [one for one in USUAL if one.partition(":")[0].lower() not in given_names]
    return "\r\n".join([*text, *usual, "", body]).encode("utf-8", "surrogateescape")


def parts(*inside: str, kind: str = "mixed") -> bytes:
    body = "".join(f"--b\r\n{part}\r\n" for part in inside) + "--b--\r\n"
    return lines(f"Content-Type: multipart/{kind}; boundary=b", body=body)


def text_of(*headers: str, body: str = "Hello.") -> str:
    return parse(lines(*headers, body=body)).text


# -- headers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "address", "name"),
    [
        ("From: ann@example.com", "ann@example.com", ""),
        ('From: "Ann, of Sales" <ann@example.com>', "ann@example.com", "Ann, of Sales"),
        ("From: =?utf-8?q?J=C3=B6rg?= <j@example.com>", "j@example.com", "J\u00f6rg"),
        ("From: =?iso-8859-1?b?SvZyZw==?= <j@example.com>", "j@example.com", "J\u00f6rg"),
        ("From: J\u00f6rg <j@example.com>", "j@example.com", "J\u00f6rg"),
        ("From: =?klingon?q?x?= <j@example.com>", "j@example.com", "=?klingon?q?x?="),
        ("From: a@example.com, b@example.com", "a@example.com", ""),
        ("From: Friends: a@example.com, b@example.com;", "a@example.com", ""),
        ("From: (comment) ann@example.com (Ann)", "ann@example.com", ""),
        ("From: <ann@example.com", "ann@example.com", ""),
        ("From: Ann <ann@example.com> <other@example.com>", "ann@example.com", "Ann"),
        ("From:\r\n Ann\r\n <ann@example.com>", "ann@example.com", "Ann"),
        ("From: Ann\x01 <ann@example.com>", "ann@example.com", "Ann"),
    ],
)
def test_the_sender_is_the_first_address_of_from(header: str, address: str, name: str) -> None:
    sender = parse(lines(header)).sender
    assert sender.address == address
    if "klingon" not in header:
        assert sender.name == name


def test_who_sent_it_for_others_and_then_the_envelope_stand_in_for_a_missing_sender() -> None:
    assert parse(lines("From: nobody", "Sender: s@example.com")).sender.address == "s@example.com"
    assert parse(lines("From:"), sent_by="e@example.com").sender.address == "e@example.com"
    with pytest.raises(EmailParseFailed, match="From: no address"):
        parse(lines("From: nobody at all"))


def test_the_recipient_is_who_it_was_delivered_to_before_who_it_is_addressed_to() -> None:
    both = (
        "To: list@example.com",
        "Cc: c@example.com",
        "Delivered-To: desk@example.org",
        "X-Original-To: x@example.org",
    )
    assert parse(lines(*both)).recipient == "desk@example.org"
    assert parse(lines(*both[:2], both[3])).recipient == "x@example.org"
    assert parse(lines(*both[:2])).recipient == "list@example.com"
    assert parse(lines("To: undisclosed-recipients:;", both[1])).recipient == "c@example.com"
    assert parse(lines(*both), sent_to="envelope@example.org").recipient == "envelope@example.org"
    with pytest.raises(EmailParseFailed, match="To: no address"):
        parse(lines("To: undisclosed-recipients:;"))


def test_answers_go_to_whom_the_sender_names() -> None:
    assert parse(lines()).reply_to == ["ann@example.com"]
    assert parse(lines("Reply-To: A <a@example.com>, b@example.com")).reply_to == [
        "a@example.com",
        "b@example.com",
    ]
    assert parse(lines("Reply-To: nobody")).reply_to == ["ann@example.com"]
    many = ", ".join(f"a{n}@example.com" for n in range(30))
    assert len(parse(lines(f"Reply-To: {many}")).reply_to) == 10


@pytest.mark.parametrize(
    "header",
    [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: AUTO-GENERATED; x=y",
        "Precedence: bulk",
        "Return-Path: <>",
    ],
)
def test_nobody_is_answered_where_a_machine_has_written(header: str) -> None:
    found = parse(lines(header))
    assert found.is_automatic
    assert found.reply_to == []


def test_what_a_person_has_written_is_not_taken_for_a_machines() -> None:
    assert not parse(lines("Auto-Submitted: no", "Return-Path: <ann@example.com>")).is_automatic


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        (("Message-ID: <a@b>",), "<a@b>"),
        (("Message-ID:  <a@b> (added by relay)",), "<a@b>"),
        (("Message-ID: a@b",), "<a@b>"),
        (("Message-ID: <a@b>", "Message-ID: <a@b>"), "<a@b>"),
        (("Message-ID: <a@b>", "Message-ID: <c@d>"), None),
        (("Message-ID: ",), None),
        (("Message-ID: <a b>",), None),
    ],
)
def test_a_mail_has_the_id_that_it_alone_has(headers: tuple[str, ...], found: str | None) -> None:
    assert parse(lines(*headers)).message_id == found


def test_the_digest_is_the_same_whatever_relays_add_and_differs_with_what_was_written() -> None:
    first = parse(lines("Message-ID: ")).digest
    assert parse(lines("Received: from a relay", "Message-ID: ")).digest == first
    assert parse(lines("Message-ID: ", body="Hello!")).digest != first
    assert parse(lines("Message-ID: ", "Date: Mon, 1 Jan 2026 00:00:00 +0000")).digest != first


def test_references_keep_the_root_and_the_newest_within_bounds() -> None:
    ids = [f"<{n}@example.com>" for n in range(200)]
    found = (parse(lines("References: " + "\r\n ".join(ids))).references or "").split()
    assert found[0] == ids[0]
    assert len(" ".join(found)) <= 2_048
    assert found[1:] == ids[ids.index(found[1]) :][: len(found) - 1]
    assert parse(lines("References: <a@b><c@d> junk <a@b>")).references == "<a@b> <c@d>"
    assert parse(lines("In-Reply-To: <a@b> of Monday")).in_reply_to == "<a@b>"
    many = parse(lines(f"In-Reply-To: {' '.join(ids)}")).in_reply_to or ""
    assert many.startswith(ids[0])
    assert 900 < len(many) <= 998


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Importance: high", "high"),
        ("Importance: Low", "low"),
        ("X-Priority: 1 (Highest)", "high"),
        ("X-Priority: 3", "normal"),
        ("X-Priority: 5", "low"),
        ("Priority: urgent", "high"),
        ("X-Priority: soon", "normal"),
    ],
)
def test_how_urgent_a_mail_is_called(header: str, found: str) -> None:
    assert parse(lines(header)).priority == found


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Subject: =?utf-8?b?8J+YgA==?= ok", "\U0001f600 ok"),
        ("Subject: =?utf-8?q?a=20b?=\r\n =?utf-8?q?c?=", "a bc"),
        ("Subject: =?utf-8?q?broken", "=?utf-8?q?broken"),
        ("Subject: caf\u00e9", "caf\u00e9"),
        ("Subject: a\r\n\tb", "a b"),
        ("Subject: " + "x" * 2_000, "x" * 998),
        ("X-No: subject", ""),
    ],
)
def test_a_subject_is_one_line_of_text(header: str, found: str) -> None:
    assert parse(lines(header)).subject == found


# -- bodies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body", "found"),
    [
        (("Content-Type: text/plain; charset=utf-8",), "caf\u00e9", "caf\u00e9"),
        (("Content-Type: text/plain; charset=iso-8859-1",), "caf\udce9", "caf\u00e9"),
        (("Content-Type: text/plain; charset=klingon",), "caf\u00e9", "caf\u00e9"),
        (("Content-Type: text/plain; charset=utf-8",), "caf\udce9", "caf\ufffd"),
        (("Content-Type: text/plain; charset=base64",), "plain", "plain"),
        (("Content-Type: text/plain; charset=utf-16",), "odd", None),
        (("Content-Transfer-Encoding: quoted-printable",), "a=C3=A9=\r\nb=ZZ", "a\u00e9b=ZZ"),
        (("Content-Transfer-Encoding: base64",), "SGVsbG8", "Hello"),
        (("Content-Transfer-Encoding: base64",), "SGVs bG8=!!", "Hello"),
        (("Content-Transfer-Encoding: of-its-own",), "as it is", "as it is"),
        ((), "nul\x00 and bell\x07\r\nline", "nul and bell\nline"),
    ],
)
def test_text_is_decoded_as_far_as_it_can_be(headers: tuple[str, ...], body: str, found: str | None) -> None:
    text = text_of(*headers, body=body)
    if found is not None:
        assert text == found
    text.encode()  # no half of a pair


def test_html_stands_in_for_a_missing_text() -> None:
    html = "<html><head><title>t</title></head><p>One &lt; two</p><script>if (a<b) x()</SCRIPT>\n<br>three <3"
    found = parse(lines("Content-Type: text/html", body=html))
    assert found.text == "One < two\n\nthree <3"
    assert found.html == html
    both = parse(parts("\r\nplain", "Content-Type: text/html\r\n\r\n<b>rich</b>", kind="alternative"))
    assert (both.text, both.html, both.files) == ("plain", "<b>rich</b>", [])


def test_every_other_part_is_a_file() -> None:
    found = parse(
        parts(
            "Content-Type: text/plain\r\n\r\none",
            "Content-Type: text/plain\r\n\r\ntwo",
            "Content-Type: text/plain\r\nContent-Disposition: attachment\r\n\r\nthree",
            "Content-Type: text/plain; name=notes.txt\r\n\r\nfour",
            "Content-Type: image/png\r\nContent-ID: <i>\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA",
            "Content-Type: message/rfc822\r\n\r\nFrom: x@example.com\r\nSubject: inner\r\n\r\nmail",
            "Content-Type: text/html\r\n\r\n<p>five</p>",
            "Content-Type: text/html\r\n\r\n<p>six</p>",
            "Content-Type: nonsense; name*=utf-8''%C3%A9.txt\r\n\r\nseven",
        )
    )
    assert found.text == "one\n\ntwo"
    assert found.html == "<p>five</p>"
    assert [(one.filename, one.content_type) for one in found.files] == [
        ("", "text/plain"),
        ("notes.txt", "text/plain"),
        ("", "image/png"),
        ("", "message/rfc822"),
        ("", "text/html"),
        ("\u00e9.txt", "text/plain"),
    ]
    assert (
        found.files[3].data.replace(b"\r\n", b"\n").startswith(b"From: x@example.com\nSubject: inner\n\nmail")
    )


@pytest.mark.parametrize(
    ("given_name", "found"),
    [
        ("'../../etc/passwd'", "'../../etc/passwd'"),
        ('"C:\\\\Windows\\\\x"', "C:\\Windows\\x"),
        ('"=?utf-8?b?8J+YgA==?=.png"', "\U0001f600.png"),
        ('"' + "n" * 600 + '"', "n" * 255),
        ('"a\x07b"', "ab"),
    ],
)
def test_bl_s03_a_files_name_is_kept_as_its_sender_has_it(given_name: str, found: str) -> None:
    [file] = parse(parts(f"Content-Type: image/png; name={given_name}\r\n\r\nx")).files
    assert file.filename == found


def test_what_pythons_own_library_writes_is_read() -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = (
        "J\u00f6rg <j@example.com>",
        "d@example.org",
        "Gr\u00fc\u00dfe",
    )
    message["Message-ID"] = "<x@example.com>"
    message.set_content("Text \u2615\n")
    message.add_alternative("<p>Text \u2615</p>", subtype="html")
    message.add_attachment(b"\x00\x01", maintype="application", subtype="pdf", filename="\u00fcbung 1.pdf")
    found = parse(message.as_bytes(policy=SMTP))
    assert (found.sender.name, found.subject, found.text) == ("J\u00f6rg", "Gr\u00fc\u00dfe", "Text \u2615")
    assert found.html is not None
    assert found.html.strip() == "<p>Text \u2615</p>"
    [file] = found.files
    assert (file.filename, file.content_type, file.data) == (
        "\u00fcbung 1.pdf",
        "application/pdf",
        b"\x00\x01",
    )
