"""How many pushes, pulls and acks a second does a server answer, in each of its dialects?

"of bare" sets the rate beside that of a bare ASGI app on the same Hypercorn which is sent the same requests, as in
`bench/http.py`. Messages are of 200 bytes; what is pulled was pushed, and what is acked was pulled, before the clock
starts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, repeat

from bench import served
from bench.figures import Figure, figure, quantile, ratio
from bench.http import BARE, MANY, Found, Pair
from bench.http_requests import native
from bench.rig import Rig, quiet_collector
from bench.work_requests import DIALECTS, Dialect, pull_all, push_all

EACH = (1, 100)  # messages a request

Made = Callable[
    [Pair, Dialect, str, int, int], Iterator[bytes]
]  # for a queue: so many requests of so many messages


def _pushes(_: Pair, dialect: Dialect, path: str, _calls: int, each: int) -> Iterator[bytes]:
    return repeat(dialect.push(path, each).request())


def _pulls(pair: Pair, dialect: Dialect, path: str, calls: int, each: int) -> Iterator[bytes]:
    push_all(pair.ours, dialect, path, calls * each)
    return repeat(dialect.pull(path, each).request(), calls)


def _acks(pair: Pair, dialect: Dialect, path: str, calls: int, each: int) -> Iterator[bytes]:
    push_all(pair.ours, dialect, path, calls * each)
    leases = [*pull_all(pair.ours, dialect, path, calls * each)]
    parts = (leases[at : at + each] for at in range(0, len(leases), each))
    return iter([dialect.ack(path, part).request() for part in parts])


VERBS: dict[str, Made] = {"push": _pushes, "pull": _pulls, "ack": _acks}


def measure(rig: Rig) -> Iterator[Figure]:
    """One message a request and a hundred, on one connection and on many."""
    with (
        rig.place() as folder,
        served.edgequeues(folder) as ours,
        served.bare(folder) as bare,
        quiet_collector(),
    ):
        pair = Pair(ours, bare, rig)
        queues = _Queues(pair)
        for each in EACH:
            calls = rig.pick(1_500 if each == 1 else 150, 400 if each == 1 else 50, 4)
            for verb, made in VERBS.items():
                for connections in (1, MANY):
                    ways = {
                        name: (partial(queues.fresh, made, dialect, calls, each), 200)
                        for name, dialect in DIALECTS.items()
                    }
                    found = pair.compare(ways, connections, to_the_end=made is not _pushes)
                    case = f"{verb} {each}, {connections} connection{'s' if connections > 1 else ''}"
                    yield from _figures(case, found, each)


class _Queues:
    """A queue of its own for every round; the one before is emptied, so that its leases do not lapse meanwhile."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._numbers = count()
        self._last: str | None = None

    def fresh(self, made: Made, dialect: Dialect, calls: int, each: int) -> Iterator[bytes]:
        """The requests of a round."""
        if self._last is not None:
            self._pair.ours.ask("POST", f"{native(self._last)}/purge")
        self._last = f"round-{next(self._numbers)}"
        path = dialect.made(self._pair.ours, self._last)
        return made(self._pair, dialect, path, calls, each)


def _figures(case: str, found: Found, each: int) -> Iterator[Figure]:
    bare = [one.load.rate for one in found[BARE]]
    for name in DIALECTS:
        rates = [one.load.rate for one in found[name]]
        took = [seconds for one in found[name] for seconds in one.load.took]
        more = {
            "of bare": ratio(rates, bare),
            "p50 ms": quantile(took, 0.5) * 1000,
            "p99 ms": quantile(took, 0.99) * 1000,
            "loop cpu us": statistics.median(one.cpu_us for one in found[name]),
        }
        if each > 1:
            more["messages/s"] = statistics.median(rates) * each
        yield figure("work-http", f"{case}: {name}", rates, "requests/s", more=more)
