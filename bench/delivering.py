"""How do messages get from those who send them, at a steady rate, to those who wait for them?"""

from __future__ import annotations

import select
import time
from collections import deque
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct

from bench.http_load import Connection
from bench.http_requests import head
from bench.rig import ROW_BYTES

RATE = 200  # messages a second
PRODUCERS = 8  # connections, so that a late answer does not hold up the next message
WAIT_S = 60
FIRST_S = 0.05  # by then the consumer waits
PULL = b'{"batch":100}'


class _Message(Struct):
    lease: str
    data: msgspec.Raw


class _Pulled(Struct):
    messages: list[_Message]


class Latencies(NamedTuple):
    """Milliseconds from sending a request: until the consumer had its message, and until the request was answered."""

    received: list[float]
    pushed: list[float]
    pulled: list[int]  # messages of each answer


class Traffic(Protocol):
    """What is sent to a queue, and how each message is known again."""

    @property
    def queue(self) -> str:
        """The path of the queue."""
        ...

    @property
    def status(self) -> int:
        """That of an answer that is as it should be."""
        ...

    def request(self, number: int) -> bytes:
        """A whole request that makes one message."""
        ...

    def number(self, data: msgspec.Raw) -> int:
        """The number of the request that made a message with this data."""
        ...


class _Numbered(Struct):
    number: int


class Pushes(NamedTuple):
    """A push for each message."""

    queue: str
    status: int = 200

    def request(self, number: int) -> bytes:
        """A message of about ROW_BYTES."""
        start = b'{"entries":[{"data":{"number":%d,"text":"' % number
        body = start + b"x" * ROW_BYTES + b'"}}]}'
        return head("POST", f"{self.queue}/push", length=len(body)) + body

    def number(self, data: msgspec.Raw) -> int:
        """The data says it."""
        return msgspec.json.decode(data, type=_Numbered).number


class Delivery:
    """A producer and consumers at work until `count` messages went from one to the others."""

    def __init__(self, port: int, count: int, consumers: int, traffic: Traffic) -> None:
        self.count = count
        self._traffic = traffic
        self.found = Latencies([], [], [])
        self._sent: dict[int, float] = {}
        self._leases: list[str] = []
        self._consumers = [Connection(port, keep=True) for _ in range(consumers)]
        self._acker = Connection(port)
        self._idle = deque(Connection(port) for _ in range(PRODUCERS))
        self._all = [*self._consumers, self._acker, *self._idle]
        self._under_way: dict[int, Connection] = {}  # by descriptor
        self._waiting = set(self._consumers)

    def run(self) -> Latencies:
        """Return when the last message was acked."""
        try:
            for consumer in self._consumers:
                self._ask(consumer, "pull", PULL)
            due = time.perf_counter() + FIRST_S
            while len(self.found.received) < self.count or self._acker.socket.fileno() in self._under_way:
                left_s = due - time.perf_counter() if len(self._sent) < self.count else WAIT_S
                if left_s <= 0 and self._idle:
                    self._push()
                    due += 1 / RATE
                    continue
                self._take(max(left_s, 0))
        finally:
            for each in self._all:
                each.close()
        return self.found

    def _ask(self, connection: Connection, verb: str, body: bytes) -> None:
        path = f"{self._traffic.queue}/{verb}" + (f"?wait={WAIT_S}" if verb == "pull" else "")
        self._send(connection, head("POST", path, length=len(body)) + body)

    def _send(self, connection: Connection, request: bytes) -> None:
        connection.send(request)
        self._under_way[connection.socket.fileno()] = connection

    def _push(self) -> None:
        producer, number = self._idle.popleft(), len(self._sent)
        self._send(producer, self._traffic.request(number))
        self._sent[number] = producer.sent_at

    def _take(self, wait_s: float) -> None:
        """Take what has come by then."""
        ready, _, _ = select.select(list(self._under_way), [], [], wait_s)
        for descriptor in ready:
            each = self._under_way[descriptor]
            if not each.take():
                continue
            at = time.perf_counter()
            del self._under_way[descriptor]
            is_push = each not in self._waiting and each is not self._acker
            wanted = self._traffic.status if is_push else 200
            if each.status != wanted:
                raise ValueError(f"answered {each.status} where {wanted} was expected")
            if each in self._waiting:
                self._received(each, at)
            elif is_push:
                self.found.pushed.append((at - each.sent_at) * 1000)
                self._idle.append(each)
            if self._leases and self._acker.socket.fileno() not in self._under_way:
                self._ask(self._acker, "ack", msgspec.json.encode({"leases": self._leases}))
                self._leases = []

    def _received(self, consumer: Connection, at: float) -> None:
        messages = msgspec.json.decode(consumer.body, type=_Pulled).messages
        self.found.received.extend(
            (at - self._sent[self._traffic.number(one.data)]) * 1000 for one in messages
        )
        self.found.pulled.append(len(messages))
        self._leases += [one.lease for one in messages]
        self._ask(consumer, "pull", PULL)
