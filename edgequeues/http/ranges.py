"""Ranges of bytes: one at a time, RFC 9110, 14.2."""

from __future__ import annotations

import re

_RANGE = re.compile(rb"bytes=\s*(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))\s*")


def wanted(header: bytes, size: int) -> tuple[int, int] | None:
    """The first byte that a Range header asks for of `size` bytes, and the one after the last.

    None: it is no range, or several, and all is to be sent. An empty one cannot be satisfied.
    """
    found = _RANGE.fullmatch(header)
    if found is None:
        return None
    first, last, suffix = found.groups()
    if suffix is not None:
        return max(size - int(suffix), 0), size if int(suffix) else 0
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last) + 1, size) if last else size
