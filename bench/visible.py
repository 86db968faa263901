"""How soon is a webhook's message handed out, and how many webhooks a second are worked by commands?

Webhooks, signed as PagerDuty signs, are sent at a steady rate of 200 a second for 20 s, whatever the answers do. A
consumer waits in a long poll, acks on another connection what it was given, and waits again; the time is that from
sending a webhook until the consumer has the whole answer with its message. Then 10,000 webhooks from 20 connections,
as fast as they are answered, to a queue whose messages make an incident each: until the last of them is finished.
"of unworked" sets their rate beside that of webhooks whose messages stay where they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from bench import hooks, machine, served
from bench.delivering import RATE, Delivery
from bench.figures import Against, Figure, figure, quantile, ratio
from bench.rig import Rig, quiet_collector

VISIBLE_MS_MAX = 100.0
WEBHOOKS = 10_000
PAUSE_S = 0.02  # between looks at a queue that is being emptied
PATIENCE_S = 120.0
MAPPED = """
  queue Incoming {
    message_type { payload: json  headers: map<string, string>  source_ip: string  received_at: time }
    map_to: command Incident.CreateIncident { entity_id: payload.event.id  title: payload.event.data.title }
  }
"""


class _Event(Struct):
    id: str


class _Payload(Struct):
    event: _Event


class _Data(Struct):
    payload: _Payload


class _Webhooks(NamedTuple):
    """A signed webhook for each message. round: none of an earlier round is a repeat."""

    round: int
    queue: str = hooks.QUEUE
    status: int = 202

    def request(self, number: int) -> bytes:
        """The webhook."""
        return hooks.webhook(self.round, number)

    def number(self, data: Raw) -> int:
        """Its event's id says it."""
        return int(msgspec.json.decode(data, type=_Data).payload.event.id.partition("-")[2])


def measure(rig: Rig) -> Iterator[Figure]:
    """The times, then the rates."""
    yield _visible(rig)
    yield _worked(rig)


def _visible(rig: Rig) -> Figure:
    """p50, p99 and the most, with the time of a flush taken before and after."""
    seconds = rig.pick(20, 5, 0.1)
    with _serving(rig, unworked()) as (ours, folder), quiet_collector():
        Delivery(ours.port, rig.pick(100, 100, 10), 1, _Webhooks(0)).run()
        ours.settle()
        flushes = machine.flush_times_ms(folder, rig.pick(500, 200, 20))
        found = [
            Delivery(ours.port, int(RATE * seconds), 1, _Webhooks(number)).run()
            for number in range(1, rig.pick(3, 1, 1) + 1)
        ]
        flushes += machine.flush_times_ms(folder, rig.pick(500, 200, 20))
    received = [ms for one in found for ms in one.received]
    answered = [ms for one in found for ms in one.pushed]
    p99 = quantile(received, 0.99)
    more = {
        "p99": p99,
        "most": max(received),
        "flush p50": quantile(flushes, 0.5),
        "flush p99": quantile(flushes, 0.99),
        "answer p50": quantile(answered, 0.5),
        "answer p99": quantile(answered, 0.99),
    }
    medians = [quantile(one.received, 0.5) for one in found]
    against = [Against(what="p99, ms", value=p99, target=VISIBLE_MS_MAX, at_most=True)]
    return figure(
        "visible",
        f"{RATE} webhooks/s, sent to handed out, p50",
        medians,
        "ms",
        against=against,
        more=more,
    )


def _worked(rig: Rig) -> Figure:
    count = rig.pick(WEBHOOKS, 3_000, 40)
    rounds = iter(range(1_000))

    def unworked_rate() -> float:
        with _serving(rig, unworked()) as (ours, _):
            return hooks.load(ours, hooks.webhooks(next(rounds), count), 202).rate

    def worked_rate() -> float:
        with _serving(rig, MAPPED) as (ours, _):
            began = time.perf_counter()
            hooks.load(ours, hooks.webhooks(next(rounds), count), 202)
            behind.append(_unfinished(ours))
            _empty(ours)
            seconds = time.perf_counter() - began
            made = _incidents(ours)
        if made != count:
            raise ValueError(f"{count} webhooks made {made} incidents")
        return count / seconds

    behind: list[int] = []
    with quiet_collector():
        found = rig.rounds(rig.pick(3, 2, 1), {"worked": worked_rate, "unworked": unworked_rate})
    more = {
        "of unworked": ratio(found["worked"], found["unworked"]),
        "left when the last was answered": float(max(behind)),
    }
    case = f"webhooks, each an incident, {hooks.CONNECTIONS} connections"
    return figure("visible", case, found["worked"], "webhooks/s", more=more)


def unworked() -> str:
    """A queue that nobody works by itself."""
    return MAPPED.partition("    map_to:")[0] + "  }\n"


@contextmanager
def _serving(rig: Rig, queue: str) -> Iterator[tuple[served.Served, Path]]:
    """A server whose spec has the queue, and a webhook into it."""
    hook = (
        'webhook alert { queue: Incoming  verify_hmac { header: "X-PagerDuty-Signature"  secret_env: "%s" } }'
    )
    with hooks.secret(), rig.place() as folder:
        file = folder / "bench.spec"
        file.write_text(f"app bench {{ {queue} {hook % hooks.VARIABLE} }}")
        options = ("--spec", str(file), "--secrets-env", hooks.VARIABLE)
        with served.edgequeues(folder, *options) as ours:
            yield ours, folder


def _unfinished(ours: served.Served) -> int:
    [found] = ours.ask("GET", f"{hooks.QUEUE}/stats").json()["consumers"]
    return sum(int(found[state]) for state in ("scheduled", "waiting", "ready", "leased", "backoff"))


def _empty(ours: served.Served) -> None:
    """Return when the queue is empty. Raises ValueError if it does not get there."""
    until = time.perf_counter() + PATIENCE_S
    while (left := _unfinished(ours)) > 0:
        if time.perf_counter() > until:
            raise ValueError(f"{left} messages are unfinished after {PATIENCE_S:.0f} s")
        time.sleep(PAUSE_S)


def _incidents(ours: served.Served) -> int:
    """How many there are, page by page."""
    count, after = 0, ""
    while True:
        page = ours.ask("GET", f"/v1/spaces/bench/entities/Incident?limit=1000{after}").json()
        count += len(page["entities"])
        if page["resume"] is None:
            return count
        after = f"&after={page['resume']}"
