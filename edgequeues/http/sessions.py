"""Sessions over HTTP: messages for them, how they stand, and what is done about one that is stuck."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from edgequeues import inbound
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import TooLarge
from edgequeues.http import codec, params, work_codec
from edgequeues.http.reading import patiently
from edgequeues.http.routes import Request, Response, Route, json_body
from edgequeues.http.waits import Waits
from edgequeues.http.work import for_push
from edgequeues.models import ENTRY_BYTES_MAX, UnixMs
from edgequeues.models_sessions import SESSIONS_MAX, Received, SessionName, SessionPage
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from shards.namespace import Ref

S = TypeVar("S", bound=Struct)

LISTED = 100  # where the request does not say
ORDER_BYTES_MAX = 16 * 1024  # of a body that names a session, a worker or a time


class WorkerIn(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose leases end."""

    worker: Annotated[str, Meta(min_length=1, max_length=256)]


class CleanIn(Struct, frozen=True, forbid_unknown_fields=True):
    """Before which unix ms it was finished."""

    before: UnixMs


def routes(router: Router, waits: Waits, body_bytes_max: int) -> list[Route]:
    """The table. `waits` ends what goes on for long when the server stops."""
    return [*_using(router, body_bytes_max), *_mending(router, waits)]


def _using(router: Router, body_bytes_max: int) -> list[Route]:
    async def receive(request: Request) -> Response:
        """Append a message unless it came before; the first makes the queue, where the caller may."""
        dxn = _queue(request)
        message = inbound.read(await json_body(request, body_bytes_max))
        size = len(inbound.body(message).encode())
        if size > ENTRY_BYTES_MAX:
            raise TooLarge(f"the message has {size} bytes, at most {ENTRY_BYTES_MAX}")
        space, may_make = await for_push(router, request, dxn)
        [received] = await space.call(SpaceShard.receive, dxn.queue, [message], make=may_make)
        return _received(received)

    async def sessions(request: Request) -> Response:
        """List sessions with messages that are not finished, or show one of them. Changes nothing."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ("session", "after", "limit"))
        session = params.text(request.query, "session", length_max=inbound.NAME_CHARS_MAX)
        after = params.text(request.query, "after", length_max=inbound.NAME_CHARS_MAX)
        limit = params.integer(request.query, "limit", low=1, high=SESSIONS_MAX) or LISTED
        space = await router.require(dxn)
        if session is not None:
            found = await space.call(SpaceShard.session, dxn.queue, session)
            return Response(codec.encode(SessionPage([] if found is None else [found], None)))
        return Response(codec.encode(await space.call(SpaceShard.sessions, dxn.queue, after, limit)))

    return [
        Route("POST", "/v1/{dxn}/inbound", receive, "push"),
        Route("GET", "/v1/{dxn}/sessions", sessions, "read"),
    ]


def _mending(router: Router, waits: Waits) -> list[Route]:
    async def ordered(request: Request, kind: type[S]) -> tuple[str, Ref[SpaceShard], S]:
        """The queue, its space, and what the body says."""
        dxn = _queue(request)
        order = work_codec.decode(await json_body(request, ORDER_BYTES_MAX), kind)
        return dxn.queue, await router.require(dxn), order

    async def close(request: Request) -> Response:
        """Expire all that is unfinished in a session, turn by turn; what comes meanwhile stays."""
        queue, space, order = await ordered(request, SessionName)
        turn = by(request.caller.who, SpaceShard.close_session)

        async def work() -> int:
            part = await space.call(turn, queue, order.session_id)
            expired = part.expired
            while (through := part.through) is not None:
                part = await patiently(lambda: space.call(turn, queue, order.session_id, through), waits)
                expired += part.expired
            return expired

        return _told("expired", await request.while_connected(work))

    async def skip(request: Request) -> Response:
        """Expire the message that a session waits for, unless it is handed out."""
        queue, space, order = await ordered(request, SessionName)
        turn = by(request.caller.who, SpaceShard.skip_head)
        return _told("id", await space.call(turn, queue, order.session_id))

    async def retry(request: Request) -> Response:
        """Have the message that a session waits for delivered now, where it waits for a time."""
        queue, space, order = await ordered(request, SessionName)
        turn = by(request.caller.who, SpaceShard.hurry_head)
        return _told("id", await space.call(turn, queue, order.session_id))

    async def reclaim(request: Request) -> Response:
        """End the leases that a worker left, turn by turn."""
        queue, space, order = await ordered(request, WorkerIn)
        turn = by(request.caller.who, SpaceShard.reclaim)
        count = await request.while_connected(
            lambda: _summed(lambda: space.call(turn, queue, order.worker), waits)
        )
        return _told("reclaimed", count)

    async def clean(request: Request) -> Response:
        """Remove what was finished before a time, turn by turn."""
        queue, space, order = await ordered(request, CleanIn)
        turn = by(request.caller.who, SpaceShard.clean)

        async def work() -> int:
            removed, more = 0, True
            while more:
                part = await patiently(lambda: space.call(turn, queue, order.before), waits)
                removed, more = removed + part.removed, part.more
            return removed

        return _told("removed", await request.while_connected(work))

    return [
        Route("POST", "/v1/{dxn}/sessions/close", close, "configure"),
        Route("POST", "/v1/{dxn}/sessions/skip", skip, "configure"),
        Route("POST", "/v1/{dxn}/sessions/retry", retry, "configure"),
        Route("POST", "/v1/{dxn}/sessions/reclaim", reclaim, "pull"),
        Route("POST", "/v1/{dxn}/sessions/clean", clean, "delete"),
    ]


async def _summed(step: Callable[[], Awaitable[int]], waits: Waits) -> int:
    """Repeat a step of a long job until it has nothing more to do; return how much that was."""
    total = 0
    while some := await patiently(step, waits):
        total += some
    return total


def _queue(request: Request) -> Dxn:
    params.only(request.query, ())
    return codec.queue(request.params["dxn"])


def _received(received: Received) -> Response:
    repeat = received.id is None
    body = codec.encode({"id": received.id, "position": received.position, "duplicate": repeat})
    return Response(body, status=200 if repeat else 202)


def _told(name: str, value: int | str | None) -> Response:
    return Response(codec.encode({name: value}))
