"""How does edgequeues do beside others, job by job, with every answer on disk?

All start on loopback and are given the same jobs in rounds that take turns; ratios are medians of the ratios round by
round. The load comes from this process by raw sockets. "flush ms" is the median of a flush around that job.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from bench import machine
from bench.figures import Figure, figure, quantile, ratio
from bench.peers import durable_objects, jobs, ours, postgres, redis
from bench.peers.cache import Cache
from bench.peers.jobs import Round, Run
from bench.peers.load import Refused
from bench.peers.peer import MANY, Contender, NotMeant, Peer
from bench.peers.process import Absent
from bench.rig import Rig, quiet_collector

NAME = "peers"
CONTENDERS: tuple[Contender, ...] = (
    ours.contender(),
    durable_objects.CONTENDER,
    redis.CONTENDER,
    postgres.CONTENDER,
)
AGAINST = (durable_objects.NAME, postgres.NAME, ours.NAME)
EACH = (1, 10, MANY)
CONNECTIONS = (1, 32)
LENGTH = 100_000

Job = Callable[[Peer], Run]


def measure(rig: Rig, contenders: Sequence[Contender] = CONTENDERS) -> Iterator[Figure]:
    """All jobs, by all who could be started."""
    also = [ours.contender(options) for options in rig.also]
    with ExitStack() as stack, quiet_collector():
        field = Field(rig)
        for one in [*contenders, *also]:
            if not rig.only or one.name in rig.only or one in also:
                field.join(stack, one)
        for case, unit, job in asked(rig):
            yield from field.compare(case, unit, job)


def asked(rig: Rig) -> Iterator[tuple[str, str, Job]]:
    """Every job: what it is called, the unit of its figure, and how it is begun."""
    seconds, length = rig.pick(1.0, 0.25, 0.02), rig.pick(LENGTH, LENGTH, 300)
    for each in EACH:
        for connections in CONNECTIONS:
            job = partial(jobs.append, each=each, connections=connections, seconds=seconds)
            yield f"append {each}, {_many(connections)}", "objects/s", job
    for connections in CONNECTIONS:
        job = partial(jobs.read, length=length, each=MANY, connections=connections, seconds=seconds)
        yield f"read {MANY} of {length:,}, {_many(connections)}", "objects/s", job
    for number in rig.pick((1, 1_000), (1, 1_000), (1, 3)):
        job = partial(jobs.queues, number=number, connections=CONNECTIONS[-1], seconds=seconds)
        yield f"push 1 to {number:,} queue{'s' if number > 1 else ''}", "messages/s", job


def _many(connections: int) -> str:
    return f"{connections} connection{'s' if connections > 1 else ''}"


class Field:
    """Those who take part, by name."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.peers: dict[str, Peer] = {}
        self.settings: dict[str, str] = {}
        self._cache = Cache()

    def join(self, stack: ExitStack, one: Contender) -> None:
        """Start one, until the stack is closed, or say why it is left out."""
        place = self.rig.folder / f"peer{len(self.settings)}"
        place.mkdir()
        place.parent.chmod(0o711)  # one of them runs as another user
        self.settings[one.name] = one.setting
        try:
            self.peers[one.name] = stack.enter_context(one.start(place, self._cache))
        except (Absent, Refused, OSError, ValueError) as error:
            say(f"left out: {one.name}: {error}")

    def compare(self, case: str, unit: str, job: Job) -> Iterator[Figure]:
        """One job by all of them, in turn; a figure for each who can do it."""
        runs: dict[str, Run] = {}
        for name, peer in self.peers.items():
            try:
                runs[name] = job(peer)
            except NotMeant:
                continue
        flushes = machine.flush_times_ms(self.rig.folder, self.rig.pick(300, 100, 5))
        found = self._rounds(case, runs)
        flushes += machine.flush_times_ms(self.rig.folder, self.rig.pick(300, 100, 5))
        for name, rounds in found.items():
            values = [one.value for one in rounds]
            more = {
                f"of {other}": ratio(values, [one.value for one in found[other]])
                for other in AGAINST
                if other in found and other != name
            }
            more |= {key: statistics.median(one.more[key] for one in rounds) for key in rounds[0].more}
            more["flush ms"] = quantile(flushes, 0.5)
            yield figure(NAME, f"{case}: {name}", values, unit, more=more, note=self.settings[name])

    def _rounds(self, case: str, runs: Mapping[str, Run]) -> Mapping[str, list[Round]]:
        """The rounds of those whom nothing went wrong with."""
        good = dict(runs)

        def tried(name: str) -> Round | None:
            try:
                return good[name]() if name in good else None
            except (Refused, OSError, EOFError) as error:
                say(f"left out of {case}: {name}: {error}")
                del good[name]
                return None

        count = self.rig.pick(5, 3, 1)
        found = self.rig.rounds(count, {name: partial(tried, name) for name in runs})
        return {
            name: [one for one in rounds if one is not None]
            for name, rounds in found.items()
            if name in good
        }


def say(line: str) -> None:
    """To whoever watches."""
    print(f"... {line}", file=sys.stderr, flush=True)
