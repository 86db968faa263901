"""The verb of those who measure a space: what its queues hold, and what became of their messages so far."""

from __future__ import annotations

from typing import NamedTuple

from edgequeues.models import ConsumerInfo
from edgequeues.space import explaining, queues, retention
from edgequeues.space.base import SpaceBase
from edgequeues.space.timings import QueueTimes


class Measured(NamedTuple):
    """A queue. name: or its id, where it has none. times: None: nothing was handed out since the space was opened."""

    name: str
    entries: int
    bytes: int
    paused: bool
    consumers: list[ConsumerInfo]
    times: QueueTimes | None


class MeasuredPage(NamedTuple):
    """Queues in id order. resume: not None where there are more: the id to go on after."""

    queues: list[Measured]
    resume: str | None


class Measuring(SpaceBase):
    """Looks, and changes nothing."""

    def measured(self, after: str, limit: int) -> MeasuredPage:
        """Up to `limit` queues with ids above `after`."""
        self._settle()
        self.write_back()
        at, found = self._time(), []
        rows = queues.page(self.db, after, limit + 1)
        for row in rows[:limit]:
            entries, size = retention.live(self.db, row, at)
            infos = [explaining.counted(self.db, row, one, at) for one in row.consumers]
            times = self._times.get(row.queue_id)
            copied = None if times is None else times.copy()
            found.append(Measured(row.name or row.queue_id, entries, size, row.paused, infos, copied))
        return MeasuredPage(found, rows[limit - 1].queue_id if len(rows) > limit else None)
