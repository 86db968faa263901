"""How is NATS JetStream asked? In its own protocol: each publish, pull and ack names the inbox of its connection."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from bench.peers.cache import Cache
from bench.peers.load import CRLF, Refused, Request, Wire
from bench.peers.peer import Contender, Kind, Peer, text
from bench.peers.process import free_port, running

NAME = "NATS JetStream"
SETTING = "file storage, sync_interval always"
CONSUMER = "workers"
INBOX = b"_INBOX.@@@@@@@@"  # the connection puts its own there
WAIT_NS = 50_000_000_000
LEASE_NS = 600_000_000_000
LAST = b"204 EOB"
CONFIG = """
listen: "127.0.0.1:{port}"
ping_interval: "1h"
jetstream {{ store_dir: "{place}", sync_interval: always }}
"""

_inboxes = count()


def ends(held: bytes, answers: int) -> bool:
    """Answers are messages of two lines; 0: up to the one that says that no more come."""
    if held.startswith((b"-ERR", b"HMSG")) and LAST not in held and answers:
        raise Refused(held[:300].decode(errors="replace"))
    if b'"error"' in held:
        raise Refused(held[:300].decode(errors="replace"))
    if not answers:
        return held.endswith(CRLF * 3) and LAST in held[-300:]
    return held.endswith(CRLF) and held.count(CRLF) >= 2 * answers


class Inbox(Wire):
    """A connection with an inbox of its own, to which all answers are sent."""

    def __init__(self, port: int) -> None:
        super().__init__(port, ends)
        self._inbox = b"_INBOX.%08d" % next(_inboxes)
        options = json.dumps({"verbose": False, "pedantic": False, "headers": True, "no_responders": True})
        self.socket.sendall(b"CONNECT %b\r\nSUB %b 1\r\nPING\r\n" % (options.encode(), self._inbox))
        greeted = b""
        while not greeted.endswith(b"PONG\r\n"):
            piece = self.socket.recv(65_536)
            if not piece or b"-ERR" in piece:
                raise Refused(greeted.decode(errors="replace"))
            greeted += piece

    def send(self, request: Request) -> None:
        super().send(Request(request.data.replace(INBOX, self._inbox), request.answers))


def publish(subject: bytes, body: bytes) -> bytes:
    """A message that asks for an answer."""
    return b"PUB %b %b %d\r\n%b\r\n" % (subject, INBOX, len(body), body)


class JetStream(Peer):
    """Each queue is a stream; one that is worked has one pull consumer, and acks are answered, too."""

    lease = re.compile(rb" (\$JS\.ACK\.\S+) ")
    together = 1

    def wire(self) -> Wire:
        return Inbox(self.port)

    def make(self, queue: str, kind: Kind) -> None:
        stream: dict[str, Any] = {
            "name": queue, "subjects": [queue], "storage": "file", "num_replicas": 1, "allow_direct": True,
            "retention": "limits" if kind == "log" else "workqueue",
        }  # fmt: skip
        self._api(f"STREAM.CREATE.{queue}", stream)
        if kind == "work":
            consumer = {
                "durable_name": CONSUMER, "ack_policy": "explicit", "deliver_policy": "all",
                "ack_wait": LEASE_NS, "max_ack_pending": -1,
            }  # fmt: skip
            asked = {"stream_name": queue, "config": consumer}
            self._api(f"CONSUMER.DURABLE.CREATE.{queue}.{CONSUMER}", asked)

    def _api(self, verb: str, asked: dict[str, Any]) -> None:
        wire = self.wire()
        wire.ask(Request(publish(f"$JS.API.{verb}".encode(), json.dumps(asked).encode())))
        wire.close()

    def append(self, queue: str, each: int) -> Request:
        return Request(b"".join(publish(queue.encode(), text(index)) for index in range(each)), each)

    def reads(self, queue: str, length: int, each: int) -> list[Request]:
        random, subject = Random(length), f"$JS.API.DIRECT.GET.{queue}".encode()
        bodies = (b'{"seq":%d,"batch":%d}' % (random.randrange(1, length - each), each) for _ in range(500))
        return [Request(publish(subject, body), 0) for body in bodies]

    def push(self, queue: str, *, wake: bool = False) -> Request:
        return self.append(queue, 1)

    def pull(self, queue: str, each: int, *, wait: bool = False) -> Request:
        body = b'{"batch":%d,"expires":%d}' % (each, WAIT_NS)
        return Request(publish(f"$JS.API.CONSUMER.MSG.NEXT.{queue}.{CONSUMER}".encode(), body), each)

    def ack(self, queue: str, leases: Sequence[bytes]) -> Request:
        return Request(b"".join(publish(one, b"+ACK") for one in leases), len(leases))


@contextmanager
def start(place: Path, cache: Cache) -> Iterator[Peer]:
    """One process with one store."""
    program = cache.nats()
    port = free_port()
    config = place / "config"
    config.write_text(CONFIG.format(port=port, place=place / "store"))
    with running([program, "-c", config], port, place / "log"):
        yield JetStream(port)


CONTENDER = Contender(NAME, SETTING, start)
