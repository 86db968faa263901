"""What a dialect is made of: requests, responses, and routes to plain async functions.

No framework type is in here, so a dialect is tested as functions and served by whatever front there is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import trio

from edgequeues.core.errors import TooLarge, UnsupportedMedia
from edgequeues.core.grants import Verb
from edgequeues.http.auth import OWNER, Caller, place
from edgequeues.http.params import Query
from edgequeues.http.problems import Refusal, RequestTimeout
from shards.errors import Overloaded

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]

JSON = b"application/json"
BODY_BYTES_MAX = 16 * 1024 * 1024  # of a body that is read as a whole
BODY_PAUSE_S = 60.0  # a body may stall for this long between two pieces
BODY_GRACE_S = 20.0  # a whole body takes this long at most, and a second more for each BODY_BYTES_PER_S
BODY_BYTES_PER_S = 16 * 1024
BODIES_BYTES_MAX = 256 * 1024 * 1024  # of all bodies that are held as a whole


class Head(NamedTuple):
    """What a request begins with, as it came over the wire. target: without the query. peer: who is connected."""

    method: str
    target: bytes
    query: bytes
    headers: Headers
    peer: str = ""


class Out(Protocol):
    """Where an answer goes: whole, or as a beginning and the pieces of its body."""

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send all of an answer."""

    async def begin(self, status: int, headers: Headers) -> None:
        """Send what goes before the body."""

    async def piece(self, body: bytes, *, more: bool) -> None:
        """Send a part of the body; `more`: another one follows."""


class ClientGone(Exception):
    """The client hung up, so there is nobody to answer. What the request had started goes on."""


class Budget:
    """Bytes that the whole bodies of all requests may take in memory together."""

    def __init__(self, bytes_max: int = BODIES_BYTES_MAX) -> None:
        self.left = bytes_max

    def take(self, size: int) -> None:
        """Take `size` bytes; fewer than none gives some back. Raises Overloaded where there are not as many left."""
        if size > self.left:
            raise Overloaded
        self.left -= size


class Request:
    """One request. The body arrives while it is read, once: by `body` or by `piece`.

    head: as it came, where a server took it in. caller: who asks. route: the one that answers. cors: headers for the
    web page that asks, if one does. receive: ASGI's; if it has a function `come` that returns a message which is
    there already, or None, then no deadline is set for that. budget: what a whole body is taken from until `release`.
    """

    __slots__ = (
        "_budget",
        "_come",
        "_held",
        "_receive",
        "_whole",
        "caller",
        "cors",
        "head",
        "headers",
        "method",
        "params",
        "query",
        "route",
    )

    def __init__(
        self,
        method: str,
        params: Mapping[str, str],
        query: Query,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        budget: Budget | None = None,
    ) -> None:
        self.method = method
        self.params = params
        self.query = query
        self.headers = headers
        self.head = Head(method, b"", b"", ())
        self.caller: Caller = OWNER
        self.cors: Headers = ()
        self.route: Route | None = None
        self._receive = receive
        self._come: Callable[[], MutableMapping[str, Any] | None] = getattr(receive, "come", _nothing)
        self._whole = False
        self._budget = budget
        self._held = 0

    @property
    def body_is_left(self) -> bool:
        """Did the client announce a body that nobody has read to its end?"""
        if self._whole:
            return False
        headers = self.headers
        return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"

    async def piece(self, pause_s: float = BODY_PAUSE_S) -> bytes:
        """Return the next bytes of the body, b"" at its end. Raises ClientGone, RequestTimeout after `pause_s`."""
        while not self._whole:
            message = self._come()
            if message is None:
                try:
                    with trio.fail_after(pause_s):
                        message = await self._receive()
                except trio.TooSlowError:
                    raise RequestTimeout(f"the body stopped for {pause_s:g} s") from None
            piece = self._part(message)
            if piece:
                return piece
        return b""

    def _part(self, message: MutableMapping[str, Any]) -> bytes:
        if message["type"] == "http.disconnect":
            raise ClientGone
        self._whole = not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part

    async def body(self, limit: int) -> bytes:
        """Return the whole body.

        Raises TooLarge above `limit` bytes, Overloaded above what the budget has left, RequestTimeout for one that
        comes too slowly (BODY_GRACE_S, BODY_BYTES_PER_S), else as `piece` does.
        """
        stated = self.headers.get(b"content-length", b"")
        if stated.isdigit() and int(stated) > limit:
            raise TooLarge(f"the body has {int(stated)} bytes, at most {limit} are taken at once")
        pieces = bytearray()  # a list would cost many times as much for pieces of a byte
        there = self._come()
        if there is not None:
            first = self._kept(self._part(there), limit)
            if self._whole:
                return first
            pieces += first
        began = trio.current_time()
        while not self._whole:
            due = began + BODY_GRACE_S + len(pieces) / BODY_BYTES_PER_S
            pieces += await self._piece_of_whole(due - trio.current_time(), limit)
        return bytes(pieces)

    async def _piece_of_whole(self, within_s: float, limit: int) -> bytes:
        try:
            piece = await self.piece(min(BODY_PAUSE_S, max(0, within_s)))
        except RequestTimeout:
            raise RequestTimeout(f"fewer than {BODY_BYTES_PER_S} bytes a second came") from None
        return self._kept(piece, limit)

    def _kept(self, piece: bytes, limit: int) -> bytes:
        size = self._held + len(piece)
        if size > limit:
            raise TooLarge(f"the body has more than {limit} bytes")
        self.hold(size)
        return piece

    def hold(self, size: int) -> None:
        """Keep `size` bytes of the body in memory from now on, `body` sees to it itself. Raises Overloaded."""
        if self._budget is not None:
            self._budget.take(size - self._held)
        self._held = size

    def release(self) -> None:
        """Give back what the body took of the budget: the request is over."""
        if self._held:
            self.hold(0)

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


def _nothing() -> None:
    return None


def media(request: Request, *accepted: str) -> str:
    """The media type of a body, JSON where none is given. Raises UnsupportedMedia."""
    kind = _kind(request.headers.get(b"content-type", JSON))
    if kind not in accepted:
        raise UnsupportedMedia(f"{kind[:100]!r} is not accepted here, but {' and '.join(accepted)}")
    coding = request.headers.get(b"content-encoding", b"identity")
    if coding.lower() != b"identity":
        raise UnsupportedMedia(f"a body encoded as {coding[:100].decode('latin-1')!r} is not accepted")
    return kind


@lru_cache(maxsize=64)
def _kind(given: bytes) -> str:
    return given.partition(b";")[0].decode("latin-1").strip().lower()


async def json_body(request: Request, limit: int) -> bytes:
    """The whole body, which is JSON by its media type. Raises UnsupportedMedia, and as `Request.body` does."""
    media(request, "application/json")
    return await request.body(limit)


class Response:
    """What to answer. A body of bytes leaves with its length; any other is streamed piece by piece.

    beside: runs while the body streams and owns the request's body meanwhile; the server then does not listen
    for a hang-up itself.
    compress: may it be gzipped for those who ask? Not where each piece must arrive at once.
    recheck: asked before each piece of a stream; raises if whoever asked for it may not have it any more.
    """

    __slots__ = ("beside", "body", "compress", "headers", "media", "recheck", "status")

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
        self.recheck: Callable[[], None] | None = None


class Socket:
    """A WebSocket of texts. Bytes that come are given as they are; a handler that returns closes it."""

    __slots__ = ("_receive", "_send", "offered")

    def __init__(self, offered: Sequence[str], receive: Receive, send: Send) -> None:
        self.offered = offered
        self._receive = receive
        self._send = send

    async def accept(self, protocol: str | None = None) -> None:
        """Take the connection, speaking one of the protocols that were `offered`."""
        await self._receive()
        await self._send({"type": "websocket.accept", "subprotocol": protocol, "headers": []})

    async def receive(self) -> str | bytes:
        """Return the next message. Raises ClientGone."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise ClientGone
        text: str | None = message.get("text")
        return message["bytes"] if text is None else text

    async def send(self, text: str) -> None:
        """Send a message."""
        await self._send({"type": "websocket.send", "text": text})

    async def close(self, code: int) -> None:
        """Close; before `accept` this refuses the connection."""
        await self._send({"type": "websocket.close", "code": code})


Handler = Callable[[Request], Awaitable[Response]]
SocketHandler = Callable[[Socket], Awaitable[None]]


Place = Callable[[Request], tuple[str | None, str | None]]


def _of_path(request: Request) -> tuple[str | None, str | None]:
    return place(request.params)


class Route:
    """One method of one path. `template` is literal segments and `{name}`s; `{dxn}` takes what has a colon.

    verb: what a token must allow; None: open to all. place: in which space, on which queue; None: as the path says.
    socket: serves the path's WebSockets, with a verb or not only for those who may do something here.
    """

    __slots__ = ("handler", "method", "name", "place", "socket", "template", "verb")

    def __init__(
        self,
        method: str,
        template: str,
        handler: Handler,
        verb: Verb | None,
        *,
        place: Place | None = None,
        socket: SocketHandler | None = None,
    ) -> None:
        self.method = method
        self.template = template
        self.handler = handler
        self.verb = verb
        self.place = place or _of_path
        self.socket = socket
        self.name = getattr(handler, "__name__", template)


class Dialect(NamedTuple):
    """One protocol: the paths that are its own, what they do, and how it says no."""

    name: str
    prefixes: tuple[str, ...]
    routes: Sequence[Route]
    refuse: Callable[[BaseException], Refusal]
