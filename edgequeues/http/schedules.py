"""Schedules over HTTP: which there are in a space, when each comes next, and making the message of one now."""

from __future__ import annotations

from edgequeues.core import ids
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidRequest, ScheduleNotFound
from edgequeues.http import codec, params
from edgequeues.http.nodes import LISTED, LISTED_MAX
from edgequeues.http.routes import Request, Response, Route
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from edgequeues.spec.values import ScheduleList
from shards.namespace import Ref

BODY_BYTES_MAX = 1_024
NAME_LENGTH_MAX = 128


def routes(router: Router) -> list[Route]:
    """The table."""

    async def space(request: Request) -> Ref[SpaceShard] | None:
        address = Dxn(space=ids.check_space(request.params["space"]), queue="")
        return await router.find_shard(address.shard)

    async def schedules(request: Request) -> Response:
        """Return a page of a space's schedules, in the order of their names; of an unknown space, none."""
        params.only(request.query, ("after", "limit"))
        limit = params.integer(request.query, "limit", low=1, high=LISTED_MAX) or LISTED
        after = params.text(request.query, "after", length_max=NAME_LENGTH_MAX) or ""
        ref = await space(request)
        found = ScheduleList([], None) if ref is None else await ref.call(SpaceShard.schedules, after, limit)
        return Response(codec.encode(found))

    async def run(request: Request) -> Response:
        """Make the message of a schedule now."""
        params.only(request.query, ())
        if (await request.body(BODY_BYTES_MAX)).strip() not in (b"", b"{}"):
            raise InvalidRequest("running a schedule takes no body: the spec says what its message is")
        name = request.params["schedule"][:NAME_LENGTH_MAX]
        ref = await space(request)
        if ref is None:
            raise ScheduleNotFound(f"schedule {name}")
        turn = by(request.caller.who, SpaceShard.run_schedule)
        return Response(codec.encode(await ref.call(turn, name)))

    return [
        Route("GET", "/v1/spaces/{space}/schedules", schedules, "list"),
        Route("POST", "/v1/spaces/{space}/schedules/{schedule}/run", run, "push"),
    ]
