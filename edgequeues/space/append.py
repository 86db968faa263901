"""What becomes of each object of an append: new, same, moved to the tail, or stale."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import apsw

from edgequeues.core import ids, versions
from edgequeues.core.errors import DuplicateId, EntryExists, InvalidRequest
from edgequeues.models import PRIORITY, Appended, NewEntry
from edgequeues.space import log, retention
from edgequeues.space.log import Row, Victim
from edgequeues.space.queues import Queue
from edgequeues.space.store import Store


class Append:
    """One append to one queue, at the store's time `at` (unix ms), by the writer `actor`.

    `run` inserts and deletes rows and raises the counters of `store` and `queue` in memory; writing those down is
    left to do. `rows` holds what went in, `replaced` the older versions that went out.
    """

    def __init__(self, db: apsw.Connection, store: Store, queue: Queue, at: int, actor: str) -> None:
        self.db = db
        self.store = store
        self.queue = queue
        self.at = at
        self.actor = actor
        self.rows: list[Row] = []
        self.replaced: list[Victim] = []

    def run(self, entries: Sequence[NewEntry], random: Random) -> list[Appended]:
        """Append all, in order. Raises DuplicateId, EntryExists, VersionAhead, InvalidRequest."""
        named = self._named(entries, random)
        results = self._all_new(entries, named)
        if results is None:
            results = self._one_by_one(entries, named)
        if self.rows:
            self.queue.entries += len(self.rows)
            self.queue.bytes += sum([row.size for row in self.rows])
            self.queue.changes += 1
            self.queue.tail = self.store.position
        return results

    def _named(self, entries: Sequence[NewEntry], random: Random) -> list[str]:
        """The id of each: its own, else a new one."""
        given = [entry.object_id for entry in entries if entry.object_id is not None]
        missing = len(entries) - len(given)
        if not missing:
            return given
        made = iter(ids.new_ulids(self.at, missing, random))
        return [next(made) if entry.object_id is None else entry.object_id for entry in entries]

    @property
    def expires_first(self) -> int | None:
        """Unix ms at which the first of the rows that went in expires."""
        ends = [row.expires for row in self.rows if row.expires is not None]
        if self.rows and self.queue.max_age_ms is not None:
            ends.append(self.at + self.queue.max_age_ms)
        return min(ends, default=None)

    def _all_new(self, entries: Sequence[NewEntry], named: list[str]) -> list[Appended] | None:
        """Insert everything in one statement; None, and nothing done, if that is not all there is to it."""
        if any(entry.if_version is not None for entry in entries):
            return None
        lamport, before = self.store.lamport, self.store.position
        results: list[Appended] = []
        rows: list[Row] = []
        for offset, (entry, object_id) in enumerate(zip(entries, named, strict=True), 1):
            version = versions.render(lamport + offset, self.actor)
            rows.append(self._row(before + offset, version, object_id, entry, self.at))
            results.append(Appended(object_id, before + offset, version, "new"))
        inserted = log.insert_absent(self.db, rows)
        if inserted < len(rows):
            if inserted:
                log.retract(self.db, before)
            return None
        self.store.position += len(rows)
        self.store.lamport += len(rows)
        self.rows = rows
        return results

    def _one_by_one(self, entries: Sequence[NewEntry], named: list[str]) -> list[Appended]:
        if len(set(named)) < len(named):
            twice = next(name for name in named if named.count(name) > 1)
            raise DuplicateId(f"object {twice}")
        results = [self._one(entry, object_id) for entry, object_id in zip(entries, named, strict=True)]
        retention.drop(self.db, self.queue, self.replaced)
        self.queue.dropped.clear()  # the caller sees to them
        inserted = log.insert_absent(self.db, self.rows)
        assert inserted == len(self.rows)
        return results

    def _one(self, entry: NewEntry, object_id: str) -> Appended:
        """Decide about one object; note its row for insertion and what that row replaces."""
        stated = entry.if_version
        counter = None if stated is None else versions.check_stated(stated, self.store.lamport)
        stored = log.find(self.db, self.queue.queue_id, object_id, _size(entry.data), entry.data)
        expired = stored is not None and retention.expired(
            self.queue, stored.updated, stored.expires, self.at
        )
        if stored is not None and not expired:
            if stored.identical:
                return Appended(object_id, stored.position, stored.version, "same")
            if not self.queue.mutable:
                raise EntryExists(f"object {object_id}")
            if stated is not None and stated <= stored.version:
                return Appended(object_id, stored.position, stored.version, "stale")
        if stored is not None:
            self.replaced.append(Victim(stored.position, stored.size, expired))
        self.store.position += 1
        if stated is None or counter is None:
            self.store.lamport += 1
            version = versions.render(self.store.lamport, self.actor)
        else:
            self.store.lamport = max(self.store.lamport, counter)
            version = stated
        moved = stored is not None and not expired
        created = stored.created if stored is not None and moved else self.at
        self.rows.append(self._row(self.store.position, version, object_id, entry, created))
        return Appended(object_id, self.store.position, version, "moved" if moved else "new")

    def _row(self, position: int, version: str, object_id: str, entry: NewEntry, created: int) -> Row:
        return Row(
            position,
            version,
            object_id,
            self.queue.queue_id,
            entry.type,
            created,
            self.at,
            None if entry.ttl_ms is None else self.at + entry.ttl_ms,
            entry.key,
            entry.headers,
            _size(entry.data),
            entry.data,
            self._due(entry),
            entry.priority,
            entry.content_type,
        )

    def _due(self, entry: NewEntry) -> int | None:
        """Unix ms before which it is not handed out. What is due already says nothing."""
        due = entry.due
        if due is None:
            due = self.at + (self.queue.delay_ms if entry.delay_ms is None else entry.delay_ms)
        return due if due > self.at else None


def check_priorities(queue: Queue, entries: Sequence[NewEntry]) -> None:
    """Raises InvalidRequest where one asks to be handed out before others that it stands behind."""
    fifo = any(one.config.ordering == "fifo" for one in queue.consumers)
    if fifo and any(entry.priority != PRIORITY for entry in entries):
        raise InvalidRequest("priority: a fifo queue keeps its order")


def _size(data: str) -> int:
    """Bytes of `data` in UTF-8."""
    return len(data) if data.isascii() else len(data.encode())
