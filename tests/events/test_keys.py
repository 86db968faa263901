"""Keys of objects: of the layout, none twice, and with nothing of the people in them."""

from __future__ import annotations

import re
import unicodedata
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.events import keys
from edgequeues.events.event import Key

AT_MS = 1_769_903_999_999  # 2026-01-31T23:59:59.999Z
ID = "0b9e0000-0000-4000-8000-555512345678"
SAFE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,78}[A-Za-z0-9])?")
DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


def test_keys_have_the_layout_and_the_day_is_that_of_utc() -> None:
    assert keys.email_html(ID, AT_MS) == f"email/2026/01/31/{ID}/body.html"
    assert keys.email_html(ID, AT_MS + 1) == f"email/2026/02/01/{ID}/body.html"
    assert keys.email_attachment(ID, AT_MS, 2, "a.pdf") == f"email/2026/01/31/{ID}/att/2-a.pdf"
    assert keys.sms_media("SM" + "0" * 32, AT_MS, 0) == f"sms/2026/01/31/SM{'0' * 32}/media-0"


@pytest.mark.parametrize(
    ("filename", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\x", "x"),
        ("/abs", "abs"),
        (".", "file"),
        ("..", "file"),
        ("", "file"),
        (".htaccess", "htaccess"),
        ("a\x00b", "a-b"),
        ("CON", "file-CON"),
        ("lpt1.txt", "file-lpt1.txt"),
        ("x" * 300, "x" * 80),
        ("x" * 300 + ".pdf", "x" * 76 + ".pdf"),
        ("\N{GRINNING FACE}\N{GRINNING FACE}", "file"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}fdp.exe", "fdp.exe"),
        ("x/../../y", "y"),
    ],
)
def test_bl_s03_hostile_names_lie_where_they_belong(filename: str, safe: str) -> None:
    assert keys.safe_filename(filename) == safe


@pytest.mark.parametrize(
    ("filename", "safe"),
    [
        ("a+b.txt", "a-b.txt"),
        ("50%.csv", "50.csv"),
        ("c++/x", "x"),
        ("q?x=1#f.txt", "q-x-1-f.txt"),
        ("semi;colon&amp.txt", "semi-colon-amp.txt"),
        ("Résumé (1).pdf", "R-sum-1.pdf"),
    ],
)
def test_bl_s01_names_need_no_care_in_an_address(filename: str, safe: str) -> None:
    assert keys.safe_filename(filename) == safe


@pytest.mark.parametrize(
    ("filename", "safe"),
    [
        ("jane.roe@example.org.pdf", "file.pdf"),
        ("cv jane.roe@example.org final.pdf", "cv-final.pdf"),
        ("jane%40example.org.txt", "file.txt"),
        ("jane\N{FULLWIDTH COMMERCIAL AT}example.org.txt", "file.txt"),
        ('"jane roe"@example.org.txt', "file.txt"),
        ("+1 (555) 123-4567.jpg", "file.jpg"),
        ("call 15551234567 now.jpg", "call-now.jpg"),
        ("\N{FULLWIDTH DIGIT FIVE}" * 7 + ".jpg", "file.jpg"),
        ("IMG_123456.jpg", "IMG_123456.jpg"),
        ("x.1234567", "x"),
        ("x5.5.5.1.2.3.4x", "x5.5.5.1.2.3"),
        ("song.mp3", "song.mp3"),
        ("a.7z", "a.7z"),
    ],
)
def test_addresses_and_numbers_are_left_out_and_extensions_stay(filename: str, safe: str) -> None:
    assert keys.safe_filename(filename) == safe


LOCAL = st.text("abcdefghijklmnopqrstuvwxyzäé.+_%0123456789", min_size=4, max_size=20)
DIGITS = st.text("0123456789", min_size=7, max_size=15)
NOISE = st.text(max_size=12)
# Digits elsewhere in a name may stay, and would be taken for some of the number.
NO_DIGITS = NOISE.filter(lambda text: re.search(r"\d", unicodedata.normalize("NFKC", unquote(text))) is None)


@given(NOISE, LOCAL, NOISE, st.sampled_from(["", "/", "\\", " ", ".pdf"]))
def test_no_address_survives(before: str, local: str, after: str, between: str) -> None:
    filename = f"{before}{between}zz{local}zz@example.org {after}"
    safe = keys.safe_filename(filename)
    assert "@" not in safe
    assert f"zz{local}zz" not in safe
    assert "example.org" not in safe


@given(NO_DIGITS, DIGITS, NO_DIGITS, st.sampled_from(["", " ", "-", ".", "(", ") ", "\u2011"]), st.booleans())
def test_no_number_survives(before: str, digits: str, after: str, sign: str, plus: bool) -> None:
    filename = f"{before}x{'+' * plus}{sign.join(digits)}x{after}"
    safe = keys.safe_filename(filename)
    assert digits not in re.sub(r"[^0-9]", "", safe)
    assert not re.search(r"[0-9]{7}", safe)


@given(st.one_of(st.text(), st.text('@.0123456789ab+/\\ -%"', max_size=60)))
def test_whatever_the_name_the_key_is_of_the_alphabet_and_of_the_layout(filename: str) -> None:
    safe = keys.safe_filename(filename)
    assert SAFE.fullmatch(safe)
    assert not DEVICES.fullmatch(safe)
    assert keys.safe_filename(safe) == safe
    msgspec.convert(keys.email_attachment(ID, AT_MS, 1, filename), Key)


@given(st.one_of(st.text(), st.emails(), st.from_regex(r"\+[1-9][0-9]{6,14}", fullmatch=True), DIGITS))
def test_no_event_id_brings_an_address_or_a_number_into_a_key(event_id: str) -> None:
    key = keys.email_html(event_id, AT_MS)
    assert re.fullmatch(r"email/2026/01/31/[A-Za-z0-9][A-Za-z0-9._-]{0,127}/body\.html", key)
    assert "@" not in key
    if re.fullmatch(r"\+?[0-9]{7,}", event_id):
        assert event_id.lstrip("+") not in key
    msgspec.convert(key, Key)


def test_of_a_hundred_thousand_events_no_two_have_one_key() -> None:
    made: set[Any] = set()
    for number in range(100_000):
        event_id = f"{number:08x}-0000-4000-8000-000000000000"
        made.add(keys.email_attachment(event_id, AT_MS, 1, "jane@example.org.pdf"))
    assert len(made) == 100_000


def test_bl_s04_parts_of_one_name_are_kept_apart_by_their_number() -> None:
    """Of one mail, some have one name, some none, some differ in case only."""
    names = ["image.png", "image.png", "image.png", "", "Image.png"]
    made = [keys.email_attachment(ID, AT_MS, number, name) for number, name in enumerate(names, 1)]
    assert len({key.lower() for key in made}) == len(names)
    assert made == [keys.email_attachment(ID, AT_MS, number, name) for number, name in enumerate(names, 1)]
