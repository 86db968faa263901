"""How many signed webhooks a second become messages, and what does an expression cost?

10,000 of them from 20 connections into one typed fifo queue, signed as PagerDuty signs. "of a push" sets the rate
beside that of pushing the same messages to the same kind of queue from as many connections. The expression is that of
a mapping, `payload.incident.urgency == "high" ? "critical" : "high"`, with a payload of 100 bytes and one of 1 MB.
"""

from __future__ import annotations

import hmac
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from bench import served
from bench.figures import Against, Figure, figure, quantile, ratio
from bench.http_load import Load, drive
from bench.http_requests import head
from bench.rig import Rig, quiet_collector
from edgequeues.core.expressions import Env, compile_expr

WEBHOOKS = 10_000
CONNECTIONS = 20
SECRET, VARIABLE = b"bench secret", "BENCH_HOOK_SECRET"
EVAL_US_MAX = 2.0
SPEC = """
app bench {
  queue Incoming {
    message_type { payload: json  headers: map<string, string>  source_ip: string  received_at: time }
    ordering: fifo
  }
  webhook alert {
    queue: Incoming
    verify_hmac { header: "X-PagerDuty-Signature"  secret_env: "BENCH_HOOK_SECRET" }
  }
}
"""
QUEUE = "/v1/dxn:queue:bench:Incoming"
TITLE = b"x" * 100
EVENT = b'{"event":{"id":"%d-%d","event_type":"incident.triggered","data":{"title":"%b"}}}'
MESSAGE = b'{"entries":[{"data":{"payload":%b,"headers":{},"source_ip":"127.0.0.1","received_at":1}}]}'
INCIDENT = {"get": {"expr": {"var": {"input": {"field": "payload"}}}, "path": ["incident", "urgency"]}}
SAMPLE: dict[str, Any] = {
    "if": {
        "cond": {"eq": [INCIDENT, {"lit": {"string": "high"}}]},
        "then": {"lit": {"string": "critical"}},
        "else": {"lit": {"string": "high"}},
    }
}


def measure(rig: Rig) -> Iterator[Figure]:
    """Webhooks beside pushes, in turn; then the expression."""
    yield from _expression(rig)
    with secret(), rig.place() as folder, quiet_collector():
        file = folder / "bench.spec"
        file.write_text(SPEC)
        options = ("--spec", str(file), "--secrets-env", VARIABLE)
        with served.edgequeues(folder, *options) as ours:
            count = rig.pick(WEBHOOKS, 3_000, 40)
            rounds = iter(range(1_000))
            found = rig.rounds(
                rig.pick(3, 2, 1),
                {
                    "webhooks": lambda: load(ours, webhooks(next(rounds), count), 202),
                    "pushes": lambda: load(ours, _pushes(next(rounds), count), 200),
                },
            )
    rates, pushes = ([one.rate for one in found[name]] for name in ("webhooks", "pushes"))
    took = [each for one in found["webhooks"] for each in one.took]
    more = {
        "of a push": ratio(rates, pushes),
        "p50 ms": quantile(took, 0.5) * 1000,
        "p99 ms": quantile(took, 0.99) * 1000,
    }
    yield figure("hooks", f"signed webhooks, {CONNECTIONS} connections", rates, "webhooks/s", more=more)


def load(ours: served.Served, requests: Iterator[bytes], status: int) -> Load:
    """Send them all, as fast as they are answered."""
    return drive(ours.port, requests, connections=CONNECTIONS, status=status, seconds=inf)


def webhooks(round_: int, count: int) -> Iterator[bytes]:
    """Signed webhooks, all of different events."""
    return (webhook(round_, number) for number in range(count))


def webhook(round_: int, number: int) -> bytes:
    """One of them."""
    body = EVENT % (round_, number, TITLE)
    signature = "v1=" + hmac.new(SECRET, body, "sha256").hexdigest()
    return post("/hook/alert", body, {"X-PagerDuty-Signature": signature})


def _pushes(round_: int, count: int) -> Iterator[bytes]:
    for number in range(count):
        yield post(f"{QUEUE}/push", MESSAGE % (EVENT % (round_, number, TITLE)), {})


def post(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """A request with a body."""
    return head("POST", path, length=len(body), **headers) + body


def _expression(rig: Rig) -> Iterator[Figure]:
    evaluate = compile_expr(SAMPLE)
    small = {"incident": {"urgency": "high", "title": "x" * 60}}
    large = small | {"more": ["y" * 100] * 10_000}
    calls = rig.pick(200_000, 50_000, 100)

    def us(payload: object) -> float:
        env = Env({"payload": payload}, 0.0)
        began = time.perf_counter()
        for _ in range(calls):
            evaluate(env)
        return (time.perf_counter() - began) / calls * 1e6

    found = rig.rounds(rig.pick(5, 3, 1), {"small": lambda: us(small), "large": lambda: us(large)})
    for name, size in (("small", "100 B"), ("large", "1 MB")):
        bound = Against(what="bound", value=statistics.median(found[name]), target=EVAL_US_MAX, at_most=True)
        more = {"of the small one": ratio(found[name], found["small"])} if name == "large" else {}
        yield figure(
            "hooks",
            f"the sample's expression, payload of {size}",
            found[name],
            "us",
            against=[bound],
            more=more,
        )


@contextmanager
def secret() -> Iterator[None]:
    """The secret in this process's environment, and so in the server's."""
    os.environ[VARIABLE] = SECRET.decode()
    try:
        yield
    finally:
        del os.environ[VARIABLE]
