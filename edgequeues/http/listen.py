"""From sockets to connections: our own accept loop, within a cap, and an end in bounded time."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.lifespan import Lifespan
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import LifespanState

from edgequeues.core.hostnames import bare, is_address, is_loopback
from edgequeues.http.connection import Connection
from edgequeues.http.http1 import refusal
from edgequeues.http.server import Server
from edgequeues.http.wire import Backlog, Deadlines, Wire
from shards.errors import Overloaded

CONNECTIONS_MAX = 4096
GRACE_S = 5.0  # for requests under way when the server stops
DEADLINES = Deadlines()
WEBSOCKET_MESSAGE_BYTES_MAX = 1024 * 1024
TURN_AWAY_S = 1.0
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RETRY_S = 0.1
TELL_EVERY_S = 10.0

log = logging.getLogger("edgequeues.http")


class BadTls(Exception):
    """TLS cannot be spoken with these files. The message says why, and what would do."""


class TlsFiles(NamedTuple):
    """PEM files: the certificate with those that vouch for it, and its private key, not encrypted."""

    cert: str
    key: str


async def serve(
    app: Server,
    host: str,
    port: int,
    *,
    tls: TlsFiles | None = None,
    shutdown: trio.Event | None = None,
    grace_s: float = GRACE_S,
    connections_max: int = CONNECTIONS_MAX,
    deadlines: Deadlines = DEADLINES,
    lane: bool = True,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `shutdown` is set, then let requests under way finish for `grace_s`; reports the server's URL.

    host: an address, or a name for 127.0.0.1. port: 0 takes a free one. connections_max: more are turned away. lane:
    the fast way for requests, else h11 and Hypercorn do it all.
    Raises OSError where the address is taken, BadTls.
    """
    context = None if tls is None else tls_context(tls)
    address = bare(host)
    if is_loopback(address) and not is_address(address):
        address = "127.0.0.1"  # a name such as localhost
    listeners = await trio.open_tcp_listeners(port, host=address)
    front = Front(app, connections_max, deadlines, context, lane=lane)
    lifespan = Lifespan(cast(Any, ASGIWrapper(cast(Any, app))), front.config, LifespanState({}))
    async with trio.open_nursery() as nursery:
        await nursery.start(lifespan.handle_lifespan)
        await lifespan.wait_for_startup()
        async with trio.open_nursery() as guard:
            guard.start_soon(front.watch)
            async with trio.open_nursery() as connections:
                async with trio.open_nursery() as accepting:
                    accept = partial(trio.serve_listeners, handler_nursery=connections)
                    patient = [PatientListener(listener) for listener in listeners]
                    await accepting.start(accept, front.handle, patient)
                    task_status.started(_url(listeners[0], "http" if tls is None else "https"))
                    await (trio.Event() if shutdown is None else shutdown).wait()
                    accepting.cancel_scope.cancel()
                guard.cancel_scope.deadline = trio.current_time() + grace_s
                await front.stop()
            guard.cancel_scope.cancel()
        await lifespan.wait_for_shutdown()
        nursery.cancel_scope.cancel()


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Make what TLS 1.2 and 1.3 are spoken with. Raises BadTls."""
    config = Config()
    config.certfile, config.keyfile = files
    config.keyfile_password = ""  # else OpenSSL asks on the terminal
    config.alpn_protocols = ["http/1.1"]
    for name, path in zip(("cert", "key"), files, strict=True):
        try:
            Path(path).read_bytes()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise BadTls(
                f"cannot read {name} {path}: {reason}; name a PEM file that this user may read"
            ) from error
    try:
        context = config.create_ssl_context()
    except ssl.SSLError as error:
        raise BadTls(_tls_advice(files, error)) from error
    assert context is not None
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def _tls_advice(files: TlsFiles, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"the key {files.key} is not that of the certificate {files.cert}; give the two that belong together"
    return (
        f"cannot use cert {files.cert} with key {files.key}: one of them is not PEM, or the key is encrypted; "
        f"give a PEM certificate chain and its key without a passphrase"
    )


def _url(listener: trio.SocketListener, scheme: str) -> str:
    host, port = listener.socket.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class PatientListener(trio.abc.Listener[trio.SocketStream]):
    """Waits while the process has no file descriptors left, with a line in the log now and then."""

    def __init__(self, listener: trio.SocketListener) -> None:
        self._listener = listener
        self._told = -inf

    async def accept(self) -> trio.SocketStream:
        """Return the next connection."""
        while True:
            try:
                return await self._listener.accept()
            except OSError as error:
                if error.errno not in OUT_OF_FILES:
                    raise
                if trio.current_time() > self._told + TELL_EVERY_S:
                    self._told = trio.current_time()
                    log.warning("connections have to wait: %s", (error.strerror or str(error)).lower())
            await trio.sleep(RETRY_S)

    async def aclose(self) -> None:
        """Close the listening socket."""
        await self._listener.aclose()


class Front:
    """The connections of one server."""

    def __init__(
        self,
        app: Server,
        connections_max: int,
        deadlines: Deadlines,
        tls: ssl.SSLContext | None,
        *,
        lane: bool,
    ) -> None:
        self.config = _config()
        self._lane = lane
        self._app = app
        self._context = WorkerContext(None)
        self._connections_max = connections_max
        self._deadlines = deadlines
        self._tls = tls
        self._backlog = Backlog()
        self._open: set[Connection] = set()

    async def handle(self, stream: trio.SocketStream) -> None:
        """Serve one connection to its end. A bug in here costs this connection, not the server."""
        accepted = stream.socket
        family, kind, protocol = accepted.family, accepted.type, accepted.proto
        wire = Wire(socket.socket(family, kind, protocol, accepted.detach()), self._deadlines, self._backlog)
        if len(self._open) >= self._connections_max or self._context.terminated.is_set():
            await self._turn_away(wire)
            return
        connection = Connection(
            self._app, self.config, self._context, wire, self._deadlines, self._tls, lane=self._lane
        )
        self._open.add(connection)
        try:
            await connection.run()
        except Exception:
            log.exception("a connection failed")
        finally:
            self._open.discard(connection)

    async def watch(self) -> None:
        """Keep clients to their deadlines; when cancelled, close every connection."""
        try:
            while True:
                await trio.sleep(self._deadlines.sweep_s)
                now = trio.current_time()
                for connection in self._open:
                    connection.look_at(now)
        finally:
            for connection in self._open:
                connection.close()

    async def stop(self) -> None:
        """End waits, idle connections and WebSockets; others end with the answer under way."""
        await self._context.terminated.set()
        self._app.waits.end()
        for connection in self._open:
            connection.stop()

    async def _turn_away(self, wire: Wire) -> None:
        with trio.move_on_after(TURN_AWAY_S), suppress(trio.BrokenResourceError):
            if self._tls is None:
                await wire.send_all(refusal(Overloaded()))
                wire.send_eof()
                while (
                    await wire.receive_some()
                ):  # what is left unread would reset the connection, answer and all
                    pass
        wire.close()


def _config() -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = log
    config.include_server_header = False
    config.websocket_max_message_size = WEBSOCKET_MESSAGE_BYTES_MAX
    return config
