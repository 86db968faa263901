"""What does it cost a server that a thousand clients wait: how much memory, and how many appends?

Those who wait do so on other queues of the space that is appended to.
"""

from __future__ import annotations

import select
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from bench import served
from bench.figures import Against, Figure, figure, ratio
from bench.http_load import Connection, drive
from bench.http_requests import fill, head, native, native_append
from bench.rig import Rig, quiet_collector
from bench.served import Served
from shards.limits import Limits, fit_files

WAITING = 1_000
QUEUES = 50
CONNECTIONS = 32
WAIT_S = 60  # as long as may be asked for, and longer than a round
GROWTH_MB_MAX = 100  # for 1,000
RATE_MIN = 0.9  # of that without those who wait
MB = 2**20 / 1e6  # of a MiB


def measure(rig: Rig) -> Iterator[Figure]:
    """A fresh server for each kind of waiting."""
    fit_files(Limits(), WAITING + CONNECTIONS)  # the sockets are this process's, too
    for kind, request in KINDS.items():
        with rig.place() as folder, served.edgequeues(folder) as one, quiet_collector():
            yield from _measure(rig, one, kind, request)


def _long_poll(queue: str, cursor: str) -> bytes:
    return head("GET", f"{native(queue)}?after={cursor}&wait={WAIT_S}")


def _subscribe(queue: str, cursor: str) -> bytes:
    return head("GET", f"{native(queue)}/subscribe?after={cursor}")


def _pull(queue: str, _: str) -> bytes:
    return head("POST", f"{native(queue)}/pull?wait={WAIT_S}", length=len(b"{}")) + b"{}"


KINDS: Mapping[str, Callable[[str, str], bytes]] = {
    "long polls": _long_poll,
    "SSE subscribers": _subscribe,
    "consumers that wait": _pull,
}


def _measure(rig: Rig, one: Served, kind: str, request: Callable[[str, str], bytes]) -> Iterator[Figure]:
    one.settle()
    idle = one.resident_mib()
    waiting = rig.pick(WAITING, WAITING, 20)
    requests = []
    for queue in (f"waiting{number}" for number in range(QUEUES)):
        fill(one, queue, 1)
        cursor = one.ask("GET", f"{native(queue)}/stats").json()["cursor"]
        one.ask("PUT", f"{native(queue)}/consumers/default", b"{}", **{"content-type": "application/json"})
        requests.append(request(queue, cursor))
    asked = [requests[number % QUEUES] for number in range(waiting)]
    _appends(rig, one)
    before = one.resident_mib()
    with _open(one, asked):
        grown = (one.resident_mib() - before) * 1000 / waiting
    with_them, without = [], []
    rounds = rig.pick(6, 2, 1)
    for number in range(rounds):
        if number % 2:
            without.append(_appends(rig, one))
        with _open(one, asked):
            with_them.append(_appends(rig, one))
        if not number % 2:
            without.append(_appends(rig, one))
    if kind == next(iter(KINDS)):
        yield figure("http-memory", "memory, idle", [idle], "MiB")
        yield figure("http-memory", "memory, after appends", [before], "MiB")
    against = Against(what="MB", value=grown * MB, target=GROWTH_MB_MAX, at_most=True)
    yield figure("http-memory", f"memory, 1,000 {kind}", [grown], "MiB", against=[against])
    case = f"memory, after {waiting * (rounds + 1):,} {kind} came and went"
    yield figure("http-memory", case, [one.resident_mib()], "MiB", more={"peak MiB": one.peak_mib()})
    against = Against(what="without them", value=ratio(with_them, without), target=RATE_MIN)
    more = {"without them": statistics.median(without)}
    case = f"append 1, {CONNECTIONS} connections, beside {waiting:,} {kind}"
    yield figure("http-memory", case, with_them, "requests/s", against=[against], more=more)


def _appends(rig: Rig, one: Served) -> float:
    """Requests a second."""
    seconds = rig.pick(1.0, 0.5, 0.02)
    return drive(one.port, native_append(1), connections=CONNECTIONS, status=200, seconds=seconds).rate


@contextmanager
def _open(one: Served, requests: list[bytes]) -> Iterator[None]:
    """Have all these requests wait. Raises ValueError for one that does not."""
    with ExitStack() as stack:
        every = []
        for request in requests:
            every.append(Connection(one.port))
            stack.callback(every[-1].close)
            every[-1].send(request)
        one.settle()
        yield
        _check(every)
    one.settle()


def _check(every: list[Connection]) -> None:
    """Those who wait have heard nothing yet, or that it goes on."""
    ready = select.poll()
    by_number = {each.socket.fileno(): each for each in every}
    for number in by_number:
        ready.register(number, select.POLLIN)
    for number, _ in ready.poll(0):
        if by_number[number].take():
            raise ValueError(f"a wait ended early: it was answered {by_number[number].status}")
