"""The verbs about entities, a part of `Client`: what the commands of a space made, and which commands did it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from functools import cached_property
from typing import Any
from urllib.parse import quote

from msgspec import Raw, Struct

from edgequeues.client import answers
from edgequeues.client.http import Transport
from edgequeues.client.text import Text
from edgequeues.client.wire import Call, pairs

PAGE_ENTITIES = 1_000


class Entity(Struct, frozen=True, dict=True):
    """A thing that commands act on. version: 1 when it was made, one more with each command.

    created, updated: unix ms. raw: the JSON object of its attributes, as it is stored.
    """

    id: str
    state: str | None
    version: int
    created: int
    updated: int
    raw: bytes

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Its attributes as Python values, decoded when first asked for."""
        found: dict[str, Any] = json.loads(self.raw)
        return found


class EntityPage(Struct, frozen=True):
    """Entities by id. resume: the id to go on after. None: that was the last."""

    entities: list[Entity]
    resume: str | None


class Executed(Struct, frozen=True):
    """A command that was carried out on an entity.

    receipt: grows from one command of the space to the next. version: of the entity after it. executed: unix ms.
    queue, message: what it was called for; no queue: a request.
    """

    receipt: int
    version: int
    command: str
    queue: str | None
    message: str | None
    executed: int


class History(Struct, frozen=True):
    """Commands, the oldest first. resume: the receipt to go on after. None: that was the last."""

    commands: list[Executed]
    resume: int | None


class _Wire(Struct, frozen=True):
    id: str
    state: str | None
    version: int
    created: int
    updated: int
    attributes: Raw


class _WirePage(Struct, frozen=True):
    entities: list[_Wire]
    resume: str | None


class EntityVerbs:
    """Looking at entities. A type that no command made an entity of has none."""

    _transport: Transport

    async def entities(
        self, space: str, entity_type: str, *, after: str | None = None, limit: int | None = None
    ) -> EntityPage:
        """Return entities of a type by id. after: an id, as `resume` gives it. limit: 1 to 1,000. None: 100."""
        call = _call(space, entity_type, query=pairs(after=after, limit=limit))
        body = Text(answers.checked(await self._transport.send(call)))
        found = body.decode(_WirePage)
        return EntityPage([_given(body, one) for one in found.entities], found.resume)

    async def iterate_entities(
        self, space: str, entity_type: str, *, after: str | None = None, page_size: int = PAGE_ENTITIES
    ) -> AsyncGenerator[Entity, None]:
        """Yield all entities of a type by id, page by page."""
        while True:
            page = await self.entities(space, entity_type, after=after, limit=page_size)
            for one in page.entities:
                yield one
            after = page.resume
            if after is None:
                return

    async def entity(self, space: str, entity_type: str, entity_id: str) -> Entity:
        """Return one entity. Raises Refused: `entity_not_found`."""
        body = Text(answers.checked(await self._transport.send(_call(space, entity_type, entity_id))))
        return _given(body, body.decode(_Wire))

    async def entity_history(
        self,
        space: str,
        entity_type: str,
        entity_id: str,
        *,
        after: int | None = None,
        limit: int | None = None,
    ) -> History:
        """Return commands on an entity, also on one that was removed; they are kept 90 days.

        after: a receipt, as `resume` gives it. limit: 1 to 1,000. None: 100. Raises Refused: `entity_not_found`.
        """
        call = _call(space, entity_type, entity_id, "history", query=pairs(after=after, limit=limit))
        return answers.decoded(await self._transport.send(call), History)


def _call(space: str, *names: str, query: tuple[tuple[str, str], ...] = ()) -> Call:
    """Raises ValueError for a name that would leave a part of the path empty."""
    if not all((space, *names)):
        raise ValueError("a space, an entity type and an entity id have at least one character")
    path = "/".join(quote(one, safe="") for one in (space, "entities", *names))
    return Call("GET", f"/v1/spaces/{path}", query=query, repeatable=True)


def _given(body: Text, wire: _Wire) -> Entity:
    raw = body.raw(wire.attributes)
    return Entity(wire.id, wire.state, wire.version, wire.created, wire.updated, raw)
