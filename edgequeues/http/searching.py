"""Searching a queue over HTTP: entries in any state, by what they hold and where they stand. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from edgequeues.core import ids
from edgequeues.core.errors import InvalidRequest
from edgequeues.core.lifecycle import STANDS
from edgequeues.http import codec, params
from edgequeues.http.reading import patiently
from edgequeues.http.routes import Request, Response, Route
from edgequeues.http.waits import Waits
from edgequeues.models import ENTRIES_MAX, ENTRY_BYTES_MAX, Entry
from edgequeues.router import Router
from edgequeues.space.searching import Found, Search, Stance
from edgequeues.space.shard import SpaceShard
from edgequeues.spec import conditions
from shards.namespace import Ref

TURNS_MAX = 20  # that one search takes before it says where to go on
LIMIT = 100  # where none is said

_ASKED = ("state", "consumer", "id", "key", "type", "where", "after", "limit", "reverse")


def routes(router: Router, waits: Waits) -> list[Route]:
    """The route."""

    async def search(request: Request) -> Response:
        """Find entries and messages, finished ones that are kept too, with where each stands."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, _ASKED)
        ask = _ask(request.query)
        limit = params.integer(request.query, "limit", low=1, high=ENTRIES_MAX) or LIMIT
        space = await router.require(dxn)
        found: list[tuple[Entry, list[Stance]]] = []
        room, resume = ENTRY_BYTES_MAX, ask.after
        for _ in range(TURNS_MAX):
            ask = replace(ask, after=resume)
            part = await patiently(partial(_look, space, dxn.queue, ask, limit - len(found), room), waits)
            found, resume = found + part.found, part.resume
            room -= sum(len(entry.data) for entry, _ in part.found)
            if resume is None or len(found) >= limit or room <= 0:
                break
        return Response(_body(found, resume))

    return [Route("GET", "/v1/{dxn}/search", search, "read")]


async def _look(space: Ref[SpaceShard], queue: str, ask: Search, limit: int, bytes_max: int) -> Found:
    return await space.call(SpaceShard.search, queue, ask, limit, bytes_max)


def _ask(query: params.Query) -> Search:
    """What is searched for. Raises InvalidRequest, InvalidId."""
    states = params.many(query, "state", count_max=len(STANDS))
    for one in states:
        if one not in STANDS:
            raise InvalidRequest(f"state must be some of {', '.join(STANDS)}")
    consumer, object_id = params.text(query, "consumer"), params.text(query, "id")
    return Search(
        states=tuple(one for one in STANDS if one in states),
        consumer=None if consumer is None else params.name(consumer),
        id=None if object_id is None else ids.check_object_id(object_id),
        key=params.text(query, "key"),
        type=params.text(query, "type"),
        where=conditions.read(params.text(query, "where")),
        after=params.integer(query, "after"),
        reverse=params.flag(query, "reverse"),
    )


def _body(found: Sequence[tuple[Entry, list[Stance]]], resume: int | None) -> bytes:
    """The JSON: each entry as a read gives it, and its standings."""
    parts = [
        codec.entry(entry)[:-1] + b',"standings":' + codec.encode(stances) + b"}" for entry, stances in found
    ]
    return b'{"found":[%b],"resume":%b}' % (b",".join(parts), codec.encode(resume))
