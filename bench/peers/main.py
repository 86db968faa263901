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
from pathlib import Path

from bench import machine
from bench.figures import Figure, figure, quantile, ratio
from bench.peers import (
    beanstalkd,
    durable_objects,
    inprocess,
    jobs,
    nats,
    ours,
    postgres,
    rabbitmq,
    redis,
    working,
)
from bench.peers.cache import Cache
from bench.peers.inprocess import Inside
from bench.peers.jobs import Round, Run
from bench.peers.load import Refused
from bench.peers.peer import MANY, Contender, NotMeant, Peer
from bench.peers.process import Absent
from bench.rig import Rig, quiet_collector

NAME = "peers"
INSIDE = "in process"  # jobs of queues that are no servers begin so
CONTENDERS: tuple[Contender, ...] = (
    ours.contender(),
    durable_objects.CONTENDER,
    postgres.CONTENDER,
    redis.CONTENDER,
    nats.CONTENDER,
    beanstalkd.CONTENDER,
    rabbitmq.CONTENDER,
)
AGAINST = (durable_objects.NAME, postgres.NAME, ours.NAME, inprocess.OURS)
EACH = (1, 10, MANY)
CONNECTIONS = (1, 32)
LENGTH = 100_000
DEPTHS = (1_000, 100_000)

Job = Callable[[Peer], Run]


def measure(
    rig: Rig,
    contenders: Sequence[Contender] = CONTENDERS,
    libraries: Sequence[str] = tuple(inprocess.SETTINGS),
) -> Iterator[Figure]:
    """All jobs, by all who could be started. Raises ValueError where `rig.only` names somebody else."""
    unknown = sorted({*rig.only} - {one.name for one in contenders} - {*libraries})
    if unknown:
        raise ValueError(f"no peer is named {', '.join(unknown)}")
    also = [ours.contender(options) for options in rig.also]
    with ExitStack() as stack, quiet_collector():
        field = Field(rig)
        for one in [*contenders, *also]:
            if not rig.only or one.name in rig.only or one in also:
                field.join(stack, one)
        for case, unit, job in asked(rig):
            yield from field.compare(case, unit, job)
    with ExitStack() as stack, quiet_collector():
        yield from _inside(Field(rig), stack, libraries)


def asked(rig: Rig) -> Iterator[tuple[str, str, Job]]:
    """Every job: what it is called, the unit of its figure, and how it is begun."""
    seconds, length = rig.pick(1.0, 0.5, 0.02), rig.pick(LENGTH, LENGTH // 5, 300)
    for each in EACH:
        for connections in CONNECTIONS:
            job = partial(jobs.append, each=each, connections=connections, seconds=seconds)
            yield f"append {each}, {_many(connections)}", "objects/s", job
    for connections in CONNECTIONS:
        job = partial(jobs.read, length=length, each=MANY, connections=connections, seconds=seconds)
        yield f"read {MANY} of {length:,}, {_many(connections)}", "objects/s", job
    for depth in (0, *rig.pick(DEPTHS, (1_000, 10_000), (10, 300))):
        behind = f", {depth:,} waiting" if depth else ""
        job = partial(working.work, seconds=seconds, depth=depth)
        yield f"push 1, pull and ack 10{behind}", "messages/s", job
    yield "push to one who waits, p50", "ms", partial(working.latency, number=rig.pick(400, 200, 5))
    for number in rig.pick((1, 1_000), (1, 1_000), (1, 3)):
        job = partial(jobs.queues, number=number, connections=CONNECTIONS[-1], seconds=seconds)
        yield f"push 1 to {number:,} queue{'s' if number > 1 else ''}", "messages/s", job


def _inside(field: Field, stack: ExitStack, libraries: Sequence[str]) -> Iterator[Figure]:
    """The queues that live inside a program, ours among them."""
    inside: dict[str, Inside] = {}
    for name in libraries:
        if field.rig.only and name not in field.rig.only:
            continue
        place = field.place(name, inprocess.SETTINGS[name])
        try:
            inside[name] = stack.enter_context(
                inprocess.engine(place)
                if name == inprocess.OURS
                else inprocess.theirs(name, place, field.cache)
            )
        except (Absent, OSError) as error:
            say(f"left out: {name}: {error}")
    seconds = field.rig.pick(1.0, 0.5, 0.02)
    for job, what in (("push", "push 1"), ("cycle", "push 1, pull and ack 1")):
        for callers in (1, 16):
            runs = {name: one.run(job, callers, seconds) for name, one in inside.items()}
            case = f"{INSIDE}, {what}, {callers} caller{'s' if callers > 1 else ''}"
            yield from field.tell(case, "messages/s", runs)


def _many(connections: int) -> str:
    return f"{connections} connection{'s' if connections > 1 else ''}"


class Field:
    """Those who take part, by name."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.peers: dict[str, Peer] = {}
        self.settings: dict[str, str] = {}
        self.cache = Cache()

    def place(self, name: str, setting: str) -> Path:
        """A fresh folder for one, who has this setting."""
        place = self.rig.folder / f"peer-{name.replace(' ', '-').replace('/', '-')}"
        place.mkdir()
        place.parent.chmod(0o711)  # one of them runs as another user
        self.settings[name] = setting
        return place

    def join(self, stack: ExitStack, one: Contender) -> None:
        """Start one, until the stack is closed, or say why it is left out."""
        place = self.place(one.name, one.setting)
        try:
            self.peers[one.name] = stack.enter_context(one.start(place, self.cache))
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
            except (Refused, OSError, EOFError, ValueError) as error:
                say(f"left out of {case}: {name}: {error}")
        yield from self.tell(case, unit, runs)

    def tell(self, case: str, unit: str, runs: Mapping[str, Run]) -> Iterator[Figure]:
        """A figure for each who gets through all rounds."""
        if not runs:
            return
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
            except (Refused, OSError, EOFError, ValueError) as error:
                say(f"left out of {case}: {name}: {error}")
                del good[name]
                return None

        count = self.rig.pick(5, 3, 1)
        found = self.rig.rounds(count, {name: partial(tried, name) for name in runs})
        return {
            name: [one for one in rounds if one is not None] for name, rounds in found.items() if name in good
        }


def say(line: str) -> None:
    """To whoever watches."""
    print(f"... {line}", file=sys.stderr, flush=True)
