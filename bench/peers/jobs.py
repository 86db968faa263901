"""What is every peer asked? Each job as a function of a peer and of how long; what it returns is one round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, cycle, islice
from typing import NamedTuple

from bench.figures import quantile
from bench.http_load import Load
from bench.peers.load import Request, drive, numbered
from bench.peers.peer import Kind, NotMeant, Peer

WARM = 10  # requests before the clock starts

_rounds = count()


class Round(NamedTuple):
    """What one round says. more: what stands beside it."""

    value: float
    more: dict[str, float]


Run = Callable[[], Round]


def fresh(peer: Peer, kind: Kind) -> str:
    """A new queue."""
    name = f"q{next(_rounds)}"
    peer.make(name, kind)
    return name


def _told(load: Load, each: int) -> Round:
    more = {"p50 ms": quantile(load.took, 0.5) * 1000, "p99 ms": quantile(load.took, 0.99) * 1000}
    return Round(load.rate * each, more | {"load's cpu us": load.cpu_us})


def append(peer: Peer, each: int, connections: int, seconds: float) -> Run:
    """Objects a second into one log, `each` a request."""
    queue = fresh(peer, "log")
    template = peer.append(queue, each)
    drive(peer.wire, islice(numbered(template), WARM), connections=1)

    def run() -> Round:
        return _told(drive(peer.wire, numbered(template), connections=connections, seconds=seconds), each)

    return run


def read(peer: Peer, length: int, each: int, connections: int, seconds: float) -> Run:
    """Objects a second from anywhere in a log."""
    if not peer.logs:
        raise NotMeant
    queue = fresh(peer, "log")
    peer.fill(queue, "log", length)
    requests = peer.reads(queue, length, each)

    def run() -> Round:
        load = drive(peer.wire, cycle(requests), connections=connections, seconds=seconds)
        return _told(load, each)

    return run


def queues(peer: Peer, number: int, connections: int, seconds: float) -> Run:
    """Messages a second, pushed to so many queues in turn."""
    templates = [peer.push(fresh(peer, "work")) for _ in range(number)]
    drive(peer.wire, (next(numbered(each)) for each in templates), connections=1)

    def requests() -> Iterator[Request]:
        made = [numbered(template) for template in templates]
        for each in cycle(made):
            yield next(each)

    def run() -> Round:
        return _told(drive(peer.wire, requests(), connections=connections, seconds=seconds), 1)

    return run
