"""The verbs that look at entities, and at what commands did to them. Each is one turn, and changes nothing."""

from __future__ import annotations

from typing import NamedTuple

from edgequeues.core.errors import EntityNotFound
from edgequeues.space import entities
from edgequeues.space.base import SpaceBase
from edgequeues.space.entities import Entity, Receipt
from shards.shard import reads


class EntityPage(NamedTuple):
    """Entities by id. resume: not None when there are more: pass it as `after`."""

    entities: list[Entity]
    resume: str | None


class History(NamedTuple):
    """Receipts, the oldest first. resume: as in EntityPage. queues: names, or ids, by id, of those that are there."""

    receipts: list[Receipt]
    resume: int | None
    queues: dict[str, str]


class EntityVerbs(SpaceBase):
    """`entity_type` and `entity_id` are as commands have them; nobody else can have other ones."""

    @reads
    def entities(self, entity_type: str, after: str, limit: int) -> EntityPage:
        """Entities of a type by id from above `after`; none where no command made any.

        About 4 MiB of attributes end a page before `limit`.
        """
        found, more = entities.page(self.db, entity_type, after, limit)
        return EntityPage(found, found[-1].entity_id if more else None)

    @reads
    def entity(self, entity_type: str, entity_id: str) -> Entity:
        """One entity. Raises EntityNotFound."""
        found = entities.get(self.db, entity_type, entity_id)
        if found is None:
            raise EntityNotFound(_named(entity_type, entity_id))
        return found

    @reads
    def entity_history(self, entity_type: str, entity_id: str, after: int, limit: int) -> History:
        """Commands on an entity that may be gone, from above receipt `after`, as far back as receipts are kept.

        Raises EntityNotFound where there is neither the entity nor a receipt.
        """
        found = entities.history(self.db, entity_type, entity_id, after, limit + 1)
        if not found and not self._is_known(entity_type, entity_id):
            raise EntityNotFound(_named(entity_type, entity_id))
        shown = found[:limit]
        resume = shown[-1].receipt_id if len(found) > limit else None
        rows = [self._find(one) for one in {one.queue_id for one in shown} if one is not None]
        names = {row.queue_id: row.name or row.queue_id for row in rows if row is not None}
        return History(shown, resume, names)

    def _is_known(self, entity_type: str, entity_id: str) -> bool:
        return entities.get(self.db, entity_type, entity_id) is not None or entities.has_history(
            self.db, entity_type, entity_id
        )


def _named(entity_type: str, entity_id: str) -> str:
    return f"{entity_type[:256]} {entity_id[:256]}"
