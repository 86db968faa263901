"""Ids of every kind: what each may hold, how ULIDs are made, which names count as the same."""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

from edgequeues.core.errors import InvalidId

SPACES_RESERVED = frozenset({"data", "trace"})  # tags of a DXN, so never a space

_SHOWN_MAX = 80  # characters of a refused id that an error repeats
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CHARS = _CROCKFORD.encode() * 8  # of a byte: its last five bits, as a character

_ULID = re.compile("[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}")
_HEX32 = re.compile("[0-9A-Fa-f]{32}")
_CAMEL = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def new_ulid(now_ms: int, random: Random) -> str:
    """A ULID: 48 bits of unix milliseconds, 80 random bits. Text order is the order of milliseconds."""
    return new_ulids(now_ms, 1, random)[0]


def new_ulids(now_ms: int, number: int, random: Random) -> list[str]:
    """ULIDs of one millisecond, of one draw: the system's randomness costs a call into the kernel each time."""
    time = _ulid_time(now_ms)
    drawn = random.randbytes(16 * number).translate(_CHARS).decode()
    return [time + drawn[at : at + 16] for at in range(0, 16 * number, 16)]


@lru_cache(maxsize=4)  # many ids share their millisecond
def _ulid_time(now_ms: int) -> str:
    assert 0 <= now_ms < 1 << 48
    return "".join([_CROCKFORD[now_ms >> shift & 31] for shift in range(45, -1, -5)])


def ulid_to_hex(ulid: str) -> str:
    """The 128 bits of a ULID as 32 hex digits."""
    bits = 0
    for char in ulid.upper():
        bits = bits << 5 | _CROCKFORD.index(char)
    return f"{bits:032x}"


def hex_to_ulid(text: str) -> str:
    """The ULID, in upper case, of 32 hex digits. Raises InvalidId."""
    if _HEX32.fullmatch(text) is None:
        raise InvalidId(f"queue id {shown(text)}: not 32 hex digits")
    bits = int(text, 16)
    return "".join(_CROCKFORD[bits >> shift & 31] for shift in range(125, -1, -5))


def shown(text: str) -> str:
    """A text from outside as an error repeats it: quoted, escaped, cut after 80 characters."""
    return repr(text) if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]!r}..."


def is_ulid(text: str) -> bool:
    """Is this a ULID, in upper or lower case?"""
    return _ULID.fullmatch(text) is not None


class _Kind:
    """One kind of id: one character of `first`, then of `rest` (the insides of character classes)."""

    def __init__(self, label: str, first: str, rest: str, length_max: int) -> None:
        self.label = label
        self.length_max = length_max
        self.whole = re.compile(f"[{first}][{rest}]{{0,{length_max - 1}}}").fullmatch
        self._first = re.compile(f"[{first}]").match
        self._rest = re.compile(f"[{rest}]").match

    def check(self, text: str) -> str:
        """The text itself. Raises InvalidId, which names the first character at fault."""
        if self.whole(text):
            return text
        for at, char in enumerate(text[: self.length_max], 1):
            if not (self._first if at == 1 else self._rest)(char):
                raise self.refusal(text, f"{char!a} is not allowed as character {at}")
        if not text:
            raise self.refusal(text, "empty, character 1 is missing")
        raise self.refusal(text, f"character {self.length_max + 1} of {len(text)} is one too many")

    def refusal(self, text: str, why: str) -> InvalidId:
        """The error to raise: which kind of id, what was given, and why it is none."""
        return InvalidId(f"{self.label} {shown(text)}: {why}")


_ALNUM = "A-Za-z0-9"
_PRINTABLE = r"^\x00-\x1f\x7f-\x9f\ud800-\udfff"  # no control characters, no halves of a pair

_SPACE = _Kind("space id", _ALNUM, _ALNUM + "_-", 64)
_QUEUE = _Kind("queue id", _ALNUM, _ALNUM + "_-", 128)
_NAME = _Kind("queue name", _ALNUM, _ALNUM + "_-", 128)
_OBJECT = _Kind("object id", _ALNUM + "._~-", _ALNUM + "._~-", 128)
_ACTOR = _Kind("actor", "a-z0-9-", "a-z0-9-", 32)
_TYPE = _Kind("type name", _PRINTABLE, _PRINTABLE, 512)
_KEY = _Kind("ordering key", _PRINTABLE, _PRINTABLE, 256)
_IDEMPOTENCY = _Kind("idempotency key", _PRINTABLE, _PRINTABLE, 256)


def check_space(text: str) -> str:
    """The space id itself: a name (the DXOS form is one too), not a tag. Raises InvalidId."""
    if text in SPACES_RESERVED:
        raise _SPACE.refusal(text, "a tag is never a space")
    return _SPACE.check(text)


def check_queue(text: str) -> str:
    """The queue itself: a ULID, or a name. Raises InvalidId."""
    return text if is_ulid(text) else _check_name(_QUEUE, text)


def check_name(text: str) -> str:
    """The queue name itself: nothing that could be read as an id. Raises InvalidId."""
    if is_ulid(text):
        raise _NAME.refusal(text, "a ULID is an id, never a name")
    return _check_name(_NAME, text)


def _check_name(kind: _Kind, text: str) -> str:
    if _HEX32.fullmatch(text):
        raise kind.refusal(text, "32 hex digits stand for a ULID elsewhere, never for a name")
    return kind.check(text)


def check_object_id(text: str) -> str:
    """The object id itself. Raises InvalidId."""
    return text if _OBJECT.whole(text) else _OBJECT.check(text)  # one call less for each entry


def check_actor(text: str) -> str:
    """The actor of a version itself. Raises InvalidId."""
    return _ACTOR.check(text)


@lru_cache(maxsize=1_024)  # entries have few types
def check_type(text: str) -> str:
    """The type name itself: 1 to 512 characters, none of them control or half a pair. Raises InvalidId."""
    return _TYPE.check(text)


def check_key(text: str) -> str:
    """The ordering key itself: 1 to 256 characters, none of them control or half a pair. Raises InvalidId."""
    return _KEY.check(text)


def check_idempotency_key(text: str) -> str:
    """The idempotency key itself: 1 to 256 characters, none of them control or half a pair. Raises InvalidId."""
    return _IDEMPOTENCY.check(text)


def snake(name: str) -> str:
    """The form in which names of one space must differ: `OrderEvents` and `order-events` are `order_events`."""
    return _CAMEL.sub("_", name).lower().replace("-", "_")
