"""Verbs about how the queues of a space are doing."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec import Struct, field

from edgequeues.client import answers
from edgequeues.client.admin import queue_path
from edgequeues.client.http import Transport
from edgequeues.client.wire import Call, pairs

PAGE_QUEUES = 100


class QueueRates(Struct, frozen=True):
    """Messages that came and that were acked in each of the last 60 seconds, the oldest first."""

    came: list[int] = field(name="in")
    acked: list[int] = field(name="out")


class QueueDoing(Struct, frozen=True):
    """How a queue is doing, for the consumer that has most to do. states: unfinished messages by state.

    depth: messages that wait for whatever. in_flight: handed out. Ages in seconds; None: there is none.
    """

    name: str
    id: str
    kind: str
    paused: bool
    entries: int
    depth: int
    in_flight: int
    oldest_message_age_seconds: float | None
    oldest_ready_age_seconds: float | None
    messages_per_minute: int
    states: dict[str, int]
    rates: QueueRates


class QueueState(QueueDoing, frozen=True, kw_only=True):
    """The same of one queue, and the dead letters that come from it, by the names of the queues they may lie in."""

    dead_letters: int
    dead_letter_queues: list[str]


class DoingPage(Struct, frozen=True):
    """Some queues. next: not None where there may be more: ask for what is after it."""

    queues: list[QueueDoing]
    next: str | None = None


class OverviewVerbs:
    """Watching without touching."""

    _transport: Transport

    async def doing(
        self, space: str, *, name: str | None = None, after: str | None = None, limit: int | None = None
    ) -> DoingPage:
        """How queues of a space are doing, in the order of their ids; `name`: a part of theirs."""
        query = pairs(tenant_id=space, name=name, after=after, limit=limit)
        call = Call("GET", "/admin/queues", query, repeatable=True)
        return answers.decoded(await self._transport.send(call), DoingPage)

    async def queue_state(self, dxn: str) -> QueueState:
        """How one queue is doing, and how many dead letters come from it. Raises Refused: `queue_not_found`."""
        path, query = queue_path(dxn)
        return answers.decoded(
            await self._transport.send(Call("GET", path, query, repeatable=True)), QueueState
        )

    async def iterate_doing(self, space: str, *, name: str | None = None) -> AsyncGenerator[QueueDoing, None]:
        """All of them, page by page."""
        after: str | None = None
        while True:
            page = await self.doing(space, name=name, after=after, limit=PAGE_QUEUES)
            for one in page.queues:
                yield one
            after = page.next
            if after is None:
                return
