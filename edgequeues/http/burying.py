"""Dead letters over HTTP: list them, make messages of them again, delete some; by filter turn by turn to the end."""

from __future__ import annotations

from edgequeues.core.dxn import Dxn
from edgequeues.http import codec, params, work_codec
from edgequeues.http.bulk import Bulk, Heap
from edgequeues.http.deleting import purge as purge_all
from edgequeues.http.routes import Request, Response, Route, json_body
from edgequeues.http.waits import Waits
from edgequeues.models import ENTRIES_MAX
from edgequeues.models_letters import LetterFilter
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.spec import conditions

LOOKED_AT = 100  # where the request does not say


def routes(router: Router, waits: Waits) -> list[Route]:
    """The table. `waits` ends what goes on for long when the server stops."""

    async def dead(request: Request) -> Response:
        """List dead letters with all that is known of them."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ("after", "limit", "where"))
        after = params.integer(request.query, "after") or 0
        limit = params.integer(request.query, "limit", low=1, high=ENTRIES_MAX) or LOOKED_AT
        where = conditions.read(params.text(request.query, "where"))
        space = await router.require(dxn)
        if where is not None:
            wanted = LetterFilter(where=where)
            part = await space.call(SpaceShard.find_letters, dxn.queue, wanted, after, limit)
            return Response(work_codec.found_letters(part))
        found = await space.call(SpaceShard.dead_letters, dxn.queue, after, limit)
        return Response(work_codec.letters(found, limit))

    async def replay(request: Request) -> Response:
        """Make new messages of dead letters, where they came from; of those that are named, or by a filter."""
        dxn = _queue(request)
        order = work_codec.replay(await json_body(request, work_codec.IDS_BYTES_MAX))
        bulk = Bulk(await router.require(dxn), waits, request.caller.who)
        if order.ids is not None:
            results = await bulk.replay_named(dxn.queue, order.ids, order.per_second)
            return Response(codec.encode({"results": results}))
        assert order.filter is not None
        heaps = [Heap(dxn.queue, order.filter)]
        if order.preview:
            count, shown = await bulk.preview(heaps)
            return Response(codec.encode({"count": count, "letters": work_codec.shown_letters(shown)}))
        return Response(codec.encode(await bulk.replay(heaps, order.limit, order.per_second)))

    async def purge(request: Request) -> Response:
        """Delete all that is in a queue now, or the dead letters a filter names; what comes from now on stays."""
        dxn = _queue(request)
        wanted = work_codec.purge(await json_body(request, work_codec.RULES_BYTES_MAX))
        space = await router.require(dxn)
        if wanted is None:
            deleted = await purge_all(router, waits, dxn, request.caller.who)
        else:
            deleted = await Bulk(space, waits, request.caller.who).purge([Heap(dxn.queue, wanted)])
        return Response(codec.deleted(deleted))

    return [
        Route("GET", "/v1/{dxn}/dead", dead, "read"),
        Route("POST", "/v1/{dxn}/replay", replay, "push"),
        Route("POST", "/v1/{dxn}/purge", purge, "delete"),
    ]


def _queue(request: Request) -> Dxn:
    params.only(request.query, ())
    return codec.queue(request.params["dxn"])
