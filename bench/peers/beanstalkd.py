"""How is beanstalkd asked? In its own lines; many jobs a request are as many commands sent together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.peers.cache import Cache
from bench.peers.load import Request, Wire, lines
from bench.peers.peer import Contender, Kind, Peer, text
from bench.peers.process import free_port, running

NAME = "beanstalkd"
SETTING = "-b dir -f 0: fsync for each write"
RUN_S = 600
GOOD = (b"USING", b"WATCHING", b"DELETED")


class Beanstalkd(Peer):
    """Each queue is a tube, named again in every request, as connections are not bound to one. There are no logs."""

    lease = re.compile(rb"RESERVED (\d+) ")
    together = 1
    logs = False

    def wire(self) -> Wire:
        return Wire(self.port, lines(*GOOD))

    def make(self, queue: str, kind: Kind) -> None:
        """A tube is made by being named."""

    def append(self, queue: str, each: int) -> Request:
        return self.push_many(queue, each)

    def push(self, queue: str, *, wake: bool = False) -> Request:
        return self.push_many(queue, 1)

    def push_many(self, queue: str, each: int) -> Request:
        bodies = (text(index) for index in range(each))
        puts = b"".join(b"put 0 0 %d %d\r\n%b\r\n" % (RUN_S, len(body), body) for body in bodies)
        return Request(b"use %b\r\n" % queue.encode() + puts, 1 + each)

    def pull(self, queue: str, each: int, *, wait: bool = False) -> Request:
        watch = b"watch %b\r\nignore default\r\n" % queue.encode()
        return Request(watch + b"reserve\r\n" * each, 2 + 2 * each)

    def ack(self, queue: str, leases: Sequence[bytes]) -> Request:
        return Request(b"".join(b"delete %b\r\n" % one for one in leases), len(leases))


@contextmanager
def start(place: Path, cache: Cache) -> Iterator[Peer]:
    """One process with a binlog."""
    program = cache.program("beanstalkd", "beanstalkd")
    port = free_port()
    options = ["-l", "127.0.0.1", "-p", str(port), "-b", str(place), "-f", "0"]
    with running([program, *options], port, place / "log", env=cache.libraries()):
        yield Beanstalkd(port)


CONTENDER = Contender(NAME, SETTING, start)
