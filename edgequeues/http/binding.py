"""What workerd's own `queue` binding asks of the service it is bound to: three routes that name no queue.

Which queue it is says a header that workerd adds to each request (`injectRequestHeaders`). The configuration is in
docs/protocol/cloudflare.md, the wire is that of https://github.com/cloudflare/workerd (`src/workerd/api/queue.c++`).
`/metrics` is an address of Prometheus too, which sends no such header: then it is about the server.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode

from edgequeues.core import ids, jsontext
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidRequest
from edgequeues.http import cloudflare_codec as read
from edgequeues.http import cloudflare_errors as errors
from edgequeues.http import cloudflare_turns as turns
from edgequeues.http import codec
from edgequeues.http.cloudflare_codec import (
    CONTENT_TYPES,
    DELAY_S_MAX,
    MESSAGE_BYTES_MAX,
    SOURCE_HEADER,
    Fields,
)
from edgequeues.http.cloudflare_errors import Refused
from edgequeues.http.routes import Dialect, Request, Response, Route
from edgequeues.http.scrape import Scrape
from edgequeues.http.work import for_push
from edgequeues.metrics import MEDIA as METRICS_MEDIA
from edgequeues.models import Backlog, NewEntry
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.tracing import marked

HEADER = b"edgequeues-queue"
FORMAT = b"x-msg-fmt"
DELAY = b"x-msg-delay-secs"
BODY_BYTES_MAX = 1024 * 1024  # base64 makes four bytes of three


def dialect(router: Router, scrape: Scrape) -> Dialect:
    """The protocol."""

    async def message(request: Request) -> Response:
        """Append a message, whose body is the request's."""
        raw = await request.body(BODY_BYTES_MAX)
        kind = request.headers.get(FORMAT, b"v8").decode("latin-1")
        return await push(request, [_entry(raw, kind, _delay_ms(request, errors.METADATA), None)])

    async def batch(request: Request) -> Response:
        """Append messages, all or none."""
        fields = Fields.of_body(await request.body(BODY_BYTES_MAX))
        delay_ms = _delay_ms(request, errors.BATCH_DELAY)
        sent = fields.objects("messages")
        read.check_count(len(sent))
        bodies = [_decoded(one) for one in sent]
        read.check_size(sum(map(len, bodies)))
        return await push(
            request,
            [
                _entry(raw, one.text("contentType") or "v8", one.seconds("delaySecs", DELAY_S_MAX), delay_ms)
                for raw, one in zip(bodies, sent, strict=True)
            ],
        )

    async def push(request: Request, entries: list[NewEntry]) -> Response:
        dxn = address(request)
        space, may_make = await for_push(router, request, dxn)
        backlog = await space.call(turns.push, dxn.queue, marked(entries), make=may_make)
        return Response(codec.encode({"metadata": {"metrics": _metrics(backlog)}}))

    async def metrics(request: Request) -> Response:
        """Count what is still to be done; or tell Prometheus what the server counts."""
        if HEADER not in request.headers:
            return Response(await scrape.text(), media=METRICS_MEDIA)
        dxn = address(request)
        space = await router.require(dxn)
        return Response(codec.encode(_metrics(await space.call(SpaceShard.backlog, dxn.queue))))

    table = [
        Route("POST", "/message", message, "push", place=place),
        Route("POST", "/batch", batch, "push", place=place),
        Route("GET", "/metrics", metrics, "read", place=place_of_metrics),
    ]
    return Dialect("binding", ("/message", "/batch", "/metrics"), table, errors.refuse)


def address(request: Request) -> Dxn:
    """The queue that the header names. Raises InvalidRequest, InvalidId."""
    given = request.headers.get(HEADER, b"").decode("latin-1")
    space, slash, queue = given.partition("/")
    if not slash:
        raise InvalidRequest(
            "the header Edgequeues-Queue: SPACE/QUEUE is missing; in workerd's configuration the external service of "
            "the queue binding adds it with injectRequestHeaders"
        )
    return Dxn(ids.check_space(space), ids.check_queue(queue))


def place(request: Request) -> tuple[str, str]:
    """Space and queue. Raises as `address` does."""
    dxn = address(request)
    return dxn.space, dxn.queue


def place_of_metrics(request: Request) -> tuple[str | None, str | None]:
    """Space and queue, or all of them where no queue is named. Raises as `address` does."""
    return place(request) if HEADER in request.headers else (None, None)


def _delay_ms(request: Request, number: int) -> int | None:
    given = request.headers.get(DELAY)
    if given is None:
        return None
    if not (given.isdigit() and len(given) < 10 and int(given) <= DELAY_S_MAX):
        raise Refused(number, f"X-Msg-Delay-Secs must be a whole number from 0 to {DELAY_S_MAX}")
    return int(given) * 1_000


def _decoded(fields: Fields) -> bytes:
    try:
        return b64decode(fields.text("body") or "", validate=True)
    except (binascii.Error, ValueError):
        raise fields.refusal("body", "must be base64") from None


def _entry(raw: bytes, kind: str, delay_ms: int | None, batch_delay_ms: int | None) -> NewEntry:
    """A message of these bytes. Raises InvalidJson, Refused."""
    if len(raw) > MESSAGE_BYTES_MAX:
        raise Refused(
            errors.MESSAGE_SIZE, f"a body has {len(raw)} bytes, at most {MESSAGE_BYTES_MAX} are taken", 413
        )
    return read.entry(_data(raw, kind), kind, {SOURCE_HEADER: "worker"}, delay_ms, batch_delay_ms)


def _data(raw: bytes, kind: str) -> str:
    """The bytes as JSON: as they are, or as a string."""
    if kind == "json":
        jsontext.check(raw)
        return raw.decode()
    if kind in ("bytes", "v8"):
        return f'"{b64encode(raw).decode()}"'
    if kind != "text":
        raise Refused(errors.METADATA, f"the format must be one of {', '.join(CONTENT_TYPES)}")
    try:
        return codec.encode(raw.decode()).decode()
    except UnicodeDecodeError as error:
        raise Refused(errors.SCHEMA, f"byte {error.start} of the body: not UTF-8, as text must be") from None


def _metrics(found: Backlog) -> dict[str, int]:
    return {
        "backlogCount": found.unfinished,
        "backlogBytes": found.bytes,
        "oldestMessageTimestamp": found.oldest or 0,
    }
