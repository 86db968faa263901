"""Versions of objects: a Lamport counter and who wrote. Text order is version order."""

from __future__ import annotations

import re

from edgequeues.core.errors import InvalidRequest, VersionAhead
from edgequeues.core.ids import shown

AHEAD_MAX = 1 << 20  # a stated maximum must not end all later writes

_VERSION = re.compile("([0-9a-f]{16})@([a-z0-9-]{1,32})")


def render(counter: int, actor: str) -> str:
    """The version as text. `actor` is checked already."""
    assert 0 <= counter < 1 << 64
    return f"{counter:016x}@{actor}"


def parse(text: str) -> tuple[int, str]:
    """Counter and actor. Raises InvalidRequest unless `text` is exactly what `render` gives."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise InvalidRequest(f"version {shown(text)}: not <16 lower-case hex digits>@<actor>")
    return int(found[1], 16), found[2]


def check_stated(text: str, counter: int) -> int:
    """The counter that `text` states. Raises InvalidRequest, and VersionAhead if too far above `counter`."""
    stated, _ = parse(text)
    if stated - counter > AHEAD_MAX:
        raise VersionAhead(f"version {text} is {stated - counter} above the counter")
    return stated
