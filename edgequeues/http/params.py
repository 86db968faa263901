"""Query parameters: taken apart once, read by name, and refused by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import unquote_plus

from edgequeues.core.dxn import Tag
from edgequeues.core.errors import InvalidRequest

Query = Mapping[str, Sequence[str]]

EMPTY: Query = {}
PAIRS_MAX = 2_000  # a request line is at most 16 KiB anyway
NAME_LENGTH_MAX = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
INTEGER_MAX = (1 << 63) - 1


def parse(text: bytes) -> Query:
    """Values by name, in the order given. Raises InvalidRequest where it is not UTF-8 once decoded."""
    if not text:
        return EMPTY
    pairs = text.split(b"&", PAIRS_MAX)
    if len(pairs) > PAIRS_MAX:
        raise InvalidRequest(f"the query has more than {PAIRS_MAX} parameters")
    query: dict[str, list[str]] = {}
    for pair in pairs:
        if pair:
            name, _, value = pair.partition(b"=")
            query.setdefault(_decode(name), []).append(_decode(value))
    return query


def _decode(part: bytes) -> str:
    try:
        text = part.decode("ascii")
        return unquote_plus(text, errors="strict") if "%" in text or "+" in text else text
    except UnicodeDecodeError as error:
        raise InvalidRequest("the query is not UTF-8, percent-encoded") from error


def only(query: Query, known: Collection[str]) -> None:
    """Refuse a parameter this route does not have: a misspelt filter must not read as no filter."""
    for name in query:
        if name not in known:
            there = f"there are {', '.join(sorted(known))}" if known else "there are none here"
            raise InvalidRequest(f"unknown parameter {_shown(name)}: {there}")


def text(query: Query, name: str, *, length_max: int = 4096) -> str | None:
    """One non-empty value, or None where it is absent."""
    values = query.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise InvalidRequest(f"{name} is given more than once")
    if not 1 <= len(values[0]) <= length_max:
        raise InvalidRequest(f"{name} must have 1 to {length_max} characters")
    return values[0]


def integer(query: Query, name: str, *, low: int = 0, high: int = INTEGER_MAX) -> int | None:
    """One whole number from `low` to `high`, or None where it is absent."""
    value = text(query, name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 19 and low <= int(value) <= high):
        raise InvalidRequest(f"{name} must be a whole number from {low} to {high}")
    return int(value)


def seconds(query: Query, name: str, *, high: int) -> float:
    """A number of seconds, fractions allowed; 0 where it is absent."""
    value = text(query, name, length_max=20)
    if value is None:
        return 0.0
    whole, _, fraction = value.partition(".")
    plain = value.isascii() and whole.isdigit() and (fraction.isdigit() or "." not in value)
    if not plain or float(value) > high:
        raise InvalidRequest(f"{name} must be a number of seconds from 0 to {high}")
    return float(value)


def flag(query: Query, name: str) -> bool:
    """`true` or `false`; False where it is absent."""
    value = text(query, name)
    if value not in (None, "true", "false"):
        raise InvalidRequest(f"{name} must be true or false")
    return value == "true"


def tag(query: Query) -> Tag:
    """Whether a space's own queues are meant, or those of its traces."""
    value = text(query, "tag")
    if value in (None, "data"):
        return "data"
    if value == "trace":
        return "trace"
    raise InvalidRequest("tag must be data or trace")


def many(query: Query, name: str, *, count_max: int) -> tuple[str, ...]:
    """Values of a parameter that may be repeated or comma-joined; () where it is absent."""
    values = query.get(name)
    if values is None:
        return ()
    parts = tuple(part for value in values for part in value.split(","))
    if not all(parts):
        raise InvalidRequest(f"{name} holds an empty value")
    if len(parts) > count_max:
        raise InvalidRequest(f"{name} may name at most {count_max} at once")
    return parts


def name(value: str) -> str:
    """A name as part of a path or as a parameter. Raises InvalidRequest."""
    if not 1 <= len(value) <= NAME_LENGTH_MAX or not _NAME.fullmatch(value):
        raise InvalidRequest(f"{_shown(value)} is no name: 1 to {NAME_LENGTH_MAX} of A-Z a-z 0-9 _ -")
    return value


def _shown(name: str) -> str:
    return repr(name if len(name) <= 64 else name[:64] + "...")
