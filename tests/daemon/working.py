"""A daemon's loop over a stand-in service, with a handler that a test drives."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, cast

import httpx
import msgspec
import trio

from edgequeues.daemon import wire
from edgequeues.daemon.batches import Batches
from edgequeues.daemon.contract import Context, Reply, Result
from edgequeues.daemon.graves import Graves
from edgequeues.daemon.metrics import DaemonMetrics
from edgequeues.daemon.parts import Parts, unwatched
from edgequeues.daemon.queue import Patience, open_queue
from edgequeues.daemon.settings import DaemonSettings
from edgequeues.events.event import SwitchboardEvent
from edgequeues.logs import Log

from .service import DEAD_URL, URL, Over

Handle = Callable[[SwitchboardEvent, Context], Awaitable[Result | None]]


def event(number: int, **more: Any) -> dict[str, Any]:
    """An event as it lies in a queue."""
    return {
        "id": f"event-{number:04}",
        "source": "email",
        "receivedAt": "2025-01-01T00:00:00Z",
        "participants": {"fromEmail": "ann@example.com", "toEmail": "shop@example.com"},
        "content": {"text": "hello"},
        "correlation": {"threadKey": "thread"},
        **more,
    }


def number(one: SwitchboardEvent) -> int:
    """The number of an event."""
    return int(one.id.rpartition("-")[2])


class Lines:
    """A logger that keeps its lines. broken: it raises instead."""

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken
        self.said: list[tuple[str, str, dict[str, Any]]] = []

    def bind(self, **fields: Any) -> Lines:
        return self

    def _line(self, level: str, msg: str, fields: dict[str, Any]) -> None:
        if self.broken:
            raise OSError("the log is full")
        self.said.append((level, msg, fields))

    def debug(self, msg: str, **fields: Any) -> None:
        self._line("debug", msg, fields)

    def info(self, msg: str, **fields: Any) -> None:
        self._line("info", msg, fields)

    def warning(self, msg: str, **fields: Any) -> None:
        self._line("warning", msg, fields)

    def error(self, msg: str, **fields: Any) -> None:
        self._line("error", msg, fields)

    def outcomes(self) -> list[str]:
        """What became of messages, in order."""
        return [fields["outcome"] for _, _, fields in self.said if "outcome" in fields]


class Handled:
    """A handler that notes what it is given, and does what the test says."""

    def __init__(self, handle: Handle | None = None) -> None:
        self._handle = handle
        self.began: list[int] = []
        self.ended: list[int] = []
        self.running = 0
        self.most = 0

    async def handle(self, one: SwitchboardEvent, ctx: Context) -> Result:
        self.began.append(number(one))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            result = await self._handle(one, ctx) if self._handle else None
        finally:
            self.running -= 1
        self.ended.append(number(one))
        return result or Result()


class Sent:
    """Replies, as they were sent or put into the outbox."""

    def __init__(self, outbox: str | None = None) -> None:
        self.outbox = outbox
        self.sent: list[str] = []
        self.told: list[str] = []
        self.failing: Exception | None = None

    def letter(self, one: SwitchboardEvent, reply: Reply) -> tuple[Any, str]:
        return {"event": one.id, "reply": reply}, f"{one.id}:reply"

    async def send(self, one: SwitchboardEvent, reply: Reply) -> None:
        if self.failing is not None:
            raise self.failing
        self.sent.append(one.id)

    def emitted(self, queue_id: str) -> None:
        self.told.append(queue_id)


class Daemon:
    """The loop, and what it works with."""

    def __init__(self, batches: Batches, handled: Handled, lines: Lines, metrics: DaemonMetrics) -> None:
        self.batches, self.handled, self.lines, self.metrics = batches, handled, lines, metrics


@asynccontextmanager
async def daemon(
    service: httpx.AsyncBaseTransport | None,
    handle: Handle | None = None,
    *,
    url: str = URL,
    dead_url: str = DEAD_URL,
    token: str | None = None,
    replies: Sent | None = None,
    dead: bool = False,
    broken_log: bool = False,
    chance: int = 1,
    attempting: Callable[[wire.Message], AbstractContextManager[None]] = unwatched,
    **settings: Any,
) -> AsyncIterator[Daemon]:
    """A loop that is not started.

    service: None: one that is reached over sockets. dead: dead letters go to the service's other queue.
    """
    lines, metrics, handled = Lines(broken=broken_log), DaemonMetrics(), Handled(handle)
    rules = DaemonSettings(queue_http_endpoint=url, **settings)
    dice, patience = random.Random(chance), Patience()
    calls = None if service is None else Over(service)
    async with (
        open_queue(wire.endpoint(url), token, calls=calls) as queue,
        open_queue(wire.endpoint(dead_url), token, calls=calls) as graves,
    ):
        parts = Parts(
            queue=queue,
            handler=handled,
            read=lambda body: msgspec.json.decode(body, type=SwitchboardEvent),
            context=lambda one, attempt: cast(Context, attempt),
            replies=replies or Sent(),
            redact=lambda text: text,
            log=Log(lines),
            metrics=metrics,
            now_ms=lambda: round(trio.current_time() * 1000),
            graves=Graves(graves, "inbox", now_ms=lambda: 0, patience=patience, chance=dice)
            if dead
            else None,
            patience=patience,
            chance=dice,
            attempting=attempting,
        )
        yield Daemon(Batches(parts, rules), handled, lines, metrics)


async def drain(
    service: httpx.AsyncBaseTransport | None, handle: Handle | None = None, **more: Any
) -> Daemon:
    """Run a daemon until nothing is ready and nothing runs."""
    async with daemon(service, handle, **more) as one:
        await one.batches.run("empty")
        return one


@asynccontextmanager
async def running(
    service: httpx.AsyncBaseTransport | None, handle: Handle | None = None, **more: Any
) -> AsyncIterator[Daemon]:
    """A daemon that runs beside the test, and is stopped at the end."""
    async with daemon(service, handle, **more) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.batches.run)
        yield one
        one.batches.stop(grace_s=0)
