"""One connection: how long each thing may take on it, and its end.

Deadlines are numbers that one task of the server compares with the clock every `sweep_s`. A cancel scope or a timer
for each request would cost more than parsing it does.
"""

from __future__ import annotations

import logging
import ssl
from contextlib import suppress
from math import inf
from typing import Any

import trio
from hypercorn.config import Config
from hypercorn.utils import parse_socket_addr

from edgequeues.core.errors import InvalidRequest
from edgequeues.http.http1 import Http1, refusal
from edgequeues.http.lane import Lane
from edgequeues.http.problems import RequestTimeout
from edgequeues.http.server import Server
from edgequeues.http.wire import READ_BYTES, WRITE_BYTES, Deadlines, Wire

log = logging.getLogger("edgequeues.http")


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
        if len(data) <= WRITE_BYTES and self._stream is self._wire and not self._writing.locked():
            data = self._wire.offer(data)
        if not data or self._lost.is_set():
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
