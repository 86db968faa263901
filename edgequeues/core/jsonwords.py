"""Words for JSON: what every message calls a value, how it writes a text, and how it writes a path."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable

_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HALF_PAIR = re.compile(r"[\ud800-\udfff]")


def kind(value: object) -> str:
    """What a JSON value is, in words: "null", "a boolean", "an integer", "a number", "a text", ..."""
    return _KINDS.get(type(value), "no JSON")


def quoted(text: str) -> str:
    """`text` as a JSON string that can be written as UTF-8: halves of surrogate pairs stay escapes."""
    return json_text(text)


def json_text(value: object) -> str:
    """The JSON of a value, written like `quoted`."""
    whole = json.dumps(value, ensure_ascii=False)
    return _HALF_PAIR.sub(lambda half: f"\\u{ord(half[0]):04x}", whole)


def path_text(root: str, steps: Iterable[str | int]) -> str:
    """A path as the language writes it: `payload.items[0]["cf-ray"]`."""
    parts = [root]
    for step in steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            parts.append(f".{step}" if _IDENTIFIER.fullmatch(step) else f"[{quoted(step)}]")
    return "".join(parts)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "x"?` where something known is close to `name`, else nothing."""
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""
