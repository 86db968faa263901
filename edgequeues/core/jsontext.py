"""JSON as text: what is accepted, and the parts of a text as slices of it, never written anew.

msgspec judges first. It is not enough alone: in what it skips it lets invalid UTF-8 and 1e400 pass, and it
refuses halves of surrogate pairs, which are valid JSON; there the standard library judges. Cheap counts tell
whether nesting and numbers need a closer look.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import accumulate, compress, count
from math import isinf
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from edgequeues.core.errors import InvalidJson

NESTING_MAX = 64

_ANY = msgspec.json.Decoder(Raw)
_VALUE = msgspec.json.Decoder(Any)
_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_ARRAY = msgspec.json.Decoder(list[Raw])
# Integers as floats: unlike int() that takes any number of digits, in linear time.
_SCANNER = json.JSONDecoder(parse_int=float, parse_constant=float)

_BLANK = re.compile(r"[ \t\n\r]*")
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_COMMA = re.compile(r"[ \t\n\r]*,?[ \t\n\r]*")
_CONSTANT = re.compile(rb"NaN|Infinity")
_TO_ELEMENT = re.compile(rb"[ \t\n\r,]*")
_TO_VALUE = re.compile(rb'[ \t\n\r,]*"(?:[^"\\]++|\\.)*"[ \t\n\r:]*')

_SQUARE = bytes.maketrans(b"{}", b"[]")
_NOT_NESTING = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS = bytes({ord("["): 1, ord("{"): 1, ord("]"): 255, ord("}"): 255}.get(byte, 0) for byte in range(256))

# With fewer than 200 digits before the point and 3 in the exponent, a number cannot reach 1e309.
_SHAPE = bytes.maketrans(b"123456789E]} \t\r\n", b"000000000e,,,,,,")
_SHAPE_EXPONENT = re.compile(rb"0e\+?000+(?:,|\Z)")  # hashes have such runs too, but rarely end like a number
_SHAPE_DIGITS = b"0" * 200
_LARGE = re.compile(
    rb"[0-9](?<![0-9.].)"  # where a number begins; a set in front makes the search quick
    rb"(?:[0-9]{199,}+(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|[0-9]*+(?:\.[0-9]++)?[eE][+-]?[0-9]{3,}+)",
    re.DOTALL,
)


def check(text: bytes) -> None:
    """Raises InvalidJson, naming the byte (from 0), unless this is one JSON text that may be stored.

    That is: UTF-8 without a byte order mark, nested at most NESTING_MAX deep, numbers within double range.
    Escapes of half a surrogate pair, NUL escapes, long numbers and duplicate names are allowed.
    """
    _check_utf8(text)
    _check_syntax(text)
    if text.count(b"[") + text.count(b"{") > NESTING_MAX and _is_deep(text):
        _refuse_nesting(text)
    if not in_range(text):
        _check_numbers(text)


def in_range(text: bytes) -> bool:
    """True: no number in `text` can be beyond double range. False: one may be, and `check` will know."""
    shape = text.translate(_SHAPE)
    return _SHAPE_DIGITS not in shape and _SHAPE_EXPONENT.search(shape) is None


def members(text: bytes) -> list[tuple[str, bytes]]:
    """Names and values of an object, in order, duplicates included; each value is a slice of `text`.

    A name may hold half a surrogate pair. Raises InvalidJson unless `text` is one valid JSON object; looks at
    neither nesting nor numbers.
    """
    _check_utf8(text)
    try:
        found = [(name, bytes(value)) for name, value in _OBJECT.decode(text).items()]
    except (msgspec.DecodeError, RecursionError):
        return _walk(text, "{")
    # msgspec keeps the last of two equal names, but both have their quotes. So do escaped quotes: no harm.
    quotes = 2 * len(found) + sum([value.count(b'"') for _, value in found])
    return found if quotes == text.count(b'"') else _walk(text, "{")


def elements(text: bytes) -> list[bytes]:
    """The elements of an array, each a slice of `text`. Raises InvalidJson like `members`."""
    _check_utf8(text)
    try:
        return [bytes(element) for element in _ARRAY.decode(text)]
    except (msgspec.DecodeError, RecursionError):
        return [element for _, element in _walk(text, "[")]


def at(text: bytes, path: Sequence[str | int]) -> bytes:
    """The value at a path of names and indexes, a slice of `text`; of a name given twice, the last.

    Raises KeyError or IndexError where there is none, else like `members`.
    """
    for step in path:
        text = elements(text)[step] if isinstance(step, int) else dict(members(text))[step]
    return text


def value(text: bytes | str) -> Any:
    """A JSON text as a value. Halves of surrogate pairs, which msgspec refuses, are kept. The text was checked."""
    try:
        return _VALUE.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)


def write(value: object) -> bytes:
    """A value as JSON text, halves of surrogate pairs as escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


class Span(NamedTuple):
    """Where in a text a value is: of a member, or of an element, which has the empty name."""

    name: str
    start: int
    end: int


def spans(text: bytes) -> list[Span]:
    """Where the values of an object or an array are, in order, duplicates included. Raises like `members`."""
    at = len(text) - len(text.lstrip(b" \t\n\r"))
    if text.startswith(b"[", at):
        values, gap = [("", element) for element in elements(text)], _TO_ELEMENT
    else:
        values, gap = members(text), _TO_VALUE
    found = []
    at += 1
    for name, value in values:
        before = gap.match(text, at)
        assert before is not None  # the syntax was checked
        at = before.end() + len(value)
        found.append(Span(name, before.end(), at))
    return found


def _walk(text: bytes, bracket: str) -> list[tuple[str, bytes]]:
    """`members` where msgspec cannot help; the elements of an array get the empty name."""
    _check_syntax_again(text)
    string = text.decode()
    at = _skip(_BLANK, string, 0)
    if string[at] != bracket:
        raise InvalidJson(f"byte {at}: not an {'object' if bracket == '{' else 'array'}")
    found = []
    name = ""
    at = _skip(_BLANK, string, at + 1)
    while string[at] not in "]}":
        if bracket == "{":
            name, at = _SCANNER.raw_decode(string, at)
            at = _skip(_COLON, string, at)
        _, end = _SCANNER.raw_decode(string, at)
        found.append((name, string[at:end].encode()))
        at = _skip(_COMMA, string, end)
    return found


def _skip(pattern: re.Pattern[str], string: str, at: int) -> int:
    found = pattern.match(string, at)
    assert found is not None  # the syntax was checked
    return found.end()


def _check_utf8(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise InvalidJson(f"byte {error.start}: not UTF-8") from None


def _check_syntax(text: bytes) -> None:
    """Raises InvalidJson unless `text`, which is UTF-8, is one JSON text."""
    try:
        _ANY.decode(text)
    except RecursionError:
        _refuse_nesting(text)
        raise  # not this text's fault: the caller's own stack is nearly used up
    except msgspec.DecodeError:
        _check_syntax_again(text)


def _check_syntax_again(text: bytes) -> None:
    """The second opinion: it lets halves of surrogate pairs pass, and says where a fault is."""
    string = text.decode()
    if string.startswith("\ufeff"):
        raise InvalidJson("byte 0: a byte order mark")
    try:
        _SCANNER.decode(string)
    except RecursionError:
        _refuse_nesting(text)
        raise
    except json.JSONDecodeError as error:
        at = len(string[: error.pos].encode())
        raise InvalidJson(f"byte {at}: {error.msg[:1].lower()}{error.msg[1:]}") from None
    constant = _CONSTANT.search(_skeleton(text))
    if constant:
        raise InvalidJson(f"byte {constant.start()}: {constant[0].decode()} is not JSON")


def _is_deep(text: bytes) -> bool:
    """Is a valid `text` nested more than NESTING_MAX deep? Peels off the innermost brackets, level by level."""
    marks = text.replace(rb"\\", b"").replace(rb"\"", b"").translate(_SQUARE, _NOT_NESTING)
    outside = marks.replace(b'""', b"").split(b'"')[::2]  # what two quotes side by side enclose is not moved
    brackets = b"".join(outside)
    for _ in range(NESTING_MAX):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
    return True


def _refuse_nesting(text: bytes) -> None:
    """Raises InvalidJson where the nesting first is too deep, if it ever is. `text` may break off there."""
    steps = memoryview(_skeleton(text).translate(_STEPS)).cast("b")
    too_deep = map(NESTING_MAX.__lt__, accumulate(steps))
    at = next(compress(count(), too_deep), None)
    if at is not None:
        raise InvalidJson(f"byte {at}: nested more than {NESTING_MAX} deep")


def _check_numbers(text: bytes) -> None:
    for number in _LARGE.finditer(_skeleton(text)):
        if isinf(float(number[0])):
            raise InvalidJson(f"byte {number.start()}: number beyond double range")


def _skeleton(text: bytes) -> bytes:
    """`text` with zero bytes inside its strings: nothing there can mislead a search, and offsets stay."""
    parts = text.replace(rb"\\", b"..").replace(rb"\"", b"..").split(b'"')
    parts[1::2] = map(bytes, map(len, parts[1::2]))
    return b'"'.join(parts)
