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
_BODY_LENGTH = 28  # of the text, what holds the body


class Lease(NamedTuple):
    """One hand-out: of the entry at `position`, to `consumer`, its `serial`-th."""

    position: int
    consumer: int
    serial: int


class Signer:
    """Writes and reads the leases of one store. key: of the space file."""

    def __init__(self, key: bytes, store_id: str) -> None:
        self._begun = blake2b(store_id.encode(), key=key, digest_size=_CODE_BYTES)

    def token(self, lease: Lease) -> str:
        """The text a client is given."""
        body, code = _BODY.pack(*lease), self._begun.copy()
        code.update(body)
        return urlsafe_b64encode(body + code.digest()).decode()

    def read(self, text: str) -> Lease | None:
        """The hand-out, None for a text that this store never gave."""
        if len(text) != _TEXT_LENGTH or not text.isascii():
            return None
        try:
            body = urlsafe_b64decode(text[:_BODY_LENGTH])[: _BODY.size]
        except ValueError:
            return None
        if len(body) < _BODY.size:  # some of it is no base64
            return None
        lease = Lease._make(_BODY.unpack(body))
        return lease if hmac.compare_digest(text, self.token(lease)) else None
