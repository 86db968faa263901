"""What does HTTP cost on top of the engine? Everything beside a bare ASGI app on the same Hypercorn.

The server under test is `edgequeues serve` with its defaults in a process of its own, and so is the bare app, which
gets the same requests; the load comes from this process. "loop cpu us" is the processor time that the thread of
the server's event loop took for a request, 0 where the system does not tell: other programs' load does not change
it much.
"""

from __future__ import annotations

import select
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from math import inf
from typing import NamedTuple
from urllib.parse import urlencode

from bench import served
from bench.figures import Against, Figure, figure, quantile, ratio
from bench.http_load import Connection, Load, drive
from bench.http_requests import (
    QUEUE,
    cursors,
    dxos,
    dxos_append,
    fill,
    head,
    native,
    native_append,
)
from bench.rig import Rig, quiet_collector
from bench.served import Served

OF_BARE_MIN = 0.7  # one object a request, many connections
PAGE = 100
MANY = 32
EACH = (1, 10, 100)  # objects a request
REREAD = 1_000
WAIT_S = 60
BARE = "bare app"


class Answers(NamedTuple):
    """Of one way to ask in one round: the load, and the processor time of the server's loop for one answer."""

    load: Load
    cpu_us: float


Found = Mapping[str, list[Answers]]
Requests = Callable[[], Iterator[bytes]]


@dataclass(frozen=True)
class Pair:
    """The servers, and how thoroughly to compare them."""

    ours: Served
    bare: Served
    rig: Rig

    def compare(
        self, ways: Mapping[str, tuple[Requests, int]], connections: int, *, to_the_end: bool = False
    ) -> Found:
        """Ask in turn: the server in every way, and the bare app in the first of them.

        ways: by name, what makes the requests of a round, and the status they are answered with. to_the_end: a round
        is over when they are, not after a time.
        """
        seconds = inf if to_the_end else self.rig.pick(0.5, 0.15, 0.02)

        def ask(one: Served, requests: Requests, status: int) -> Answers:
            made = requests()
            before = one.cpu_s()
            load = drive(one.port, made, connections=connections, status=status, seconds=seconds)
            return Answers(load, (one.cpu_s() - before) / len(load.took) * 1e6)

        first, _ = next(iter(ways.values()))
        cases = {BARE: partial(ask, self.bare, first, 200)}
        cases |= {
            name: partial(ask, self.ours, requests, status) for name, (requests, status) in ways.items()
        }
        return self.rig.rounds(self.rig.pick(5, 3, 1), cases)


def measure(rig: Rig) -> Iterator[Figure]:
    """Appends, reads, reads again, deletes, and waking those who wait."""
    with (
        rig.place() as folder,
        served.edgequeues(folder) as ours,
        served.bare(folder) as bare,
        quiet_collector(),
    ):
        pair = Pair(ours, bare, rig)
        fill(ours, QUEUE, 1)
        pair.compare({"warm": (partial(native_append, 1), 200)}, MANY)
        yield from _appends(pair)
        yield from _wakes(pair)
        yield from _reads(pair)
        yield from _rereads(pair)
        yield from _deletes(pair)


def _figures(case: str, found: Found, *, target: float | None = None, **more: float) -> Iterator[Figure]:
    """One for each way, the bare app's last."""
    bare = [one.load.rate for one in found[BARE]]
    for name in [*(name for name in found if name != BARE), BARE]:
        rates = [one.load.rate for one in found[name]]
        took = [each for one in found[name] for each in one.load.took]
        beside = {"p50 ms": quantile(took, 0.5) * 1000, "p99 ms": quantile(took, 0.99) * 1000}
        beside["loop cpu us"] = statistics.median(one.cpu_us for one in found[name])
        against = []
        if name == BARE:
            beside["load's cpu us"] = statistics.median(one.load.cpu_us for one in found[name])
        elif target is not None:
            against.append(Against(what=BARE, value=ratio(rates, bare), target=target))
        else:
            beside = {"of bare": ratio(rates, bare)} | beside
        if name != BARE:
            beside |= {unit: statistics.median(rates) * each for unit, each in more.items()}
        yield figure("http", f"{case}: {name}", rates, "requests/s", against=against, more=beside)


def _connections(count: int) -> str:
    return f"{count} connection{'s' if count > 1 else ''}"


def _appends(pair: Pair) -> Iterator[Figure]:
    """New objects of 200 bytes."""
    for each in EACH:
        for connections in (1, MANY):
            ways = {
                "native": (partial(native_append, each), 200),
                "DXOS": (partial(dxos_append, each), 201),
            }
            found = pair.compare(ways, connections)
            target = OF_BARE_MIN if (each, connections) == (1, MANY) else None
            case = f"append {each}, {_connections(connections)}"
            yield from _figures(case, found, target=target, **({"objects/s": each} if each > 1 else {}))


def _reads(pair: Pair) -> Iterator[Figure]:
    """100 entries from anywhere in a long queue."""
    length, queue = pair.rig.pick(100_000, 100_000, 3 * PAGE), "01" + "1" * 24
    fill(pair.ours, queue, length)
    queries = [
        urlencode({"after": each, "limit": PAGE}) for each in cursors(pair.ours, queue, length, PAGE, 500)
    ]
    natively = [head("GET", f"{native(queue)}?{query}") for query in queries]
    as_dxos = [head("GET", f"{dxos(queue)}/query?{query}") for query in queries]
    for connections in (1, MANY):
        ways = {"native": (partial(cycle, natively), 200), "DXOS": (partial(cycle, as_dxos), 200)}
        case = f"read {PAGE} of {length:,}, {_connections(connections)}"
        yield from _figures(case, pair.compare(ways, connections), **{"entries/s": PAGE})


def _rereads(pair: Pair) -> Iterator[Figure]:
    """All of a queue, by those who have it already and by those who take it compressed."""
    queue = "01" + "2" * 24
    fill(pair.ours, queue, REREAD)
    tag = pair.ours.ask("GET", native(queue)).headers["etag"]
    known = head("GET", native(queue), if_none_match=tag)
    zipped = head("GET", native(queue), accept_encoding="gzip")
    found = pair.compare({"native": (partial(cycle, [known]), 304)}, MANY)
    yield from _figures(f"read {REREAD:,} again, nothing new, {_connections(MANY)}", found)
    found = pair.compare({"native": (partial(cycle, [zipped]), 200)}, MANY)
    yield from _figures(f"read {REREAD:,} again, gzip, {_connections(MANY)}", found, **{"entries/s": REREAD})


def _deletes(pair: Pair) -> Iterator[Figure]:
    """Objects by id, which are appended before the clock starts."""
    queue = "01" + "3" * 24
    for each in (1, PAGE):
        calls = pair.rig.pick(1_500 if each == 1 else 150, 500 if each == 1 else 50, MANY)

        def requests(each: int = each, calls: int = calls) -> Iterator[bytes]:
            ids = fill(pair.ours, queue, each * calls)
            parts = (ids[at : at + each] for at in range(0, len(ids), each))
            return iter(
                [head("DELETE", f"{native(queue)}?{urlencode([('id', i) for i in p])}") for p in parts]
            )

        found = pair.compare({"native": (requests, 200)}, MANY, to_the_end=True)
        more = {"objects/s": each} if each > 1 else {}
        yield from _figures(f"delete {each} by id, {_connections(MANY)}", found, **more)


# -- waking -------------------------------------------------------------------------------------------------


class Wakes(NamedTuple):
    """Milliseconds from sending an append: to the answer of the long poll, to its own, to the bare app's."""

    woken: list[float]
    appended: list[float]
    bare: list[float]


def _wakes(pair: Pair) -> Iterator[Figure]:
    """One appends, one waits."""
    count = pair.rig.pick(100, 50, 3)
    rounds = [_wake(pair, count) for _ in range(pair.rig.pick(5, 3, 1))]
    every = {name: [ms for one in rounds for ms in getattr(one, name)] for name in Wakes._fields}
    more = {
        "p99": quantile(every["woken"], 0.99),
        "append p50": quantile(every["appended"], 0.5),
        "append p99": quantile(every["appended"], 0.99),
        "bare app p50": quantile(every["bare"], 0.5),
        "bare app p99": quantile(every["bare"], 0.99),
    }
    medians = [statistics.median(one.woken) for one in rounds]
    yield figure("http", "append to the answer of a long poll, p50", medians, "ms", more=more)


def _wake(pair: Pair, count: int) -> Wakes:
    found = Wakes([], [], [])
    reader, writer, bare = Connection(pair.ours.port), Connection(pair.ours.port), Connection(pair.bare.port)
    requests = native_append(1)
    try:
        for _ in range(count):
            after = pair.ours.ask("GET", f"{native()}/stats").json()["cursor"]
            reader.send(head("GET", f"{native()}?after={after}&wait={WAIT_S}"))
            writer.ask(head("GET", f"{native()}?after={after}"))  # by now the reader waits, too
            writer.send(next(requests))
            arrived = _arrivals(reader, writer)
            found.woken.append((arrived[reader] - writer.sent_at) * 1000)
            found.appended.append((arrived[writer] - writer.sent_at) * 1000)
            found.bare.append(bare.ask(next(requests)) * 1000)
    finally:
        for each in (reader, writer, bare):
            each.close()
    return found


def _arrivals(*connections: Connection) -> dict[Connection, float]:
    """When all of each answer had come."""
    arrived: dict[Connection, float] = {}
    while waiting := [each for each in connections if each not in arrived]:
        ready, _, _ = select.select([each.socket for each in waiting], [], [])
        for each in waiting:
            if each.socket in ready and each.take():
                arrived[each] = time.perf_counter()
    return arrived
