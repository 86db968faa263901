"""Spans of a server: its requests, and in them the turns that they took and the flushes they waited for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.propagate import extract, inject
from opentelemetry.trace import SpanKind, Status, StatusCode

from edgequeues.http.observing import Served
from edgequeues.http.routes import Head
from edgequeues.otel import Spans
from edgequeues.tracing import carrying
from shards.tracing import Called


class ServerSpans(Spans):
    """What a server is traced by: a `Tracer`."""

    @contextmanager
    def request(self, head: Head) -> Iterator[None]:
        """See `Tracer`."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        with self.tracer.start_as_current_span(
            "request",
            extract(headers),
            SpanKind.SERVER,
            record_exception=False,
            set_status_on_exception=False,  # which would say the text of the error
        ):
            context: dict[str, str] = {}
            inject(context)
            with carrying(context):
                yield

    def answered(self, served: Served) -> None:
        """See `Tracer`."""
        span = trace.get_current_span()
        span.update_name(f"{served.method} {served.route}".rstrip())
        span.set_attributes(
            {
                "http.request.method": served.method,
                "http.route": served.route,
                "http.response.status_code": served.status,
                "edgequeues.dialect": served.dialect,
            }
        )
        if served.status >= 500:
            span.set_status(StatusCode.ERROR)

    def called(self, call: Called) -> None:
        """See `Tracer`: a span for the call, in it one for the wait for the disk."""
        epoch_ns = time.time_ns() - int(time.perf_counter() * 1e9)
        asked, done, answered = (
            epoch_ns + int(at_s * 1e9) for at_s in (call.asked_s, call.done_s, call.answered_s)
        )
        waited_s = (call.done_s if call.ran_s is None else call.ran_s) - call.asked_s
        span = self.tracer.start_span(
            f"turn {call.verb}",
            attributes={
                "edgequeues.shard": call.shard,
                "edgequeues.turn.waited_ms": waited_s * 1_000,
                "edgequeues.turn.ran": call.ran_s is not None,
            },
            start_time=asked,
        )
        if call.error is not None:
            span.set_status(Status(StatusCode.ERROR, type(call.error).__name__))
        elif call.ran_s is not None:
            within = trace.set_span_in_context(span)
            self.tracer.start_span("flush", within, start_time=done).end(answered)
        span.end(answered)
