"""What is made from the code, and by what.

A page of its own is replaced as a whole. A page that people write, too, has `<!-- <name> -->` and `<!-- /<name> -->`
around what is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from edgequeues.core import lifecycle
from tests.reference import commands, errors, limits, picture, routes, settings

Parts = Mapping[str, str]
MADE: dict[str, Callable[[], str | Parts]] = {
    "docs/pictures/lifecycle.svg": picture.svg,
    "docs/reference/settings.md": settings.page,
    "docs/reference/cli.md": commands.page,
    "docs/reference/routes.md": routes.page,
    "docs/reference/errors.md": errors.page,
    "docs/reference/limits.md": limits.page,
    "docs/guides/settings.md": settings.of_server,
    "docs/guides/consumer-daemon.md": settings.of_daemon,
    "docs/lifecycle.md": lambda: {"states": lifecycle.table(), "moves": lifecycle.moves()},
}


def spliced(page: str, made: str | Parts) -> str:
    """The page with what is made in its place. A part without its marks is left out; a test says so."""
    if isinstance(made, str):
        return made
    for name, text in made.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        page = marks.sub(lambda found, text=text: found[1] + text + found[2], page)  # type: ignore[misc]
    return page
