"""Thread keys: what belongs together has one, and nothing else does."""

from __future__ import annotations

import re

import pytest

from edgequeues.events.threads import email_thread, normalised, sms_thread

ROOT = "<root@example.org>"


def mail(
    subject: str | None = "Request",
    *,
    sender: str = "jane@example.org",
    answers: str | None = None,
    references: str | None = None,
    own: str | None = None,
) -> str:
    """The key of a mail to the inbox."""
    return email_thread(subject, sender, "inbox@example.com", answers, references, own)


def test_a_key_is_32_hex_digits_with_nothing_of_the_people_in_it() -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", mail())
    assert re.fullmatch(r"[0-9a-f]{32}", sms_thread("+15551234567", "+15557654321"))


def test_answers_have_the_key_of_the_mail_that_began_the_thread() -> None:
    first = mail("Request", own=ROOT)
    assert mail("Re: Request", answers=ROOT, references=ROOT, own="<2@x>") == first
    assert mail("Re: Request", answers="<2@x>", references=f"{ROOT} <2@x>", own="<3@x>") == first
    assert mail("Re: Request", answers=ROOT, own="<4@x>") == first
    assert mail("Quite another subject", sender="kate@x.org", references=f"{ROOT}\r\n\t<9@x>") == first


def test_the_first_reference_counts_more_than_the_mail_that_is_answered() -> None:
    assert mail(answers="<2@x>", references=ROOT) == mail(answers="<3@x>", references=ROOT)
    assert mail(answers="<2@x>") != mail(answers="<3@x>")


def test_a_mail_that_names_no_other_is_known_by_subject_sender_and_recipient() -> None:
    assert mail("Re: Fwd: request ") == mail("Request") == mail("AW:  REQUEST", sender="Jane@Example.ORG")
    assert mail("Request") != mail("Another request")
    assert mail("Request") != mail("Request", sender="kate@example.org")
    assert mail("Re: Request", own="<5@x>") == mail("Re: Request", own="<6@x>")


def test_two_mails_that_each_begin_a_thread_are_two_threads() -> None:
    assert mail("Invoice", own="<1@x>") != mail("Invoice", own="<2@x>")


@pytest.mark.parametrize(
    ("subject", "plain"),
    [
        ("Re: a", "a"),
        ("RE: re: Fwd: FW: aw: WG: a", "a"),
        ("Re[2]: Re (3) : a", "a"),
        ("re:re:a", "a"),
        ("  A \t b  ", "a b"),
        ("Regarding: a", "regarding: a"),
        ("Re", "re"),
        ("Straße", "strasse"),
        ("Re:", ""),
    ],
)
def test_subjects_are_compared_without_what_answering_adds(subject: str, plain: str) -> None:
    assert normalised(subject) == plain


def test_long_subjects_of_blanks_and_prefixes_take_no_time() -> None:
    """Some 400,000 characters: with a step for each pair of them, this would not end today."""
    assert normalised("re" + " " * 200_000 + "x") == "re x"
    assert normalised("re:" * 100_000 + "x") == "x"


def test_text_messages_have_one_thread_in_both_directions() -> None:
    assert sms_thread("+15551234567", "+15557654321") == sms_thread("+15557654321", "+15551234567")
    assert sms_thread("+15551234567", "+15557654321") != sms_thread("+15551234567", "+15557654322")
