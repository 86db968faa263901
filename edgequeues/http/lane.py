"""The lane: HTTP/1.1 in the task that reads the connection. llhttp takes the bytes apart, routes are called directly.

One request at a time, and what it needs of the socket is read when it asks for it: no task, no queue, no timer for
each request. What is not served here (an upgrade to WebSocket) is handed over as the bytes that came.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, MutableMapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import unquote

import trio

from edgequeues.core.errors import EdgeQueuesError
from edgequeues.http.http1 import asks_for_websocket, refusal
from edgequeues.http.incoming import Incoming, Message
from edgequeues.http.routes import Head, Headers
from edgequeues.http.server import Server

COPY_BYTES_MAX = 64 * 1024  # a larger piece of an answer is not joined with what goes before it

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
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

    async def lost(self) -> None:
        """Wait until it is known that nothing can be sent any more."""

    def request_began(self) -> None:
        """A whole head has come in."""

    def request_ended(self) -> None:
        """Its answer has left, and another request may come."""

    def head_began(self) -> None:
        """A part of a head has come in."""


class Exchange:
    """One request as the app sees it: called it is ASGI's `receive`, and its answer goes to it, see `Out`.

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
        """Send a part of the answer, as ASGI has it."""
        if message["type"] == "http.response.start":
            await self.begin(message["status"], message["headers"])
        else:
            await self.piece(message.get("body", b""), more=message.get("more_body", False))

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send all of an answer whose headers say how long it is, or which has no body."""
        head = self._encoded(status, headers)
        self.begun = self._ended = True
        if len(body) < COPY_BYTES_MAX:
            await self._transport.write(head + body)
        else:
            await self._transport.write(head)
            await self._transport.write(body)

    async def begin(self, status: int, headers: Headers) -> None:
        """Send the head, or keep it for a body that is known, to leave together with it."""
        sized = any(name == b"content-length" for name, _ in headers)
        framing = b""
        if not sized and status not in _BODILESS:
            self._chunked = self._message.version == "1.1"
            if self._chunked:
                framing = b"transfer-encoding: chunked\r\n"
            else:
                self.closes = True
        self._head = self._encoded(status, headers, framing)
        if not sized:  # a stream: its head must not wait for its first piece
            await self._flush(b"")

    async def piece(self, body: bytes, *, more: bool) -> None:
        """Send a part of the body."""
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

    def _encoded(self, status: int, headers: Headers, framing: bytes = b"") -> bytes:
        """The head of an answer."""
        self.closes = self.closes or self._stopping()
        end = b"connection: close\r\n\r\n" if self.closes else b"\r\n"
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        if lines.count(b"\n") != len(headers):
            raise ValueError("a header of the answer holds a line end")
        return b"%b%b%b%b%b" % (_PHRASES[status], lines, _date(), framing, end)


class Lane:
    """The requests of one connection, one after the other."""

    def __init__(self, app: Server, transport: Transport, context: Any, addresses: dict[str, Any]) -> None:
        self._app = app
        self._transport = transport
        self._context = context
        self._addresses = addresses
        self._peer: str = (addresses.get("client") or ("",))[0]
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
        await self._transport.write(refusal(error, method))

    async def _answer(self, message: Message) -> bool:
        """Have the app answer; return whether another request may follow."""
        stopping = self._context.terminated.is_set
        exchange = Exchange(message, self._incoming, self._transport, stopping)
        path, _, query = message.target.partition(b"?")
        head = Head(message.method, path, query, message.headers, self._peer)
        try:
            if not await self._app.serve(head, exchange, exchange):
                await self._app.rest(self._scope(head, message.version), exchange, exchange.send)
        except Exception:
            log.exception("a handler failed")
        if not exchange.begun and self._incoming.fault is not None:
            await self.refuse(self._incoming.fault, message.method)
        return exchange.is_whole and not exchange.closes and not stopping()

    def _scope(self, head: Head, version: str) -> dict[str, Any]:
        """What ASGI tells an app of a request."""
        return {
            "type": "http",
            "http_version": version,
            "method": head.method,
            "raw_path": head.target,
            "path": unquote(head.target.decode("latin-1")),
            "query_string": head.query,
            "headers": head.headers,
            **self._addresses,
        }


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
