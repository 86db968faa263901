"""How is PostgreSQL asked? In its own protocol: prepared statements, bound to bytes made before."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from bench.peers.cache import Cache
from bench.peers.load import Refused, Request, Wire
from bench.peers.peer import MANY, Contender, Kind, Peer, object_id, text
from bench.peers.process import Absent, free_port, running, unprivileged

NAME = "PostgreSQL"
SETTING = "synchronous_commit on, fsync on; FOR UPDATE SKIP LOCKED"
PACKAGE = "postgresql"
IDLE = b"Z\0\0\0\5I"  # ready for a query, in no transaction: every answer ends with it
NOTIFIED = b"A\0\0\0"
FAILED = (b"SERROR\0", b"SFATAL\0")
INITDB_S = 120
READY_S = 30
SCHEMA = """
CREATE TABLE log (
  position  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue     text        NOT NULL,
  object_id text        NOT NULL,
  created   timestamptz NOT NULL DEFAULT now(),
  data      text        NOT NULL,
  UNIQUE (queue, object_id)
);
CREATE INDEX log_range ON log (queue, position);
CREATE TABLE work (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue    text        NOT NULL,
  due      timestamptz NOT NULL DEFAULT now(),
  attempts integer     NOT NULL DEFAULT 0,
  data     text        NOT NULL
);
CREATE INDEX work_next ON work (queue, id);
"""
READ = (
    "SELECT position, object_id, data FROM log WHERE queue = $1 AND position > $2::bigint"
    " ORDER BY position LIMIT $3::bigint"
)
PUSH = "INSERT INTO work (queue, data) VALUES ($1, $2) RETURNING id"
PUSH_MANY = "INSERT INTO work (queue, data) SELECT $1, $2 FROM generate_series(1, $3::bigint)"
WAKE = "WITH told AS (SELECT pg_notify($1, '')) INSERT INTO work (queue, data) SELECT $1, $2 FROM told RETURNING id"
PULL = (
    "WITH next AS MATERIALIZED ("
    " SELECT id FROM work WHERE queue = $1 AND due <= now() ORDER BY id LIMIT $2::bigint FOR UPDATE SKIP LOCKED"
    ") UPDATE work SET due = now() + interval '600 s', attempts = attempts + 1 FROM next WHERE work.id = next.id"
    " RETURNING '<' || work.id || '>' || data"
)
ACK = "DELETE FROM work WHERE id = ANY(string_to_array($1, ',')::bigint[])"


def append_sql(each: int) -> str:
    """One statement for so many objects: the queue, then an id and a text for each."""
    rows = ", ".join(f"($1, ${2 * n + 2}, ${2 * n + 3})" for n in range(each))
    return (
        f"INSERT INTO log (queue, object_id, data) VALUES {rows}"
        " ON CONFLICT (queue, object_id) DO NOTHING RETURNING position"
    )


STATEMENTS = {f"append{each}": append_sql(each) for each in (1, 10, MANY)} | {
    "read": READ, "push": PUSH, "pushmany": PUSH_MANY, "wake": WAKE, "pull": PULL, "ack": ACK,
}  # fmt: skip


def message(kind: bytes, content: bytes) -> bytes:
    """One message of the protocol; the first one of a connection has no kind."""
    return kind + (len(content) + 4).to_bytes(4, "big") + content


def prepared(name: str, *values: bytes) -> bytes:
    """Run a prepared statement with these values, as a transaction of its own."""
    bound = b"".join(len(value).to_bytes(4, "big") + value for value in values)
    count = len(values).to_bytes(2, "big")
    bind = b"\0" + name.encode() + b"\0" + b"\0\0" + count + bound + b"\0\0"
    return message(b"B", bind) + message(b"E", b"\0\0\0\0\0") + message(b"S", b"")


def ends(held: bytes, _: int) -> bool:
    """Every answer ends when the server is ready for the next query."""
    if any(word in held for word in FAILED):
        raise Refused(held[:300].decode(errors="replace"))
    return held.endswith(IDLE)


class Listening(Wire):
    """A pull that waits pulls again when it is told that there may be something, until there is."""

    def __init__(self, port: int) -> None:
        super().__init__(port, ends)
        self._asked = Request(b"")
        self._asking = False

    def send(self, request: Request) -> None:
        self._asked, self._asking = request, True
        super().send(request)

    def take(self) -> bool:
        super().take()
        told = NOTIFIED in self.held
        if self._asking:
            if IDLE not in self.held:
                return False
            self._asking = False
            if self._asked.answers or b"<" in self.held:
                return True
        self.held = b""
        if told:
            self.send(self._asked)
        return False


class Postgres(Peer):
    """One table for all logs and one for all work, with an index by queue."""

    lease = re.compile(rb"<(\d+)>")

    def wire(self) -> Wire:
        return self._greeted(Wire(self.port, ends))

    def waiting(self, queue: str) -> Wire:
        wire = self._greeted(Listening(self.port))
        wire.ask(Request(message(b"Q", f'LISTEN "{queue}"\0'.encode())))
        return wire

    def _greeted(self, wire: Wire) -> Wire:
        hello = b"\0\3\0\0" + b"user\0bench\0database\0postgres\0\0"
        parse = (message(b"P", f"{name}\0{sql}\0".encode() + b"\0\0") for name, sql in STATEMENTS.items())
        for data in (message(b"", hello), b"".join(parse) + message(b"S", b"")):
            wire.ask(Request(data))
        return wire

    def run(self, sql: str) -> bytes:
        """Run plain SQL on a connection of its own; return the answer."""
        wire = Wire(self.port, ends)
        wire.ask(Request(message(b"", b"\0\3\0\0user\0bench\0database\0postgres\0\0")))
        answer = wire.ask(Request(message(b"Q", sql.encode() + b"\0")))
        wire.close()
        return answer

    def make(self, queue: str, kind: Kind) -> None:
        """A queue is a value of a column."""

    def append(self, queue: str, each: int) -> Request:
        values = (value for index in range(each) for value in (object_id(index), text(index)))
        return Request(prepared(f"append{each}", queue.encode(), *values))

    def reads(self, queue: str, length: int, each: int) -> list[Request]:
        told = self.run(f"SELECT '<' || position || '>' FROM log WHERE queue = '{queue}'")
        positions = sorted(map(int, self.lease.findall(told)))[: length - each]
        return [
            Request(prepared("read", queue.encode(), b"%d" % after, b"%d" % each))
            for after in Random(length).choices(positions, k=500)
        ]

    def push(self, queue: str, *, wake: bool = False) -> Request:
        return Request(prepared("wake" if wake else "push", queue.encode(), text(0)))

    def push_many(self, queue: str, each: int) -> Request:
        return Request(prepared("pushmany", queue.encode(), text(0), b"%d" % each))

    def pull(self, queue: str, each: int, *, wait: bool = False) -> Request:
        return Request(prepared("pull", queue.encode(), b"%d" % each), 0 if wait else 1)

    def ack(self, queue: str, leases: Sequence[bytes]) -> Request:
        return Request(prepared("ack", b",".join(leases)))


@contextmanager
def start(place: Path, cache: Cache) -> Iterator[Peer]:
    """A cluster of its own below `place`; by another user where this one is root, as it insists."""
    initdb, server = cache.program("initdb", PACKAGE), cache.program("postgres", PACKAGE)
    user, data, env = unprivileged(place), place / "data", cache.libraries()
    made = subprocess.run(
        [initdb, "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-locale"],
        capture_output=True, text=True, timeout=INITDB_S, check=False, user=user, cwd=place,
        extra_groups=None if user is None else [], env=env | {"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    if made.returncode:
        raise Absent(f"initdb failed: {made.stderr.strip()[-300:]}")
    port = free_port()
    words = ["-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", "", "-c", "max_connections=200"]
    with running([server, *words], port, place / "log", env=env, user=user, folder=place):
        peer = Postgres(port)
        _await(peer)
        peer.run(SCHEMA)
        yield peer


def _await(peer: Postgres) -> None:
    """It accepts connections a little before it answers on them."""
    until = time.monotonic() + READY_S
    while True:
        try:
            peer.run("SELECT 1")
        except (Refused, EOFError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


CONTENDER = Contender(NAME, SETTING, start)
