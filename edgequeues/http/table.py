"""Routes by path: a tree of segments, and what was found of late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import unquote

from edgequeues.core.errors import InvalidRequest
from edgequeues.http.routes import Route

PATHS_REMEMBERED = 1024  # with their routes, and none longer than
REMEMBERED_BYTES_MAX = 256

Found = tuple[Mapping[str, Route], Mapping[str, str]]


class _Node:
    """Where a path has got to: the segments that may follow, and what answers if it ends here."""

    __slots__ = ("any", "any_name", "dxn", "literal", "routes", "tail", "tail_name")

    def __init__(self) -> None:
        self.literal: dict[str, _Node] = {}
        self.dxn: _Node | None = None
        self.any: _Node | None = None
        self.any_name = ""
        self.tail: _Node | None = None
        self.tail_name = ""
        self.routes: dict[str, Route] = {}

    def below(self, segment: str) -> _Node:
        """Return the node for one segment of a template, made if it is new."""
        if segment == "{dxn}":
            self.dxn = self.dxn or _Node()
            return self.dxn
        if segment.endswith("...}"):
            self.tail, self.tail_name = self.tail or _Node(), segment[1:-4]
            return self.tail
        if segment.startswith("{"):
            name = segment[1:-1]
            assert self.any_name in ("", name), f"two names for one segment: {self.any_name} and {name}"
            self.any_name = name
            self.any = self.any or _Node()
            return self.any
        return self.literal.setdefault(segment, _Node())


class Table:
    """Routes by path. A literal segment wins over `{dxn}`, and that over any other parameter.

    `{name...}` at the end of a template takes all that is left of a path, slashes included.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for segment in route.template.split("/"):
                node = node.below(segment)
            assert route.method not in node.routes, f"two routes for {route.method} {route.template}"
            node.routes[route.method] = route
        self._remembered = lru_cache(PATHS_REMEMBERED)(self._walk)

    def find(self, path: bytes) -> Found | None:
        """Routes by method of a path as it came over the wire, and its parameters, decoded; None: no such path.

        Raises InvalidRequest where percent-encoding hides something that is not UTF-8.
        """
        return self._remembered(path) if len(path) <= REMEMBERED_BYTES_MAX else self._walk(path)

    def _walk(self, path: bytes) -> Found | None:
        node = self._root
        params: dict[str, str] = {}
        parts = segments(path)
        for index, segment in enumerate(parts):
            below = node.literal.get(segment)
            if below is None and node.dxn is not None and ":" in segment:
                below = node.dxn
                params["dxn"] = segment
            if below is None and node.any is not None and segment:
                below = node.any
                params[node.any_name] = segment
            if below is None and node.tail is not None:
                return node.tail.routes, params | {node.tail_name: "/".join(parts[index:])}
            if below is None:
                return None
            node = below
        return (node.routes, params) if node.routes else None


def segments(path: bytes) -> list[str]:
    """Split a raw path at its slashes, then decode each part, so that an encoded slash divides nothing."""
    try:
        text = path.decode("ascii")
        parts = text.split("/")
        return [unquote(part, errors="strict") for part in parts] if "%" in text else parts
    except UnicodeDecodeError as error:
        raise InvalidRequest("the path is not UTF-8, percent-encoded") from error
