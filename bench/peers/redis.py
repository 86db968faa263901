"""How is Redis asked? In RESP: a stream for a log, a stream with a consumer group for work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from bench.peers.cache import Cache
from bench.peers.load import CRLF, Refused, Request, Wire
from bench.peers.peer import Contender, Kind, Peer, text
from bench.peers.process import free_port, running

NAME = "Redis streams"
SETTING = "appendonly yes, appendfsync always"
GROUP, CONSUMER, FIELD = b"workers", b"one", b"d"
WAIT_MS = b"50000"
PONG = b"+PONG\r\n"


def command(*words: bytes) -> bytes:
    """One command in RESP."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


LAST = command(b"PING")  # sent behind what has answers of any length: they end with its own


def ends(held: bytes, answers: int) -> bool:
    """Answers are counted in lines; 0: up to the answer of a PING."""
    if held.startswith(b"-") or b"\r\n-ERR" in held:
        raise Refused(held[:300].decode(errors="replace"))
    if not answers:
        return held.endswith(PONG)
    return held.endswith(CRLF) and held.count(CRLF) >= answers


class RedisStreams(Peer):
    """Each queue is a stream. What is acked is deleted, or the stream would grow forever."""

    lease = re.compile(rb"\$\d+\r\n(\d+-\d+)\r\n")

    def wire(self) -> Wire:
        return Wire(self.port, ends)

    def make(self, queue: str, kind: Kind) -> None:
        if kind == "work":
            wire = self.wire()
            wire.ask(Request(command(b"XGROUP", b"CREATE", queue.encode(), GROUP, b"0", b"MKSTREAM")))
            wire.close()

    def append(self, queue: str, each: int) -> Request:
        adds = (command(b"XADD", queue.encode(), b"*", FIELD, text(index)) for index in range(each))
        return Request(b"".join(adds), 2 * each)

    def reads(self, queue: str, length: int, each: int) -> list[Request]:
        random, name, wire = Random(length), queue.encode(), self.wire()
        ids: list[bytes] = []
        while len(ids) < length:
            after = b"(" + ids[-1] if ids else b"-"
            asked = command(b"XRANGE", name, after, b"+", b"COUNT", b"1000") + LAST
            ids += self.leases(wire.ask(Request(asked, 0)))
        wire.close()
        return [
            Request(command(b"XRANGE", name, one, b"+", b"COUNT", b"%d" % each) + LAST, 0)
            for one in random.choices(ids[: length - each], k=500)
        ]

    def push(self, queue: str, *, wake: bool = False) -> Request:
        return self.append(queue, 1)

    def pull(self, queue: str, each: int, *, wait: bool = False) -> Request:
        block = (b"BLOCK", WAIT_MS) if wait else ()
        read = (b"XREADGROUP", b"GROUP", GROUP, CONSUMER, b"COUNT", b"%d" % each, *block)
        return Request(command(*read, b"STREAMS", queue.encode(), b">") + LAST, 0)

    def ack(self, queue: str, leases: Sequence[bytes]) -> Request:
        name = queue.encode()
        return Request(command(b"XACK", name, GROUP, *leases) + command(b"XDEL", name, *leases), 2)


@contextmanager
def start(place: Path, cache: Cache) -> Iterator[Peer]:
    """One process; it keeps no snapshots, only its append-only file."""
    program = cache.program("redis-server", "redis-server")
    port = free_port()
    options = {
        "--bind": "127.0.0.1", "--port": str(port), "--dir": str(place), "--appendonly": "yes",
        "--appendfsync": "always", "--save": "", "--daemonize": "no",
    }  # fmt: skip
    words = [word for pair in options.items() for word in pair]
    with running([program, *words], port, place / "log", env=cache.libraries()):
        yield RedisStreams(port)


CONTENDER = Contender(NAME, SETTING, start)
