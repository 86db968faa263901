"""What a node holds and how it is: the spaces, their queues, health."""

from __future__ import annotations

from edgequeues.core import dxn as dxns
from edgequeues.core import ids
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidId
from edgequeues.http import codec, params
from edgequeues.http.problems import NotReady
from edgequeues.http.routes import Request, Response, Route
from edgequeues.http.waits import Waits
from edgequeues.models import QueueList
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard

LISTED = 100  # where the request does not say
LISTED_MAX = 1_000

OK = b'{"status":"ok"}'


def routes(router: Router, waits: Waits) -> list[Route]:
    """The table. A server whose waits have ended is stopping, so it is not ready."""

    async def spaces(request: Request) -> Response:
        """Return a page of spaces, in the order of their names."""
        params.only(request.query, ("after", "limit"))
        limit = params.integer(request.query, "limit", low=1, high=LISTED_MAX) or LISTED
        names = await router.shards(params.text(request.query, "after") or "", limit + 1)
        found = [_space(name) for name in names[:limit]]
        resume = names[limit - 1] if len(names) > limit else None
        return Response(codec.encode({"spaces": [one for one in found if one], "resume": resume}))

    async def queues(request: Request) -> Response:
        """Return a page of a space's queues, in the order of their ids; of an unknown space, none."""
        params.only(request.query, ("after", "limit", "tag"))
        limit = params.integer(request.query, "limit", low=1, high=LISTED_MAX) or LISTED
        space, tag = ids.check_space(request.params["space"]), params.tag(request.query)
        ref = await router.find_shard(Dxn(space=space, queue="", tag=tag).shard)
        after = params.text(request.query, "after") or ""
        found = QueueList([], None) if ref is None else await ref.call(SpaceShard.queues, after, limit)
        listed = [codec.stats(one, space, tag) for one in found.queues]
        return Response(codec.encode({"queues": listed, "resume": found.resume}))

    async def healthz(_: Request) -> Response:
        """Say that the process answers."""
        return Response(OK)

    async def readyz(_: Request) -> Response:
        """Say whether it takes work. Raises NotReady."""
        reasons = [*router.unready(), *(["the server is stopping"] if waits.over() else [])]
        if reasons:
            raise NotReady("; ".join(reasons))
        return Response(OK)

    return [
        Route("GET", "/v1/spaces", spaces, "list"),
        Route("GET", "/v1/spaces/{space}/queues", queues, "list"),
        Route("GET", "/healthz", healthz, None),
        Route("GET", "/readyz", readyz, None),
    ]


def _space(shard: str) -> dict[str, str] | None:
    """A shard as listed; None for a file that is no space of ours."""
    try:
        space, tag = dxns.from_shard(shard)
    except InvalidId:
        return None
    return {"id": space, "tag": tag}
