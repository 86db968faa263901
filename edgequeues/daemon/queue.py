"""A queue over HTTP: each call of `wire`, once. Whoever calls decides when to call again, see `Patience`."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import trio
from msgspec import Struct

from edgequeues.daemon import wire
from edgequeues.daemon.connections import Broken, Calls, open_connections
from edgequeues.daemon.wire import (
    Acked,
    Answers,
    Away,
    Consumer,
    Denied,
    Endpoint,
    Extended,
    Pulled,
    QueueError,
)

TIMEOUT_S = 30.0  # of each step of a call
CALL_S_MAX = 60.0
ANSWER_BYTES_MAX = (
    64 * 1024 * 1024
)  # of one pull: 100 messages of 128,000 bytes, each of them as base64 or escaped


class Patience(Struct, frozen=True):
    """How long to wait before what failed is tried again: anything from nothing to a bound that doubles.

    first_s, max_s: of the bound. A longer pause that the service asked for is kept to, up to `asked_max_s`.
    """

    first_s: float = 0.25
    max_s: float = 30.0
    asked_max_s: float = 300.0

    def pause_s(self, failures: int, error: QueueError, chance: random.Random) -> float:
        """Seconds to wait after the `failures`-th failure in a row (1: the first)."""
        bound_s: float = min(self.first_s * 2 ** min(failures - 1, 30), self.max_s)
        return max(bound_s * chance.random(), min(error.retry_after_s, self.asked_max_s))


class HttpQueue:
    """One queue of a service. Its calls raise QueueError: Away, Paused, Denied, Refused."""

    def __init__(self, calls: Calls, at: Endpoint) -> None:
        """`at` may have the name of the queue, as long as nothing is called before `resolve`."""
        self._calls = calls
        self.at = at

    async def resolve(self) -> None:
        """Ask for the id of a queue of which there is the name only. Raises Denied where there is no such queue."""
        if self.at.is_name:
            found = await self.find(self.at.queue)
            if found is None:
                raise Denied(
                    f"there is no queue {self.at.queue}: check account and queue in the endpoint", 404
                )
            self.at = found.at

    async def pull(self, batch: int, visibility_ms: int) -> Pulled:
        """Lease up to `batch` messages. An empty queue answers at once."""
        return wire.pulled(await self._post("/messages/pull", wire.pull_body(batch, visibility_ms)))

    async def ack(self, answers: Answers) -> Acked:
        """Say what becomes of messages; saying it again does no harm."""
        return wire.acked(await self._post("/messages/ack", wire.ack_body(answers)))

    async def extend(self, leases: dict[str, str], visibility_ms: int) -> Extended:
        """Move the ends of leases to `visibility_ms` from now. leases: to the id of each one's message."""
        body = wire.extend_body(list(leases), visibility_ms)
        return wire.extended(await self._post("/messages/extend", body), leases)

    async def push(self, body: object) -> None:
        """Push JSON. A msgspec.Raw goes out as it is."""
        await self._post("/messages", wire.push_body(body))

    async def consumer(self) -> Consumer | None:
        """The pull consumer of the queue."""
        return wire.consumer(await self._ask("GET", self.at.url("/consumers")))

    async def find(self, name: str) -> HttpQueue | None:
        """Another queue of the account, by its name."""
        url = f"{self.at.account}/queues?{urlencode({'name': name})}"
        found = wire.queue_id(await self._ask("GET", url), name)
        return None if found is None else self.other(found)

    def other(self, queue_id: str) -> HttpQueue:
        """Another queue of the account, by its id."""
        return HttpQueue(self._calls, Endpoint(self.at.account, queue_id))

    async def _post(self, path: str, body: bytes) -> Any:
        return await self._ask("POST", self.at.url(path), body)

    async def _ask(self, method: str, url: str, body: bytes = b"") -> Any:
        with trio.move_on_after(CALL_S_MAX):
            try:
                answer = await self._calls.call(method, url, body)
            except Broken as fault:
                raise Away(f"no answer from {self._where}: {fault}") from fault
            return wire.result(answer.status, answer.headers, answer.body)
        raise Away(f"no answer from {self._where} in time")

    @property
    def _where(self) -> str:
        return self.at.account.partition("/client/")[0]


@asynccontextmanager
async def open_queue(
    at: Endpoint, token: str | None, *, timeout_s: float = TIMEOUT_S, calls: Calls | None = None
) -> AsyncIterator[HttpQueue]:
    """A queue, and the connections to it. Nothing is asked yet. calls: what is called instead of the service."""
    if calls is not None:
        yield HttpQueue(calls, at)
        return
    async with open_connections(
        at.account, token, timeout_s=timeout_s, bytes_max=ANSWER_BYTES_MAX
    ) as connections:
        yield HttpQueue(connections, at)
