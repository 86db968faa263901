"""What the server counts, for Prometheus. Labels have few values, known beforehand, none of a user or a message."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

MEDIA = CONTENT_TYPE_LATEST.encode()
SOURCES = ("email", "sms")


class Metrics:
    """The metrics of one server, in a registry of their own. They begin at nothing with each start.

    ingress_events: by source, mails and text messages that were queued as events, each once.
    ingress_media_bytes: by source, what was stored of them beside their events.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.ingress_events = Counter(
            "ingress_events", "Mails and text messages queued as events.", ("source",), registry=registry
        )
        self.ingress_media_bytes = Counter(
            "ingress_media_bytes",
            "Bytes of attachments, HTML and media stored at ingress.",
            ("source",),
            registry=registry,
        )
        for counter in (self.ingress_events, self.ingress_media_bytes):
            for source in SOURCES:  # so that each is there from the start, at 0
                counter.labels(source)

    def text(self) -> bytes:
        """All of them, in the text format that `MEDIA` names."""
        return generate_latest(self._registry)
