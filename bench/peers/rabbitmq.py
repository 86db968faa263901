"""How is RabbitMQ asked? In AMQP 0-9-1: publishes are confirmed, acks are not: a later method is answered.

Pulls are `basic.get`s sent together; only one who waits is a consumer.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.peers.cache import Cache
from bench.peers.load import Refused, Request, Wire
from bench.peers.peer import Contender, Kind, Peer, text
from bench.peers.process import Absent, free_port, running

NAME = "RabbitMQ"
SETTING = "quorum queue of one member, persistent messages, confirms; acks are not answered"
PACKAGE = "rabbitmq-server"
END = b"\xce"
TUNED = b"\0\x10" + (131_072).to_bytes(4, "big") + b"\0\0"  # channels, bytes a frame, no heartbeat
QUORUM = b"\x0cx-queue-typeS\0\0\0\x06quorum"
DURABLE = b"\x02"
PERSISTENT = b"\x10\0\x02"
NODE_NAME = "bench@localhost"
# Threads that wait do not spin, as others are measured, too; nodes of other machines may not come.
CALM = "+sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """One frame."""
    return bytes([kind]) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + END


def method(family: int, number: int, arguments: bytes, channel: int = 1) -> bytes:
    """A call of a method, in a frame."""
    return frame(1, channel, family.to_bytes(2, "big") + number.to_bytes(2, "big") + arguments)


def short(word: bytes) -> bytes:
    """A short string."""
    return bytes([len(word)]) + word


PING = method(60, 10, b"\0\0\0\0\0\x01\0")  # basic.qos with one message ahead: always answered, in its turn
PONG = method(60, 11, b"")
CONFIRM = re.compile(rb"\x01\0\x01\0\0\0\x0d\0\x3c\0\x50(.{8})(.)\xce", re.DOTALL)
CLOSED = re.compile(rb"\x01\0.\0\0..\0[\x14\x0a]\0[\x28\x32].{2,100}", re.DOTALL)  # of channel or connection
REFUSED = b"\0\x3c\0\x78"  # basic.nack


def publish(queue: bytes, body: bytes) -> bytes:
    """One persistent message."""
    head = b"\0\x3c\0\0" + len(body).to_bytes(8, "big") + PERSISTENT
    return method(60, 40, b"\0\0" + short(b"") + short(queue) + b"\0") + frame(2, 1, head) + frame(3, 1, body)


class Channel(Wire):
    """A connection with one channel in confirm mode. 0 answers: up to PONG; else so many confirms."""

    def __init__(self, port: int) -> None:
        super().__init__(port, self._whole)
        self._published = 0
        start = b"\0\0\0\0" + short(b"PLAIN") + b"\0\0\0\x0c\0guest\0guest" + short(b"en_US")
        self._greet(b"AMQP\0\0\x09\x01", b"\0\x0a\0\x0a")
        self._greet(method(10, 11, start, 0), b"\0\x0a\0\x1e")
        self._greet(method(10, 31, TUNED, 0) + method(10, 40, short(b"/") + b"\0\0", 0), b"\0\x0a\0\x29")
        self._greet(method(20, 10, short(b"")), b"\0\x14\0\x0b")
        self._greet(method(85, 10, b"\0"), b"\0\x55\0\x0b")

    def _greet(self, request: bytes, answer: bytes) -> None:
        """Send, and wait for a method."""
        self.socket.sendall(request)
        held = b""
        while answer not in held or not held.endswith(END):
            piece = self.socket.recv(65_536)
            if not piece or CLOSED.match(piece):
                raise Refused(repr(held + piece))
            held += piece

    def declare(self, queue: str) -> None:
        """Make a quorum queue."""
        arguments = len(QUORUM).to_bytes(4, "big") + QUORUM
        declare = b"\0\0" + short(queue.encode()) + DURABLE + arguments
        self._greet(method(50, 10, declare), b"\0\x32\0\x0b")

    def send(self, request: Request) -> None:
        self._open = set(range(self._published + 1, self._published + request.answers + 1))
        self._published += request.answers
        super().send(request)

    def _whole(self, held: bytes, answers: int) -> bool:
        if CLOSED.match(held) or (answers and REFUSED in held):
            raise Refused(repr(held[:200]))
        if not answers:
            return held.endswith(PONG)
        for tag, multiple in CONFIRM.findall(held):
            last = int.from_bytes(tag, "big")
            self._open = (
                {one for one in self._open if one > last} if multiple != b"\0" else self._open - {last}
            )
        return not self._open


class Consuming(Channel):
    """One who waits: messages are sent to it, the next one when the one before was acked."""

    def __init__(self, port: int, queue: str) -> None:
        super().__init__(port)
        self._greet(PING, b"\0\x3c\0\x0b")
        consume = b"\0\0" + short(queue.encode()) + short(b"c") + b"\0" + b"\0\0\0\0"
        self._greet(method(60, 20, consume), b"\0\x3c\0\x15")
        self._early = b""
        self._pulling = False

    def send(self, request: Request) -> None:
        super().send(request)
        self._pulling = request.data == PING
        self.held, self._early = self._early if self._pulling else b"", b""

    def _whole(self, held: bytes, _: int) -> bool:
        if self._pulling:
            return LEASE.search(held) is not None and held.endswith(END) and b'"}' in held and PONG in held
        if PONG not in held:
            return False
        if LEASE.search(held):
            self._early = held  # the next message overtook the answer
        return True


LEASE = re.compile(rb"\0\x3c(?:\0\x47|\0\x3c\x01c)(.{8})", re.DOTALL)  # of get-ok or deliver


class QuorumQueues(Peer):
    """Each queue is a quorum queue of one member. There are no logs."""

    lease = LEASE
    together = 1
    logs = False

    def wire(self) -> Wire:
        return Channel(self.port)

    def waiting(self, queue: str) -> Wire:
        return Consuming(self.port, queue)

    def make(self, queue: str, kind: Kind) -> None:
        channel = Channel(self.port)
        channel.declare(queue)
        channel.close()

    def append(self, queue: str, each: int) -> Request:
        return Request(b"".join(publish(queue.encode(), text(index)) for index in range(each)), each)

    def push(self, queue: str, *, wake: bool = False) -> Request:
        return self.append(queue, 1)

    def pull(self, queue: str, each: int, *, wait: bool = False) -> Request:
        get = method(60, 70, b"\0\0" + short(queue.encode()) + b"\0")
        return Request(PING if wait else get * each + PING, 0)

    def ack(self, queue: str, leases: Sequence[bytes]) -> Request:
        return Request(b"".join(method(60, 80, tag + b"\0") for tag in leases) + PING, 0)


@contextmanager
def start(place: Path, cache: Cache) -> Iterator[Peer]:
    """One node, with a port mapper of its own that ends with it."""
    server = cache.program("rabbitmq-server", PACKAGE)
    erlang = cache.debian / "usr" / "lib" / "erlang"
    if shutil.which("erl") is None:
        relocate(erlang)
    mapper, node, port = free_port(), free_port(), free_port()
    env = cache.libraries() | {
        "PATH": f"{erlang / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(place),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(mapper),
        "RABBITMQ_NODENAME": NODE_NAME,
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(node),
        "RABBITMQ_MNESIA_BASE": str(place / "data"),
        "RABBITMQ_LOG_BASE": str(place / "logs"),
        "RABBITMQ_CONFIG_FILE": str(place / "none"),
        "RABBITMQ_CONF_ENV_FILE": str(place / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "plugins"),
        "RABBITMQ_PID_FILE": str(place / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": CALM,
    }
    (place / "plugins").write_text("[].\n")
    epmd = next((one for one in erlang.glob("erts-*/bin/epmd")), None) or shutil.which("epmd")
    if epmd is None:
        raise Absent("its port mapper is not there")
    with (
        running([epmd, "-address", "127.0.0.1", "-port", str(mapper)], mapper, place / "epmd.log", env=env),
        running([server], port, place / "log", env=env),
    ):
        yield QuorumQueues(port)


def relocate(erlang: Path) -> None:
    """Scripts of Erlang name the folder that they were packaged for."""
    for script in (*erlang.glob("bin/*"), *erlang.glob("erts-*/bin/*")):
        if script.is_file() and script.read_bytes().startswith(b"#!"):
            body = script.read_text()
            if str(erlang) not in body:
                script.write_text(body.replace("/usr/lib/erlang", str(erlang)))


CONTENDER = Contender(NAME, SETTING, start)
