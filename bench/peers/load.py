"""How is every peer asked? By raw sockets, each with one request under way, whose bytes were made before.

The load shares the machine with the servers, so it does the same for each of them and as little as will do: a
request is a template in which eight digits are replaced, an answer is looked at only for its end and for errors.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterator
from itertools import count
from math import inf
from typing import NamedTuple

from bench.http_load import PIECE_BYTES, Load
from bench.http_requests import DIGITS

TIMEOUT_S = 60.0
CRLF = b"\r\n"

_numbers = count()


class Request(NamedTuple):
    """A request, and how many answers, as its protocol counts them, there are to it. 0: up to a last word."""

    data: bytes
    answers: int = 1


class Refused(Exception):
    """A peer answered with an error: what failed must not be taken for fast."""


Ends = Callable[[bytes, int], bool]  # is this all of so many answers? Raises Refused


class Wire:
    """A connection with at most one request under way. `held` is what has come of its answer."""

    closing = False  # the server said that this answer is the last one here

    def __init__(self, port: int, ends: Ends) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.held = b""
        self.sent_at = 0.0
        self._ends = ends
        self._answers = 1

    def send(self, request: Request) -> None:
        """Send a whole request. The answer before must have been taken."""
        self.held = b""
        self._answers = request.answers
        self.sent_at = time.perf_counter()
        self.socket.sendall(request.data)

    def take(self) -> bool:
        """Take what has come; return whether that is all of the answer. Raises EOFError if it was cut short."""
        piece = self.socket.recv(PIECE_BYTES)
        if not piece:
            raise EOFError("a peer hung up in the middle of an answer")
        self.held = self.held + piece if self.held else piece
        return self._ends(self.held, self._answers)

    def ask(self, request: Request) -> bytes:
        """Send, and return all of the answer."""
        self.send(request)
        while not self.take():
            pass
        return self.held

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


class HttpWire(Wire):
    """A connection that speaks HTTP/1.1."""

    def __init__(self, port: int) -> None:
        super().__init__(port, self._whole)

    def _whole(self, held: bytes, _: int) -> bool:
        end = held.find(b"\r\n\r\n")
        if end < 0:
            return False
        if held[9:10] != b"2":
            raise Refused(held[:300].decode(errors="replace"))
        head = held[: end + 2].lower()
        self.closing = b"\r\nconnection: close\r\n" in head
        at = head.find(b"\r\ncontent-length:")
        if at < 0:
            return b"chunked" not in head or held.endswith(b"\r\n0\r\n\r\n")
        return len(held) >= end + 4 + int(head[at + 17 : head.index(CRLF, at + 2)])


def lines(*good: bytes) -> Ends:
    """Answers are lines, the first of which begins with one of these words."""

    def ends(held: bytes, answers: int) -> bool:
        if not held.startswith(good):
            raise Refused(held[:300].decode(errors="replace"))
        return held.endswith(CRLF) and held.count(CRLF) >= answers

    return ends


def numbered(template: Request) -> Iterator[Request]:
    """The same again and again, with a number that was never used before."""
    for number in _numbers:
        yield Request(template.data.replace(DIGITS, b"%08d" % number), template.answers)


def drive(
    connect: Callable[[], Wire], requests: Iterator[Request], *, connections: int, seconds: float = inf
) -> Load:
    """Keep the connections busy until `requests` or `seconds` are over, and wait for what is under way then.

    All of it counts, and the time it took: else an answer longer than `seconds` would be worth nothing.
    """
    idle = [connect() for _ in range(connections)]
    every, busy = [*idle], 0
    took: list[float] = []
    with selectors.DefaultSelector() as selector:
        began = last = time.perf_counter()
        cpu = time.thread_time()

        def start(wire: Wire) -> int:
            request = next(requests, None) if last - began < seconds else None
            if request is None:
                return 0
            if wire.closing:
                selector.unregister(wire.socket)
                wire.close()
                wire = connect()
                every.append(wire)
                selector.register(wire.socket, selectors.EVENT_READ, wire)
            wire.send(request)
            return 1

        try:
            for wire in idle:
                selector.register(wire.socket, selectors.EVENT_READ, wire)
                busy += start(wire)
            while busy:
                ready = selector.select(TIMEOUT_S)
                if not ready:
                    raise TimeoutError("a peer does not answer")
                for key, _ in ready:
                    one: Wire = key.data
                    if not one.take():
                        continue
                    now = time.perf_counter()
                    took.append(now - one.sent_at)
                    last = now
                    busy += start(one) - 1
            return Load(took, last - began, (time.thread_time() - cpu) / max(len(took), 1) * 1e6)
        finally:
            for wire in every:
                wire.close()
