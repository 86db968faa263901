"""What a dialect is made of: requests, responses, and tables of routes to plain async functions.

No framework type is in here, so a dialect is tested as functions and served by whatever front there is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote

import trio

from edgequeues.core.errors import InvalidRequest, TooLarge
from edgequeues.http.params import Query
from edgequeues.http.problems import RequestTimeout

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = Sequence[tuple[bytes, bytes]]

JSON = b"application/json"
BODY_PAUSE_S = 60.0  # a body may stall for this long between two pieces


class ClientGone(Exception):
    """The client hung up, so there is nobody to answer. What the request had started goes on."""


class Request:
    """One request. The body arrives while it is read, once: by `body` or by `piece`."""

    __slots__ = ("_receive", "_whole", "headers", "method", "params", "query")

    def __init__(
        self,
        method: str,
        params: Mapping[str, str],
        query: Query,
        headers: Mapping[bytes, bytes],
        receive: Receive,
    ) -> None:
        self.method = method
        self.params = params
        self.query = query
        self.headers = headers
        self._receive = receive
        self._whole = False

    @property
    def body_is_left(self) -> bool:
        """Did the client announce a body that nobody has read to its end?"""
        if self._whole:
            return False
        headers = self.headers
        return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"

    async def piece(self, pause_s: float = BODY_PAUSE_S) -> bytes:
        """Return the next bytes of the body, b"" at its end. Raises ClientGone, RequestTimeout after `pause_s`."""
        if self._whole:
            return b""
        try:
            with trio.fail_after(pause_s):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    self._whole = not message.get("more_body", False)
                    body: bytes = message.get("body", b"")
                    if body or self._whole:
                        return body
        except trio.TooSlowError:
            raise RequestTimeout(f"the body stopped for {pause_s:g} s") from None

    async def body(self, limit: int) -> bytes:
        """Return the whole body. Raises TooLarge above `limit` bytes, else as `piece` does."""
        stated = self.headers.get(b"content-length", b"")
        if stated.isdigit() and int(stated) > limit:
            raise TooLarge(f"the body has {int(stated)} bytes, at most {limit} are taken at once")
        pieces = [await self.piece()]
        size = len(pieces[0])
        while not self._whole and size <= limit:
            pieces.append(await self.piece())
            size += len(pieces[-1])
        if size > limit:
            raise TooLarge(f"the body has more than {limit} bytes")
        return b"".join(pieces)

    async def gone(self) -> None:
        """Return when the client has hung up. What is left of the body is thrown away meanwhile."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def while_connected(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns or raise what it raises; raise ClientGone once nobody waits for it."""
        result: T
        error: Exception = ClientGone()
        done = False

        async def watch() -> None:
            await self.gone()
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            try:
                result = await work()
                done = True
            except Exception as raised:  # carried out by hand: the nursery would wrap it in a group
                error = raised
            nursery.cancel_scope.cancel()
        if not done:
            raise error
        return result


class Response:
    """What to answer. A body of bytes leaves with its length; any other is streamed piece by piece.

    beside: runs while the body streams and owns the request's body meanwhile; the server then does not listen
    for a hang-up itself.
    compress: may it be gzipped for those who ask? Not where each piece must arrive at once.
    """

    __slots__ = ("beside", "body", "compress", "headers", "media", "status")

    def __init__(
        self,
        body: bytes | AsyncGenerator[bytes, None] = b"",
        *,
        status: int = 200,
        media: bytes = JSON,
        headers: Headers = (),
        compress: bool = True,
        beside: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.body = body
        self.status = status
        self.media = media
        self.headers = headers
        self.compress = compress
        self.beside = beside


Handler = Callable[[Request], Awaitable[Response]]


class Route:
    """One method of one path. `template` is literal segments and `{name}`s; `{dxn}` takes what has a colon."""

    __slots__ = ("handler", "method", "name", "template")

    def __init__(self, method: str, template: str, handler: Handler, *, name: str = "") -> None:
        self.method = method
        self.template = template
        self.handler = handler
        self.name = name or getattr(handler, "__name__", template)


class _Node:
    """Where a path has got to: the segments that may follow, and what answers if it ends here."""

    __slots__ = ("any", "any_name", "dxn", "literal", "routes")

    def __init__(self) -> None:
        self.literal: dict[str, _Node] = {}
        self.dxn: _Node | None = None
        self.any: _Node | None = None
        self.any_name = ""
        self.routes: dict[str, Route] = {}

    def below(self, segment: str) -> _Node:
        """Return the node for one segment of a template, made if it is new."""
        if segment == "{dxn}":
            self.dxn = self.dxn or _Node()
            return self.dxn
        if segment.startswith("{"):
            name = segment[1:-1]
            assert self.any_name in ("", name), f"two names for one segment: {self.any_name} and {name}"
            self.any_name = name
            self.any = self.any or _Node()
            return self.any
        return self.literal.setdefault(segment, _Node())


class Table:
    """Routes by path. A literal segment wins over `{dxn}`, and that over any other parameter."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for segment in route.template.split("/"):
                node = node.below(segment)
            assert route.method not in node.routes, f"two routes for {route.method} {route.template}"
            node.routes[route.method] = route

    def find(self, path: bytes) -> tuple[Mapping[str, Route], Mapping[str, str]] | None:
        """Routes by method of a path as it came over the wire, and its parameters, decoded; None: no such path.

        Raises InvalidRequest where percent-encoding hides something that is not UTF-8.
        """
        node = self._root
        params: dict[str, str] = {}
        for segment in segments(path):
            below = node.literal.get(segment)
            if below is None and node.dxn is not None and ":" in segment:
                below = node.dxn
                params["dxn"] = segment
            if below is None and node.any is not None and segment:
                below = node.any
                params[node.any_name] = segment
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
