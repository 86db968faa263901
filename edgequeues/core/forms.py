"""Forms: bodies of `application/x-www-form-urlencoded`, taken apart strictly.

A hook may get JSON in such a body, as the one field `payload`; or the fields are the event themselves.
"""

from __future__ import annotations

import re
from typing import Literal

from edgequeues.core.errors import InvalidRequest

PAIRS_MAX = 1_000

# payload: the field of that name is the event, and must be there. either: it is where it holds JSON, else the fields
# are. fields: they always are.
FormRule = Literal["payload", "either", "fields"]

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_PAYLOAD = "payload"


def pairs(body: bytes) -> list[tuple[str, str]]:
    """Names and values in order. A part without `=` is a name with an empty value; empty parts count for nothing.

    Raises InvalidRequest, naming the byte (from 0), where an escape is no escape or a text is not UTF-8; and where
    there are more than PAIRS_MAX pairs.
    """
    bad = _BAD_ESCAPE.search(body)
    if bad:
        raise InvalidRequest(f"form, byte {bad.start()}: % without two hexadecimal digits")
    if body.count(b"&") >= 2 * PAIRS_MAX:
        raise InvalidRequest(f"form: more than {PAIRS_MAX} fields")  # nothing is made of a flood of `&`
    found = []
    at = 0
    for part in body.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            found.append((_text(name, at), _text(value, at + len(name) + 1)))
        at += len(part) + 1
    if len(found) > PAIRS_MAX:
        raise InvalidRequest(f"form: {len(found)} fields, at most {PAIRS_MAX} are taken")
    return found


def payload(body: bytes, rule: FormRule) -> bytes | dict[str, str | list[str]]:
    """The JSON of the field `payload`, byte for byte as it was put there and not looked at; or all fields by name.

    Beside `payload`, other fields count for nothing. A field that is given several times is a list. Raises
    InvalidRequest as `pairs` does, and where `payload` is missing or given twice.
    """
    found = pairs(body)
    if rule != "fields":
        texts = [value for name, value in found if name == _PAYLOAD]
        if len(texts) > 1:
            raise InvalidRequest(f"form: the field payload is given {len(texts)} times")
        if not texts and rule == "payload":
            raise InvalidRequest("form: no field payload")
        if texts and (rule == "payload" or texts[0].lstrip(" \t\r\n").startswith(("{", "["))):
            return texts[0].encode()
    return _fields(found)


def _fields(found: list[tuple[str, str]]) -> dict[str, str | list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in found:
        values.setdefault(name, []).append(value)
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in values.items()}


def _text(part: bytes, at: int) -> str:
    """The text of a name or a value that starts at byte `at`."""
    raw = part.replace(b"+", b" ")
    if b"%" in raw:
        raw = _ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), raw)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"form: what starts at byte {at} is not UTF-8") from None
