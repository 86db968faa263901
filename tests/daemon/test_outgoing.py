"""What answers an event: where it goes, what thread it is of, and that nothing in it can say more than it should."""

from __future__ import annotations

from datetime import UTC, datetime
from email import message_from_bytes, policy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.daemon.contract import EmailReply, GiveUp, Reply, SmsReply
from edgequeues.daemon.outbox import OUTGOING_BYTES_MAX, Outgoing, outgoing, queued
from edgequeues.daemon.sending.message import build, mailbox, recipients
from edgequeues.events.event import ReplyTo

from .replies import ASKER, ASKER_PHONE, MAIL, SMS, mailed, texted

SHOP = mailbox("Shop <shop@example.com>", "EMAIL_FROM")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
HEADERS = {
    "From", "To", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted",
    "Content-Type", "Content-Transfer-Encoding", "MIME-Version",
}  # fmt: skip


def email_of(it: Outgoing) -> EmailReply:
    assert isinstance(it.reply, EmailReply)
    return it.reply


def test_a_reply_that_says_nothing_else_goes_to_who_wrote() -> None:
    assert email_of(outgoing(mailed(), MAIL)).to == [ASKER]
    sms = outgoing(texted(), SMS).reply
    assert isinstance(sms, SmsReply)
    assert sms.to == ASKER_PHONE


def test_a_reply_goes_where_its_handler_says() -> None:
    assert email_of(outgoing(mailed(), EmailReply(to=["b@example.net"], text="x"))).to == ["b@example.net"]


@pytest.mark.parametrize("event", [mailed(reply=None), texted(reply=None), texted(), mailed()])
def test_a_reply_with_nowhere_to_go_is_given_up(event: object) -> None:
    assert not isinstance(event, str)
    reply: Reply = SMS if event in (mailed(reply=None), mailed()) else MAIL
    with pytest.raises(GiveUp, match="nowhere to go") as raised:
        outgoing(event, reply)  # type: ignore[arg-type]
    assert raised.value.code == "POLICY_VIOLATION"


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("Order", "Re: Order"),
        ("Re: Order", "Re: Order"),
        ("RE: Order", "RE: Order"),
        ("re[2]: Order", "re[2]: Order"),
        ("Recall", "Re: Recall"),
        ("a\r\nBcc: b@example.net", "Re: a Bcc: b@example.net"),
        (None, "Re: (no subject)"),
    ],
)
def test_the_subject_is_that_of_the_event_with_one_re(asked: str | None, answered: str) -> None:
    assert email_of(outgoing(mailed(subject=asked), MAIL)).subject == answered


@pytest.mark.parametrize(
    ("message_id", "in_reply_to", "references", "expected"),
    [
        ("<c@x>", "<b@x>", "<a@x> <b@x>", ("<c@x>", "<a@x> <b@x> <c@x>")),
        ("<c@x>", "<b@x>", None, ("<c@x>", "<b@x> <c@x>")),
        ("<c@x>", "<a@x> <b@x>", None, ("<c@x>", "<c@x>")),
        ("<c@x>", None, None, ("<c@x>", "<c@x>")),
        ("c@x", None, None, ("<c@x>", "<c@x>")),
        (None, None, "<a@x>\r\n <b@x>", (None, "<a@x> <b@x>")),
        (None, None, None, (None, None)),
        ("<a@x>\r\nBcc: <b@y>", None, None, ("<a@x>", "<a@x>")),
    ],
)
def test_the_thread_is_kept_as_rfc_5322_says(
    message_id: str | None,
    in_reply_to: str | None,
    references: str | None,
    expected: tuple[str | None, str | None],
) -> None:
    event = mailed(message_id=message_id, in_reply_to=in_reply_to, references=references)
    it = outgoing(event, MAIL)
    assert (it.in_reply_to, it.references) == expected


def test_of_a_long_thread_the_first_and_the_last_are_kept() -> None:
    before = " ".join(f"<{number}@x>" for number in range(500))
    references = outgoing(mailed(references=before), MAIL).references
    assert references is not None
    ids = references.split()
    assert (len(ids), ids[0], ids[-2:]) == (20, "<0@x>", ["<499@x>", "<q3@example.org>"])


def test_all_attempts_have_one_key_and_other_calls_another() -> None:
    assert outgoing(mailed(), MAIL).key() == outgoing(mailed(), MAIL).key() == "0190a0b1-mail:reply"
    assert outgoing(mailed(), MAIL, call="2").key() == "0190a0b1-mail:2"


@pytest.mark.parametrize("id", ["with a blank", "line\r\nbreak", "gro\u00df-und-klein", "x@y>z<aaaa"])
def test_an_event_of_any_name_gives_a_key_that_a_header_can_hold(id: str) -> None:
    it = outgoing(mailed(id=id), MAIL)
    assert it.key().isascii()
    assert it.key().isprintable()
    assert msgspec.json.decode(msgspec.json.encode(it), type=Outgoing) == it


@pytest.mark.parametrize(
    "reply",
    [
        EmailReply(text=None),
        EmailReply(text="x", subject="a\nb"),
        EmailReply(text="x", subject="a\x00b"),
        EmailReply(text="x", subject="half \ud800"),
        EmailReply(text="x", to=["Ann <ann@example.org>"]),
        EmailReply(text="x", to=["ann@example.org\r\nBcc: b@example.net"]),
        EmailReply(text="x", to=["a@example.org,b@example.org"]),
        EmailReply(text="x", to=["a@b@example.org"]),
        EmailReply(text="x", to=[f"a{number}@example.org" for number in range(51)]),
        EmailReply(html="x" * 6_000_000),
        EmailReply(text=7),  # type: ignore[arg-type]
        SmsReply(body=""),
        SmsReply(body="x" * 1_601),
        SmsReply(body="x", to="0800 123"),
        SmsReply(body="x", media_urls=["https://example.org/a"] * 11),
        SmsReply(body="x", media_urls=["http://example.org/a"]),
        SmsReply(body="x", media_urls=["file:///etc/passwd"]),
        SmsReply(body="x", media_urls=["https://user:word@example.org/a"]),
    ],
    ids=str,
)
def test_what_may_not_be_sent_is_given_up_at_once_and_not_shown(reply: Reply) -> None:
    event = mailed() if isinstance(reply, EmailReply) else texted()
    with pytest.raises(GiveUp) as raised:
        outgoing(event, reply)
    assert raised.value.code == "POLICY_VIOLATION"
    assert not any(secret in str(raised.value) for secret in ("ann@", "b@example", "0800", "user:word"))


def test_a_reply_too_large_for_a_queue_is_given_up_and_one_that_is_not_lies_there() -> None:
    assert queued(mailed(), EmailReply(text="x" * (OUTGOING_BYTES_MAX - 1_000)))
    with pytest.raises(GiveUp, match="send_email"):
        queued(mailed(), EmailReply(text="x" * OUTGOING_BYTES_MAX))


TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40) | st.sampled_from(
    ["\r\nBcc: b@example.net", "a\nb", "\u2028", "=?utf-8?q?=0ABcc:?=", "x" * 2_000, "\u00fc" * 300]
)
ADDRESS = TEXT | st.builds("{}@{}".format, TEXT, TEXT) | st.just("j\u00f6rg@b\u00fccher.example")


@given(
    subject=TEXT | st.none(),
    to=st.lists(ADDRESS, max_size=3),
    text=TEXT,
    asked=TEXT,
    ids=st.tuples(TEXT, TEXT),
)
def test_nothing_in_an_event_or_a_reply_adds_a_header(
    subject: str | None, to: list[str], text: str, asked: str, ids: tuple[str, str]
) -> None:
    """Whatever was not refused is one mail with our headers, each once, and lines of lawful length."""
    event = mailed(subject=asked, message_id=f"<{ids[0]}>", references=ids[1])
    try:
        it = outgoing(event, EmailReply(to=to, subject=subject, text=text))
        raw = build(it, SHOP, None, NOON).as_bytes()
    except GiveUp:
        return
    parsed = message_from_bytes(raw, policy=policy.SMTP)
    assert set(parsed.keys()) <= HEADERS
    assert len(set(parsed.keys())) == len(parsed.keys())
    to_whom = [one.addr_spec.encode("utf-8", "surrogateescape").decode() for one in parsed["To"].addresses]
    assert to_whom == recipients(email_of(it), SHOP)
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert raw.count(b"\n") == raw.count(b"\r\n")


@given(
    in_reply_to=TEXT,
    references=TEXT,
    id=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1),
)
def test_nothing_in_an_entry_of_the_outbox_adds_a_header(in_reply_to: str, references: str, id: str) -> None:
    """Others may write to the outbox, so what is in there is judged again."""
    it = Outgoing(
        id=id,
        event_id="e",
        source="email",
        reply=EmailReply(to=[ASKER], subject="x", text="x"),
        in_reply_to=in_reply_to,
        references=references,
    )
    try:
        raw = build(it, SHOP, None, NOON).as_bytes()
    except GiveUp:
        return
    assert set(message_from_bytes(raw, policy=policy.SMTP).keys()) <= HEADERS


def test_a_mail_to_many_and_from_a_name_beyond_ascii_arrives_with_all_of_them() -> None:
    to = [f"{'x' * 60}{number}@{'y' * 60}.example.org" for number in range(50)]
    shop = mailbox('"M\u00fcllers \u0026 S\u00f6hne, Shop" <shop@example.com>', "EMAIL_FROM")
    raw = build(outgoing(mailed(), EmailReply(to=to, text="x")), shop, None, NOON).as_bytes()
    parsed = message_from_bytes(raw, policy=policy.SMTP)
    assert [one.addr_spec for one in parsed["To"].addresses] == to
    assert [(one.display_name, one.addr_spec) for one in parsed["From"].addresses] == [
        ("M\u00fcllers \u0026 S\u00f6hne, Shop", "shop@example.com")
    ]


def test_a_reply_to_ourselves_would_be_answered_for_ever_and_is_given_up() -> None:
    with pytest.raises(GiveUp, match="EMAIL_FROM"):
        build(outgoing(mailed(), EmailReply(to=["Shop@Example.com"], text="x")), SHOP, None, NOON)


def test_a_subject_arrives_as_it_was_written() -> None:
    for subject in ("=?utf-8?q?=0ABcc:?=", "\u00fcber " * 60, "x" * 990, "plain", "a  b"):
        it = outgoing(mailed(), EmailReply(text="x", subject=subject))
        parsed = message_from_bytes(build(it, SHOP, None, NOON).as_bytes(), policy=policy.SMTP)
        assert parsed["Subject"].strip() == subject.strip()


def test_a_reply_to_both_html_and_text_offers_both() -> None:
    it = outgoing(mailed(), EmailReply(text="pl\u00e4in", html="<p>rich</p>"))
    parsed = message_from_bytes(build(it, SHOP, None, NOON).as_bytes(), policy=policy.SMTP)
    assert [part.get_content_type() for part in parsed.iter_parts()] == ["text/plain", "text/html"]
    assert parsed.get_body(("plain",)).get_content() == "pl\u00e4in\r\n"  # type: ignore[union-attr]


def test_who_an_answer_is_for_may_be_told_apart_from_who_wrote() -> None:
    event = mailed(reply=ReplyTo(channel="email", to_email=["desk@example.org", "b@example.org"]))
    assert email_of(outgoing(event, MAIL)).to == ["desk@example.org", "b@example.org"]
