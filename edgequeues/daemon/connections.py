"""Calls to one service over HTTP/1.1, on connections that are kept: what the daemon does most must cost little.

httptools takes answers apart. One call is one write, each answer is read whole, and nothing is asked twice. Proxies
of the environment are not heeded.
"""

from __future__ import annotations

import select
import ssl
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote, urlsplit

import httptools
import trio

from edgequeues.core.errors import reason
from edgequeues.core.hostnames import is_loopback

HEAD_BYTES_MAX: Final = 64 * 1024
KEPT_MAX: Final = 20  # connections that have nothing to do
KEPT_S_MAX: Final = 5.0  # for so long: most services close them later
GZIP_WINDOW: Final = 31  # zlib's way to expect the frame of gzip
_SAFE = "!#$%&'()*+,/:;=?@[]~"  # in a target as it is, beside letters, digits, `_`, `.` and `-`


class Broken(Exception):
    """There is no whole answer. The call may have been done all the same."""


class Answer(NamedTuple):
    """An answer, whole. headers: names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Calls(Protocol):
    """How a service is called; `Connections` does it over sockets."""

    async def call(self, method: str, url: str, body: bytes = b"") -> Answer:
        """Ask once. body: JSON. Raises Broken."""


class Connections:
    """The connections to one service, as many as there are calls at one time."""

    def __init__(self, url: str, token: str | None, *, timeout_s: float, bytes_max: int) -> None:
        """url: any of the service. timeout_s: of each step of a call. bytes_max: of an answer's body."""
        at = urlsplit(url)
        assert at.hostname, "an endpoint was checked"
        self._origin = f"{at.scheme}://{at.netloc}"
        self._host = at.hostname
        self._port = at.port or (443 if at.scheme == "https" else 80)
        self._tls = _tls() if at.scheme == "https" else None
        self._timeout_s = timeout_s
        self._bytes_max = bytes_max
        self._kept: list[_Connection] = []
        host = at.netloc if at.netloc.isascii() else at.netloc.encode("idna").decode()
        lines = [f"host: {host}", "accept: application/json", "content-type: application/json"]
        lines += ["accept-encoding: identity" if is_loopback(self._host) else "accept-encoding: gzip"]
        lines += [f"authorization: Bearer {token}"] if token else []
        self._headers = "".join(f"{line}\r\n" for line in lines).encode("latin-1")

    async def call(self, method: str, url: str, body: bytes = b"") -> Answer:
        """See `Calls`."""
        target = quote(url.removeprefix(self._origin), safe=_SAFE).encode()
        head = b"%s %s HTTP/1.1\r\n%scontent-length: %d\r\n\r\n"
        request = head % (method.encode(), target, self._headers, len(body)) + body
        try:
            connection = await self._taken()
            try:
                answer = await connection.ask(request, self._bytes_max, self._timeout_s)
            finally:
                await self._left(connection)
        except trio.TooSlowError as fault:
            raise Broken(f"nothing for {self._timeout_s:g} s") from fault
        except (OSError, trio.BrokenResourceError, zlib.error) as fault:
            raise Broken(reason(fault)) from fault
        return answer

    async def close(self) -> None:
        """Close those that are kept."""
        with trio.CancelScope(shield=True):
            while self._kept:
                await trio.aclose_forcefully(self._kept.pop().stream)

    async def _taken(self) -> _Connection:
        while self._kept:
            connection = self._kept.pop()
            if connection.is_usable():
                return connection
            await trio.aclose_forcefully(connection.stream)
        with trio.fail_after(self._timeout_s):
            plain = await trio.open_tcp_stream(self._host, self._port)
            if self._tls is None:
                return _Connection(plain, plain)
            secure = trio.SSLStream(plain, self._tls, server_hostname=self._host, https_compatible=True)
            try:
                await secure.do_handshake()
            except BaseException:
                await trio.aclose_forcefully(plain)
                raise
            return _Connection(secure, plain)

    async def _left(self, connection: _Connection) -> None:
        if connection.is_idle and len(self._kept) < KEPT_MAX:
            connection.idle_s = trio.current_time()
            self._kept.append(connection)
        else:
            await trio.aclose_forcefully(connection.stream)


class _Connection:
    """stream: what is spoken over; plain: the socket below it. is_idle: may it have another call?"""

    def __init__(self, stream: trio.abc.Stream, plain: trio.SocketStream) -> None:
        self.stream = stream
        self.is_idle = False
        self.idle_s = 0.0  # since
        self._poll = select.poll()
        self._poll.register(plain.socket.fileno(), select.POLLIN)

    def is_usable(self) -> bool:
        """False: kept for too long, or closed by the other side, or something came that nobody asked for."""
        return trio.current_time() - self.idle_s <= KEPT_S_MAX and not self._poll.poll(0)

    async def ask(self, request: bytes, bytes_max: int, timeout_s: float) -> Answer:
        """Raises Broken, OSError, trio.BrokenResourceError, trio.TooSlowError, zlib.error."""
        self.is_idle = False
        with trio.fail_after(timeout_s):
            await self.stream.send_all(request)
        reading = _Reading(bytes_max)
        while not reading.is_whole:
            with trio.fail_after(timeout_s):
                data = await self.stream.receive_some()
            if data:
                reading.feed(data)
            else:
                reading.end()
        self.is_idle = reading.keeps
        return reading.answer()


class _Reading:
    """One answer on its way, as httptools tells of it. keeps: may the connection have another call after it?"""

    def __init__(self, bytes_max: int) -> None:
        self.is_whole = self.keeps = False
        self._bytes_max = bytes_max
        self._has_head = False
        self._head_bytes = 0
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes | bytearray) -> None:
        """Take what came. Raises Broken for what is no HTTP, and for more than there may be."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as fault:
            raise fault.__context__ or fault from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as fault:
            if not self.is_whole:
                raise Broken("no HTTP/1.1") from fault
            self.keeps = False
        if not self._has_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                raise Broken(f"headers of more than {HEAD_BYTES_MAX} bytes")

    def end(self) -> None:
        """Nothing more comes. Raises Broken, unless that is how this answer is to end."""
        if not self._has_head or not {"content-length", "transfer-encoding"}.isdisjoint(self._headers):
            raise Broken("the connection was closed before there was a whole answer")
        self.is_whole = True

    def answer(self) -> Answer:
        """What came. Raises Broken, zlib.error where the body is not as its header says."""
        body, coding = bytes(self._body), self._headers.get("content-encoding", "identity")
        if coding == "gzip":
            opening = zlib.decompressobj(GZIP_WINDOW)
            body = opening.decompress(body, self._bytes_max)
            if not opening.eof:
                raise Broken(f"an answer that is cut off, or of more than {self._bytes_max} bytes")
        elif coding != "identity":
            raise Broken("an answer in an encoding that was not asked for")
        return Answer(self._status, self._headers, body)

    # -- what httptools calls ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Of this answer, or of what nobody asked for."""
        self.keeps = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One line."""
        if not self.is_whole:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Of this answer, or of one before it that only says to wait."""
        if not self.is_whole:
            self._status = self._parser.get_status_code()
            self._has_head = self._status >= 200

    def on_body(self, piece: bytes) -> None:
        """A piece."""
        if not self.is_whole:
            self._body += piece
            if len(self._body) > self._bytes_max:
                raise Broken(f"an answer of more than {self._bytes_max} bytes")

    def on_message_complete(self) -> None:
        """Of this answer, or of one before it."""
        if not self._has_head:
            self._headers.clear()
        elif not self.is_whole:
            self.is_whole, self.keeps = True, self._parser.should_keep_alive()


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@asynccontextmanager
async def open_connections(
    url: str, token: str | None, *, timeout_s: float, bytes_max: int
) -> AsyncIterator[Connections]:
    """Connections, which end with the block. None is opened before it is needed."""
    connections = Connections(url, token, timeout_s=timeout_s, bytes_max=bytes_max)
    try:
        yield connections
    finally:
        await connections.close()
