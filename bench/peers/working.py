"""How is a queue worked? Producers push one message after the other; consumers pull some, ack them, pull again.

A consumer of `work` asks when as many messages as it wants are there for it: so no one's way of waiting is measured,
and every pull is a full one. How long it takes to wake one who waits is what `latency` asks.
"""

from __future__ import annotations

import select
import selectors
import time
from collections import deque
from collections.abc import Iterator

from bench.figures import quantile
from bench.peers.jobs import Round, Run, fresh
from bench.peers.load import TIMEOUT_S, Request, Wire, numbered
from bench.peers.peer import NUMBER, Peer

RATE = 200  # messages a second
PRODUCERS = 8  # connections, so that a late answer does not hold up the next message
FIRST_S = 0.1  # by then the consumer waits


def work(peer: Peer, seconds: float, workers: int = 4, each: int = 10, depth: int = 0) -> Run:
    """Messages a second that were pushed, pulled and acked, by so many producers and as many consumers.

    depth: messages that wait in the queue all the time.
    """
    queue = fresh(peer, "work")
    peer.pull(queue, each)
    if depth:
        peer.fill(queue, "work", depth)

    def run() -> Round:
        working = _Working(peer, queue, each, [peer.wire() for _ in range(workers * 2)])
        return working.run(seconds)

    return run


class _Working:
    """Producers and consumers at work."""

    def __init__(self, peer: Peer, queue: str, each: int, wires: list[Wire]) -> None:
        self._peer, self._queue, self._each = peer, queue, each
        self._requests = numbered(peer.push(queue))
        self._pull = peer.pull(queue, each)
        self._consumers = deque(wires[1::2])
        self._producers = set(wires[::2])
        self._acking: dict[Wire, int] = {}
        self._wires = wires
        self._pushed = 0
        self._there = 0  # pushed, and no consumer asked for them
        self._open = 0  # pushed, or being so, and not acked
        self._done = 0

    def run(self, seconds: float) -> Round:
        """Push until the time is over and what was pushed makes full pulls; return when all was acked."""
        with selectors.DefaultSelector() as selector:
            try:
                for wire in self._wires:
                    selector.register(wire.socket, selectors.EVENT_READ, wire)
                began, cpu = time.perf_counter(), time.thread_time()
                for wire in self._producers:
                    self._push(wire)
                while self._open > 0:
                    ready = selector.select(TIMEOUT_S)
                    if not ready:
                        raise TimeoutError("a peer does not answer")
                    for key, _ in ready:
                        wire = key.data
                        if wire.take():
                            self._took(wire, time.perf_counter() - began < seconds)
                took = time.perf_counter() - began
            finally:
                for wire in self._wires:
                    wire.close()
        return Round(self._done / took, {"load's cpu us": (time.thread_time() - cpu) / self._done * 1e6})

    def _push(self, wire: Wire) -> None:
        self._open += 1
        self._pushed += 1
        wire.send(next(self._requests))

    def _took(self, wire: Wire, more: bool) -> None:
        """Go on where an answer is whole."""
        if wire in self._producers:
            self._there += 1
            if more or self._pushed % self._each:
                self._push(wire)
            else:
                self._producers.discard(wire)
        elif wire in self._acking:
            acked = self._acking.pop(wire)
            self._done += acked
            self._open -= acked
            self._consumers.append(wire)
        else:
            leases = self._peer.leases(wire.held)
            self._there += self._each - len(leases)
            if leases:
                self._acking[wire] = len(leases)
                wire.send(self._peer.ack(self._queue, leases))
            else:
                self._consumers.append(wire)
        while self._consumers and (self._there >= self._each or self._short()):
            self._there -= self._each
            self._consumers.popleft().send(self._pull)

    def _short(self) -> bool:
        """Did an answer hold fewer messages than there were, so that the last pull is not a full one?"""
        at_work = len(self._consumers) < len(self._wires) // 2
        return self._there > 0 and not self._producers and not at_work


def latency(peer: Peer, number: int) -> Run:
    """Milliseconds from sending a push to having its message, for one who waits: the median."""
    queue = fresh(peer, "work")
    peer.pull(queue, peer.together, wait=True)

    def run() -> Round:
        took_ms = _Delivery(peer, queue, number).run()
        more = {"p99 ms": quantile(took_ms, 0.99), "most ms": max(took_ms)}
        return Round(quantile(took_ms, 0.5), more)

    return run


class _Delivery:
    """A producer at a steady rate, and a consumer that waits, acks and waits again."""

    def __init__(self, peer: Peer, queue: str, number: int) -> None:
        self._peer, self._queue, self._number = peer, queue, number
        self._requests: Iterator[Request] = numbered(peer.push(queue, wake=True))
        self._pull = peer.pull(queue, peer.together, wait=True)
        self._consumer = peer.waiting(queue)
        self._idle = deque(peer.wire() for _ in range(PRODUCERS))
        self._busy: dict[int, Wire] = {}  # by descriptor
        self._sent: dict[bytes, float] = {}
        self._took_ms: list[float] = []
        self._acking = False

    def run(self) -> list[float]:
        """Return when all were received and acked."""
        wires = [self._consumer, *self._idle]
        try:
            self._ask(self._consumer, self._pull)
            due = time.perf_counter() + FIRST_S
            while len(self._took_ms) < self._number or self._acking:
                left_s = due - time.perf_counter() if len(self._sent) < self._number else TIMEOUT_S
                if left_s <= 0 and self._idle:
                    self._push()
                    due += 1 / RATE
                    continue
                self._take(max(left_s, 0))
            while len(self._idle) < PRODUCERS:
                self._take(TIMEOUT_S)
        finally:
            for wire in wires:
                wire.close()
        return self._took_ms

    def _ask(self, wire: Wire, request: Request) -> None:
        wire.send(request)
        self._busy[wire.socket.fileno()] = wire

    def _push(self) -> None:
        request = next(self._requests)
        found = NUMBER.search(request.data)
        assert found is not None
        producer = self._idle.popleft()
        self._ask(producer, request)
        self._sent[found[1]] = producer.sent_at

    def _take(self, wait_s: float) -> None:
        ready, _, _ = select.select(list(self._busy), [], [], wait_s)
        if not ready and wait_s >= TIMEOUT_S:
            raise TimeoutError("a peer does not answer")
        for descriptor in ready:
            wire = self._busy[descriptor]
            if not wire.take():
                continue
            at = time.perf_counter()
            del self._busy[descriptor]
            if wire is not self._consumer:
                self._idle.append(wire)
            elif self._acking:
                self._acking = False
                if len(self._took_ms) < self._number:
                    self._ask(wire, self._pull)
            else:
                self._took_ms += [(at - self._sent[one]) * 1000 for one in NUMBER.findall(wire.held)]
                self._acking = True
                self._ask(wire, self._peer.ack(self._queue, self._peer.leases(wire.held)))
