"""What the server counts, for Prometheus. Labels have few values, of which the greatest part is known beforehand.

Of users there are the names of spaces, queues and consumers in them, no more of each than the server is told to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from edgequeues.measures import EngineMeter, Histogram, RequestCounts
from shards.meter import Levels

MEDIA = CONTENT_TYPE_LATEST.encode()
SOURCES = ("email", "sms")
STATES = ("scheduled", "waiting", "ready", "leased", "backoff")
ENDS = ("acked", "expired", "cancelled")
REASONS = ("exhausted", "permanent", "skipped")
OF_QUEUE = ("space", "queue")
OF_CONSUMER = (*OF_QUEUE, "consumer")


class ConsumerLevels(NamedTuple):
    """A consumer: messages by state, and what became of others by event since it was made.

    oldest_ready_s: how long the one has been ready that is next; None: none is.
    """

    name: str
    states: Mapping[str, int]
    totals: Mapping[str, int]
    oldest_ready_s: float | None


class QueueLevels(NamedTuple):
    """A queue. waited, handled: None where nothing was handed out since its space was opened."""

    space: str
    name: str
    entries: int
    bytes: int
    paused: bool
    consumers: Sequence[ConsumerLevels]
    waited: Histogram | None
    handled: Histogram | None


class Seen(NamedTuple):
    """All that is looked at anew for each scrape. cut: are there queues of open spaces that are not among these?"""

    levels: Levels
    queues: Sequence[QueueLevels]
    cut: bool


class Metrics(Collector):
    """The counts of one server. They begin at nothing with each start, but for those of consumers, which are kept.

    ingress_events: by source, mails and text messages that were queued as events, each once.
    ingress_media_bytes: by source, what was stored of them beside their events.
    """

    def __init__(self) -> None:
        self.ingress_events = dict.fromkeys(SOURCES, 0)
        self.ingress_media_bytes = dict.fromkeys(SOURCES, 0)
        self.engine = EngineMeter()
        self.requests = RequestCounts()
        self._seen: Seen | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self, seen: Seen) -> bytes:
        """All of them, in the text format that `MEDIA` names."""
        self._seen = seen
        try:
            return generate_latest(self._registry)
        finally:
            self._seen = None

    def describe(self) -> Iterator[Metric]:
        """See `Collector`: nothing needs to be known beforehand, as there is no other collector."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """See `Collector`. The library's own counters would tell the wall clock's time beside each."""
        assert self._seen is not None
        yield from self._ingress()
        yield from self._requests()
        yield from _engine(self.engine, self._seen.levels)
        yield from _queues(self._seen.queues)
        yield _gauge("queues_measured", "Queues that these metrics are about.", len(self._seen.queues))
        yield _gauge(
            "queues_cut",
            "1: there are more queues in open spaces than these metrics are about.",
            self._seen.cut,
        )

    def _ingress(self) -> Iterator[Metric]:
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

    def _requests(self) -> Iterator[Metric]:
        labels = ("dialect", "route", "method", "status")
        requests = _counter("http_requests", "Requests that are over.", labels)
        for kind, count in sorted(self.requests.by_kind.items()):
            requests.add_metric([str(part) for part in kind], count)
        yield requests
        seconds = _histogram("http_request_seconds", "Time until an answer was sent whole.", ("dialect",))
        for dialect, times in sorted(self.requests.seconds.items()):
            _add(seconds, [dialect], times)
        yield seconds


def _engine(engine: EngineMeter, levels: Levels) -> Iterator[Metric]:
    for name, says, times in (
        ("turn_seconds", "Time that a call of a space took by itself.", engine.turns),
        ("batch_turns", "Calls that were one transaction.", engine.batches),
        ("commit_seconds", "Time of a COMMIT, in which the event loop stands still.", engine.commits),
        ("flush_seconds", "Time until the disk had what was committed.", engine.flushes),
        ("gate_wait_seconds", "Time that an answer was held back until the disk had it.", engine.waits),
    ):
        family = _histogram(name, says, ())
        _add(family, [], times)
        yield family
    yield _gauge("shards_open", "Files of spaces that are open.", levels.open)
    yield _count("shard_openings", "Files of spaces that were opened.", engine.openings)
    evictions = _counter("shard_evictions", "Files of spaces that were closed, by why.", ("cause",))
    for cause, count in engine.evictions.items():
        evictions.add_metric([cause], count)
    yield evictions
    yield _count("shard_breaks", "Writes and flushes that the disk refused.", engine.breaks)
    yield _gauge("mailbox_depth", "Calls of all spaces without an answer.", levels.waiting)
    yield _gauge("mailbox_depth_max", "Calls of one space without an answer, at most.", levels.waiting_most)
    yield _gauge("wal_bytes", "Bytes of all write-ahead logs in use.", levels.wal_bytes)
    yield _gauge("wal_bytes_max", "Bytes of one write-ahead log in use, at most.", levels.wal_bytes_most)
    yield _gauge("disk_full", "1: the disk is full, and what grows is refused.", levels.disk_full)


def _queues(queues: Sequence[QueueLevels]) -> Iterator[Metric]:
    entries = _family("queue_entries", "Entries of a queue.", OF_QUEUE)
    size = _family("queue_bytes", "Bytes of their data.", OF_QUEUE)
    paused = _family("queue_paused", "1: nothing is handed out.", OF_QUEUE)
    waited = _histogram("queue_wait_seconds", "Time until a message was first handed out.", OF_QUEUE)
    handled = _histogram("queue_handling_seconds", "Time until an attempt was acked or given up.", OF_QUEUE)
    for queue in queues:
        labels = [queue.space, queue.name]
        entries.add_metric(labels, queue.entries)
        size.add_metric(labels, queue.bytes)
        paused.add_metric(labels, queue.paused)
        if queue.waited is not None and queue.handled is not None:
            _add(waited, labels, queue.waited)
            _add(handled, labels, queue.handled)
    yield from (entries, size, paused, waited, handled)
    yield from _consumers(queues)


def _consumers(queues: Sequence[QueueLevels]) -> Iterator[Metric]:
    messages = _family(
        "queue_messages", "Unfinished messages by state; leased: in flight.", (*OF_CONSUMER, "state")
    )
    oldest = _family("queue_oldest_ready_seconds", "How long the next message has been ready.", OF_CONSUMER)
    counters = {
        name: _counter(f"queue_{name}", says, OF_CONSUMER)
        for name, says in (
            ("in", "Messages that came."),
            ("attempts", "Messages handed out, each time counted."),
            ("retried", "Attempts that were given up."),
            ("lapsed", "Leases that ended without an answer."),
            ("released", "Messages given back untouched."),
        )
    }
    ended = _counter("queue_finished", "Messages that are done with, by how.", (*OF_CONSUMER, "how"))
    dead = _counter("queue_dead_letters", "Messages given up, by why.", (*OF_CONSUMER, "reason"))
    for queue in queues:
        for one in queue.consumers:
            labels = [queue.space, queue.name, one.name]
            for state in STATES:
                messages.add_metric([*labels, state], one.states[state])
            if one.oldest_ready_s is not None:
                oldest.add_metric(labels, one.oldest_ready_s)
            for name, counter in counters.items():
                counter.add_metric(labels, one.totals[name])
            for how in ENDS:
                ended.add_metric([*labels, how], one.totals[how])
            for reason in REASONS:
                dead.add_metric([*labels, reason], one.totals[reason])
    yield from (messages, oldest, *counters.values(), ended, dead)


def _family(name: str, says: str, labels: Sequence[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"edgequeues_{name}", says, labels=labels)


def _counter(name: str, says: str, labels: Sequence[str]) -> CounterMetricFamily:
    return CounterMetricFamily(f"edgequeues_{name}", says, labels=labels)


def _histogram(name: str, says: str, labels: Sequence[str]) -> HistogramMetricFamily:
    return HistogramMetricFamily(f"edgequeues_{name}", says, labels=labels)


def _gauge(name: str, says: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"edgequeues_{name}", says, value=value)


def _count(name: str, says: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"edgequeues_{name}", says, value=value)


def _add(family: HistogramMetricFamily, labels: Sequence[str], times: Histogram) -> None:
    """Add a histogram; Prometheus counts in each bucket what is in those below, too."""
    below, buckets = 0, []
    for bound, count in zip([*map(floatToGoString, times.bounds), "+Inf"], times.counts, strict=True):
        below += count
        buckets.append((bound, below))
    family.add_metric(labels, buckets, times.total)
