"""Specs over HTTP: which hold in a space, what one would do, and having it hold; and the webhooks of the server."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from edgequeues.control import ControlError
from edgequeues.core import jsontext
from edgequeues.core.errors import InvalidSpec
from edgequeues.core.ids import check_space
from edgequeues.http import codec, params
from edgequeues.http.problems import NotReady
from edgequeues.http.routes import Request, Response, Route, json_body
from edgequeues.spec import ir
from edgequeues.spec.values import Applied
from edgequeues.specs import Held, Specs

T = TypeVar("T")


def routes(specs: Specs) -> list[Route]:
    """The table."""

    async def specs_of_space(request: Request) -> Response:
        """List the specs that hold in a space."""
        params.only(request.query, ())
        found = [_info(held) for held in specs.of_space(check_space(request.params["space"]))]
        return Response(codec.encode({"specs": found}))

    async def spec(request: Request) -> Response:
        """A spec as JSON."""
        params.only(request.query, ())
        return Response(ir.encode(specs.require(request.params["space"], request.params["app"]).spec))

    async def put_spec(request: Request) -> Response:
        """Have a spec hold, or say what it would do."""
        params.only(request.query, ("dry_run", "origin"))
        body = await json_body(request, ir.SPEC_BYTES_MAX)
        jsontext.check(body)
        given = ir.decode(body)
        space, app = check_space(request.params["space"]), request.params["app"]
        if given.app != app:
            raise InvalidSpec(f"the spec is of app {given.app}, the path says {app[:128]}")
        origin = params.text(request.query, "origin") or "a spec sent to the server"
        dry_run = params.flag(request.query, "dry_run")
        applied = await _written(
            specs.apply(space, given, origin[:256], dry_run=dry_run, who=request.caller.who)
        )
        return _told(applied)

    async def remove_spec(request: Request) -> Response:
        """Have a spec hold no more."""
        params.only(request.query, ("dry_run",))
        dry_run = params.flag(request.query, "dry_run")
        space, app = request.params["space"], request.params["app"]
        return _told(await _written(specs.remove(space, app, dry_run=dry_run, who=request.caller.who)))

    async def hooks(request: Request) -> Response:
        """List the webhooks of the server, with what became of their calls since it started."""
        params.only(request.query, ())
        return Response(codec.encode({"hooks": specs.hooks()}))

    return [
        Route("GET", "/v1/spaces/{space}/specs", specs_of_space, "spec"),
        Route("GET", "/v1/spaces/{space}/specs/{app}", spec, "spec"),
        Route("PUT", "/v1/spaces/{space}/specs/{app}", put_spec, "spec"),
        Route("DELETE", "/v1/spaces/{space}/specs/{app}", remove_spec, "spec"),
        Route("GET", "/v1/hooks", hooks, "list"),
    ]


def _told(applied: Applied) -> Response:
    told: dict[str, object] = {"app": applied.app, "queues": applied.queues}
    if applied.schedules:
        told["schedules"] = applied.schedules
    return Response(codec.encode(told))


def _info(held: Held) -> dict[str, object]:
    return {
        "app": held.row.app,
        "origin": held.row.origin,
        "applied": held.row.applied,
        "queues": list(held.spec.queues),
        "webhooks": list(held.spec.webhooks),
        "schedules": list(held.spec.schedules),
        "blocked": held.why,
    }


async def _written(work: Awaitable[T]) -> T:
    """What `work` returns. Raises NotReady where control.db cannot be written now."""
    try:
        return await work
    except ControlError as error:
        raise NotReady(str(error)) from error
