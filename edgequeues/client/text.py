"""JSON as bytes that stay as they are: what is sent is what is stored, what was stored is what is given."""

from __future__ import annotations

import json
import re
from typing import TypeVar

import msgspec
from msgspec import DecodeError, Raw, UnsetType

from edgequeues.client.errors import BadAnswer

T = TypeVar("T")

ESCAPE = re.compile(rb"\\(?:u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)


def encode(data: object) -> bytes:
    """Return `data` as one JSON text; bytes are taken as JSON already and returned unchanged.

    Raises ValueError (not JSON, NaN, circular, nested too deep) or TypeError (no JSON form).
    """
    try:
        if isinstance(data, Raw | bytes | bytearray | memoryview):
            return _one_text(bytes(data))
        text = json.dumps(
            data, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=msgspec.to_builtins
        )
        try:
            return text.encode()
        except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form, only an escape
            return json.dumps(
                data, allow_nan=False, separators=(",", ":"), default=msgspec.to_builtins
            ).encode()
    except RecursionError:
        raise ValueError("the data is nested too deeply for JSON") from None


def _one_text(raw: bytes) -> bytes:
    """Two texts in one entry, or half of one, would change the meaning of the request around it."""
    try:
        msgspec.json.decode(raw, type=Raw)
    except DecodeError:  # msgspec refuses lone surrogates even where it only skips; json does not
        json.loads(raw.decode())
    return raw


class Text:
    """The body of an answer, decoded into Structs whose Raw fields come out byte for byte.

    msgspec refuses unpaired surrogate escapes, which are legal JSON and stored as such. Where it does, every
    surrogate escape is replaced by a mark that the body does not hold, and put back by `raw`.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._mark: bytes | None = None

    def decode(self, kind: type[T]) -> T:
        """Decode the body as `kind`. Raises BadAnswer, naming what did not fit."""
        try:
            return msgspec.json.decode(self._body, type=kind)
        except DecodeError as error:
            if self._mark is not None or isinstance(error, msgspec.ValidationError) or not self._masked():
                raise BadAnswer(f"the answer is not what the protocol says: {error}") from error
            return self.decode(kind)

    def raw(self, part: Raw) -> bytes:
        """Return a Raw field of what was decoded, as it stands in the answer."""
        if self._mark is None:
            return bytes(part)
        return bytes(part).replace(self._mark, b"\\u")

    def headers(self, part: Raw | UnsetType) -> dict[str, str] | None:
        """Return a field of strings by name; None: it was not there."""
        if isinstance(part, UnsetType):
            return None
        found: dict[str, str] = json.loads(self.raw(part))
        return found

    def _masked(self) -> bool:
        """Mask the surrogate escapes, if there are any. A mark never overlaps another: `<` only begins it."""
        number = 0
        while (mark := b"<u%d>" % number) in self._body:
            number += 1
        masked = ESCAPE.sub(lambda found: mark + found[1] if found[1] else found[0], self._body)
        found_any = masked != self._body
        self._body, self._mark = masked, mark
        return found_any
