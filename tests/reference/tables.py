"""Tables and texts as Markdown wants them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

BY = "<!-- Written by `make reference`. -->\n\n"


def cell(text: str) -> str:
    """A text that neither ends its cell nor its line. Angles outside of code would be taken for HTML."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()).replace("|", "\\|"))
    return "".join(one if one.startswith("`") else one.replace("<", "&lt;") for one in parts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, one line a row."""
    lines = [heads, ["---"] * len(heads), *([cell(one) for one in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def first_sentence(documented: object) -> str:
    """What a docstring says first, to its full stop."""
    text = " ".join((getattr(documented, "__doc__", None) or "").split())
    return re.split(r"(?<=\.) ", text, maxsplit=1)[0]
