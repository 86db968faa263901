"""The lane: HTTP/1.1 in the task that reads the connection. llhttp takes the bytes apart, the app is called directly.

One request at a time, and what it needs of the socket is read when it asks for it: no task, no queue, no timer for
each request. What is not served here (an upgrade to WebSocket) is handed over as the bytes that came.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
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
from edgequeues.http.server import Server

COPY_BYTES_MAX = 64 * 1024  # a larger piece of an answer is not joined with what goes before it
BLANK_MAX = 4  # bytes of line ends before a request, which some clients send after a body
PIPELINED_MAX = 1_000  # requests that wait behind one; more cannot come in one read of the socket

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NOT_HTTP = "these bytes are no HTTP/1.1 request"
_TOO_LARGE = f"at most {HEAD_BYTES_MAX} bytes and {HEADERS_MAX} headers are taken"
_PHRASES = {status.value: b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}
_GONE = {"type": "http.disconnect"}
_BODILESS = (204, 304)

log = logging.getLogger("edgequeues.http")


class Transport(Protocol):
    """What the lane needs of its connection."""

    async def read(self) -> bytes:
        """Wait for bytes; b"" at the end, also where the connection broke."""

    async def write(self, data: bytes) -> None:
        """Send all of it, or nothing more from now on."""

    def request_began(self) -> None:
        """A whole head has come in."""

    def request_ended(self) -> None:
        """Its answer has left, and another request may come."""

    def head_began(self) -> None:
        """A part of a head has come in."""


class Message:
    """A request as it comes in."""

    __slots__ = (
        "bodies",
        "complete",
        "headers",
        "keep_alive",
        "method",
        "minor",
        "size",
        "target",
        "upgrade",
    )

    def __init__(self) -> None:
        self.method = ""
        self.target = b""
        self.minor = "1.1"
        self.headers: list[tuple[bytes, bytes]] = []
        self.size = 0  # bytes of target and headers
        self.bodies: deque[bytes] = deque()
        self.complete = False
        self.keep_alive = True
        self.upgrade = False


class Incoming:
    """What llhttp calls: makes messages of the bytes of one connection. `fault`: why there will be no more."""

    def __init__(self) -> None:
        self.messages: deque[Message] = deque()
        self.heads: deque[Message] = deque()  # those whose head is whole and that nobody has taken
        self.fault: EdgeQueuesError | None = None
        self.left = b""  # behind an upgrade
        self._parser = httptools.HttpRequestParser(self)
        self._now: Message | None = None
        self._in_body = False
        self._begun = 0  # messages so far
        self._unfinished = 0  # bytes of a head after those that came with its first
        self._blank = 0  # line ends before a request

    @property
    def has_part_of_a_head(self) -> bool:
        """Is there input that no request has come of yet?"""
        return self._now is not None and not self._in_body

    def feed(self, data: bytes) -> None:
        """Take bytes; after a fault, none any more."""
        if self.fault is not None or self.left:
            return
        begun, now = self._begun, self._now
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
            began = self._begun > begun
            self._bound(len(data), began=began, idle=now is None and not began)

    def end(self) -> None:
        """The client sends no more."""
        if self._now is not None and self.fault is None:
            self.fault = InvalidRequest("the request ends in its middle")

    def _bound(self, size: int, *, began: bool, idle: bool) -> None:
        """What llhttp itself would take without end: a head that goes on, and line ends before it."""
        self._unfinished = self._unfinished + size if self.has_part_of_a_head and not began else 0
        self._blank = self._blank + size if idle else 0
        if self._unfinished > HEAD_BYTES_MAX:
            self.fault = HeadersTooLarge(_TOO_LARGE)
        elif self._blank > BLANK_MAX:
            self.fault = InvalidRequest(_NOT_HTTP)

    # -- called by llhttp ---------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._now = Message()
        self._in_body = False
        self._begun += 1

    def on_url(self, part: bytes) -> None:
        message = self._now
        assert message is not None
        message.target += part
        self._grown(message, len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        message = self._now
        assert message is not None
        if not self._in_body:  # what comes behind a body says nothing
            message.headers.append((name.lower(), value))
        self._grown(message, len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        message, parser = self._now, self._parser
        assert message is not None
        message.method = parser.get_method().decode()
        message.minor = parser.get_http_version()
        message.keep_alive = parser.should_keep_alive()
        message.upgrade = parser.should_upgrade()
        if message.minor not in ("1.1", "1.0"):
            raise InvalidRequest("HTTP/1.1 is spoken here")
        for name, value in message.headers:
            if name == b"transfer-encoding" and value.lower() != b"chunked":
                raise InvalidRequest("of all transfer codings only chunked is taken")
        self._in_body = True
        self.heads.append(message)

    def on_body(self, part: bytes) -> None:
        assert self._now is not None
        self._now.bodies.append(part)

    def on_message_complete(self) -> None:
        assert self._now is not None
        self._now.complete = True
        self._now = None

    def _grown(self, message: Message, size: int) -> None:
        message.size += size
        if message.size > HEAD_BYTES_MAX or len(message.headers) > HEADERS_MAX:
            raise HeadersTooLarge(_TOO_LARGE)


class Exchange:
    """One request as the app sees it: called it is ASGI's `receive`, and `send` is ASGI's `send`."""

    __slots__ = (
        "_ended",
        "_given",
        "_head",
        "_incoming",
        "_message",
        "_owes_continue",
        "_stopping",
        "_transport",
        "begun",
        "chunked",
        "closes",
    )

    def __init__(
        self, message: Message, incoming: Incoming, transport: Transport, stopping: Callable[[], bool]
    ) -> None:
        self._message = message
        self._incoming = incoming
        self._transport = transport
        self._head: dict[str, Any] | None = None
        self._given = False  # has the end of the body been given?
        self._owes_continue = not message.complete and _expects(message.headers)
        self._ended = False
        self.begun = False  # has any of an answer been sent?
        self.chunked = False
        self._stopping = stopping
        self.closes = not message.keep_alive  # is this the last answer on the connection?

    # -- receive ------------------------------------------------------------------------------------------

    async def __call__(self) -> dict[str, Any]:
        """Return the next part of the body, then wait until the client is gone."""
        while True:
            message = self.come()
            if message is not None:
                return message
            if self._incoming.fault is not None or len(self._incoming.heads) > PIPELINED_MAX:
                if not self._message.complete:
                    return _GONE
                await trio.sleep_forever()  # no more is read, so that a hang-up is not seen
            if self._owes_continue and not self.begun:
                self._owes_continue = False
                await self._transport.write(_CONTINUE)
            data = await self._transport.read()
            if not data:
                self._incoming.end()
                return _GONE
            self._incoming.feed(data)

    def come(self) -> dict[str, Any] | None:
        """Return the next part of the body if it is there already."""
        message = self._message
        if self._given or not (message.bodies or message.complete):
            return None
        body = message.bodies.popleft() if len(message.bodies) == 1 else b"".join(message.bodies)
        message.bodies.clear()
        self._given = message.complete
        return {"type": "http.request", "body": body, "more_body": not message.complete}

    @property
    def is_whole(self) -> bool:
        """Did all of the request come, and was all of the answer sent?"""
        return self._message.complete and self._ended

    # -- send ---------------------------------------------------------------------------------------------

    async def send(self, message: dict[str, Any]) -> None:
        """Send a part of the answer: head and body leave together where the body is known."""
        if message["type"] == "http.response.start":
            self._head = message
            if not _has_length(message):  # a stream: its head must not wait for its first piece
                await self._send(self._encoded_head(), b"")
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        head = self._encoded_head() if self._head is not None else b""
        if self._message.method == "HEAD":
            body = b""
        elif self.chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        self._ended = not more
        await self._send(head, body)

    async def _send(self, head: bytes, body: bytes) -> None:
        if head and len(body) < COPY_BYTES_MAX:
            await self._transport.write(head + body)
            return
        for part in (head, body):
            if part:
                await self._transport.write(part)

    def _encoded_head(self) -> bytes:
        assert self._head is not None
        self.closes = self.closes or self._stopping()
        head, self._head = self._head, None
        self.begun = True
        status = head["status"]
        lines = [_PHRASES[status]]
        lines += [b"%b: %b\r\n" % header for header in head["headers"]]
        if not _has_length(head) and status not in _BODILESS:
            if self._message.minor == "1.1":
                self.chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                self.closes = True
        lines.append(_date())
        if self.closes:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)


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
            if message.upgrade and message.method == "GET" and asks_for_websocket(message.headers):
                return _again(message, self._incoming.left)
            self._transport.request_began()
            if not await self._answer(message):
                return None
            self._transport.request_ended()
            if message.upgrade:  # which is not taken up: what follows is HTTP again
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
            data = await self._transport.read()
            if not data:
                incoming.end()
                if incoming.fault is None:
                    return None
            incoming.feed(data)
            if incoming.has_part_of_a_head and not incoming.heads:
                self._transport.head_began()
        return incoming.heads.popleft()

    async def refuse(self, error: EdgeQueuesError) -> None:
        """Answer what is no request."""
        log.info("a request was refused: %s", error.detail)
        await self._transport.write(refusal(error))

    async def _answer(self, message: Message) -> bool:
        """Have the app answer; return whether another request may follow."""
        stopping = self._context.terminated.is_set
        exchange = Exchange(message, self._incoming, self._transport, stopping)
        path, _, query = message.target.partition(b"?")
        scope = {
            "type": "http",
            "http_version": message.minor,
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
            await self.refuse(self._incoming.fault)
        return exchange.is_whole and not exchange.closes and not stopping()


def _has_length(head: dict[str, Any]) -> bool:
    return any(name == b"content-length" for name, _ in head["headers"])


def _expects(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Does the client wait to be told that it may go on?"""
    return any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)


def _again(message: Message, left: bytes) -> bytes:
    """The bytes of a request without a body, and what came behind it."""
    lines = b"".join([b"%b: %b\r\n" % header for header in message.headers])
    return b"%b %b HTTP/1.1\r\n%b\r\n%b" % (message.method.encode(), message.target, lines, left)


def _date() -> bytes:
    return _date_at(int(time.time()))


@lru_cache(maxsize=1)
def _date_at(unix_s: int) -> bytes:
    return b"date: %b\r\n" % formatdate(unix_s, usegmt=True).encode()
