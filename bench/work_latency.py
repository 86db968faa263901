"""How soon does a consumer that waits have what is pushed, over HTTP?

A producer sends one message after the other at a steady rate, whatever the answers do. A consumer waits in a long
poll, acks on a second connection what it was given, and waits again. The server is `edgequeues serve` with its
defaults in a process of its own; both ends are in this one.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench import machine, served
from bench.delivering import RATE, Delivery, Latencies, Pushes
from bench.figures import Against, Figure, figure, quantile
from bench.http_requests import native
from bench.rig import Rig, quiet_collector

CONSUMERS = (1, 10, 100)
QUEUE = "latency"
P50_MS_MAX, P99_MS_MAX = 5.0, 25.0  # above those of the flush


def measure(rig: Rig) -> Iterator[Figure]:
    """By one consumer, then by many that all wait for the same queue."""
    for consumers in rig.pick(CONSUMERS, CONSUMERS, (1, 3)):
        yield _deliver(rig, consumers)


def _deliver(rig: Rig, consumers: int) -> Figure:
    """p50 and p99, with the time of a flush taken before and after every round."""
    pushes = Pushes(native(QUEUE))
    flushes: list[float] = []
    rounds: list[Latencies] = []
    with rig.place() as folder, served.edgequeues(folder) as ours, quiet_collector():
        ours.ask("PUT", f"{native(QUEUE)}/config", b'{"kind":"work"}', **{"content-type": "application/json"})
        Delivery(ours.port, rig.pick(100, 100, 10), consumers, pushes).run()
        cpu_s = 0.0
        for _ in range(rig.pick(5, 3, 1)):
            ours.settle()  # it has seen that those who waited are gone
            flushes += machine.flush_times_ms(folder, rig.pick(500, 200, 20))
            before_s = ours.cpu_s()
            rounds.append(Delivery(ours.port, rig.pick(1_000, 400, 10), consumers, pushes).run())
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
