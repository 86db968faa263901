"""From sockets to the app: our own accept loop, with Hypercorn's HTTP/1.1 behind it.

The loop is ours so that connections have a cap, a client that stops reading cannot keep one for ever, and
stopping ends all of them in bounded time.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.lifespan import Lifespan
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState, LifespanState

from edgequeues.http.hosts import require_loopback
from edgequeues.http.problems import body as problem_body
from edgequeues.http.server import Server
from shards.errors import Overloaded

CONNECTIONS_MAX = 4096
IDLE_S = 75.0  # without a whole request; longer than clients keep a connection, so that they close it first
WRITE_S = 60.0  # for a client to take WRITE_BYTES
WRITE_BYTES = 64 * 1024
GRACE_S = 5.0  # for requests under way when the server stops

log = logging.getLogger("edgequeues.http")


async def serve(
    app: Server,
    host: str,
    port: int,
    *,
    shutdown: trio.Event | None = None,
    grace_s: float = GRACE_S,
    connections_max: int = CONNECTIONS_MAX,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `shutdown` is set, then let requests under way finish for `grace_s`; reports the server's URL.

    port: 0 takes a free one. connections_max: more are turned away with 503.
    Raises ValueError for a host that is not loopback, OSError where it is taken.
    """
    address = require_loopback(host)
    listeners = await trio.open_tcp_listeners(port, host="127.0.0.1" if "localhost" in address else address)
    front = Front(app, connections_max)
    lifespan = Lifespan(front.wrapped, front.config, LifespanState({}))
    async with trio.open_nursery() as nursery:
        await nursery.start(lifespan.handle_lifespan)
        await lifespan.wait_for_startup()
        async with trio.open_nursery() as guard:
            guard.start_soon(front.close_all_at_the_end)
            async with trio.open_nursery() as connections:
                async with trio.open_nursery() as accepting:
                    accept = partial(trio.serve_listeners, handler_nursery=connections)
                    await accepting.start(accept, front.handle, listeners)
                    task_status.started(_url(listeners[0]))
                    await (trio.Event() if shutdown is None else shutdown).wait()
                    accepting.cancel_scope.cancel()
                guard.cancel_scope.deadline = trio.current_time() + grace_s
                await front.stop()
            guard.cancel_scope.cancel()
        await lifespan.wait_for_shutdown()
        nursery.cancel_scope.cancel()


def _url(listener: trio.SocketListener) -> str:
    host, port = listener.socket.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Front:
    """The connections of one server."""

    def __init__(self, app: Server, connections_max: int) -> None:
        self.config = _config()
        self.wrapped = ASGIWrapper(cast(Any, app))
        self._app = app
        self._context = WorkerContext(None)
        self._connections_max = connections_max
        self._open: set[trio.SocketStream] = set()

    async def handle(self, stream: trio.SocketStream) -> None:
        """Serve one connection to its end. A bug in here costs this connection, not the server."""
        if len(self._open) >= self._connections_max:
            await _turn_away(stream)
            return
        self._open.add(stream)
        try:
            state = ConnectionState({})
            patient = cast(Any, BoundedStream(stream))
            await Connection(self.wrapped, self.config, self._context, state, patient)
        except Exception:
            log.exception("a connection failed")
        finally:
            self._open.discard(stream)
            stream.socket.close()

    async def stop(self) -> None:
        """End waits and idle connections; others end with the answer under way."""
        self._app.waits.end()
        await self._context.terminated.set()

    async def close_all_at_the_end(self) -> None:
        """When cancelled, close every socket: Hypercorn's writes do not listen to cancellation."""
        try:
            await trio.sleep_forever()
        finally:
            for stream in self._open:
                stream.socket.close()


def _config() -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = log
    config.include_server_header = False
    config.keep_alive_timeout = IDLE_S
    config.keep_alive_max_requests = 1_000_000_000
    return config


class BoundedStream:
    """A socket whose writes give up on a client that does not read."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.socket = stream.socket
        self.receive_some = stream.receive_some
        self.send_eof = stream.send_eof
        self.aclose = stream.aclose
        self._stream = stream

    async def send_all(self, data: bytes) -> None:
        """Send all. Raises BrokenResourceError, also after WRITE_S without WRITE_BYTES of progress."""
        view = memoryview(data)
        for start in range(0, len(view), WRITE_BYTES):
            with trio.move_on_after(WRITE_S) as limit:
                await self._stream.send_all(view[start : start + WRITE_BYTES])
            if limit.cancelled_caught:
                self.socket.close()
                raise trio.BrokenResourceError("the client does not read")


class Http1(H11Protocol):
    """HTTP/1.1 that stays HTTP/1.1."""

    async def _check_protocol(self, event: Any) -> None:
        """Offers of HTTP/2 are not taken up; an answer in HTTP/1.1 is always right."""


class Connection(TCPServer):
    """One connection, with our protocol in place of Hypercorn's choice."""

    _reading: trio.CancelScope | None = None

    async def _close(self) -> None:
        """Close, and end the reading: it may be stuck with a body that its handler has left alone."""
        await super()._close()
        if self._reading is not None:
            self._reading.cancel()

    async def _read_data(self) -> None:
        wrapper = self.protocol
        wrapper.protocol = Http1(
            wrapper.app,
            wrapper.config,
            wrapper.context,
            wrapper.task_group,
            wrapper.state,
            wrapper.ssl,
            wrapper.client,
            wrapper.server,
            wrapper.send,
        )
        with trio.CancelScope() as self._reading:
            await super()._read_data()
        await self.idle_task.stop()  # it would hold the socket of a client that left until IDLE_S are over


async def _turn_away(stream: trio.SocketStream) -> None:
    body = problem_body(Overloaded())
    head = (
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n"
        b"content-length: %d\r\nretry-after: 1\r\nconnection: close\r\n\r\n" % len(body)
    )
    with trio.move_on_after(1), suppress(trio.BrokenResourceError):
        await stream.send_all(head + body)
        await stream.send_eof()
        while await stream.receive_some():  # what is left unread would reset the connection, answer and all
            pass
    await stream.aclose()
