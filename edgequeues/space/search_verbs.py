"""The verb of those who look for messages, in whatever state they are. One turn, which changes nothing."""

from __future__ import annotations

from edgequeues.core.errors import ConsumerNotFound
from edgequeues.models import ENTRY_BYTES_MAX
from edgequeues.space import retention, searching
from edgequeues.space.base import SpaceBase
from edgequeues.space.searching import Found, Scope, Search
from edgequeues.spec.conditions import of_messages
from shards.shard import reads


class SearchVerbs(SpaceBase):
    """`queue` is a queue's id or its name, checked by the caller."""

    @reads
    def search(self, queue: str, ask: Search, limit: int, bytes_max: int = ENTRY_BYTES_MAX) -> Found:
        """Entries that are stored, by position, with where each stands with the consumers.

        A bounded number is looked at, so there may be fewer than `limit`, even none, with more behind them. They end
        at about `bytes_max` of data, one at least. Raises QueueNotFound, ConsumerNotFound, InvalidRequest for an
        expression that is none, or that would take too long.
        """
        row, at = self._require(queue), self._time()
        consumers = [one for one in row.consumers if ask.consumer in (None, one.name)]
        if ask.consumer is not None and not consumers:
            raise ConsumerNotFound(f"consumer {ask.consumer} of queue {row.name or row.queue_id}")
        asked = None if ask.where is None else of_messages(ask.where, row.rules)
        scope = Scope(row.queue_id, at, retention.aged_ts(row, at), consumers)
        return searching.search(self.db, scope, ask, asked, limit, bytes_max)
