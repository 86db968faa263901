"""How many events a second does the consumer daemon see through, and who is at work meanwhile?

20,000 events of a mail each wait in a queue. The daemon, a process beside the server's, pulls 32 at a time, four
batches at once, and has a handler deal with each that does nothing: from its `ready` until nothing is left. "of bare"
sets the rate beside that of a loop that pulls as many and acks them, four requests at once, and looks at nothing but
the leases. The processor time is that of the server's event loop and of the whole daemon, for one event.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench import served
from bench.figures import Figure, figure, ratio
from bench.http_load import Connection
from bench.http_requests import SPACE
from bench.rig import Rig, quiet_collector
from bench.work_requests import DIALECTS
from edgequeues.events.event import Content, Correlation, Participants, SwitchboardEvent

EVENTS = 20_000
BATCH, BATCHES = 32, 4
PUSHED = 500  # a call
HANDLERS = {"plain": "a plain function", "coroutine": "a coroutine on trio"}


def measure(rig: Rig) -> Iterator[Figure]:
    """The bare loop, and the daemon with either kind of function, in turn."""
    events, numbers = rig.pick(EVENTS, 6_000, 64), count()
    with rig.place() as folder, served.edgequeues(folder) as ours, quiet_collector():

        def bare() -> Run:
            return _bare(ours, _filled(ours, next(numbers), events), events)

        def daemon(handler: str) -> Callable[[], Run]:
            return lambda: _daemon(ours, _filled(ours, next(numbers), events), events, handler)

        found = rig.rounds(rig.pick(3, 2, 1), {"bare": bare, **{one: daemon(one) for one in HANDLERS}})
    at_best = [one.rate for one in found["bare"]]
    more = {"server cpu us": statistics.median(one.server_us for one in found["bare"])}
    yield figure("daemon", f"pull {BATCH} and ack, no daemon", at_best, "events/s", more=more)
    for name, kind in HANDLERS.items():
        rates = [one.rate for one in found[name]]
        more = {
            "of bare": ratio(rates, at_best),
            "server cpu us": statistics.median(one.server_us for one in found[name]),
            "daemon cpu us": statistics.median(one.daemon_us for one in found[name]),
        }
        yield figure("daemon", f"the daemon, {kind}", rates, "events/s", more=more)


class Run(NamedTuple):
    """What came of one: events a second, and processor time of an event."""

    rate: float
    server_us: float
    daemon_us: float = 0.0


def _event(number: int) -> SwitchboardEvent:
    return SwitchboardEvent(
        id=f"00000000-0000-4000-8000-{number:012}",
        source="email",
        received_at="2026-01-01T00:00:00.000Z",
        participants=Participants(from_email="ada@example.com", to_email="help@example.org"),
        content=Content(subject="The printer is on fire", text="Please send water. " * 10),
        correlation=Correlation(thread_key=f"{number:032x}", message_id=f"<{number}@example.com>"),
    )


def _filled(ours: served.Served, round_: int, events: int) -> str:
    """A queue with so many events, as its requests begin."""
    path = DIALECTS["Cloudflare"].made(ours, f"round-{round_}")
    native = f"/v1/dxn:queue:{SPACE}:round-{round_}/push"
    for first in range(0, events, PUSHED):
        entries = [{"data": _event(number)} for number in range(first, min(first + PUSHED, events))]
        ours.ask(
            "POST", native, msgspec.json.encode({"entries": entries}), **{"content-type": "application/json"}
        )
    ours.settle()
    return path


def _bare(ours: served.Served, path: str, events: int) -> Run:
    cloudflare = DIALECTS["Cloudflare"]
    pull = cloudflare.pull(path, BATCH).request()
    connections = [Connection(ours.port, keep=True) for _ in range(BATCHES)]
    server_s, began, left = ours.cpu_s(), time.perf_counter(), events
    while left > 0:
        for one in connections:
            one.send(pull)
        handed = [cloudflare.leases(json.loads(_answer(one))) for one in connections]
        for one, leases in zip(connections, handed, strict=True):
            one.send(cloudflare.ack(path, leases).request())
        for one in connections:
            _answer(one)
        left -= (some := sum(map(len, handed)))
        if not some:
            raise ValueError(f"{left} events are missing")
    seconds = time.perf_counter() - began
    for one in connections:
        one.close()
    return Run(events / seconds, (ours.cpu_s() - server_s) / events * 1e6)


def _answer(connection: Connection) -> bytes:
    while not connection.take():
        pass
    if connection.status != 200:
        raise ValueError(f"answered {connection.status}: {connection.body[:200]!r}")
    return connection.body


def _daemon(ours: served.Served, path: str, events: int, handler: str) -> Run:
    env = os.environ | {
        "QUEUE_HTTP_ENDPOINT": f"http://127.0.0.1:{ours.port}{path}",
        "QUEUE_MAX_BATCH": str(BATCH),
        "QUEUE_MAX_CONCURRENT_BATCHES": str(BATCHES),
        "QUEUE_MAX_ATTEMPTS": "4",
        "LOG_LEVEL": "info",
    }
    options = ("consume", "--handler", f"bench.noop:{handler}", "--until-empty")
    with subprocess.Popen(
        [sys.executable, "-m", "edgequeues.cli.main", *options],
        cwd=served.ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        if not process.stdout.readline().startswith(b"ready"):
            raise ValueError("the daemon did not start")
        started_s, server_s, began = _cpu_s(process.pid), ours.cpu_s(), time.perf_counter()
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise ValueError(f"the daemon ended with {process.returncode}")
    daemon_s = used.ru_utime + used.ru_stime - started_s
    return Run(events / seconds, (ours.cpu_s() - server_s) / events * 1e6, daemon_s / events * 1e6)


def _cpu_s(pid: int) -> float:
    """Seconds of processor time that a process has used, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
