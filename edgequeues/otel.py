"""Traces for OpenTelemetry: how spans leave, and those of handlers. Needs `edgequeues[otel]`, is loaded if it is on.

Where they go, how many, and what the service is called, OpenTelemetry's own variables say:
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/. A span holds names of spaces,
queues and routes and ids of messages, but nothing of what is in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import SpanKind, Status, StatusCode

from edgequeues import __version__

SHUTDOWN_MS = 5_000


class Spans:
    """Tells a processor of spans, by default one that sends them over HTTP (OTLP) from a thread of its own.

    service: what they are of.
    """

    def __init__(self, service: str, processor: SpanProcessor | None = None) -> None:
        resource = Resource.create({"service.name": service, "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor or _sender())
        self.tracer = self._provider.get_tracer("edgequeues", __version__)

    def close(self) -> None:
        """Send what is left. Blocks for up to SHUTDOWN_MS."""
        self._provider.force_flush(SHUTDOWN_MS)
        self._provider.shutdown()

    @contextmanager
    def handling(self, queue: str, message: str, attempt: int, headers: Mapping[str, str]) -> Iterator[None]:
        """A handler that works on a message with these headers, which may say which trace it is of.

        An exception that leaves the block is its outcome.
        """
        attributes: dict[str, str | int] = {
            "messaging.system": "edgequeues",
            "messaging.operation.type": "process",
            "messaging.destination.name": queue,
            "messaging.message.id": message,
            "edgequeues.attempt": attempt,
        }
        with self.tracer.start_as_current_span(
            f"process {queue}",
            extract(headers),
            SpanKind.CONSUMER,
            attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise


def _sender() -> SpanProcessor:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter())
