"""Dead letters over HTTP: list them, make messages of them again, delete some; by filter turn by turn to the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

from edgequeues.core.dxn import Dxn
from edgequeues.http import codec, params, work_codec
from edgequeues.http.deleting import purge as purge_all
from edgequeues.http.reading import patiently
from edgequeues.http.routes import Request, Response, Route, json_body
from edgequeues.http.waits import Waits
from edgequeues.http.work_codec import ReplayOrder
from edgequeues.models import ENTRIES_MAX, Entry
from edgequeues.models_letters import LetterFilter, Replayed
from edgequeues.router import Router
from edgequeues.space.dead_verbs import Part, ReplayAsk
from edgequeues.space.deadletters import START, Place
from edgequeues.space.letters import Envelope
from edgequeues.space.shard import SpaceShard
from shards.namespace import Ref

LOOKED_AT = 100  # where the request does not say
SHOWN = 10  # letters a preview shows
DONE = Part(None, 0)


def routes(router: Router, waits: Waits) -> list[Route]:
    """The table. `waits` ends what goes on for long when the server stops."""

    async def dead(request: Request) -> Response:
        """List dead letters with all that is known of them."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ("after", "limit"))
        after = params.integer(request.query, "after") or 0
        limit = params.integer(request.query, "limit", low=1, high=ENTRIES_MAX) or LOOKED_AT
        space = await router.require(dxn)
        found = await space.call(SpaceShard.dead_letters, dxn.queue, after, limit)
        return Response(work_codec.letters(found, limit))

    async def replay(request: Request) -> Response:
        """Make new messages of dead letters, where they came from; of those that are named, or by a filter."""
        dxn = _queue(request)
        order = work_codec.replay(await json_body(request, work_codec.IDS_BYTES_MAX))
        space = await router.require(dxn)
        if order.ids is not None:
            return await _replay_named(space, dxn, order.ids, order.per_second)
        assert order.filter is not None
        if order.preview:
            return await _preview(space, dxn, order.filter, waits)
        return await _replay(space, dxn, order, order.filter, waits)

    async def purge(request: Request) -> Response:
        """Delete all that is in a queue now, or the dead letters a filter names; what comes from now on stays."""
        dxn = _queue(request)
        wanted = work_codec.purge(await json_body(request, work_codec.RULES_BYTES_MAX))
        space = await router.require(dxn)
        if wanted is None:
            deleted = await purge_all(router, waits, dxn)
        else:
            deleted = await _purge(space, dxn, wanted, waits)
        return Response(codec.deleted(deleted))

    return [
        Route("GET", "/v1/{dxn}/dead", dead, "read"),
        Route("POST", "/v1/{dxn}/replay", replay, "push"),
        Route("POST", "/v1/{dxn}/purge", purge, "delete"),
    ]


async def _replay_named(
    space: Ref[SpaceShard], dxn: Dxn, named: list[str], per_second: float | None
) -> Response:
    """Replay these, in as many turns as their data takes."""
    results: list[Replayed] = []
    while named:
        results += await space.call(SpaceShard.replay, dxn.queue, named, per_second)
        told = {one.id for one in results}
        named = [one for one in named if one not in told]
    return Response(codec.encode({"results": results}))


async def _replay(
    space: Ref[SpaceShard], dxn: Dxn, order: ReplayOrder, wanted: LetterFilter, waits: Waits
) -> Response:
    """Replay to the end, or until `order.limit` were, or the pace leads too far; tell the first ENTRIES_MAX."""
    totals, first, more = Counter[str](), list[Replayed](), False

    async def step(after: Place, through: int | None) -> Part:
        nonlocal more
        left = order.limit - totals["replayed"]
        if left <= 0 or totals["later"]:
            more = True
            return DONE
        ask = ReplayAsk(wanted, left, order.per_second)
        part = await space.call(SpaceShard.replay_some, dxn.queue, ask, after, through)
        totals.update(one.outcome for one in part.results)
        first.extend(part.results[: ENTRIES_MAX - len(first)])
        return part

    await _walk(step, waits)
    counts = {name: totals[name] for name in ("replayed", "no_queue", "later", "invalid")}
    more = more or totals["later"] > 0
    return Response(codec.encode({"totals": counts, "more": more, "results": first}))


async def _preview(space: Ref[SpaceShard], dxn: Dxn, wanted: LetterFilter, waits: Waits) -> Response:
    """Count what would be replayed, and show the first few."""
    count, shown = 0, list[tuple[Entry, Envelope]]()

    async def step(after: Place, through: int | None) -> Part:
        nonlocal count
        show = SHOWN - len(shown)
        part = await space.call(SpaceShard.preview, dxn.queue, wanted, after, through, show=show)
        count += part.count
        shown.extend(part.shown)
        return part

    await _walk(step, waits)
    return Response(codec.encode({"count": count, "letters": work_codec.shown_letters(shown)}))


async def _purge(space: Ref[SpaceShard], dxn: Dxn, wanted: LetterFilter, waits: Waits) -> int:
    """Delete what a filter names; how many it were."""
    count = 0

    async def step(after: Place, through: int | None) -> Part:
        nonlocal count
        part = await space.call(SpaceShard.purge_letters, dxn.queue, wanted, after, through)
        count += part.count
        return part

    await _walk(step, waits)
    return count


async def _walk(step: Callable[[Place, int | None], Awaitable[Part]], waits: Waits) -> None:
    """Look through the dead letters there are now, one turn after the other."""
    part = await step(START, None)
    while part.resume is not None:
        part = await patiently(partial(step, part.resume, part.through), waits)


def _queue(request: Request) -> Dxn:
    params.only(request.query, ())
    return codec.queue(request.params["dxn"])
