"""One connection: its socket, how long each thing may take on it, and its end.

Deadlines are numbers that one task of the server compares with the clock every `sweep_s`. A cancel scope or a timer
for each request would cost more than parsing it does.
"""

from __future__ import annotations

import logging
import socket
import ssl
import struct
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple

import trio
from hypercorn.config import Config
from hypercorn.utils import parse_socket_addr

from edgequeues.core.errors import InvalidRequest
from edgequeues.http.http1 import Http1, refusal
from edgequeues.http.lane import Lane
from edgequeues.http.problems import RequestTimeout
from edgequeues.http.server import Server

READ_BYTES = 64 * 1024
WRITE_BYTES = 64 * 1024
KEEPALIVE_S = 120  # of silence, before the system looks whether the client's machine is still there
BACKLOG_BYTES_MAX = 256 * 1024 * 1024

log = logging.getLogger("edgequeues.http")


class Deadlines(NamedTuple):
    """What a client may take its time for, in seconds.

    head_s: a TLS handshake; the first byte; from the first byte of a request to the end of its headers. idle_s:
    between two requests; longer than clients keep a connection, so that they close it first. write_s: to take
    WRITE_BYTES of an answer. linger_s: to read the last answer before the connection is closed under it. sweep_s:
    how late any of these may be noticed.
    """

    head_s: float = 10.0
    idle_s: float = 75.0
    write_s: float = 60.0
    linger_s: float = 2.0
    sweep_s: float = 1.0


class Backlog:
    """What clients are slow to take, all together. Above `bytes_max`, who has stood still longest is dropped."""

    def __init__(self, bytes_max: int = BACKLOG_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._held: dict[Wire, int] = {}  # in the order of their last progress

    def hold(self, wire: Wire, size: int) -> None:
        """Note that `size` bytes are kept for the client, who has taken some of them just now."""
        self.release(wire)
        self._held[wire] = size
        self._bytes += size
        while self._bytes > self._bytes_max and len(self._held) > 1:
            slowest = next(iter(self._held))
            self.release(slowest)
            log.info("too much waits for clients that do not read: a connection is closed")
            slowest.reset()

    def release(self, wire: Wire) -> None:
        """Note that nothing is kept any more."""
        self._bytes -= self._held.pop(wire, 0)


class Wire(trio.abc.Stream):
    """A connected socket. What does not wait does not yield either: a tenth of what a small request costs.

    holding: bytes in memory of what is being sent.
    """

    def __init__(self, connected: socket.socket, deadlines: Deadlines, backlog: Backlog) -> None:
        connected.setblocking(False)
        with suppress(OSError):  # some systems refuse where the client has left already
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(
                socket, "TCP_KEEPIDLE"
            ):  # a client whose power failed would keep a WebSocket for hours
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S)
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):
                # Else the kernel holds megabytes for a client that does not read.
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, WRITE_BYTES)
        self.socket = connected
        self.write_due = inf
        self.holding = 0
        self._write_s = deadlines.write_s
        self._backlog = backlog

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Wait for bytes; b"" at the end. Raises BrokenResourceError and ClosedResourceError."""
        while True:
            await self._until(trio.lowlevel.wait_readable)
            try:
                return self.socket.recv(max_bytes or READ_BYTES)
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._failed(error) from error

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all; `write_due` tells by when the client must have taken more. Raises as `receive_some` does."""
        try:
            with memoryview(data) as view:
                await self._send(view)
        finally:
            if self.write_due != inf:
                self.write_due = inf
                self._backlog.release(self)
        if len(data) > WRITE_BYTES:
            await trio.lowlevel.checkpoint()  # a fast reader of long answers must not stop the others

    async def _send(self, view: memoryview) -> None:
        start = 0
        taken = 0  # since `write_due` was set
        while start < len(view):
            try:
                sent = self.socket.send(view[start:])
            except BlockingIOError:
                if self.write_due == inf or taken >= WRITE_BYTES:
                    self.write_due = trio.current_time() + self._write_s
                    self._backlog.hold(self, max(self.holding, len(view)))
                    taken = 0
                await self._until(trio.lowlevel.wait_writable)
            except OSError as error:
                raise self._failed(error) from error
            else:
                start += sent
                taken += sent

    async def wait_send_all_might_not_block(self) -> None:
        """Wait for room in the socket's buffer."""
        await self._until(trio.lowlevel.wait_writable)

    async def _until(self, ready: Any) -> None:
        if self.socket.fileno() < 0:  # trio would take -1 for a file that somebody waits for already
            raise trio.ClosedResourceError
        try:
            await ready(self.socket)
        except OSError as error:
            raise trio.ClosedResourceError from error

    def _failed(self, error: OSError) -> Exception:
        gone = self.socket.fileno() < 0
        return trio.ClosedResourceError() if gone else trio.BrokenResourceError(str(error))

    def close(self) -> None:
        """Close at once. Whoever waits for the socket meets ClosedResourceError."""
        if self.socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self.socket)
            self.socket.close()

    def reset(self) -> None:
        """Close at once, and let the system forget what it still had to send."""
        with suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    async def aclose(self) -> None:
        """Close at once."""
        self.close()
        await trio.lowlevel.checkpoint()

    def send_eof(self) -> None:
        """Say that nothing more will be sent."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)


class Connection:
    """Requests of one client, until it leaves, takes too long for something, or the server stops."""

    def __init__(
        self,
        app: Server,
        config: Config,
        context: Any,
        wire: Wire,
        deadlines: Deadlines,
        tls: ssl.SSLContext | None,
        *,
        lane: bool,
    ) -> None:
        self._has_lane = lane
        self._app = app
        self._config = config
        self._context = context
        self._wire = wire
        self._deadlines = deadlines
        self._stream: Wire | trio.SSLStream[Wire] = wire
        if tls is not None:
            self._stream = trio.SSLStream(wire, tls, server_side=True, https_compatible=True)
        self._http: Http1 | None = None
        self._reading = trio.CancelScope()
        self._writing = trio.Lock()
        self._waiting = True  # for a request, as opposed to having one
        self._in_head = False
        self._due = trio.current_time() + deadlines.head_s
        self._overdue = False
        self._has_hung_up = False
        self._lost = trio.Event()

    # -- called from outside ------------------------------------------------------------------------------

    def look_at(self, now: float) -> None:
        """End what has taken too long."""
        if self._wire.write_due < now:
            log.info("a client does not read its answer: the connection is closed")
            self._wire.reset()
        elif self._due < now:
            self._due = inf
            self._overdue = True
            self._reading.cancel()

    def stop(self) -> None:
        """End, unless a request is under way; then after it. `Http1` knows by itself when the server stops."""
        if self._waiting or (self._http is not None and self._http.is_websocket):
            self._reading.cancel()

    def close(self) -> None:
        """End at once, in the middle of whatever."""
        self._wire.close()

    # -- its life -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve to the end. What a client does wrong raises nothing."""
        try:
            async with trio.open_nursery() as nursery:
                with self._reading:
                    if await self._shake_hands():
                        first = await self._run_lane() if self._has_lane else b""
                        if first is not None:
                            self._http = self._make_http(nursery)
                            await self._read(self._http, first)
                if self._http is not None:
                    await self._conclude(self._http)
                elif self._has_lane:
                    await self._conclude_lane()
            await self._stream.aclose()
        except* (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            pass
        finally:
            self._wire.close()

    async def _shake_hands(self) -> bool:
        """Agree on keys, if this is TLS; return whether requests can come."""
        if isinstance(self._stream, Wire):
            return True
        try:
            await self._stream.do_handshake()
        except trio.BrokenResourceError as error:
            log.info(
                "a TLS handshake failed: %s", getattr(error.__cause__, "reason", None) or "the client left"
            )
            if getattr(error.__cause__, "reason", None) == "HTTP_REQUEST":
                await self._wire.send_all(refusal(InvalidRequest("this port speaks TLS: ask for https://")))
                self._wire.send_eof()
            return False
        return True

    def _make_http(self, nursery: trio.Nursery) -> Http1:
        connected = self._wire.socket
        return Http1(
            self._app,
            self._config,
            self._context,
            self,
            nursery,
            tls=self._stream is not self._wire,
            client=parse_socket_addr(connected.family, connected.getpeername()),
            server=parse_socket_addr(connected.family, connected.getsockname()),
        )

    async def _run_lane(self) -> bytes | None:
        """Serve what the lane can; bytes: what it handed back."""
        connected = self._wire.socket
        addresses = {
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "scheme": "http" if self._stream is self._wire else "https",
            "client": parse_socket_addr(connected.family, connected.getpeername()),
            "server": parse_socket_addr(connected.family, connected.getsockname()),
            "root_path": "",
            "extensions": {},
        }
        first = await Lane(self._app, self, self._context, addresses).run()
        self._has_hung_up = first is None
        return first

    async def _conclude_lane(self) -> None:
        """Say what is left to say where no request is under way."""
        if self._overdue and self._in_head:
            await self.write(refusal(RequestTimeout("the headers took too long")))
        if self._has_hung_up or self._overdue:
            await self._linger()

    async def _read(self, http: Http1, first: bytes) -> None:
        if first:
            await http.feed(first)
        data: bytes | bytearray = b" "
        while data:
            try:
                data = await self._stream.receive_some(READ_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            await http.feed(bytes(data))
            if self._waiting and http.has_part_of_a_head:
                self.head_began()

    async def _conclude(self, http: Http1) -> None:
        """Say what is left to say. Handlers still at work may go on answering a client that only stopped sending."""
        if self._overdue and self._in_head:
            await http.refuse(RequestTimeout("the headers took too long"))
        if self._reading.cancelled_caught:
            await http.go_away()
        if self._has_hung_up:
            await self._linger()
        await http.client_left()

    async def _linger(self) -> None:
        """Read on for a moment: what is left unread would reset the connection, and the last answer with it."""
        self._wire.send_eof()
        with trio.move_on_after(self._deadlines.linger_s), suppress(trio.BrokenResourceError):
            while await self._wire.receive_some():
                pass

    # -- for Http1 and the lane ---------------------------------------------------------------------------

    async def read(self) -> bytes:
        """Wait for bytes; b"" at the end, also where the connection broke."""
        try:
            return bytes(await self._stream.receive_some(READ_BYTES))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    async def lost(self) -> None:
        """Return when it was found that nothing can be sent any more."""
        await self._lost.wait()

    def head_began(self) -> None:
        """From here on a head must be whole within its time."""
        if not self._in_head:
            self._in_head = True
            self._due = trio.current_time() + self._deadlines.head_s

    async def write(self, data: bytes) -> None:
        """Send all of it; to a client that has left, nothing any more."""
        if self._lost.is_set():
            return
        try:
            self._writing.acquire_nowait()
        except trio.WouldBlock:
            await self._writing.acquire()
        self._wire.holding = len(data)
        try:
            await self._send(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._lost.set()
        except trio.Cancelled:
            self._wire.close()  # nobody knows how much of it was sent
            raise
        finally:
            self._writing.release()
        if self._lost.is_set() and self._http is not None:
            self._reading.cancel()
            await self._http.client_left()

    async def _send(self, data: bytes) -> None:
        if self._stream is self._wire:
            await self._wire.send_all(data)
            return
        for start in range(0, len(data), WRITE_BYTES):  # a copy of all of it, encrypted, would lie in memory
            await self._stream.send_all(data[start : start + WRITE_BYTES])

    def request_began(self) -> None:
        """From here on the request's own deadlines count."""
        self._waiting = self._in_head = False
        self._due = inf

    def request_ended(self) -> None:
        """Wait for the next one."""
        self._waiting = True
        self._due = trio.current_time() + self._deadlines.idle_s

    def hang_up(self) -> None:
        """End, since there is nothing more to say."""
        self._has_hung_up = True
        self._reading.cancel()
