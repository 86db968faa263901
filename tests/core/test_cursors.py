from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core import cursors
from edgequeues.core.errors import CursorStore, InvalidCursor

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

ids = st.text(min_size=1, max_size=30)
positions = st.integers(0, cursors.POSITION_MAX)


def signed(body: bytes) -> str:
    """A cursor of any content whose check is right."""
    return urlsafe_b64encode(body + blake2b(body, digest_size=4).digest()).rstrip(b"=").decode()


def body_of(cursor: str) -> bytes:
    return urlsafe_b64decode(cursor + "=")[:-4]


@given(ids, ids, positions)
def test_a_cursor_gives_its_position_back(store: str, queue: str, position: int) -> None:
    cursor = cursors.encode(store, queue, position)
    assert re.fullmatch("[A-Za-z0-9_-]{39}", cursor)
    assert cursors.decode(store, queue, cursor) == position


def test_a_cursor_stays_what_it_is_between_releases() -> None:
    assert cursors.encode("store", "queue", 1) == "ARRJsgXDm9dQppDWm1YkGAAAAAAAAAAAAT_sCxI"


@given(ids, ids, ids, positions)
def test_another_stores_cursor_is_told_apart(store: str, other: str, queue: str, position: int) -> None:
    cursor = cursors.encode(store, queue, position)
    if other != store:
        with pytest.raises(CursorStore):
            cursors.decode(other, queue, cursor)


@given(ids, ids, ids, positions)
def test_another_queues_cursor_is_refused(store: str, queue: str, other: str, position: int) -> None:
    cursor = cursors.encode(store, queue, position)
    if other != queue:
        with pytest.raises(InvalidCursor, match="another queue"):
            cursors.decode(store, other, cursor)


def test_ids_do_not_run_into_each_other() -> None:
    with pytest.raises(CursorStore):
        cursors.decode("a", "bc", cursors.encode("ab", "c", 1))


@given(positions, st.integers(0, 38), st.sampled_from(ALPHABET))
def test_a_changed_character_is_damage_never_another_store(position: int, at: int, char: str) -> None:
    cursor = cursors.encode("store", "queue", position)
    changed = cursor[:at] + char + cursor[at + 1 :]
    if changed != cursor:
        with pytest.raises(InvalidCursor, match="is not a cursor"):
            cursors.decode("store", "queue", changed)


@given(st.text(max_size=60) | st.text(ALPHABET, min_size=39, max_size=39))
def test_no_other_text_is_a_cursor(text: str) -> None:
    with pytest.raises(InvalidCursor) as caught:
        cursors.decode("store", "queue", text)
    caught.value.detail.encode()


def test_there_is_one_text_for_a_cursor() -> None:
    cursor = cursors.encode("store", "queue", 77)
    last = ALPHABET.index(cursor[-1])
    assert last & 0b11 == 0  # 29 bytes leave two bits of the last character unused
    others = [cursor[:-1] + ALPHABET[last | bits] for bits in (1, 2, 3)]
    others += [cursor + "=", cursor + "A", cursor + "\n", " " + cursor, cursor[:20] + "\n" + cursor[20:]]
    others += [cursor[:-1], cursor.replace(cursor[5], "+"), "\uff21" + cursor[1:]]
    for other in others:
        with pytest.raises(InvalidCursor):
            cursors.decode("store", "queue", other)


def test_both_base64_alphabets_are_not_one() -> None:
    cursor = next(c for p in range(1_000) if "_" in (c := cursors.encode("store", "queue", p)))
    with pytest.raises(InvalidCursor):
        cursors.decode("store", "queue", cursor.replace("_", "/"))


def test_a_format_of_the_future_is_refused() -> None:
    body = body_of(cursors.encode("store", "queue", 1))
    assert cursors.decode("store", "queue", signed(body)) == 1
    with pytest.raises(InvalidCursor):
        cursors.decode("store", "queue", signed(b"\x02" + body[1:]))


def test_a_made_up_position_beyond_what_the_store_holds_is_refused() -> None:
    body = body_of(cursors.encode("store", "queue", 1))
    with pytest.raises(InvalidCursor):
        cursors.decode("store", "queue", signed(body[:17] + b"\xff" * 8))
