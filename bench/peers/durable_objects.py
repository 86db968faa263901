"""How is workerd asked? Over HTTP: a Worker hands each request to the Durable Object of its queue (worker.js)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from bench.http_requests import head
from bench.peers.cache import Cache
from bench.peers.load import HttpWire, Request
from bench.peers.ours import LEASE_MS, post
from bench.peers.peer import Contender, Kind, Peer, text
from bench.peers.process import free_port, running
from edgequeues.space import deliveries, log

NAME = "workerd"
SETTING = "Durable Objects on local disk: every answer after the output gate"
WORKER = Path(__file__).with_name("worker.js")
CONFIG = """using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .queues),
    (name = "disk", disk = (writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const queues :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-01-01",
  durableObjectNamespaces = [(className = "Queue", uniqueKey = "queues", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [
    (name = "QUEUE", durableObjectNamespace = "Queue"),
    (name = "DDL", text = DDL_TEXT),
  ],
);
"""


class DurableObjects(Peer):
    """Each queue is an object."""

    lease = re.compile(rb'"lease":"([^"]+)"')

    def wire(self) -> HttpWire:
        return HttpWire(self.port)

    def make(self, queue: str, kind: Kind) -> None:
        """It is made by being named."""

    def append(self, queue: str, each: int) -> Request:
        return self._entries(queue, "append", each)

    def reads(self, queue: str, length: int, each: int) -> list[Request]:
        random = Random(length)
        return [
            Request(head("GET", f"/{queue}/read?after={random.randrange(length - each)}&limit={each}"))
            for _ in range(500)
        ]

    def push(self, queue: str, *, wake: bool = False) -> Request:
        return self.push_many(queue, 1)

    def push_many(self, queue: str, each: int) -> Request:
        return self._entries(queue, "push", each)

    def pull(self, queue: str, each: int, *, wait: bool = False) -> Request:
        asked = json.dumps({"batch": each, "lease_ms": LEASE_MS, "wait": wait}).encode()
        return post(f"/{queue}/pull", asked)

    def ack(self, queue: str, leases: Sequence[bytes]) -> Request:
        return post(f"/{queue}/ack", b'{"leases":["%b"]}' % b'","'.join(leases))

    def _entries(self, queue: str, verb: str, each: int) -> Request:
        entries = b",".join(b'{"data":%b}' % text(index) for index in range(each))
        return post(f"/{queue}/{verb}", b'{"entries":[%b]}' % entries)


@contextmanager
def start(place: Path, cache: Cache) -> Iterator[Peer]:
    """One process, one namespace of objects, their files below `place`."""
    program = cache.workerd()
    ddl = re.sub(r"--[^\n]*", "", log.DDL + deliveries.DDL)
    (place / "config.capnp").write_text(CONFIG.replace("DDL_TEXT", json.dumps(ddl)))
    (place / "worker.js").write_text(WORKER.read_text())
    (place / "disk").mkdir()
    port = free_port()
    options = [f"--directory-path=disk={place / 'disk'}", f"--socket-addr=http=127.0.0.1:{port}"]
    with running([program, "serve", *options, place / "config.capnp"], port, place / "log"):
        yield DurableObjects(port)


CONTENDER = Contender(NAME, SETTING, start)
