"""What the server counts, for Prometheus. Labels have few values, known beforehand, none of a user or a message."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

MEDIA = CONTENT_TYPE_LATEST.encode()
SOURCES = ("email", "sms")


class Metrics(Collector):
    """The counts of one server. They begin at nothing with each start.

    ingress_events: by source, mails and text messages that were queued as events, each once.
    ingress_media_bytes: by source, what was stored of them beside their events.
    """

    def __init__(self) -> None:
        self.ingress_events = dict.fromkeys(SOURCES, 0)
        self.ingress_media_bytes = dict.fromkeys(SOURCES, 0)
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """See `Collector`. The library's own counters would tell the wall clock's time beside each."""
        for name, says, counts in (
            ("ingress_events", "Mails and text messages queued as events.", self.ingress_events),
            (
                "ingress_media_bytes",
                "Bytes of attachments, HTML and media stored at ingress.",
                self.ingress_media_bytes,
            ),
        ):
            family = CounterMetricFamily(name, says, labels=["source"])
            for source, count in counts.items():
                family.add_metric([source], count)
            yield family

    def text(self) -> bytes:
        """All of them, in the text format that `MEDIA` names."""
        return generate_latest(self._registry)
