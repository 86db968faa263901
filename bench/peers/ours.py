"""How is edgequeues asked? Over HTTP, in its native protocol, started as anybody starts it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import served
from bench.http_requests import cursors, head, native
from bench.peers.cache import Cache
from bench.peers.load import HttpWire, Request
from bench.peers.peer import Contender, Kind, Peer, text
from bench.served import Served

NAME = "edgequeues"
SETTING = "its defaults: every answer after fdatasync"
LEASE_MS = 600_000
WAIT_S = 50


def post(path: str, body: bytes) -> Request:
    """A whole request of HTTP."""
    return Request(head("POST", path, length=len(body)) + body)


class EdgeQueues(Peer):
    """`edgequeues serve`."""

    lease = re.compile(rb'"lease":"([^"]+)"')

    def __init__(self, process: Served) -> None:
        super().__init__(process.port)
        self.process = process

    def wire(self) -> HttpWire:
        return HttpWire(self.port)

    def make(self, queue: str, kind: Kind) -> None:
        body = json.dumps({"kind": kind}).encode()
        self.process.ask("PUT", f"{native(queue)}/config", body, **{"content-type": "application/json"})

    def append(self, queue: str, each: int) -> Request:
        return self._entries(native(queue), each)

    def reads(self, queue: str, length: int, each: int) -> list[Request]:
        after = cursors(self.process, queue, length, each, 500)
        return [Request(head("GET", f"{native(queue)}?after={one}&limit={each}")) for one in after]

    def push(self, queue: str, *, wake: bool = False) -> Request:
        return self.push_many(queue, 1)

    def push_many(self, queue: str, each: int) -> Request:
        return self._entries(f"{native(queue)}/push", each)

    def pull(self, queue: str, each: int, *, wait: bool = False) -> Request:
        asked = json.dumps({"batch": each, "lease_ms": LEASE_MS}).encode()
        return post(f"{native(queue)}/pull" + (f"?wait={WAIT_S}" if wait else ""), asked)

    def ack(self, queue: str, leases: Sequence[bytes]) -> Request:
        return post(f"{native(queue)}/ack", b'{"leases":["%b"]}' % b'","'.join(leases))

    def _entries(self, path: str, each: int) -> Request:
        entries = b",".join(b'{"data":%b}' % text(index) for index in range(each))
        return post(path, b'{"entries":[%b]}' % entries)


def contender(options: str = "") -> Contender:
    """The server with its defaults, or with these options of `serve`."""

    @contextmanager
    def start(place: Path, _: Cache) -> Iterator[Peer]:
        with served.edgequeues(place, *options.split()) as process:
            yield EdgeQueues(process)

    return Contender(f"{NAME} {options}".strip(), SETTING if not options else f"with {options}", start)
