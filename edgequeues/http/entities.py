"""Entities over HTTP: what the commands of a space made, and which commands did it."""

from __future__ import annotations

from msgspec import Raw, Struct

from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import EntityNotFound, InvalidRequest
from edgequeues.core.ids import check_space
from edgequeues.http import codec, params
from edgequeues.http.routes import Request, Response, Route
from edgequeues.router import Router
from edgequeues.space.entities import Entity
from edgequeues.space.entity_verbs import EntityPage, History
from edgequeues.space.shard import SpaceShard

LISTED = 100
LISTED_MAX = 1_000
NAME_CHARS_MAX = 256  # of a type or an id

TEMPLATE = "/v1/spaces/{space}/entities/{entity_type}"


class EntityOut(Struct, frozen=True):
    """An entity as it is shown. attributes: as they are stored. created, updated: unix ms."""

    id: str
    state: str | None
    version: int
    created: int
    updated: int
    attributes: Raw


class ReceiptOut(Struct, frozen=True):
    """A command as it is shown.

    receipt: grows from one command of the space to the next. version: of the entity after it. queue, message: what it
    was called for; no queue: a request. executed: unix ms.
    """

    receipt: int
    version: int
    command: str
    queue: str | None
    message: str | None
    executed: int


def routes(router: Router) -> list[Route]:
    """The table."""

    async def listed(request: Request) -> Response:
        """Return a page of the entities of a type, by id; of an unknown space, none."""
        params.only(request.query, ("after", "limit"))
        after, limit = params.text(request.query, "after") or "", _limit(request)
        entity_type = _name(request, "entity_type")
        space = await router.find(_space(request))
        found = (
            EntityPage([], None)
            if space is None
            else await space.call(SpaceShard.entities, entity_type, after, limit)
        )
        shown = [_entity(one) for one in found.entities]
        return Response(codec.encode({"entities": shown, "resume": found.resume}))

    async def entity(request: Request) -> Response:
        """Return one entity."""
        params.only(request.query, ())
        entity_type, entity_id = _name(request, "entity_type"), _name(request, "entity_id")
        space = await router.find(_space(request))
        if space is None:
            raise EntityNotFound(f"space {request.params['space']}")
        return Response(codec.encode(_entity(await space.call(SpaceShard.entity, entity_type, entity_id))))

    async def history(request: Request) -> Response:
        """Return a page of the commands on an entity, the oldest first."""
        params.only(request.query, ("after", "limit"))
        after, limit = params.integer(request.query, "after") or 0, _limit(request)
        entity_type, entity_id = _name(request, "entity_type"), _name(request, "entity_id")
        space = await router.find(_space(request))
        if space is None:
            raise EntityNotFound(f"space {request.params['space']}")
        found = await space.call(SpaceShard.entity_history, entity_type, entity_id, after, limit)
        return Response(codec.encode({"commands": _receipts(found), "resume": found.resume}))

    return [
        Route("GET", TEMPLATE, listed, "read"),
        Route("GET", TEMPLATE + "/{entity_id}", entity, "read"),
        Route("GET", TEMPLATE + "/{entity_id}/history", history, "read"),
    ]


def _space(request: Request) -> Dxn:
    return Dxn(check_space(request.params["space"]), "")


def _name(request: Request, which: str) -> str:
    text = request.params[which]
    if len(text) > NAME_CHARS_MAX:
        raise InvalidRequest(f"{which} has {len(text)} characters, at most {NAME_CHARS_MAX} are possible")
    return text


def _limit(request: Request) -> int:
    return params.integer(request.query, "limit", low=1, high=LISTED_MAX) or LISTED


def _entity(one: Entity) -> EntityOut:
    attributes = Raw(one.attributes.encode())
    return EntityOut(one.entity_id, one.state, one.version, one.created, one.updated, attributes)


def _receipts(found: History) -> list[ReceiptOut]:
    return [
        ReceiptOut(
            one.receipt_id,
            one.version,
            one.command,
            None if one.queue_id is None else found.queues.get(one.queue_id, one.queue_id),
            one.object_id,
            one.executed,
        )
        for one in found.receipts
    ]
