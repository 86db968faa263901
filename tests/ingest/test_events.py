"""Events and their blobs: the same ones for the same message, whenever it comes."""

from __future__ import annotations

import re
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from edgequeues.events import check
from edgequeues.events.event import BlobRef
from edgequeues.ingest import events
from edgequeues.ingest.events import Kept
from edgequeues.ingest.mail import parse
from edgequeues.ingest.mail_text import TEXT_BYTES_MAX, clean, cut

from .test_mail import lines, parts

NOON_MS = 1_767_268_800_000  # 2026-01-01T12:00:00Z
DAY_MS = 86_400_000
KEY = "email/2026/01/01/12345678/att/1-a.png"


def test_ids_are_made_of_what_a_repeat_keeps() -> None:
    first = events.email_id(parse(lines()))
    assert str(UUID(first)) == first
    assert events.email_id(parse(lines("Received: again", body="changed on the way"))) == first
    assert events.email_id(parse(lines("Message-ID: <m2@example.com>"))) != first
    without = parse(lines("Message-ID: "))
    assert events.email_id(without) == events.email_id(parse(lines("Message-ID: ", "Received: again")))
    assert events.email_id(without) != events.email_id(parse(lines("Message-ID: ", body="another")))
    assert events.sms_id("SM1") == events.sms_id("SM1") != events.sms_id("SM2")


def test_ids_stay_as_they_are() -> None:
    """Another namespace would make every repeat of a mail that came before new."""
    assert events.email_id(parse(lines())) == "3137febd-0321-5ae0-8d5f-abe0cf889d52"
    assert events.sms_id("SM" + "0" * 32) == "7b87c49e-0215-50b5-8506-1cb5742165c1"


def test_an_id_tells_nobody_who_wrote() -> None:
    assert "ann" not in events.email_id(parse(lines("Message-ID: <ann@example.com>")))


def test_a_day_is_taken_out_of_keys() -> None:
    mail = parse(parts("Content-Type: image/png; name=a.png\r\n\r\nx"))
    [at_noon] = events.email_blobs(mail, "e", NOON_MS)
    day_ms = events.day_of([at_noon.key])
    assert day_ms == NOON_MS - DAY_MS // 2
    assert events.email_blobs(mail, "e", day_ms) == [at_noon]
    assert events.email_blobs(mail, "e", NOON_MS + DAY_MS) != [at_noon]
    assert events.day_of([]) is None
    assert events.day_of(["notes/of/others"]) is None


def test_blobs_are_the_html_the_files_and_a_text_that_is_too_long() -> None:
    long = "x" * (TEXT_BYTES_MAX + 1)
    found = events.email_blobs(
        parse(
            parts(
                f"Content-Type: text/plain\r\n\r\n{long}",
                "Content-Type: text/html\r\n\r\n<p>rich</p>",
                "Content-Type: image/png; name=a.png\r\n\r\nx",
            )
        ),
        "e",
        NOON_MS,
    )
    assert [(one.id, one.filename, one.content_type) for one in found] == [
        ("", "", "text/html"),
        ("att-1", "a.png", "image/png"),
        ("att-2", "body.txt", "text/plain"),
    ]
    assert found[2].data == long.encode()


def test_an_event_that_would_be_too_large_goes_without_links() -> None:
    link = BlobRef(
        bucket="b-b",
        key=KEY,
        presigned_get_url="https://x.example/" + "y" * 3_000,
        expires_at="2026-01-01T00:00:00Z",
    )
    mail = parse(
        parts(
            *[f"Content-Type: image/png; name={n}.png\r\n\r\nx" for n in range(50)],
            "Content-Type: text/html\r\n\r\nh",
        )
    )
    blobs = events.email_blobs(mail, "12345678", NOON_MS)
    event = events.email_event(mail, "12345678", NOON_MS, [Kept(one, link) for one in blobs], [])
    text = events.encoded(event)
    assert len(text) < events.EVENT_BYTES_MAX
    read = check.read(text.encode())
    assert len(read.content.attachments) == 50
    assert read.content.html_r2 == BlobRef(bucket="b-b", key=KEY)
    few = events.email_event(mail, "12345678", NOON_MS, [Kept(blobs[1], link)], [])
    assert "presignedGetUrl" in events.encoded(few)


@given(st.text())
def test_a_cut_text_is_the_beginning_and_within_its_bytes(text: str) -> None:
    whole = clean(text)
    assert whole.startswith(cut(whole, 7))
    assert len(cut(whole, 7).encode()) <= 7
    assert cut(whole, 10_000) == whole
    assert not re.search(r"[\x00-\x08\x7f-\x9f]", whole)


@given(
    name=st.text(max_size=30).filter(lambda text: "\n" not in text and "\r" not in text),
    body=st.text(max_size=200),
)
def test_every_event_is_one_by_its_own_shape(name: str, body: str) -> None:
    raw = parts(f"\r\n{body}", f'Content-Type: image/png; name="{name}"\r\n\r\nx')
    mail = parse(raw)
    ref = BlobRef(bucket="b-b", key=KEY)
    kept = [Kept(one, ref) for one in events.email_blobs(mail, "12345678", NOON_MS)]
    text = events.encoded(events.email_event(mail, "12345678", NOON_MS, kept, ["attachment-refused"]))
    assert check.read(text.encode()).source == "email"
