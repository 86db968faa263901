"""Which space a request of the admin API is about."""

from __future__ import annotations

from edgequeues.core import ids
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidRequest, QueueNotFound
from edgequeues.http import params
from edgequeues.http.routes import Request
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.specs import Specs
from shards.namespace import Ref

Space = Ref[SpaceShard]


class Tenants:
    """From a request to its space: the one that it names, or the only one in which a spec holds."""

    def __init__(self, router: Router, held: Specs) -> None:
        self._router = router
        self._held = held

    def place(self, request: Request) -> tuple[str | None, str | None]:
        """The space and the queue that a request is about; None: it does not say. Raises as `space` does."""
        return self._named(params.parse(request.head.query)), request.params.get("name")

    async def space(self, request: Request) -> Space:
        """The space of a request. Raises InvalidRequest, InvalidId, QueueNotFound."""
        name = self._named(request.query)
        if name is None:
            spaces = self._held.spaces()
            held = f"; specs hold in {', '.join(spaces[:20])}" if spaces else "; a spec holds in none"
            raise InvalidRequest(f"tenant_id: say which space is meant{held}")
        found = await self._router.find_shard(Dxn(name, "").shard)
        if found is None:
            raise QueueNotFound(f"space {name}")
        return found

    def _named(self, query: params.Query) -> str | None:
        name = params.text(query, "tenant_id")
        if name is not None:
            return ids.check_space(name)
        spaces = self._held.spaces()
        return spaces[0] if len(spaces) == 1 else None
