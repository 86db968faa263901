"""HTTP/1.1 on one connection: h11 takes the bytes apart, Hypercorn's streams make ASGI calls of the requests.

Here is what those two leave open: what a head may hold, how one that is no request is answered, and that a whole
answer is one write.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Protocol, cast

import h11
import trio
from hypercorn.config import Config
from hypercorn.protocol.events import Body, Data, EndBody, Response, StreamClosed
from hypercorn.protocol.events import Request as StreamRequest
from hypercorn.protocol.h11 import STREAM_ID, H11WSConnection
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.typing import ConnectionState

from edgequeues.core.errors import EdgeQueuesError, InvalidRequest
from edgequeues.http import problems
from edgequeues.http.handlers import Handlers
from edgequeues.http.problems import HeadersTooLarge
from edgequeues.http.server import Server
from edgequeues.http.websocket import WebSocket

HEAD_BYTES_MAX = 64 * 1024  # of a request line and its headers: a thousand ids in a URL, and then some
HEADERS_MAX = 100
COPY_BYTES_MAX = 64 * 1024  # a larger piece of an answer is not joined with what goes before it

_CONTINUE = h11.InformationalResponse(status_code=100, headers=[])
_TOKENS = (
    b"connection",
    b"sec-websocket-protocol",
)  # wsproto takes them apart, and raises where they are no ASCII
_NOT_HTTP = "these bytes are no HTTP/1.1 request"
_LIMITS = f"at most {HEAD_BYTES_MAX} bytes and {HEADERS_MAX} headers are taken"

log = logging.getLogger("edgequeues.http")


class Transport(Protocol):
    """What a protocol needs of its connection. Nothing in here raises for what the client does."""

    async def write(self, data: bytes) -> None:
        """Send all of it, or nothing more from now on."""

    def request_began(self) -> None:
        """A whole head has come in."""

    def request_ended(self) -> None:
        """Its answer has left, and another request may come."""

    def hang_up(self) -> None:
        """Nothing more will be written."""


def refusal(error: Exception, method: str = "") -> bytes:
    """A whole answer that ends the connection, for what never reached the app, or came to no end there."""
    found = problems.refuse(error)
    headers = [
        *found.headers,
        (b"content-type", found.media),
        (b"content-length", b"%d" % len(found.body)),
        (b"connection", b"close"),
    ]
    lines = b"".join(b"%s: %s\r\n" % header for header in headers)
    phrase = HTTPStatus(found.status).phrase.encode()
    body = b"" if method == "HEAD" else found.body
    return b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (found.status, phrase, lines, body)


class Http1:
    """The requests of one connection, one after the other."""

    def __init__(
        self,
        app: Server,
        config: Config,
        context: Any,
        transport: Transport,
        nursery: trio.Nursery,
        *,
        tls: bool,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
    ) -> None:
        self.stream: HTTPStream | WebSocket | None = None
        self._config = config
        self._context = context
        self._transport = transport
        arguments = (
            app,
            config,
            context,
            Handlers(nursery),
            tls,
            client,
            server,
            self._stream_send,
            STREAM_ID,
        )
        self._stream_arguments = cast(Any, arguments)
        self._h11: Any = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._answered = trio.Event()
        self._head = b""  # of an answer whose body will follow at once
        self._fed = 0  # bytes since the last head was complete
        self._over = False

    @property
    def has_part_of_a_head(self) -> bool:
        """Is there input that no request has come of yet?"""
        return self.stream is None and bool(self._h11.trailing_data[0])

    @property
    def _has_last_request(self) -> bool:
        """Has the whole of it come in? Whatever follows is moot, and is not kept."""
        return self._h11.their_state is h11.MUST_CLOSE

    # -- in -----------------------------------------------------------------------------------------------

    async def feed(self, data: bytes) -> None:
        """Take what the client sent, b"" at its end. Returns when all that can be is handed on."""
        self._fed += len(data)
        if not self._has_last_request:
            self._h11.receive_data(data)
        while not self._over and not self._has_last_request:
            if self._h11.they_are_waiting_for_100_continue:
                await self._transport.write(self._h11.send(_CONTINUE))
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError as error:
                too_large = error.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                fault = _NOT_HTTP if data else "the request ends in its middle"
                await self.refuse(HeadersTooLarge(_LIMITS) if too_large else InvalidRequest(fault))
                return
            if event is h11.NEED_DATA or type(event) is h11.ConnectionClosed:
                return
            if event is h11.PAUSED:
                self._answered = trio.Event()
                await self._answered.wait()
            else:
                await self._handle(event)

    async def refuse(self, error: EdgeQueuesError) -> None:
        """Answer what is no request, unless an answer has begun, and end the connection."""
        log.info("a request was refused: %s", error.detail)
        begun = self._over or not (self._head or self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE))
        self._over = True
        if not begun:
            method = self.stream.scope["method"] if isinstance(self.stream, HTTPStream) else ""
            await self._transport.write(refusal(error, method))
        self._transport.hang_up()

    @property
    def is_websocket(self) -> bool:
        """Is it one now? It has no end of its own, unlike a request."""
        return isinstance(self.stream, WebSocket)

    async def go_away(self) -> None:
        """End a WebSocket because the server stops."""
        if isinstance(self.stream, WebSocket):
            await self.stream.go_away()

    async def client_left(self) -> None:
        """Tell the handler, if one is at work."""
        stream, self.stream = self.stream, None
        if stream is not None:
            await stream.handle(StreamClosed(stream_id=STREAM_ID))
        self._answered.set()

    async def _handle(self, event: Any) -> None:
        kind = type(event)
        if kind is h11.Request:
            self._transport.request_began()
            error = self._fault(event)
            if error is None:
                await self._begin(event)
            else:
                await self.refuse(error)
        elif self.stream is None:
            self._over = True
        elif kind is h11.Data:
            await self.stream.handle(Body(stream_id=STREAM_ID, data=event.data))
        elif kind is h11.EndOfMessage:
            await self.stream.handle(EndBody(stream_id=STREAM_ID))
        else:
            await self.stream.handle(event)  # bytes of a WebSocket

    def _fault(self, request: h11.Request) -> EdgeQueuesError | None:
        """What h11 lets through and we do not."""
        headers = request.headers
        fed, self._fed = self._fed, 0
        if request.http_version not in (b"1.1", b"1.0"):
            return InvalidRequest("HTTP/1.1 is spoken here")
        if len(headers) > HEADERS_MAX:
            return HeadersTooLarge(_LIMITS)
        if not all(value.isascii() for name, value in headers if name in _TOKENS):
            return InvalidRequest("what a connection is to be is said in ASCII")
        if fed > HEAD_BYTES_MAX:  # h11 bounds what is incomplete only; counted just where it may matter
            size = len(request.target) + sum(len(name) + len(value) + 4 for name, value in headers)
            if size > HEAD_BYTES_MAX:
                return HeadersTooLarge(_LIMITS)
        return None

    async def _begin(self, request: h11.Request) -> None:
        """Start the app. Offers of HTTP/2 are not taken up: an answer in HTTP/1.1 is always right."""
        headers = list(request.headers)
        if request.method == b"GET" and asks_for_websocket(headers):
            # Without compression, for which there is no limit on what a message inflates to.
            headers = [header for header in headers if header[0] != b"sec-websocket-extensions"]
            self.stream = WebSocket(*self._stream_arguments)
            self._h11 = H11WSConnection(self._h11)
        else:
            self.stream = HTTPStream(*self._stream_arguments)
        await self.stream.handle(
            StreamRequest(
                stream_id=STREAM_ID,
                headers=headers,
                http_version=request.http_version.decode(),
                method=request.method.decode(),
                raw_path=request.target,
                state=ConnectionState({}),
            )
        )

    # -- out ----------------------------------------------------------------------------------------------

    async def _stream_send(self, event: Any) -> None:
        kind = type(event)
        if kind is StreamClosed:
            await self._end()
        elif self._over:
            pass
        elif kind is Response:
            self._head = self._encode(self._response(event))
            if not _body_follows(event.headers):
                await self._flush()
        elif kind is Body:
            await self._send_piece(event.data)
        elif kind is EndBody:
            self._head += self._encode(h11.EndOfMessage())
            await self._flush()
        elif kind is Data:
            await self._transport.write(event.data)
            await (
                trio.lowlevel.checkpoint()
            )  # a client that sends thousands of pings must not stop the others

    async def _send_piece(self, data: bytes) -> None:
        framed = self._h11.send_with_data_passthrough(h11.Data(data=data))
        if len(data) < COPY_BYTES_MAX:
            self._head += b"".join(framed)
            await self._flush()
        else:
            await self._flush()
            for part in framed:
                await self._transport.write(part)

    async def _flush(self) -> None:
        data, self._head = self._head, b""
        if data:
            await self._transport.write(data)

    def _response(self, event: Response) -> h11.Response | h11.InformationalResponse:
        headers = [*event.headers, *self._config.response_headers("h11")]
        if event.status_code < HTTPStatus.OK:
            return h11.InformationalResponse(headers=headers, status_code=event.status_code)
        if self._context.terminated.is_set():
            headers.append((b"connection", b"close"))
        return h11.Response(headers=headers, status_code=event.status_code)

    def _encode(self, event: Any) -> bytes:
        data: bytes = self._h11.send(event)
        return data

    async def _end(self) -> None:
        """The handler has said all it had to say: make ready for the next request, or close."""
        if self.stream is None:
            return
        await self.client_left()
        states = (self._h11.our_state, self._h11.their_state)
        if states == (h11.DONE, h11.DONE) and not self._context.terminated.is_set():
            self._h11.start_next_cycle()
            self._transport.request_ended()
        else:
            self._over = True
            self._transport.hang_up()


def asks_for_websocket(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Do these headers ask for a WebSocket?"""
    found = dict(headers)
    tokens = [token.strip() for token in found.get(b"connection", b"").lower().split(b",")]
    return b"upgrade" in tokens and found.get(b"upgrade", b"").strip().lower() == b"websocket"


def _body_follows(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Is there a body whose length is known? A stream's head must not wait for its first piece."""
    return any(name == b"content-length" and value != b"0" for name, value in headers)
