"""Puts the daemon together: a queue, a handler, whatever sends replies, and the loop between them."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, TextIO, TypeVar
from urllib.parse import urlsplit

import msgspec
import trio

from edgequeues.core.hostnames import is_loopback
from edgequeues.daemon import wire
from edgequeues.daemon.batches import Batches, Until
from edgequeues.daemon.context import Contexts
from edgequeues.daemon.contract import Reply
from edgequeues.daemon.downloads import Downloads, open_downloads
from edgequeues.daemon.graves import Graves
from edgequeues.daemon.handlers.opening import open_handler
from edgequeues.daemon.handlers.spec import HandlerSpec
from edgequeues.daemon.metrics import DaemonMetrics
from edgequeues.daemon.outbox import outgoing, pay, queued
from edgequeues.daemon.parts import Parts, unwatched
from edgequeues.daemon.queue import HttpQueue, Patience, open_queue
from edgequeues.daemon.sending.sender import Providers, Sender, open_sender
from edgequeues.daemon.settings import DaemonSettings, SettingsError
from edgequeues.daemon.wire import Away, Consumer, Denied, Message, QueueError, Refused
from edgequeues.events import check, redaction
from edgequeues.events.event import BlobRef, SwitchboardEvent
from edgequeues.logs import Lines, Log, Logger, logger

LOOK_S = 10.0  # between looks for the outbox, while the service is away

T = TypeVar("T")


async def run_daemon(
    settings: DaemonSettings,
    spec: HandlerSpec,
    *,
    log_file: TextIO,
    until: Until = "stopped",
    ready: Callable[[str], None] = lambda name: None,
) -> None:
    """Handle the messages of a queue until SIGTERM or SIGINT, or as `until` says.

    ready: called with the name of the queue, just before the first pull. Raises SettingsError, QueueError, and what
    `open_handler` raises where there is no such handler.
    """
    lines = Lines(log_file, level=settings.log_level, redact=redaction.fields, now_ms=_now_ms)
    log = logger(lines)
    metrics = DaemonMetrics()
    async with AsyncExitStack() as stack:
        if settings.metrics_enable:
            log.info("metrics are served", port=_serve(stack, metrics, settings.metrics_port))
        parts, outbox, name = await _assemble(stack, settings, spec, until, Log(log, lines), log, metrics)
        batches, stopping = Batches(parts, settings), trio.Event()
        fault: QueueError | None = None
        async with trio.open_nursery() as nursery:
            signals = await nursery.start(_heed_signals, batches, log)
            nursery.start_soon(outbox.run, parts.queue, stopping, log)
            log.info("ready", queue=name)
            ready(name)
            try:
                await batches.run(until)
            except QueueError as error:
                fault = error
            stopping.set()
            signals.cancel()
        if fault is not None:
            raise fault
        log.info("stopped")


async def _assemble(
    stack: AsyncExitStack,
    settings: DaemonSettings,
    spec: HandlerSpec,
    until: Until,
    lines: Log,
    log: Logger,
    metrics: DaemonMetrics,
) -> tuple[Parts, Outbox, str]:
    """All that the loop works with, and the name of the queue. What is here is looked at before anything is asked."""
    try:
        sender = await stack.enter_async_context(_sender(settings, metrics))
        downloads = await stack.enter_async_context(_downloads(settings))
    except ValueError as error:
        raise SettingsError(str(error)) from error
    opened = open_handler(
        spec,
        logger=log,
        redact=redaction.text,
        link=partial(_linked, downloads),
        secret=settings.handler_secret or None,
    )
    handler = await stack.enter_async_context(opened)
    queue, consumer = await _queue(stack, settings, log)
    inbox = consumer.queue_name if consumer is not None else ""
    outbox = Outbox(sender, inbox if until == "stopped" else None)  # a brief run sends what it has itself
    name = inbox or queue.at.queue
    parts = Parts(
        queue=queue,
        handler=handler,
        read=check.read,
        context=Contexts(sender, downloads, _now, log, metrics).of,
        replies=outbox,
        redact=redaction.text,
        log=lines,
        metrics=metrics,
        now_ms=_now_ms,
        graves=await _graves(stack, settings, name, log),
        attempting=_attempting(stack, name) if settings.tracing else unwatched,
    )
    return parts, outbox, name


def _attempting(stack: AsyncExitStack, queue: str) -> Callable[[Message], AbstractContextManager[None]]:
    """Spans of handlers. Raises SettingsError."""
    try:
        from edgequeues.otel import Spans
    except ImportError as error:
        raise SettingsError(
            f"TRACING: {error}; its packages come with `pip install 'edgequeues[otel]'`"
        ) from error
    spans = Spans("edgequeues-daemon")
    stack.push_async_callback(trio.to_thread.run_sync, spans.close)
    return lambda message: spans.handling(queue, message.id, message.attempts, message.metadata)


def _serve(stack: AsyncExitStack, metrics: DaemonMetrics, port: int) -> int:
    try:
        return stack.enter_context(metrics.serve(port))
    except OSError as error:
        raise SettingsError(f"METRICS_PORT: {port} cannot be had: {error}; write a free one, or 0") from error


class Outbox:
    """How replies leave: from a queue beside the inbox where the server can push to it with the ack, or from here.

    inbox: its name; None: there is no outbox.
    """

    def __init__(self, sender: Sender, inbox: str | None) -> None:
        self.outbox = f"{inbox}-outbox" if inbox else None
        self._sender = sender
        self._id: str | None = None
        self._known = trio.Event()

    def letter(self, event: SwitchboardEvent, reply: Reply) -> tuple[Any, str]:
        """A reply as it lies in the outbox, and its idempotency key. Raises GiveUp."""
        it = queued(event, reply)
        return it, it.key()

    async def send(self, event: SwitchboardEvent, reply: Reply) -> None:
        """Send a reply from here. Raises TryAgain, GiveUp."""
        await self._sender.send(outgoing(event, reply))

    def emitted(self, queue_id: str) -> None:
        """Be told where the outbox is."""
        self._id = queue_id
        self._known.set()

    async def run(self, queue: HttpQueue, stopping: trio.Event, log: Logger) -> None:
        """Send what lies there, once there is one, until `stopping` is set."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_set, stopping, self._known)
            found = await self._find(queue, stopping)
            if found is not None:
                await pay(found, self._sender, stopping, logger=log)
            nursery.cancel_scope.cancel()

    async def _find(self, queue: HttpQueue, stopping: trio.Event) -> HttpQueue | None:
        """The outbox: by its name, if replies of an earlier run may lie in it; else as soon as an ack tells of it."""
        looking = self.outbox
        while self._id is None and not stopping.is_set():
            try:
                found = None if looking is None else await queue.find(looking)
                looking = None
            except QueueError as error:  # Refused: of a token for the inbox alone, perhaps
                found, looking = None, None if isinstance(error, Refused) else looking
            if found is not None:
                return found
            with trio.move_on_after(LOOK_S if looking else math.inf):
                await self._known.wait()
        return None if self._id is None else queue.other(self._id)


async def _set(first: trio.Event, then: trio.Event) -> None:
    await first.wait()
    then.set()


async def _queue(
    stack: AsyncExitStack, settings: DaemonSettings, log: Logger
) -> tuple[HttpQueue, Consumer | None]:
    """The queue, and its consumer if we may know. Waits for a service that is away. Raises Refused."""
    at = wire.endpoint(settings.queue_http_endpoint)
    if settings.queue_http_token and not _is_private(settings.queue_http_endpoint):
        log.warning("QUEUE_HTTP_ENDPOINT begins with http: whoever is on the way can read the token")
    queue = await stack.enter_async_context(open_queue(at, settings.queue_http_token))
    await _reached(queue.resolve, log)
    try:
        consumer = await _reached(queue.consumer, log)
    except Refused as error:
        if error.status in (401, 404):
            raise
        log.info("the consumer of the queue cannot be looked at; its rules are not checked", err=str(error))
        return queue, None if not at.is_name else Consumer(at.queue, None, "")
    if consumer is None:
        raise Denied("the queue has no consumer of type http_pull: give it one", 405)
    told = consumer.attempts_max
    if told is not None and told != settings.queue_max_attempts:
        log.warning(
            "the consumer of the queue and QUEUE_MAX_ATTEMPTS do not agree: whichever is less counts",
            consumer=told,
            setting=settings.queue_max_attempts,
        )
    return queue, consumer


def _is_private(address: str) -> bool:
    url = urlsplit(address)
    return url.scheme == "https" or is_loopback(url.hostname or "")


async def _reached(call: Callable[[], Awaitable[T]], log: Logger) -> T:
    """What a call gives, once the service is there."""
    patience, chance, failures = Patience(), Random(), 0
    while True:
        try:
            return await call()
        except Away as error:
            failures += 1
            if failures == 1:
                log.warning("the service cannot be reached; trying again until it works", err=str(error))
            await trio.sleep(patience.pause_s(failures, error, chance))


async def _graves(stack: AsyncExitStack, settings: DaemonSettings, source: str, log: Logger) -> Graves | None:
    if not settings.queue_dlq_endpoint:
        return None
    at = wire.endpoint(settings.queue_dlq_endpoint)
    queue = await stack.enter_async_context(open_queue(at, settings.queue_http_token))
    await _reached(queue.resolve, log)
    return Graves(queue, source, now_ms=_now_ms, patience=Patience(), chance=Random())


def _sender(settings: DaemonSettings, metrics: DaemonMetrics) -> AbstractAsyncContextManager[Sender]:
    """Whatever sends replies. Raises ValueError, naming a setting."""
    names = Providers.__struct_fields__
    given = {name: one for name in names if (one := getattr(settings, name, ""))}
    return open_sender(
        msgspec.convert(given, Providers),
        count=lambda channel, outcome: metrics.sent.labels(channel, outcome).inc(),
    )


def _downloads(settings: DaemonSettings) -> AbstractAsyncContextManager[Downloads]:
    """Whatever fetches objects. Raises ValueError, naming a setting."""
    hosts = [host.strip() for host in settings.blobs_hosts.split(",") if host.strip()]
    endpoint, token = settings.blobs_endpoint, settings.blobs_token
    if not endpoint:
        endpoint = wire.endpoint(settings.queue_http_endpoint).blobs
        token = token or settings.queue_http_token
    return open_downloads(endpoint=endpoint, token=token, hosts=hosts)


async def _linked(downloads: Downloads, ref: BlobRef) -> BlobRef:
    """An object with a link that is good now; of a new one the end is not told. Raises TryAgain, GiveUp."""
    if await downloads.link(ref) is not None:
        return ref
    url = await downloads.renewed(ref)
    return msgspec.structs.replace(ref, presigned_get_url=url, expires_at=None)


async def _heed_signals(
    batches: Batches, log: Logger, *, task_status: trio.TaskStatus[trio.CancelScope]
) -> None:
    """The first signal asks for an orderly end, the second for one without grace, the third is the system's."""
    with trio.CancelScope() as scope:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started(scope)
            await anext(signals)
            log.info("stopping: handlers that run may finish")
            batches.stop()
            await anext(signals)
        log.info("stopping at once")
        batches.stop(grace_s=0.0)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _now() -> datetime:
    return datetime.now(UTC)
