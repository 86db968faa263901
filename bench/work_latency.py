"""How soon does a consumer that waits have what is pushed, over HTTP?

A producer sends one message after the other at a steady rate, whatever the answers do. A consumer waits in a long
poll, acks on a second connection what it was given, and waits again. The server is `edgequeues serve` with its
defaults in a process of its own; both ends are in this one.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Struct

from bench import machine, served
from bench.figures import Against, Figure, figure, quantile
from bench.http_load import Connection
from bench.http_requests import head, native
from bench.rig import ROW_BYTES, Rig, quiet_collector

RATE = 200  # messages a second
CONSUMERS = (1, 10, 100)
PRODUCERS = 8  # connections, so that a late answer does not hold up the next message
WAIT_S = 60
FIRST_S = 0.05  # by then the consumer waits
QUEUE = "latency"
P50_MS_MAX, P99_MS_MAX = 5.0, 25.0  # above those of the flush
PULL = b'{"batch":100}'


class _Data(Struct):
    number: int


class _Message(Struct):
    lease: str
    data: _Data


class _Pulled(Struct):
    messages: list[_Message]


class Latencies(NamedTuple):
    """Milliseconds from sending a push: until the consumer had its message, and until the push was answered."""

    received: list[float]
    pushed: list[float]
    pulled: list[int]  # messages of each answer


def measure(rig: Rig) -> Iterator[Figure]:
    """By one consumer, then by many that all wait for the same queue."""
    for consumers in rig.pick(CONSUMERS, CONSUMERS, (1, 3)):
        yield _deliver(rig, consumers)


def _deliver(rig: Rig, consumers: int) -> Figure:
    """p50 and p99, with the time of a flush taken before and after every round."""
    flushes: list[float] = []
    rounds: list[Latencies] = []
    with rig.place() as folder, served.edgequeues(folder) as ours, quiet_collector():
        ours.ask("PUT", f"{native(QUEUE)}/config", b'{"kind":"work"}', **{"content-type": "application/json"})
        _Delivery(ours.port, rig.pick(100, 100, 10), consumers).run()
        cpu_s = 0.0
        for _ in range(rig.pick(5, 3, 1)):
            ours.settle()  # it has seen that those who waited are gone
            flushes += machine.flush_times_ms(folder, rig.pick(500, 200, 20))
            before_s = ours.cpu_s()
            rounds.append(_Delivery(ours.port, rig.pick(1_000, 400, 10), consumers).run())
            cpu_s += ours.cpu_s() - before_s
            flushes += machine.flush_times_ms(folder, rig.pick(500, 200, 20))
    received = [ms for one in rounds for ms in one.received]
    pushed = [ms for one in rounds for ms in one.pushed]
    p50, p99 = quantile(received, 0.5), quantile(received, 0.99)
    flush_p50, flush_p99 = quantile(flushes, 0.5), quantile(flushes, 0.99)
    against = [
        Against(what="p50 above flush p50, ms", value=p50 - flush_p50, target=P50_MS_MAX, at_most=True),
        Against(what="p99 above flush p99, ms", value=p99 - flush_p99, target=P99_MS_MAX, at_most=True),
    ]
    more = {
        "p99": p99,
        "most": max(received),
        "flush p50": flush_p50,
        "flush p99": flush_p99,
        "push p50": quantile(pushed, 0.5),
        "push p99": quantile(pushed, 0.99),
        "loop cpu us/message": cpu_s / len(received) * 1e6,
        "messages a pull": len(received) / sum(len(one.pulled) for one in rounds),
    }
    medians = [quantile(one.received, 0.5) for one in rounds]
    case = f"{RATE} messages/s to {consumers} waiting, sent to received, p50"
    return figure("work-latency", case, medians, "ms", against=against if consumers == 1 else [], more=more)


class _Delivery:
    """A producer and consumers at work until `count` messages went from one to the others."""

    def __init__(self, port: int, count: int, consumers: int) -> None:
        self.count = count
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
        path = f"{native(QUEUE)}/{verb}" + (f"?wait={WAIT_S}" if verb == "pull" else "")
        connection.send(head("POST", path, length=len(body)) + body)
        self._under_way[connection.socket.fileno()] = connection

    def _push(self) -> None:
        producer, number = self._idle.popleft(), len(self._sent)
        start = b'{"entries":[{"data":{"number":%d,"text":"' % number
        self._ask(producer, "push", start + b"x" * ROW_BYTES + b'"}}]}')
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
            if each.status != 200:
                raise ValueError(f"answered {each.status} where 200 was expected")
            if each in self._waiting:
                self._received(each, at)
            elif each is not self._acker:
                self.found.pushed.append((at - each.sent_at) * 1000)
                self._idle.append(each)
            if self._leases and self._acker.socket.fileno() not in self._under_way:
                self._ask(self._acker, "ack", msgspec.json.encode({"leases": self._leases}))
                self._leases = []

    def _received(self, consumer: Connection, at: float) -> None:
        messages = msgspec.json.decode(consumer.body, type=_Pulled).messages
        self.found.received.extend((at - self._sent[one.data.number]) * 1000 for one in messages)
        self.found.pulled.append(len(messages))
        self._leases += [one.lease for one in messages]
        self._ask(consumer, "pull", PULL)
