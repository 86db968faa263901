"""The socket of one connection: what is sent and received, and what clients are slow to take of it."""

from __future__ import annotations

import logging
import socket
import struct
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple

import trio

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

    def offer(self, data: bytes) -> bytes:
        """Send what can be sent at once, and return the rest: its sender meets whatever stood in the way."""
        try:
            return data[self.socket.send(data) :]
        except OSError:
            return data

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
        number = self.socket.fileno()
        if number < 0:  # trio would take it for a file that somebody waits for already
            raise trio.ClosedResourceError
        try:
            await ready(number)
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
