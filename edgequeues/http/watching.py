"""How queues are doing, over the admin API: asked once, or told as server-sent events whenever it is different."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial

import trio
from msgspec import Struct

from edgequeues.core import ids
from edgequeues.core.errors import InvalidRequest, QueueNotFound
from edgequeues.http import admin_codec, codec, params
from edgequeues.http.reading import KEEP_ALIVE_S, patiently
from edgequeues.http.routes import Request, Response, Route
from edgequeues.http.tenants import Space, Tenants
from edgequeues.http.waits import Waits
from edgequeues.router import Router
from edgequeues.space.overview import QUEUES_MAX, Doing, Queues
from edgequeues.space.shard import SpaceShard
from shards.errors import Overloaded
from shards.hub import Watch

QUEUES = "/admin/queues"
QUEUE = QUEUES + "/{name}"
EVENTS = b"text/event-stream"

TURNS_MAX = 20  # that one list takes before it says where to go on
TURN_QUEUES = 25  # that one of them looks at closely, so that nobody has to wait for a whole page
PART_LENGTH_MAX = 128  # of a name
PACE_S = 1.0  # between two looks at the least, however much happens
REFRESH_S = 5.0  # between two looks at the most, while ages or rates change by themselves
LIVE_MAX = 500  # streams at once
SHARE = 4  # all looks together take one part in so many of the time; where that is not enough, they are rarer
PACE_S_MAX = 15.0  # but not rarer than that

_LISTING = ("tenant_id", "after", "limit", "name")


class Seen(Struct, frozen=True):
    """What a look has shown. moves: will it be different soon, though nothing happens?"""

    body: bytes
    moves: bool


Look = Callable[[], Awaitable[Seen]]


def routes(router: Router, tenants: Tenants, waits: Waits) -> list[Route]:
    """The routes."""

    def changes(space: str) -> AbstractContextManager[Watch]:
        return router.watch_changes(space)

    live = Live(changes, waits)

    async def queues(request: Request) -> Response:
        """List the queues of a space, and how each is doing."""
        return Response((await _listing(request, await tenants.space(request), waits)()).body)

    async def queue(request: Request) -> Response:
        """How one queue is doing, and how many dead letters come from it."""
        params.only(request.query, ("tenant_id",))
        name = ids.check_queue(request.params["name"])
        space = await tenants.space(request)
        return Response(codec.encode(admin_codec.close_up(await space.call(SpaceShard.close_up, name))))

    async def live_queues(request: Request) -> Response:
        """The list of queues now, and again whenever it is different, for as long as the client listens."""
        space = await tenants.space(request)
        return await live.response(space, "queues", _listing(request, space, waits))

    async def live_queue(request: Request) -> Response:
        """How one queue and its consumers are doing, the same way."""
        params.only(request.query, ("tenant_id",))
        name = ids.check_queue(request.params["name"])
        space = await tenants.space(request)
        return await live.response(space, "queue", _close_up(space, name, waits))

    return [
        Route("GET", QUEUES, queues, "list"),
        Route("GET", QUEUE, queue, "read"),
        Route("GET", "/admin/live", live_queues, "list"),
        Route("GET", QUEUE + "/live", live_queue, "read"),
    ]


def _listing(request: Request, space: Space, waits: Waits) -> Look:
    """What looks at the page that a request asks for. Raises InvalidRequest."""
    params.only(request.query, _LISTING)
    after, limit = params.text(request.query, "after") or "", admin_codec.limit(request.query, QUEUES_MAX)
    part = params.text(request.query, "name") or None
    if part is not None and len(part) > PART_LENGTH_MAX:
        raise InvalidRequest(f"name: a part of a name has at most {PART_LENGTH_MAX} characters")

    async def look() -> Seen:
        found: list[Doing] = []
        resume: str | None = after
        for _ in range(TURNS_MAX):
            room = min(limit - len(found), TURN_QUEUES)
            page = await patiently(partial(_page, space, resume or "", room, part), waits)
            found, resume = found + page.queues, page.resume
            if resume is None or len(found) == limit:
                break
        body = admin_codec.page("queues", [admin_codec.queue(one) for one in found], resume)
        return Seen(body, any(map(_moves, found)))

    return look


async def _page(space: Space, after: str, limit: int, part: str | None) -> Queues:
    return await space.call(SpaceShard.doing, after, limit, part)


def _close_up(space: Space, name: str, waits: Waits) -> Look:
    async def look() -> Seen:
        found, consumers = await patiently(lambda: space.call(SpaceShard.watch_closely, name), waits)
        body = codec.encode(admin_codec.close_up(found) | {"consumers": consumers})
        return Seen(body, _moves(found.doing))

    return look


def _moves(one: Doing) -> bool:
    """Are there ages that grow, or rates of a minute that passes?"""
    return one.oldest is not None or any(one.came) or any(one.acked)


class Live:
    """Streams of what is seen, which end with the server. Nothing is done for anybody who does not listen."""

    def __init__(self, watch: Callable[[str], AbstractContextManager[Watch]], waits: Waits) -> None:
        self._watch = watch  # a space, for anything that is written to it
        self._waits = waits
        self._streams = 0

    async def response(self, space: Space, name: str, look: Look) -> Response:
        """An event of this name now, and after each change of the space that shows. Raises what `look` raises."""
        if self._streams >= LIVE_MAX:
            raise Overloaded(f"{LIVE_MAX} live streams")
        events = self._events(space, name, look, await look())
        return Response(events, media=EVENTS, headers=[(b"cache-control", b"no-store")], compress=False)

    async def _events(self, space: Space, name: str, look: Look, seen: Seen) -> AsyncGenerator[bytes, None]:
        told, due, first = b"", 0.0, True
        self._streams += 1
        try:
            with self._watch(space.name) as watch:
                pace_s = PACE_S
                while not self._waits.over():
                    if seen.body != told or trio.current_time() >= due:
                        yield b": still here\n\n" if seen.body == told else _event(name, seen.body)
                        told, due = seen.body, trio.current_time() + KEEP_ALIVE_S
                    await self._waits.pause(pace_s)
                    # What was seen first was seen before the watch began.
                    rest_s = (REFRESH_S if seen.moves else KEEP_ALIVE_S) - pace_s
                    if first or await self._waits.at_most(max(rest_s, PACE_S), watch.wait) or seen.moves:
                        began = trio.current_time()
                        first, seen = False, await look()
                        pace_s = self._pace_s(trio.current_time() - began)
        except QueueNotFound:
            yield _event("gone", b"{}")
        finally:
            self._streams -= 1

    def _pace_s(self, took_s: float) -> float:
        """How long to leave the server alone after a look that took so long, if every stream does likewise."""
        return min(max(PACE_S, SHARE * self._streams * took_s), PACE_S_MAX)


def _event(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)
