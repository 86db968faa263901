"""The verbs of those who look for entries and messages in any state, a part of `Client`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import Literal, get_args

from msgspec import Struct

from edgequeues.client import answers
from edgequeues.client.answers import Answer, WireEntry
from edgequeues.client.http import Transport
from edgequeues.client.messages import State
from edgequeues.client.text import Text
from edgequeues.client.values import Entry
from edgequeues.client.wire import Call, pairs, path_of

PAGE_FOUND = 1_000
Stand = State | Literal["finished", "none"]
STANDS: tuple[Stand, ...] = (*get_args(State), "finished", "none")


class Stance(Struct, frozen=True):
    """Where an entry stands with a consumer. Of what is `finished`, all else is None. Times are unix ms.

    due: when it may be handed out (scheduled, backoff) or its lease lapses (leased). first, last: leases it had.
    """

    consumer: str
    state: Stand
    attempts: int | None = None
    due: int | None = None
    worker: str | None = None
    last_error: str | None = None
    first: int | None = None
    last: int | None = None


class Found(Struct, frozen=True):
    """An entry, and where it stands with each consumer that was given it."""

    entry: Entry
    standings: list[Stance]


class FoundPage(Struct, frozen=True):
    """Entries by position. resume: the position to go on after; None: that was the last."""

    found: list[Found]
    resume: int | None


class _WireFound(WireEntry, frozen=True, kw_only=True):
    standings: list[Stance]


class _WirePage(Struct, frozen=True):
    found: list[_WireFound]
    resume: int | None = None


class SearchVerbs:
    """What is done to find something. Nothing is changed by it."""

    _transport: Transport

    async def search(
        self,
        dxn: str,
        *,
        states: Iterable[Stand] = (),
        consumer: str | None = None,
        id: str | None = None,
        key: str | None = None,
        type: str | None = None,
        where: str | None = None,
        after: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> FoundPage:
        """Return entries of which all that is said holds. A page may be short, even empty, though there are more.

        states: some of STANDS, with any consumer, or with `consumer`. where: an expression over the data and where it
        stands, such as `amount > 100 && state == "backoff"`. after: a position, as `resume` gives it. limit: 1 to
        1,000. None: 100. reverse: the newest first.

        Raises Refused: `queue_not_found`, `consumer_not_found`, `invalid_request` for an expression that is none.
        """
        query = pairs(consumer=consumer, id=id, key=key, type=type, where=where, after=after, limit=limit)
        query += tuple(("state", one) for one in _many(states))
        query += (("reverse", "true"),) if reverse else ()
        call = Call("GET", path_of(dxn, "search"), query=query, repeatable=True)
        return _page(await self._transport.send(call))

    async def iterate_search(
        self,
        dxn: str,
        *,
        states: Iterable[Stand] = (),
        consumer: str | None = None,
        key: str | None = None,
        type: str | None = None,
        where: str | None = None,
        after: int | None = None,
        reverse: bool = False,
    ) -> AsyncGenerator[Found, None]:
        """Yield all of them, page by page. Parameters as for `search`."""
        wanted = _many(states)
        while True:
            page = await self.search(
                dxn,
                states=wanted,
                consumer=consumer,
                key=key,
                type=type,
                where=where,
                after=after,
                limit=PAGE_FOUND,
                reverse=reverse,
            )
            for one in page.found:
                yield one
            after = page.resume
            if after is None:
                return


def _many(states: Iterable[Stand]) -> tuple[Stand, ...]:
    if isinstance(states, str):
        raise TypeError("states is a list or another iterable of states, not one string")
    return tuple(states)


def _page(answer: Answer) -> FoundPage:
    body = Text(answers.checked(answer))
    page = body.decode(_WirePage)
    return FoundPage([Found(answers.given(body, one), one.standings) for one in page.found], page.resume)
