"""The verbs that treat a queue as a log, and those about queues as such. Each is one turn."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from edgequeues.core import ids
from edgequeues.core.errors import ConfigConflict, EntryNotFound, InvalidRequest
from edgequeues.models import (
    ENTRIES_MAX,
    AppendAnswer,
    ConsumerConfig,
    Deleted,
    Entry,
    NewEntry,
    Page,
    Purge,
    QueueConfig,
    QueueInfo,
    QueueList,
    RangeQuery,
)
from edgequeues.space import consumers, deadletters, dedup, log, pages, queues, retention
from edgequeues.space.append import check_priorities
from edgequeues.space.base import SpaceBase
from edgequeues.space.log import Victim
from edgequeues.space.profiles import INBOUND
from edgequeues.space.queues import Queue
from edgequeues.space.watched import told
from shards.shard import grows, reads

KEYS_FORGOTTEN = 1_000  # idempotency keys of a queue that goes, in one turn
QUEUES_LISTED = 1_000  # in one page of the list


class LogVerbs(SpaceBase):
    """`queue` is a queue's id or its name, checked by the caller."""

    # -- entries ----------------------------------------------------------------------------------------

    @grows
    def append(self, queue: str, entries: Sequence[NewEntry], actor: str | None = None) -> AppendAnswer:
        """Append each object, or move it to the tail; all of them or, if this raises, none.

        An unknown queue is made. `actor` names the writer in versions. An object with identical data stays as it
        is, whatever else the entry says; one whose stated version is not above the stored one, too. What is beyond
        max_entries goes from the front. Raises EntryExists, VersionAhead, DuplicateId, NameTaken,
        InvalidRequest for a priority in a fifo queue.
        """
        row = self._find(queue) or self._make(queue, QueueConfig())
        check_priorities(row, entries)
        return self._put(row, entries, actor)

    @reads
    def read(self, queue: str, ask: RangeQuery) -> Page:
        """A page of a range; an unknown queue reads as empty. Raises InvalidCursor, CursorStore."""
        row = self._find(queue)
        if row is None:
            self._refuse_cursors(queue, ask.after, ask.before)
            return Page([], ask.after, ask.before, None)
        return pages.read(self.db, self._home(), row, ask, self._time())

    @reads
    def get(self, queue: str, object_id: str) -> Entry:
        """One object. Raises QueueNotFound, EntryNotFound."""
        row, at = self._require(queue), self._time()
        entry = log.get(self.db, row.queue_id, object_id, at, retention.aged_ts(row, at))
        if entry is None:
            raise EntryNotFound(f"object {object_id} in queue {queue}")
        return entry

    def delete_ids(self, queue: str, named: Sequence[str]) -> int:
        """Delete objects by id; return how many there were."""
        row, at = self._find(queue), self._time()
        if row is None:
            return 0
        past = retention.aged_ts(row, at)
        victims = log.named(self.db, row.queue_id, named, at=at, aged_ts=past)
        self._record_deletes(row, victims, named)
        return self._drop(row, victims)

    def delete_range(
        self, queue: str, after: str | None = None, before: str | None = None, through: str | None = None
    ) -> Deleted:
        """Delete the entries between cursors: `after` and `before` exclusive, `through` inclusive.

        A bounded number goes in one turn; `resume` and `through` of the answer continue it, to the tail of now.
        Raises InvalidCursor, CursorStore.
        """
        row, at = self._find(queue), self._time()
        if row is None:
            self._refuse_cursors(queue, after, before, through)
            return Deleted(0)
        low = 0 if after is None else self._position(row, after)
        last = row.tail if through is None else self._position(row, through)
        end = last if before is None else min(last, self._position(row, before) - 1)
        deleted, reached = self._clear(row, low, end, at, by_hand=True)
        if reached is None:
            return Deleted(deleted)
        return Deleted(deleted, self._cursor(row, reached), self._cursor(row, last))

    def purge(self, queue: str, *, begun: bool = False) -> Deleted:
        """Delete all there is now, a bounded part of it in a turn. Where `resume` of the answer is not None, call
        again with `begun`: what was appended since the first call stays.

        Raises QueueNotFound.
        """
        row, at = self._require(queue), self._time()
        if not begun:
            self._pass()
            queues.purge(self.db, row, at)
        deleted, reached = self._clear(row, 0, row.purge_through, at)
        if deleted or not begun:
            self._record("purge", row, deleted=deleted)
        return Deleted(deleted, None if reached is None else self._cursor(row, reached))

    def purge_state(self, queue: str) -> Purge:
        """How far the last purge has come. Raises QueueNotFound."""
        row = self._require(queue)
        left = any(one.position <= row.purge_through for one in log.oldest(self.db, row.queue_id, 1))
        return Purge(row.purge_ts, completed=row.purge_ts is not None and not left)

    def _clear(
        self, row: Queue, low: int, end: int, at: int, *, by_hand: bool = False
    ) -> tuple[int, int | None]:
        """Delete entries from above `low` up to `end`; return how many, and after which to go on, if at all.

        by_hand: have it on record, and which dead letters are among them.
        """
        past = retention.aged_ts(row, at)
        victims = log.between(self.db, row.queue_id, low, end, ENTRIES_MAX + 1, at=at, aged_ts=past)
        some = retention.within(victims[:ENTRIES_MAX], retention.SWEEP_BYTES)
        if by_hand:
            self._record_deletes(row, some)
        deleted = self._drop(row, some)
        return deleted, None if len(some) == len(victims) else some[-1].position

    def _record_deletes(self, row: Queue, victims: Sequence[Victim], named: Sequence[str] = ()) -> None:
        """Have it on record that dead letters, or messages of a work queue, are deleted. named: the ids, if by those.

        Those who use a queue as a log delete from it as they append.
        """
        letters = deadletters.among(self.db, [one.position for one in victims])
        if letters:
            self._record("delete_letters", row, count=len(letters), ids=told(letters))
        messages = sum(not one.expired for one in victims) - len(letters)
        if messages > 0 and row.kind == "work":
            ids = told(named) if messages == len(named) else None
            self._record("delete", row, count=messages, ids=ids)

    # -- queues -----------------------------------------------------------------------------------------

    def remove(self, queue: str) -> bool:
        """Forget a queue with all it holds, a bounded part of it in a turn; return whether there is more.

        Leases of its messages are finished by that. Raises QueueNotFound, ConfigConflict where a spec declares it.
        """
        row = self._require(queue)
        if row.app is not None:
            raise ConfigConflict(f"the spec of app {row.app} declares queue {row.name}")
        deleted, reached = self._clear(row, 0, row.tail, self._time())
        # Its keys go too: a queue that is made under the same id must not take them for its own.
        if reached is not None or dedup.forget(self.db, row.queue_id, KEYS_FORGOTTEN) == KEYS_FORGOTTEN:
            if deleted:
                self._record("remove", row, deleted=deleted, more=True)
            return True
        self._record("remove", row, deleted=deleted)
        for one in row.consumers:
            consumers.remove(self.db, one.consumer_id)
        queues.remove(self.db, row)
        self._forget_queues()
        return False

    @reads
    def stats(self, queue: str) -> QueueInfo:
        """The queue's settings, counts and tail. Raises QueueNotFound."""
        return self._info(self._require(queue))

    def queues(self, after: str, limit: int) -> QueueList:
        """Queues with ids above `after` ("" for all), in id order, at most `limit` and QUEUES_LISTED of them."""
        limit = min(limit, QUEUES_LISTED)
        self.write_back()
        rows = queues.page(self.db, after, limit + 1)
        resume = rows[limit - 1].queue_id if len(rows) > limit else None
        return QueueList([self._info(row) for row in rows[:limit]], resume)

    @grows
    def create(self, config: QueueConfig) -> QueueInfo:
        """Make a new queue, without consumers. Raises NameTaken, InvalidRequest."""
        return self._info(self._recorded(self._make(self._new_id(), config)))

    @grows
    def configure(self, queue: str, config: QueueConfig) -> QueueInfo:
        """Replace the settings of a queue, or make it. Its name, where `config` has none, is the one it is asked by.

        Raises ConfigConflict, NameTaken, InvalidRequest.
        """
        row = self._find(queue)
        if row is None:
            if config.kind == "work":
                rules = INBOUND.consumer if config.sessions else ConsumerConfig()
                return self._info(self._recorded(self._make_worked(queue, config, rules)))
            return self._info(self._recorded(self._make(queue, config)))
        if config.name is None and not ids.is_ulid(queue):
            config = msgspec.structs.replace(config, name=queue)
        before = row.config
        info = self._reconfigured(row, config)
        self._record_settings(row, before)
        return info

    @grows
    def reconfigure(self, queue: str, changes: dict[str, object]) -> QueueInfo:
        """Change some settings. Raises QueueNotFound, ConfigConflict, NameTaken, InvalidRequest."""
        row = self._require(queue)
        try:
            config = msgspec.convert(msgspec.structs.asdict(row.config) | changes, QueueConfig)
        except msgspec.ValidationError as error:
            raise InvalidRequest(str(error)) from error
        before = row.config
        info = self._reconfigured(row, config)
        self._record_settings(row, before)
        return info

    @reads
    def etag(self, queue: str) -> str:
        """Opaque text that differs whenever what a reader of the queue sees does; for an unknown queue, too."""
        home, at = self._home(), self._time()
        row = self._find(queue)
        if row is None:
            seen = f"{home.store_id} {queue}"
        else:
            # What is next to expire tells what has: unlike a count of it, it is one step in an index, and sweeping
            # does not change it.
            next_age = log.next_age(self.db, row.queue_id, retention.aged_ts(row, at))
            next_end = log.next_end(self.db, row.queue_id, at)
            seen = f"{home.store_id} {row.queue_id} {row.changes} {next_age} {next_end}"
        return blake2b(seen.encode(), digest_size=12).hexdigest()
