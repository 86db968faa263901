"""Lease tokens: which hand-out of which message an ack is about. Opaque to clients, and not to be guessed.

33 bytes in URL-safe base64: position of the entry, consumer, number of the hand-out, and a code over these and the
store (HMAC, https://www.rfc-editor.org/rfc/rfc2104) under a key of the space file.
"""

from __future__ import annotations

import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import NamedTuple

KEY_BYTES = 32
_BODY = struct.Struct(">QQI")
_CODE_BYTES = 13
_TEXT_LENGTH = 44


class Lease(NamedTuple):
    """One hand-out: of the entry at `position`, to `consumer`, its `serial`-th."""

    position: int
    consumer: int
    serial: int


def token(key: bytes, store_id: str, lease: Lease) -> str:
    """The text a client is given."""
    body = _BODY.pack(*lease)
    return urlsafe_b64encode(body + _code(key, store_id, body)).decode()


def read(key: bytes, store_id: str, text: str) -> Lease | None:
    """The hand-out, None for a text that this store never gave."""
    if len(text) != _TEXT_LENGTH or not text.isascii():
        return None
    try:
        raw = urlsafe_b64decode(text)
    except ValueError:
        return None
    body, code = raw[: _BODY.size], raw[_BODY.size :]
    if not hmac.compare_digest(code, _code(key, store_id, body)) or urlsafe_b64encode(raw).decode() != text:
        return None
    return Lease(*_BODY.unpack(body))


def _code(key: bytes, store_id: str, body: bytes) -> bytes:
    return blake2b(store_id.encode() + body, key=key, digest_size=_CODE_BYTES).digest()
