"""Cursors: opaque texts for a position in one queue of one store.

29 bytes as 39 characters of URL-safe base64 without padding: the format, digests of the store and of the queue,
the position, and a check over all of it. The check finds damage; it is no signature, a position is no secret.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from hashlib import blake2b

from edgequeues.core.errors import CursorStore, InvalidCursor
from edgequeues.core.ids import shown

POSITION_MAX = (1 << 63) - 1  # what SQLite holds

_FORMAT = b"\x01"
_STORE = slice(1, 9)
_PREFIX = slice(0, 17)  # format, store, queue
_BODY = slice(0, 25)
_CHECK = slice(25, 29)
_TEXT_LENGTH = 39


def encode(store_id: str, queue_id: str, position: int) -> str:
    """The cursor of `position`, 0 (before everything) to POSITION_MAX."""
    assert 0 <= position <= POSITION_MAX
    body = _prefix(store_id, queue_id) + position.to_bytes(8, "big")
    return urlsafe_b64encode(body + _check(body))[:_TEXT_LENGTH].decode()


def decode(store_id: str, queue_id: str, text: str) -> int:
    """The position. Raises InvalidCursor (damaged, or another queue's) and CursorStore (another store's)."""
    cursor = _bytes(text)
    # The check first: damage must never pass for another store, whose remedy is to read everything again.
    if cursor is None or _check(cursor[_BODY]) != cursor[_CHECK] or cursor[:1] != _FORMAT:
        raise InvalidCursor(f"{shown(text)} is not a cursor")
    if cursor[_PREFIX] != _prefix(store_id, queue_id):
        if cursor[_STORE] != _digest(store_id):
            raise CursorStore(f"{text!r} was made by another store")
        raise InvalidCursor(f"{text!r} belongs to another queue")
    position = int.from_bytes(cursor[17:25], "big")
    if position > POSITION_MAX:
        raise InvalidCursor(f"{text!r} points nowhere")
    return position


def _bytes(text: str) -> bytes | None:
    """None unless this is the one text of its bytes: base64 ignores stray characters and the last bits."""
    if len(text) != _TEXT_LENGTH or not text.isascii():
        return None
    try:
        cursor = urlsafe_b64decode(text + "=")
    except ValueError:
        return None
    return cursor if urlsafe_b64encode(cursor)[:_TEXT_LENGTH] == text.encode() else None


def _check(body: bytes) -> bytes:
    return blake2b(body, digest_size=4).digest()


@lru_cache(maxsize=4_096)
def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


@lru_cache(maxsize=4_096)
def _prefix(store_id: str, queue_id: str) -> bytes:
    return _FORMAT + _digest(store_id) + _digest(f"{store_id}\0{queue_id}")
