"""What the daemon counts, for Prometheus, and what handlers count beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.metrics import MetricWrapperBase

HANDLER_METRICS_MAX = 200  # names that a handler may make
LABEL_VALUES_MAX = 1_000  # of one of them
HOST = "127.0.0.1"
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,99}")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 300)

M = TypeVar("M", Counter, Histogram)


class DaemonMetrics:
    """The metrics of one daemon, in a registry of their own. It is the `Metrics` that a handler is given, too."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.inflight = Gauge("queue_messages_inflight", "Messages held, handled or not.", registry=registry)
        self.acked = Counter("queue_ack", "Messages acknowledged.", registry=registry)
        self.nacked = Counter("queue_nack", "Attempts given up.", registry=registry)
        self.dead = Counter("queue_dlq", "Messages made dead letters.", registry=registry)
        self.lag_s = Gauge(
            "queue_lag_seconds", "Age of the oldest message of the last pull.", registry=registry
        )
        self.handled_s = Histogram(
            "handle_duration_seconds", "How long handlers ran.", registry=registry, buckets=_BUCKETS
        )
        self.sent = Counter("reply_send", "Replies sent or not.", ("channel", "outcome"), registry=registry)
        self._of_handlers: dict[str, MetricWrapperBase] = {}
        self._seen: dict[str, set[tuple[str, ...]]] = {}

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter of the handler's. Raises ValueError for a name or labels that cannot be."""
        metric = self._metric(Counter, name, labels)
        (metric.labels(**labels) if labels else metric).inc(amount)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a value to a histogram of the handler's. Raises ValueError for a name or labels that cannot be."""
        metric = self._metric(Histogram, name, labels)
        (metric.labels(**labels) if labels else metric).observe(value)

    def _metric(self, kind: type[M], name: str, labels: dict[str, str]) -> M:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a metric: letters, digits and _, at most 100")
        metric = self._of_handlers.get(name)
        if metric is None:
            if len(self._of_handlers) >= HANDLER_METRICS_MAX:
                raise ValueError(f"a handler has at most {HANDLER_METRICS_MAX} metrics; use labels")
            metric = kind(
                f"handler_{name}", f"{name}, of the handler.", sorted(labels), registry=self.registry
            )
            self._of_handlers[name] = metric
            self._seen[name] = set()
        if not isinstance(metric, kind):
            raise ValueError(f"{name} is a {type(metric).__name__.lower()} already")
        values = tuple(str(labels[label]) for label in sorted(labels))
        if values not in self._seen[name]:
            if len(self._seen[name]) >= LABEL_VALUES_MAX:
                raise ValueError(f"{name} has {LABEL_VALUES_MAX} values of its labels already")
            self._seen[name].add(values)
        return metric

    @contextmanager
    def serve(self, port: int) -> Iterator[int]:
        """Serve them on loopback, in a thread; give the port. Raises OSError where it is taken."""
        server, thread = start_http_server(port, addr=HOST, registry=self.registry)
        try:
            yield server.server_port
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
