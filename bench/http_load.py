"""How fast does a server answer? Raw sockets, each with one request under way, and as little work as will do.

The load shares the machine with the server, so what it costs is told too: see `Load.cpu_us`.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from math import inf
from typing import NamedTuple

PIECE_BYTES = 256 * 1024
HEAD_END = b"\r\n\r\n"


class Load(NamedTuple):
    """What came of it. took: seconds of each answer. cpu_us: what the generator itself used for one."""

    took: list[float]
    seconds: float
    cpu_us: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.took) / self.seconds


class Connection:
    """A socket with at most one request under way. `status` is that of the last answer.

    keep: its body is wanted, too, which must be of known length.
    """

    def __init__(self, port: int, *, keep: bool = False) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.status = 0
        self.closing = False  # the server said that this answer is the last one here
        self.sent_at = 0.0
        self._keep = keep
        self._clear()

    def _clear(self) -> None:
        self._held = b""
        self._left: int | None = None  # bytes missing of a body whose length is known
        self._at = 0  # where the next chunk of any other body begins

    def send(self, request: bytes) -> None:
        """Send a whole request. The answer before must have been taken."""
        self._clear()
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def ask(self, request: bytes) -> float:
        """Send, wait for all of the answer, return the seconds it took."""
        self.send(request)
        while not self.take():
            pass
        return time.perf_counter() - self.sent_at

    @property
    def body(self) -> bytes:
        """The body of the last answer, all of which was taken."""
        assert self._keep
        return self._held.partition(HEAD_END)[2]

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def take(self) -> bool:
        """Take what has come; return whether that is all of the answer. Raises EOFError if it was cut short."""
        piece = self.socket.recv(PIECE_BYTES)
        if not piece:
            raise EOFError("the server hung up in the middle of an answer")
        if self._left is not None:
            self._left -= len(piece)
            if self._keep:
                self._held += piece
            return self._left <= 0
        self._held = self._held + piece if self._held else piece
        return self._look()

    def _look(self) -> bool:
        held = self._held
        if self._at:
            return self._chunks_end()
        end = held.find(HEAD_END)
        if end < 0:
            return False
        self.status = int(held[9:12])
        head = held[: end + 2].lower()
        self.closing = b"\r\nconnection: close\r\n" in head
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            length = int(head[at + 17 : head.index(b"\r\n", at + 2)])
        elif b"\r\ntransfer-encoding: chunked\r\n" in head:
            self._at = end + 4
            return self._chunks_end()
        else:
            length = 0  # 204 and 304
        self._left = end + 4 + length - len(held)
        return self._left <= 0

    def _chunks_end(self) -> bool:
        while (line := self._held.find(b"\r\n", self._at)) >= 0:
            size = int(self._held[self._at : line], 16)
            if size == 0:
                return self._held.endswith(HEAD_END)
            self._at = line + 2 + size + 2
        return False


def drive(
    port: int, requests: Iterator[bytes], *, connections: int, status: int, seconds: float = inf
) -> Load:
    """Keep the connections busy until `requests` or `seconds` are over; what is under way then does not count.

    Raises ValueError for an answer with another status: what failed must not be taken for fast.
    """
    with _Driver(port, status) as driver:
        for _ in range(connections):
            driver.connect()
        return driver.run(requests, seconds)


class _Driver:
    """The loop around the connections."""

    def __init__(self, port: int, status: int) -> None:
        self._port = port
        self._status = status
        self._selector = selectors.DefaultSelector()
        self._idle: list[Connection] = []

    def __enter__(self) -> _Driver:
        return self

    def __exit__(self, *_: object) -> None:
        for key in [*self._selector.get_map().values()]:
            key.data.close()
        for each in self._idle:
            each.close()
        self._selector.close()

    def connect(self) -> None:
        """Open one more."""
        self._idle.append(Connection(self._port))

    def run(self, requests: Iterator[bytes], seconds: float) -> Load:
        """Start all connections and keep on."""
        took: list[float] = []
        began = last = time.perf_counter()
        cpu = time.thread_time()
        while self._idle and (request := next(requests, None)) is not None:
            self._start(self._idle.pop(), request)
        while self._selector.get_map():
            for key, _ in self._selector.select():
                each: Connection = key.data
                if not each.take():
                    continue
                if each.status != self._status:
                    raise ValueError(f"answered {each.status} where {self._status} was expected")
                over = last - began >= seconds
                now = time.perf_counter()
                if not over:
                    took.append(now - each.sent_at)
                    last = now
                request = None if over else next(requests, None)
                if request is None:
                    self._selector.unregister(each.socket)
                    self._idle.append(each)
                elif each.closing:
                    self._selector.unregister(each.socket)
                    each.close()
                    self._start(Connection(self._port), request)
                else:
                    each.send(request)
        return Load(took, last - began, (time.thread_time() - cpu) / len(took) * 1e6)

    def _start(self, each: Connection, request: bytes) -> None:
        self._selector.register(each.socket, selectors.EVENT_READ, each)
        each.send(request)
