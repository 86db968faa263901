"""One line for each request: what was asked of which route, what came of it, by whose token. Never a path or a body.

A path may hold the id of an object, a query an expression; so the route's template stands for them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from edgequeues.http.observing import Served
from edgequeues.logs import Lines

Wanted = Literal["all", "errors"]
LEAST = {"all": 0, "errors": 400}
KINDS = 1_024  # of lines that are kept ready


class RequestLog:
    """An observer of a server. wanted: `errors` are answers of 400 and above."""

    def __init__(self, lines: Lines, wanted: Wanted) -> None:
        self._lines = lines
        self._least = LEAST[wanted]
        self._kind = lru_cache(KINDS)(self._new_kind)

    def __call__(self, served: Served) -> None:
        """Write a line."""
        if served.status >= self._least:
            kind = self._kind(served.dialect, served.route, served.method, served.status, served.who)
            kind(round(served.seconds * 1_000, 3))

    def _new_kind(
        self, dialect: str, route: str, method: str, status: int, who: str
    ) -> Callable[[float], None]:
        said = {
            "msg": "request",
            "method": method,
            "route": route,
            "dialect": dialect,
            "status": status,
            "who": who,
        }
        return self._lines.kind("error" if status >= 500 else "info", said, "ms")
