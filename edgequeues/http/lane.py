"""The lane: HTTP/1.1 in the task that reads the connection. llhttp takes the bytes apart, the app is called directly.

One request at a time, and what it needs of the socket is read when it asks for it: no task, no queue, no timer for
each request. What is not served here (an upgrade to WebSocket) is handed over as the bytes that came.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, MutableMapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import unquote

import httptools
import trio

from edgequeues.core.errors import EdgeQueuesError, InvalidRequest
from edgequeues.http.http1 import HEAD_BYTES_MAX, HEADERS_MAX, asks_for_websocket, refusal
from edgequeues.http.problems import HeadersTooLarge
from edgequeues.http.routes import Headers
from edgequeues.http.server import Server

COPY_BYTES_MAX = 64 * 1024  # a larger piece of an answer is not joined with what goes before it
BLANK_MAX = 4  # bytes of line ends before a request, which some clients send after a body

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NOT_HTTP = "these bytes are no HTTP/1.1 request"
_TOO_LARGE = f"at most {HEAD_BYTES_MAX} bytes and {HEADERS_MAX} headers are taken"
_PHRASES = {status.value: b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}
_GONE = {"type": "http.disconnect"}
_BODILESS = (204, 304)
_OWS = b" \t"  # RFC 9110, 5.6.3

log = logging.getLogger("edgequeues.http")


class Transport(Protocol):
    """What the lane needs of its connection."""

    async def read(self) -> bytes:
        """Wait for bytes; b"" at the end, also where the connection broke."""

    async def write(self, data: bytes) -> None:
        """Send all of it, or nothing more from now on."""

    async def lost(self) -> None:
        """Wait until it is known that nothing can be sent any more."""

    def request_began(self) -> None:
        """A whole head has come in."""

    def request_ended(self) -> None:
        """Its answer has left, and another request may come."""

    def head_began(self) -> None:
        """A part of a head has come in."""


class Message:
    """A request as it comes in. size: bytes of target and headers. pieces: of the body, those that nobody took."""

    __slots__ = (
        "complete",
        "headers",
        "keep_alive",
        "method",
        "pieces",
        "size",
        "target",
        "upgrade",
        "version",
    )

    def __init__(self) -> None:
        self.method = ""
        self.target = b""
        self.version = ""
        self.headers: list[tuple[bytes, bytes]] = []
        self.size = 0
        self.pieces: list[bytes] = []
        self.complete = False
        self.keep_alive = True
        self.upgrade = False


class Incoming:
    """What llhttp calls: makes messages of the bytes of one connection.

    heads: messages whose head is whole and that nobody has taken. fault: why there will be no more. left: what came
    behind a message that asks for an upgrade; None: there was none.
    """

    def __init__(self) -> None:
        self.heads: deque[Message] = deque()
        self.fault: EdgeQueuesError | None = None
        self.left: bytes | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._now: Message | None = None
        self._in_body = False
        self._got_on = False  # did what was fed last begin a message, end a head, bring some body?
        self._unfinished = 0  # bytes since then: of a head, of the lines between chunks, of a trailer
        self._blank = 0  # bytes of line ends before a message

    @property
    def is_full(self) -> bool:
        """Is there something behind the message that is being answered? Then no more is read."""
        return bool(self.heads) or self.fault is not None or self.left is not None

    @property
    def has_part_of_a_head(self) -> bool:
        """Is there input that no request has come of yet?"""
        return self._now is not None and not self._in_body

    def feed(self, data: bytes) -> None:
        """Take bytes; after a fault, none any more."""
        if self.fault is not None or self.left is not None:
            return
        now, self._got_on = self._now, False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.left = data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            self.fault = cause if isinstance(cause, EdgeQueuesError) else InvalidRequest(_NOT_HTTP)
        except httptools.HttpParserError:
            self.fault = InvalidRequest(_NOT_HTTP)
        else:
            self._bound(len(data), idle=now is None and not self._got_on)

    def end(self) -> None:
        """The client sends no more."""
        if self._now is not None and self.fault is None:
            self.fault = InvalidRequest("the request ends in its middle")

    def _bound(self, size: int, *, idle: bool) -> None:
        """What llhttp itself would take without end: lines that go on, and line ends before a message."""
        self._unfinished = self._unfinished + size if self._now is not None and not self._got_on else 0
        self._blank = self._blank + size if idle else 0
        if self._unfinished > HEAD_BYTES_MAX:
            self.fault = HeadersTooLarge(_TOO_LARGE)
        elif self._blank > BLANK_MAX:
            self.fault = InvalidRequest(_NOT_HTTP)

    # -- called by llhttp ---------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A message begins."""
        self._now = Message()
        self._in_body = False
        self._got_on = True

    def on_url(self, part: bytes) -> None:
        """A part of its target."""
        message = self._now
        assert message is not None
        message.target += part
        self._grown(message, len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer."""
        message = self._now
        assert message is not None
        if not self._in_body:  # what comes behind a body says nothing
            message.headers.append((name.lower(), value.strip(_OWS)))  # llhttp leaves what is behind a value
        self._grown(message, len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        message, parser = self._now, self._parser
        assert message is not None
        message.method = parser.get_method().decode()
        message.version = parser.get_http_version()
        message.keep_alive = parser.should_keep_alive() and message.version == "1.1"
        message.upgrade = parser.should_upgrade()
        if message.version not in ("1.1", "1.0"):
            raise InvalidRequest("HTTP/1.1 is spoken here")
        if message.method == "CONNECT":
            raise InvalidRequest("this is no proxy")
        for name, value in message.headers:
            if name == b"transfer-encoding" and (value.lower() != b"chunked" or message.version == "1.0"):
                raise InvalidRequest("of all transfer codings chunked is taken, in HTTP/1.1")
        self._in_body = self._got_on = True
        self.heads.append(message)

    def on_body(self, part: bytes) -> None:
        """A part of its body."""
        assert self._now is not None
        self._now.pieces.append(part)
        self._got_on = True

    def on_message_complete(self) -> None:
        """All of it is there."""
        assert self._now is not None
        self._now.complete = True
        self._now = None

    def _grown(self, message: Message, size: int) -> None:
        message.size += size
        if message.size > HEAD_BYTES_MAX or len(message.headers) > HEADERS_MAX:
            raise HeadersTooLarge(_TOO_LARGE)


class Exchange:
    """One request as the app sees it: called it is ASGI's `receive`, and `send` is ASGI's `send`.

    begun: has any of the answer been sent? closes: is it the last one on the connection?
    """

    __slots__ = (
        "_chunked",
        "_ended",
        "_given",
        "_head",
        "_incoming",
        "_message",
        "_owes_continue",
        "_stopping",
        "_transport",
        "begun",
        "closes",
    )

    def __init__(
        self, message: Message, incoming: Incoming, transport: Transport, stopping: Callable[[], bool]
    ) -> None:
        self._message = message
        self._incoming = incoming
        self._transport = transport
        self._stopping = stopping
        self._owes_continue = not message.complete and message.version == "1.1" and _expects(message.headers)
        self._given = False  # has the end of the body been given?
        self._head = b""  # of an answer whose body will follow at once
        self._chunked = False
        self._ended = False
        self.begun = False
        self.closes = not message.keep_alive

    @property
    def is_whole(self) -> bool:
        """Did all of the request come, and was all of the answer sent?"""
        return self._message.complete and self._ended

    async def __call__(self) -> dict[str, Any]:
        """Return the next part of the body, then wait until the client is gone."""
        message, incoming = self._message, self._incoming
        while (part := self.come()) is None:
            if message.complete and incoming.is_full:
                await self._transport.lost()  # what is not read does not tell of a hang-up
                return _GONE
            if incoming.fault is not None:
                return _GONE
            if self._owes_continue and not self.begun:
                self._owes_continue = False
                await self._transport.write(_CONTINUE)
            data = await self._transport.read()
            if not data:
                incoming.end()
                return _GONE
            incoming.feed(data)
        return part

    def come(self) -> dict[str, Any] | None:
        """Return the next part of the body if it is there already."""
        message = self._message
        if self._given or not (message.pieces or message.complete):
            return None
        body = b"".join(message.pieces)
        message.pieces.clear()
        self._given = message.complete
        return {"type": "http.request", "body": body, "more_body": not message.complete}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send a part of the answer: head and body leave together where the body is known."""
        if message["type"] == "http.response.start":
            self._head, sized = self._encoded(message["status"], message["headers"])
            if not sized:  # a stream: its head must not wait for its first piece
                await self._flush(b"")
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._message.method == "HEAD":
            body = b""
        elif self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        self._ended = not more
        await self._flush(body)

    async def _flush(self, body: bytes) -> None:
        head, self._head = self._head, b""
        if len(body) < COPY_BYTES_MAX:
            head, body = head + body, b""
        for part in (head, body):
            if part:
                self.begun = True
                await self._transport.write(part)

    def _encoded(self, status: int, headers: Headers) -> tuple[bytes, bool]:
        """The head of an answer, and whether it says how long the body is."""
        self.closes = self.closes or self._stopping()
        lines = [_PHRASES[status], *[b"%b: %b\r\n" % header for header in headers], _date()]
        sized = any(name == b"content-length" for name, _ in headers)
        if not sized and status not in _BODILESS:
            self._chunked = self._message.version == "1.1"
            if self._chunked:
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                self.closes = True
        if self.closes:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines):
            raise ValueError("a header of the answer holds a line end")
        return head, sized


class Lane:
    """The requests of one connection, one after the other."""

    def __init__(self, app: Server, transport: Transport, context: Any, addresses: dict[str, Any]) -> None:
        self._app = app
        self._transport = transport
        self._context = context
        self._addresses = addresses
        self._incoming = Incoming()

    async def run(self) -> bytes | None:
        """Serve to the end; bytes: what came of a request that is not for the lane, and all behind it."""
        while True:
            message = await self._next()
            if message is None:
                return None
            if message.upgrade:
                left, self._incoming = self._incoming.left or b"", Incoming()
                if message.method == "GET" and asks_for_websocket(message.headers):
                    return _again(message, left)
                # Not taken up. Its body, if it has one, is in what is left.
                message.headers = [header for header in message.headers if header[0] != b"upgrade"]
                self._incoming.feed(_again(message, left))
                continue
            self._transport.request_began()
            if not await self._answer(message):
                return None
            self._transport.request_ended()
            if not self._incoming.heads and self._incoming.left is not None:  # a trailer spoke of an upgrade
                left, self._incoming = self._incoming.left, Incoming()
                self._incoming.feed(left)

    async def _next(self) -> Message | None:
        """The next request whose head is there; None: there is none, and whatever was to be said was said."""
        incoming = self._incoming
        if incoming.heads:
            await trio.lowlevel.checkpoint()  # a client that sends many at once must not stop the others
        while not incoming.heads:
            if incoming.fault is not None:
                await self.refuse(incoming.fault)
                return None
            if incoming.has_part_of_a_head:
                self._transport.head_began()
            data = await self._transport.read()
            if not data:
                incoming.end()
                if incoming.fault is None:
                    return None
            incoming.feed(data)
        return incoming.heads.popleft()

    async def refuse(self, error: EdgeQueuesError, method: str = "") -> None:
        """Answer what is no request."""
        log.info("a request was refused: %s", error.detail)
        head, end, body = refusal(error).partition(b"\r\n\r\n")
        await self._transport.write(head + end + (b"" if method == "HEAD" else body))

    async def _answer(self, message: Message) -> bool:
        """Have the app answer; return whether another request may follow."""
        stopping = self._context.terminated.is_set
        exchange = Exchange(message, self._incoming, self._transport, stopping)
        path, _, query = message.target.partition(b"?")
        scope = {
            "type": "http",
            "http_version": message.version,
            "method": message.method,
            "raw_path": path,
            "path": unquote(path.decode("latin-1")),
            "query_string": query,
            "headers": message.headers,
            **self._addresses,
        }
        try:
            await self._app(scope, exchange, exchange.send)
        except Exception:
            log.exception("a handler failed")
        if not exchange.begun and self._incoming.fault is not None:
            await self.refuse(self._incoming.fault, message.method)
        return exchange.is_whole and not exchange.closes and not stopping()


def _expects(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Does the client wait to be told that it may go on?"""
    return any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)


def _again(message: Message, left: bytes) -> bytes:
    """The bytes of a head, and what came behind it."""
    lines = b"".join([b"%b: %b\r\n" % header for header in message.headers])
    top = b"%b %b HTTP/%b" % (message.method.encode(), message.target, message.version.encode())
    return b"%b\r\n%b\r\n%b" % (top, lines, left)


def _date() -> bytes:
    return _date_at(int(time.time()))


@lru_cache(maxsize=1)
def _date_at(unix_s: int) -> bytes:
    return b"date: %b\r\n" % formatdate(unix_s, usegmt=True).encode()
