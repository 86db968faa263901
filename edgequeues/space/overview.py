"""The verbs of those who watch over a space: how its queues are doing, and what was done to it. Each is one turn."""

from __future__ import annotations

import sys

from msgspec import Struct

from edgequeues.core.lifecycle import UNFINISHED, State
from edgequeues.models import ConsumerInfo, Kind
from edgequeues.space import audit, explaining, kinship, log, queues, results, retention, standings
from edgequeues.space.audit import Record
from edgequeues.space.base import SpaceBase
from edgequeues.space.queues import Queue
from edgequeues.space.results import Outcome
from shards.shard import reads

QUEUES_MAX = 100  # in one page
LOOKED_AT = 2_000  # queues whose names one turn compares
EXPIRED_MAX = 1_000  # messages of one queue that have expired and were not swept that a list looks at
LETTERS_MAX = 10_000  # dead letters of one queue that are counted
GRAVES_MAX = 100  # queues in which they are counted


class Doing(Struct, frozen=True):
    """How a queue is doing, for the consumer that has most to do.

    depth: messages that wait, be it for their time, for others, or for somebody to take them. in_flight: handed out.
    oldest: unix ms at which the oldest of both was appended; None: there is none. states: how many are in each.
    oldest_ready: unix ms since when the one has been ready that is next; None: there is none. entries: that are
    stored. per_minute: messages that came in the last minute, as far as the space was open then. came, acked: second
    by second, the oldest first. at: unix ms of all this.
    """

    queue_id: str
    name: str | None
    kind: Kind
    paused: bool
    entries: int
    depth: int
    in_flight: int
    oldest: int | None
    oldest_ready: int | None
    states: dict[State, int]
    per_minute: int
    came: list[int]
    acked: list[int]
    at: int


class Queues(Struct, frozen=True):
    """A page. resume: not None when there may be more: the id to go on after."""

    queues: list[Doing]
    resume: str | None


class Close(Struct, frozen=True):
    """A queue looked at more closely. letters: those that come from it and were not replayed, up to LETTERS_MAX.

    graves: the queues in which its dead letters lie, by name or id.
    """

    doing: Doing
    letters: int
    graves: list[str]


class Overview(SpaceBase):
    """`queue` is a queue's id or its name, checked by the caller."""

    def doing(self, after: str, limit: int, part: str | None = None) -> Queues:
        """Queues with ids above `after` ("" for all), in id order: at most `limit` and QUEUES_MAX of them.

        part: of their names; of LOOKED_AT queues then, so that there may be more though none was found.
        """
        self._settle()
        limit = min(limit, QUEUES_MAX)
        self.write_back()
        if part is not None:
            rows, resume = queues.like(self.db, part, after, limit, LOOKED_AT)
        else:
            rows = queues.page(self.db, after, limit + 1)
            resume = rows[limit - 1].queue_id if len(rows) > limit else None
        return Queues([self._doing(row) for row in rows[:limit]], resume)

    def close_up(self, queue: str) -> Close:
        """One queue. Raises QueueNotFound."""
        self._settle()
        row, at, count = self._require(queue), self._time(), 0
        graves = kinship.lies_in(self.db, row.queue_id, GRAVES_MAX)
        for one in graves:
            aged_ts = retention.aged_ts(self._require(one), at)
            left = LETTERS_MAX - count
            count += kinship.open_from(self.db, one, row.queue_id, left, at=at, aged_ts=aged_ts)
        names = [self._require(one).name or one for one in graves]
        return Close(self._doing(row), count, names)

    def watch_closely(self, queue: str) -> tuple[Close, list[ConsumerInfo]]:
        """One queue, and its consumers. Raises QueueNotFound."""
        found, row, at = self.close_up(queue), self._require(queue), self._time()
        return found, [explaining.counted(self.db, row, one, at) for one in row.consumers]

    @reads
    def audited(
        self, queue: str | None, after: int | None, limit: int, *, reverse: bool = False
    ) -> list[Record]:
        """What was done, the oldest first, from above number `after`; to one queue, by id or name, or to the space.

        reverse: the newest first, from below `after`. None: from the end that comes first. A queue that is gone is
        found by its last name, and by others that it had.
        """
        if after is None:
            after = sys.maxsize if reverse else 0
        if queue is None:
            return audit.page(self.db, after, limit, reverse=reverse)
        row = self._find(queue)
        if row is not None:
            return audit.of_queue(self.db, row.queue_id, after, limit, reverse=reverse)
        named = audit.of_name(self.db, queue, after, limit, reverse=reverse)
        return named or audit.of_queue(self.db, queue, after, limit, reverse=reverse)

    @reads
    def outcomes(self, queue: str, after: int, limit: int) -> list[Outcome]:
        """What came of messages, by position from above `after`, as long as it is kept. Raises QueueNotFound."""
        return results.page(self.db, self._require(queue).queue_id, after, limit, at=self._time())

    def _doing(self, row: Queue) -> Doing:
        at = self._time()
        first = log.oldest_live(self.db, row.queue_id, at, retention.aged_ts(row, at))
        entries = retention.about(self.db, row, at, EXPIRED_MAX)
        counted = [explaining.counted(self.db, row, one, at, EXPIRED_MAX) for one in row.consumers]
        depth, oldest, info = entries, first, None  # where nobody works it, all that is in it waits
        if counted:
            busiest = max(range(len(counted)), key=lambda number: _unfinished(counted[number]))
            info = counted[busiest]
            depth = _unfinished(info) - info.leased
            oldest = standings.oldest(self.db, row.consumers[busiest].consumer_id)
            if oldest is not None:  # it may have expired: then it is older than what has not
                oldest = None if first is None else max(oldest, first)
        came, acked = self._per_second(row)
        return Doing(
            queue_id=row.queue_id,
            name=row.name,
            kind=row.kind,
            paused=row.paused,
            entries=entries,
            depth=depth,
            in_flight=0 if info is None else info.leased,
            oldest=oldest,
            oldest_ready=None if info is None else info.oldest_ready,
            states={state: 0 if info is None else getattr(info, state) for state in UNFINISHED},
            per_minute=sum(came),
            came=came,
            acked=acked,
            at=at,
        )


def _unfinished(info: ConsumerInfo) -> int:
    return sum(getattr(info, state) for state in UNFINISHED)
