"""What `GET /metrics` tells: what was counted, and a look at the queues of spaces that are open, within a bound.

Looking opens no file, makes none, and keeps none open. A space that does not answer is left out.
"""

from __future__ import annotations

import logging

from msgspec.structs import asdict

from edgequeues.core import dxn as dxns
from edgequeues.core.errors import EdgeQueuesError, InvalidId
from edgequeues.metrics import STATES, ConsumerLevels, Metrics, QueueLevels, Seen
from edgequeues.models import ConsumerInfo
from edgequeues.router import Router
from edgequeues.space.measuring import Measured
from edgequeues.space.shard import SpaceShard
from shards.errors import ShardError
from shards.namespace import Ref

TOGETHER = 20  # queues that one turn looks at

log = logging.getLogger("edgequeues.http")


class Scrape:
    """Looks for as many as `queues_max` queues, space by space in the order of their names."""

    def __init__(self, router: Router, counted: Metrics, queues_max: int) -> None:
        self._router = router
        self._counted = counted
        self._queues_max = queues_max

    async def text(self) -> bytes:
        """All metrics, in the format `edgequeues.metrics.MEDIA`."""
        found: list[QueueLevels] = []
        cut = False
        for ref in self._router.open_shards():
            left = self._queues_max - len(found)
            try:
                some, more = await self._of_space(ref, left)
            except (EdgeQueuesError, ShardError) as error:
                log.warning("space %s is not in the metrics: %s", ref.name, error)
                continue
            found += some
            cut = cut or more
        return self._counted.text(Seen(self._router.levels(), found, cut))

    async def _of_space(self, ref: Ref[SpaceShard], limit: int) -> tuple[list[QueueLevels], bool]:
        """Up to `limit` queues of a space, and whether there are more."""
        try:
            space, tag = dxns.from_shard(ref.name)
        except InvalidId:
            return [], False
        label = space if tag == "data" else f"{tag}:{space}"
        found: list[QueueLevels] = []
        after: str | None = ""
        while after is not None and len(found) < limit:
            page = await ref.look(SpaceShard.measured, after, min(TOGETHER, limit - len(found)))
            if page is None:
                return found, False
            found += [_levels(label, one) for one in page.queues]
            after = page.resume
        return found, after is not None and self._queues_max > 0


def _levels(space: str, one: Measured) -> QueueLevels:
    times = one.times
    return QueueLevels(
        space,
        one.name,
        one.entries,
        one.bytes,
        one.paused,
        [_consumer(info) for info in one.consumers],
        None if times is None else times.waited,
        None if times is None else times.handled,
    )


def _consumer(info: ConsumerInfo) -> ConsumerLevels:
    totals = {name[6:]: value for name, value in asdict(info).items() if name.startswith("total_")}
    age_ms = info.oldest_ready_age_ms
    states = {state: getattr(info, state) for state in STATES}
    return ConsumerLevels(info.name, states, totals, None if age_ms is None else age_ms / 1_000)
