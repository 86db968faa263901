"""The native protocol of work queues: push, pull, what becomes of what was pulled, and looking at it all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import TypeVar

import trio

from edgequeues.core import ids
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidRequest
from edgequeues.http import burying, codec, envelope, params, work_codec
from edgequeues.http.reading import to_its_end
from edgequeues.http.routes import Request, Response, Route, json_body
from edgequeues.http.waits import Waits
from edgequeues.http.work_codec import STATES
from edgequeues.models import ENTRIES_MAX, Pulled, Verdict
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from edgequeues.tracing import marked
from shards.hub import Watch
from shards.namespace import Ref

T = TypeVar("T")

WAIT_S_MAX = 60
LOOKED_AT = 100  # where the request does not say


def routes(router: Router, waits: Waits, body_bytes_max: int) -> list[Route]:
    """The table. `waits` ends the long polls when the server stops."""
    return [
        *_working(router, waits, body_bytes_max),
        *_consuming(router, waits),
        *_looking(router),
        *burying.routes(router, waits),
    ]


def _working(router: Router, waits: Waits, body_bytes_max: int) -> list[Route]:
    async def push(request: Request) -> Response:
        """Append messages; the first push makes the queue with its consumer `default`, where the caller may."""
        dxn = _queue(request)
        entries = envelope.entries(await json_body(request, body_bytes_max))
        space, may_make = await for_push(router, request, dxn)
        answer = await space.call(SpaceShard.push, dxn.queue, marked(entries), make=may_make)
        return Response(codec.encode(answer))

    async def pull(request: Request) -> Response:
        """Lease messages; wait for the first one, if asked to."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ("consumer", "wait"))
        consumer = _consumer(request)
        wait_s = params.seconds(request.query, "wait", high=WAIT_S_MAX)
        ask = work_codec.pull(await json_body(request, body_bytes_max))
        space = await router.require(dxn)

        async def step() -> Pulled:
            return await space.call(SpaceShard.pull, dxn.queue, consumer, ask)

        if wait_s == 0:
            return Response(work_codec.pulled(await step()))
        given = await request.while_connected(
            lambda: _wait(router.watch_work(dxn, consumer), waits, step, wait_s)
        )
        return Response(work_codec.pulled(given))

    async def ack(request: Request) -> Response:
        """Finish messages, some with what came of them."""
        leases, results = work_codec.acks(await json_body(request, body_bytes_max))
        found = await _call(router, request, lambda q, s: s.call(SpaceShard.ack, q, leases, results=results))
        return _verdicts(leases, found)

    async def release(request: Request) -> Response:
        """Give messages back untouched."""
        leases = work_codec.leases(await json_body(request, body_bytes_max))
        return _verdicts(
            leases, await _call(router, request, lambda q, s: s.call(SpaceShard.release, q, leases))
        )

    async def retry(request: Request) -> Response:
        """Give attempts up, so that the messages are tried again, or are dead letters."""
        retries = work_codec.retries(await json_body(request, body_bytes_max))
        found = await _call(router, request, lambda q, s: s.call(SpaceShard.retry, q, retries))
        return _verdicts([one.lease for one in retries], found)

    async def extend(request: Request) -> Response:
        """Move the ends of leases."""
        leases, lease_ms = work_codec.extension(await json_body(request, body_bytes_max))
        found = await _call(router, request, lambda q, s: s.call(SpaceShard.extend, q, leases, lease_ms))
        return _verdicts(leases, found)

    return [
        Route("POST", "/v1/{dxn}/push", push, "push"),
        Route("POST", "/v1/{dxn}/pull", pull, "pull"),
        Route("POST", "/v1/{dxn}/ack", ack, "pull"),
        Route("POST", "/v1/{dxn}/retry", retry, "pull"),
        Route("POST", "/v1/{dxn}/release", release, "pull"),
        Route("POST", "/v1/{dxn}/extend", extend, "pull"),
    ]


async def for_push(router: Router, request: Request, dxn: Dxn) -> tuple[Ref[SpaceShard], bool]:
    """The space to push to, and whether the push may make its queue. Raises QueueNotFound, as `Router.make` does."""
    may_make = request.caller.may("create", dxn.space, dxn.queue)
    if may_make:
        return await router.make(dxn, stranger=request.caller.stranger), True
    return await router.require(dxn), False


def _consuming(router: Router, waits: Waits) -> list[Route]:
    async def consumers(request: Request) -> Response:
        """List the consumers of a queue, with their counts."""
        found = await _call(router, request, lambda q, s: s.call(SpaceShard.consumers, q))
        return Response(codec.encode({"consumers": found}))

    async def put_consumer(request: Request) -> Response:
        """Make a consumer, or replace its rules."""
        name = params.name(request.params["consumer"])
        rules, start = work_codec.consumer(await json_body(request, work_codec.RULES_BYTES_MAX))
        found = await _call(
            router,
            request,
            lambda q, s: s.call(by(request.caller.who, SpaceShard.consume), q, name, rules, start=start),
        )
        return Response(codec.encode(found))

    async def delete_consumer(request: Request) -> Response:
        """Remove a consumer and what it had still to do."""
        name = params.name(request.params["consumer"])
        dxn = _queue(request)
        space = await router.require(dxn)
        await to_its_end(
            lambda: space.call(by(request.caller.who, SpaceShard.dismiss), dxn.queue, name), waits
        )
        return Response(b"{}")

    return [
        Route("GET", "/v1/{dxn}/consumers", consumers, "read"),
        Route("PUT", "/v1/{dxn}/consumers/{consumer}", put_consumer, "configure"),
        Route("DELETE", "/v1/{dxn}/consumers/{consumer}", delete_consumer, "configure"),
    ]


def _looking(router: Router) -> list[Route]:
    async def peek(request: Request) -> Response:
        """Look at messages in some states, by position. Changes nothing."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ("consumer", "state", "after", "limit"))
        consumer = _consumer(request)
        states = params.many(request.query, "state", count_max=len(STATES)) or STATES
        for state in states:
            if state not in STATES:
                raise InvalidRequest(f"state must be some of {', '.join(STATES)}")
        after = params.integer(request.query, "after") or 0
        limit = _limit(request)
        space = await router.require(dxn)
        wanted = [one for one in STATES if one in states]
        found = await space.call(SpaceShard.peek, dxn.queue, consumer, wanted, after, limit)
        return Response(work_codec.standings(found))

    async def explain(request: Request) -> Response:
        """Say why a message is not delivered now, and what happened to it."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ("id",))
        given = params.text(request.query, "id")
        if given is None:
            raise InvalidRequest("id is missing")
        object_id = ids.check_object_id(given)
        space = await router.require(dxn)
        found = await space.call(SpaceShard.explain, dxn.queue, object_id)
        return Response(codec.encode({"id": object_id, "consumers": found}))

    async def lines(request: Request) -> Response:
        """List the ordering keys whose messages wait, the longest lines first."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ("consumer", "after", "limit"))
        after, limit = params.text(request.query, "after"), _limit(request)
        space = await router.require(dxn)
        found = await space.call(SpaceShard.lines, dxn.queue, _consumer(request), after, limit)
        return Response(codec.encode(found))

    async def skip(request: Request) -> Response:
        """Give up a message nobody holds, so that its line goes on."""
        return await _one(router, request, SpaceShard.skip)

    async def hurry(request: Request) -> Response:
        """Have a message that backs off, or waits for its time, be ready now."""
        return await _one(router, request, SpaceShard.hurry)

    return [
        Route("GET", "/v1/{dxn}/peek", peek, "read"),
        Route("GET", "/v1/{dxn}/explain", explain, "read"),
        Route("GET", "/v1/{dxn}/lines", lines, "read"),
        Route("POST", "/v1/{dxn}/skip", skip, "configure"),
        Route("POST", "/v1/{dxn}/hurry", hurry, "configure"),
    ]


async def _one(
    router: Router, request: Request, verb: Callable[[SpaceShard, str, str | None, str], None]
) -> Response:
    """Have an operator's verb done to the message of a consumer that the body names."""
    object_id, consumer = work_codec.one(await json_body(request, work_codec.RULES_BYTES_MAX))
    turn = by(request.caller.who, verb)
    await _call(router, request, lambda q, s: s.call(turn, q, consumer, object_id))
    return Response(b"{}")


async def _wait(
    watching: AbstractContextManager[Watch],
    waits: Waits,
    step: Callable[[], Awaitable[Pulled]],
    wait_s: float,
) -> Pulled:
    """Pull until there is something, for `wait_s` at most. What is due later makes itself heard when it is."""
    deadline = trio.current_time() + wait_s
    with watching as watch:
        while True:
            given = await step()
            left_s = deadline - trio.current_time()
            if given.messages or not await waits.at_most(left_s, watch.wait):
                return given


def _queue(request: Request) -> Dxn:
    params.only(request.query, ())
    return codec.queue(request.params["dxn"])


def _limit(request: Request) -> int:
    return params.integer(request.query, "limit", low=1, high=ENTRIES_MAX) or LOOKED_AT


def _consumer(request: Request) -> str | None:
    given = params.text(request.query, "consumer")
    return None if given is None else params.name(given)


async def _call(router: Router, request: Request, verb: Callable[[str, Ref[SpaceShard]], Awaitable[T]]) -> T:
    dxn = _queue(request)
    return await verb(dxn.queue, await router.require(dxn))


def _verdicts(leases: list[str], found: list[Verdict]) -> Response:
    results = [{"lease": lease, "outcome": outcome} for lease, outcome in zip(leases, found, strict=True)]
    return Response(codec.encode({"results": results}))
