"""Traces: a request, its turns and their flushes; a message carries the trace on, and nothing else of it counts."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from edgequeues.app import open_app
from edgequeues.http.observing import Watchers
from edgequeues.http.spans import ServerSpans
from edgequeues.otel import Spans
from shards.testing import InlineDisk, TrioClock

from .asgi import Client
from .fronted import FrontName, behind

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = (b"traceparent", f"00-{TRACE}-{PARENT}-01".encode())
JOBS = "/v1/dxn:queue:demo:jobs"


@pytest.fixture
def exported() -> InMemorySpanExporter:
    """Where spans go."""
    return InMemorySpanExporter()


@pytest.fixture
async def client(
    tmp_path: Path, clock: TrioClock, front: FrontName, exported: InMemorySpanExporter
) -> AsyncIterator[Client]:
    """A client of a server that is traced."""
    spans = ServerSpans("edgequeues", SimpleSpanProcessor(exported))
    opened = open_app(
        tmp_path / "data",
        clock=clock,
        disk=InlineDisk(),
        randomness=random.Random(1),
        watchers=Watchers(tracer=spans),
    )
    async with opened as app:
        yield Client(behind(front, app))
    spans.close()


def told(exported: InMemorySpanExporter) -> list[ReadableSpan]:
    """The spans so far, by when they began."""
    spans = sorted(exported.get_finished_spans(), key=lambda span: span.start_time or 0)
    exported.clear()
    return spans


def traced(span: ReadableSpan) -> tuple[str, str | None]:
    """The trace that a span is of, and the span above it."""
    parent = None if span.parent is None else f"{span.parent.span_id:016x}"
    return f"{context_of(span).trace_id:032x}", parent


def id_of(span: ReadableSpan) -> str:
    return f"{context_of(span).span_id:016x}"


def context_of(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


async def pulled(client: Client) -> Any:
    """The one message there is."""
    [message] = (await client.post(f"{JOBS}/pull", {})).json()["messages"]
    return message


async def test_a_request_is_a_span_of_the_callers_trace_with_turns_and_flushes_in_it(
    client: Client, exported: InMemorySpanExporter
) -> None:
    reply = await client.post(f"{JOBS}/push", {"entries": [{"data": {"n": 1}}]}, TRACEPARENT)
    assert reply.status == 200
    spans = told(exported)
    request, turn, flush = spans
    assert (request.name, request.kind) == ("POST /v1/{dxn}/push", SpanKind.SERVER)
    assert traced(request) == (TRACE, PARENT)
    assert (turn.name, traced(turn)) == ("turn push", (TRACE, id_of(request)))
    assert (flush.name, traced(flush)) == ("flush", (TRACE, id_of(turn)))
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["http.route"] == "/v1/{dxn}/push"


async def test_a_message_carries_its_trace_to_whoever_handles_it(
    client: Client, exported: InMemorySpanExporter
) -> None:
    await client.post(f"{JOBS}/push", {"entries": [{"data": 1, "headers": {"color": "blue"}}]}, TRACEPARENT)
    request = told(exported)[0]
    headers = (await pulled(client))["headers"]
    assert headers == {"color": "blue", "traceparent": f"00-{TRACE}-{id_of(request)}-01"}
    exported.clear()
    handlers = Spans("worker", SimpleSpanProcessor(exported))
    with pytest.raises(ValueError, match="anna"), handlers.handling("jobs", "m1", 2, headers):
        raise ValueError("anna@example.com is away")
    [span] = told(exported)
    assert (span.name, span.kind) == ("process jobs", SpanKind.CONSUMER)
    assert traced(span) == (TRACE, id_of(request))
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "ValueError")
    assert "anna" not in span.to_json()


async def test_a_message_keeps_the_trace_that_it_came_with(client: Client) -> None:
    own = {"traceparent": "00-11111111111111111111111111111111-2222222222222222-01"}
    await client.post(f"{JOBS}/push", {"entries": [{"data": 1, "headers": own}]}, TRACEPARENT)
    assert (await pulled(client))["headers"] == own


async def test_a_repeat_in_another_trace_is_the_same_message(client: Client) -> None:
    entry = {"data": 1, "headers": {"color": "blue"}, "idempotency_key": "k1"}
    first = await client.post(f"{JOBS}/push", {"entries": [entry]}, TRACEPARENT)
    again = await client.post(f"{JOBS}/push", {"entries": [entry]})
    assert again.status == 200
    [made], [found] = first.json()["results"], again.json()["results"]
    assert found == made | {"outcome": "same"}


@pytest.mark.parametrize("color", ["blue", "grün", "\ud83d"], ids=("ascii", "unicode", "half"))
async def test_so_is_one_to_a_server_that_traces_by_now_whatever_the_headers_hold(
    clock: TrioClock, tmp_path: Path, color: str
) -> None:
    body = {"entries": [{"data": 1, "headers": {"color": color}, "idempotency_key": "k1"}]}
    outcomes = []
    for watchers in (
        Watchers(),
        Watchers(tracer=ServerSpans("edgequeues", SimpleSpanProcessor(InMemorySpanExporter()))),
    ):
        async with open_app(tmp_path / "data", clock=clock, disk=InlineDisk(), watchers=watchers) as app:
            reply = await Client(app).post(f"{JOBS}/push", body, TRACEPARENT)
            outcomes += [one["outcome"] for one in reply.json()["results"]]
    assert outcomes == ["new", "same"]


async def test_an_error_says_its_kind_and_not_its_text(
    client: Client, exported: InMemorySpanExporter
) -> None:
    reply = await client.get("/v1/dxn:queue:demo:jobs:anna@example.com")
    assert reply.status == 400
    reply = await client.get("/v1/dxn:queue:demo:nothing/config")
    assert reply.status == 404
    spans = told(exported)
    assert [span.name for span in spans if span.kind is SpanKind.SERVER] == [
        "GET /v1/{dxn}",
        "GET /v1/{dxn}/config",
    ]
    assert all("anna" not in span.to_json() for span in spans)
