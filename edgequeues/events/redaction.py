"""Addresses and numbers made unreadable: `a***@example.com`, `+1*******1234`, in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Possessive, and an address begins where nothing of it stands before: no character is looked at often.
_LOCAL = r"[\w.!#$%&'*+/=?^`{|}~-]"
_ADDRESS = re.compile(rf"(?<!{_LOCAL})({_LOCAL}){_LOCAL}*+@(?=[\w\[])")
_QUOTED = re.compile(r'"[^"\n]{0,64}"@(?=[\w\[])')
_NUMBER = re.compile(r"(\+|%2[Bb])([0-9])((?:[ ().-]{0,2}[0-9]){6,})")
_MARKS = re.compile("[@+%]")  # one of them is in whatever is made unreadable
_NAMES = frozenset((str,))
_FLAT = frozenset((str, int, bool, float, type(None)))
_NESTED_MAX = 32


def text(said: str) -> str:
    """A text with what may identify somebody made unreadable."""
    if "@" in said:
        said = _QUOTED.sub("***@", _ADDRESS.sub(r"\1***@", said))
    return _NUMBER.sub(_hidden, said) if "+" in said or "%2" in said else said


def fields(said: Mapping[str, Any]) -> dict[str, Any]:
    """The same for all texts in a mapping, however deep; names of members, too."""
    if {*map(type, said)} <= _NAMES and {*map(type, said.values())} <= _FLAT:  # as most are
        texts = [one for one in said.values() if type(one) is str]
        if not _MARKS.search("\0".join([*said, *texts])):
            return dict(said)
    found: dict[str, Any] = value(said)
    return found


def value(said: Any, depth: int = 0) -> Any:
    """The same for a value of mappings, lists and texts. What is not one of these, nor a number, becomes a text."""
    if isinstance(said, str):
        return text(said)
    if said is None or isinstance(said, bool | int | float):
        return said
    if depth == _NESTED_MAX:
        return "..."
    if isinstance(said, Mapping):
        return {text(str(name)): value(one, depth + 1) for name, one in said.items()}
    if isinstance(said, list | tuple | set | frozenset):
        return [value(one, depth + 1) for one in said]
    return text(str(said))


def _hidden(number: re.Match[str]) -> str:
    digits = re.sub(r"[^0-9]", "", number[3])
    return f"{number[1]}{number[2]}{'*' * (len(digits) - 4)}{digits[-4:]}"
