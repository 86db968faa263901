"""The rows of a space that are kept in memory while it is open: its own, and those of queues with their consumers.

Turns change their counters in memory; what several turns of a transaction counted is written down once.
"""

from __future__ import annotations

from edgequeues.core import ids
from edgequeues.core.errors import QueueNotFound
from edgequeues.core.leases import Signer
from edgequeues.space import consumers, queues, store
from edgequeues.space.queues import Queue
from edgequeues.space.store import Store
from shards.shard import Context, Shard

QUEUES_CACHED = 1_000


class Rows(Shard):
    """One object a row, however it is asked for."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._store: Store | None = None
        self._queues: dict[str, Queue] = {}  # by id, and by name if it has one
        self._changed: dict[str, Queue] = {}  # by id; it or a consumer of it is to be written down
        self._consumers: dict[int, str] = {}  # the queue of each

    def write_back(self) -> None:
        """Write down the counters that turns have changed."""
        if self._store is not None:
            store.save(self.db, self._store)
        for row in self._changed.values():
            queues.count(self.db, row)
            for consumer in row.consumers:
                consumers.save(self.db, consumer)
        self._changed.clear()
        if len(self._queues) > QUEUES_CACHED:  # not sooner: a turn may hold some of them
            self._queues.clear()

    def forget(self) -> None:
        """Read all rows afresh from now on."""
        self._store = None
        self._queues.clear()
        self._changed.clear()
        self._consumers.clear()

    def _forget_queues(self) -> None:
        """Read the rows of queues afresh from now on."""
        self.write_back()
        self._queues.clear()
        self._consumers.clear()

    # -- the space --------------------------------------------------------------------------------------

    def _home(self) -> Store:
        if self._store is None:
            self._store = store.load(self.db)
            assert self._store is not None
        return self._store

    def _time(self) -> int:
        return self._home().at(self.now_ms)

    def _new_id(self) -> str:
        return ids.new_ulid(self.now_ms, self.random)

    def _signer(self) -> Signer:
        home = self._home()
        assert home.lease_key is not None
        return Signer(home.lease_key, home.store_id)

    # -- queues -----------------------------------------------------------------------------------------

    def _find(self, queue: str) -> Queue | None:
        row = self._queues.get(queue)
        if row is None:
            row = queues.find(self.db, queue)
            if row is None:
                return None
            row = self._remember(row)
        return row

    def _remember(self, row: Queue) -> Queue:
        row = self._queues.setdefault(row.queue_id, row)
        if row.name is not None:
            self._queues[row.name] = row
        return row

    def _require(self, queue: str) -> Queue:
        row = self._find(queue)
        if row is None:
            raise QueueNotFound(f"queue {queue}")
        return row

    def _note(self, row: Queue) -> None:
        """Have the counters of a queue and its consumers written down."""
        self._changed[row.queue_id] = row

    def _queue_of(self, consumer_id: int) -> str:
        queue_id = self._consumers.get(consumer_id)
        if queue_id is None:
            queue_id = consumers.queue_of(self.db, consumer_id)
            assert queue_id is not None
            self._consumers[consumer_id] = queue_id
        return queue_id
