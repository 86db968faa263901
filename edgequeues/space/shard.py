"""One space: its verbs, each of which is one turn. What is stored where is the table modules' business."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import ClassVar

import msgspec

from edgequeues.core import cursors, ids
from edgequeues.core.errors import (
    ConfigConflict,
    EntryNotFound,
    InvalidId,
    InvalidRequest,
    NameTaken,
    QueueNotFound,
)
from edgequeues.models import (
    ENTRIES_MAX,
    AppendAnswer,
    Deleted,
    Entry,
    NewEntry,
    Page,
    QueueConfig,
    QueueInfo,
    QueueList,
    RangeQuery,
)
from edgequeues.space import log, pages, queues, retention, store
from edgequeues.space.append import Append
from edgequeues.space.log import Victim
from edgequeues.space.queues import Queue
from edgequeues.space.schema import MIGRATIONS
from edgequeues.space.store import Store
from shards.shard import Context, Shard, grows

QUEUES_CACHED = 1_000  # rows of `queues` kept in memory
QUEUES_LISTED = 1_000  # in one page of the list
SWEEP_PAUSE_MS = 1_000  # between sweeps, so that many short lives do not mean as many turns
_UNREAD = -1  # the alarm as remembered, before it was looked up


class SpaceShard(Shard):
    """The queues of one space. `queue` is a queue's id or its name, checked by the caller."""

    migrations: ClassVar[Sequence[str]] = MIGRATIONS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._store: Store | None = None
        self._queues: dict[str, Queue] = {}  # by id, and by name if it has one
        self._alarm_ms: int | None = _UNREAD

    # -- life -------------------------------------------------------------------------------------------

    def opened(self) -> None:
        """Make the store's row on the first opening. A file that was copied or restored becomes another store."""
        row = store.load(self.db)
        if row is None:
            store.create(self.db, self._new_id(), self.file_id, self.now_ms)
        elif self.file_id and self.file_id != row.file_id:
            # Whatever cursors there are may point at positions that the other copy gave to other entries.
            store.identify(self.db, self._new_id() if row.file_id else row.store_id, self.file_id)
        self.forget()

    def forget(self) -> None:
        """Read rows afresh from now on."""
        self._store = None
        self._queues.clear()
        self._alarm_ms = _UNREAD

    def delete_all(self) -> None:
        """Delete every queue and go on as another store, since positions start again."""
        super().delete_all()
        store.create(self.db, self._new_id(), self.file_id, self.now_ms)
        self.forget()

    def alarm(self) -> None:
        """Sweep the queues that are longest due, a bounded number of rows; set the alarm to when there is more."""
        self._alarm_ms = None
        at = self._time()
        self._pass(at)
        due = queues.overdue(self.db, at, retention.SWEEP_QUEUES)
        for row in due:
            queue = self._queues.get(row.queue_id, row)
            rows_max, bytes_max = retention.SWEEP_ROWS // len(due), retention.SWEEP_BYTES // len(due)
            if retention.sweep(self.db, queue, at, rows_max=rows_max, bytes_max=bytes_max):
                queues.count(self.db, queue)
        next_ms = queues.soonest(self.db)
        if next_ms is not None:
            self._sweep_by(next_ms, urgent=next_ms <= at)

    # -- entries ----------------------------------------------------------------------------------------

    @grows
    def append(self, queue: str, entries: Sequence[NewEntry], actor: str | None = None) -> AppendAnswer:
        """Append each object, or move it to the tail; all of them or, if this raises, none.

        An unknown queue is made. `actor` names the writer in versions. An object with identical data stays as it
        is, whatever else the entry says; one whose stated version is not above the stored one, too. What is beyond
        max_entries goes from the front. Raises EntryExists, VersionAhead, DuplicateId, NameTaken.
        """
        row = self._find(queue) or self._make(queue, QueueConfig())
        home, at = self._home(), self._time()
        append = Append(self.db, home, row, at, actor or home.actor)
        results = append.run(entries, self.random)
        if append.rows:
            self._appended(row, append)
            store.save(self.db, home)
        return AppendAnswer(results, cursors.encode(home.store_id, row.queue_id, row.tail))

    def read(self, queue: str, ask: RangeQuery) -> Page:
        """A page of a range; an unknown queue reads as empty. Raises InvalidCursor, CursorStore."""
        row = self._find(queue)
        if row is None:
            self._refuse_cursors(queue, ask.after, ask.before)
            return Page([], ask.after, ask.before, None)
        return pages.read(self.db, self._home(), row, ask, self._time())

    def get(self, queue: str, object_id: str) -> Entry:
        """One object. Raises QueueNotFound, EntryNotFound."""
        row, at = self._require(queue), self._time()
        entry = log.get(self.db, row.queue_id, object_id, at, retention.aged_ts(row, at))
        if entry is None:
            raise EntryNotFound(f"object {object_id} in queue {queue}")
        return entry

    def delete_ids(self, queue: str, ids: Sequence[str]) -> int:
        """Delete objects by id; return how many there were."""
        row, at = self._find(queue), self._time()
        if row is None:
            return 0
        past = retention.aged_ts(row, at)
        victims = log.named(self.db, row.queue_id, ids, at=at, aged_ts=past)
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
        victims = log.between(
            self.db, row.queue_id, low, end, ENTRIES_MAX + 1, at=at, aged_ts=retention.aged_ts(row, at)
        )
        some = retention.within(victims[:ENTRIES_MAX], retention.SWEEP_BYTES)
        deleted = self._drop(row, some)
        if len(some) == len(victims):
            return Deleted(deleted)
        return Deleted(deleted, self._cursor(row, some[-1].position), self._cursor(row, last))

    # -- queues -----------------------------------------------------------------------------------------

    def stats(self, queue: str) -> QueueInfo:
        """The queue's settings, counts and tail. Raises QueueNotFound."""
        return self._info(self._require(queue))

    def queues(self, after: str, limit: int) -> QueueList:
        """Queues with ids above `after` ("" for all), in id order, at most `limit` and QUEUES_LISTED of them."""
        limit = min(limit, QUEUES_LISTED)
        rows = queues.page(self.db, after, limit + 1)
        resume = rows[limit - 1].queue_id if len(rows) > limit else None
        return QueueList([self._info(row) for row in rows[:limit]], resume)

    @grows
    def configure(self, queue: str, config: QueueConfig) -> QueueInfo:
        """Replace the settings of a queue, or make it. Its name, where `config` has none, is the one it is asked by.

        Raises ConfigConflict, NameTaken, InvalidRequest.
        """
        row = self._find(queue)
        if row is None:
            if config.kind != "log":
                raise InvalidRequest("kind: only log queues can be made")
            return self._info(self._make(queue, config))
        if config.name is None and not ids.is_ulid(queue):
            config = msgspec.structs.replace(config, name=queue)
        return self._reconfigured(row, config)

    @grows
    def reconfigure(self, queue: str, changes: dict[str, object]) -> QueueInfo:
        """Change some settings. Raises QueueNotFound, ConfigConflict, NameTaken, InvalidRequest."""
        row = self._require(queue)
        try:
            config = msgspec.convert(msgspec.structs.asdict(row.config) | changes, QueueConfig)
        except msgspec.ValidationError as error:
            raise InvalidRequest(str(error)) from error
        return self._reconfigured(row, config)

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

    # -- rows -------------------------------------------------------------------------------------------

    def _home(self) -> Store:
        if self._store is None:
            self._store = store.load(self.db)
            assert self._store is not None
        return self._store

    def _time(self) -> int:
        return self._home().at(self.now_ms)

    def _pass(self, at: int) -> None:
        """Write down that it has been unix ms `at`: what was decided by it must not be undone by an earlier time."""
        home = self._home()
        if home.clock_ms < at:
            home.clock_ms = at
            store.save(self.db, home)

    def _new_id(self) -> str:
        return ids.new_ulid(self.now_ms, self.random)

    def _find(self, queue: str) -> Queue | None:
        row = self._queues.get(queue)
        if row is None:
            row = queues.find(self.db, queue)
            if row is None:
                return None
            row = self._remember(row)
        return row

    def _remember(self, row: Queue) -> Queue:
        if len(self._queues) >= QUEUES_CACHED:
            self._queues.clear()
        row = self._queues.setdefault(row.queue_id, row)  # one object a row, whichever way it was asked for
        if row.name is not None:
            self._queues[row.name] = row
        return row

    def _require(self, queue: str) -> Queue:
        row = self._find(queue)
        if row is None:
            raise QueueNotFound(f"queue {queue}")
        return row

    def _make(self, queue: str, config: QueueConfig) -> Queue:
        queue_id = queue
        if not ids.is_ulid(queue):
            if config.name not in (None, queue):
                raise InvalidRequest(f"name: there is no queue {queue} to be renamed {config.name}")
            queue_id, config = self._new_id(), msgspec.structs.replace(config, name=queue)
        self._check_name(config.name, queue_id)
        return self._remember(queues.insert(self.db, queue_id, config, self._time()))

    def _check_name(self, name: str | None, queue_id: str) -> None:
        if name is None:
            return
        try:
            ids.check_name(name)
        except InvalidId as error:
            raise InvalidRequest(f"name: {error.detail}") from error
        if queues.owner(self.db, name) not in (None, queue_id):
            raise NameTaken(f"queue name {name}")

    def _reconfigured(self, row: Queue, config: QueueConfig) -> QueueInfo:
        if config.kind != row.kind:
            raise ConfigConflict(f"kind: {row.queue_id} is a {row.kind} queue")
        if config != row.config:
            self._check_name(config.name, row.queue_id)
            at = self._time()
            self._pass(at)
            # What has expired by the old max_age_ms stays so under a longer one, swept or not.
            queues.configure(self.db, row, config, retention.aged_ts(row, at))
            queues.wake(self.db, row, retention.next_due(self.db, row, at))
            if row.sweep_ts is not None:
                self._sweep_by(row.sweep_ts, urgent=row.due(at))
            self._queues.clear()  # under the old name, too
        return self._info(row)

    def _info(self, row: Queue) -> QueueInfo:
        at = self._time()
        entries, size = retention.live(self.db, row, at)
        oldest = log.oldest_live(self.db, row.queue_id, at, retention.aged_ts(row, at))
        tail = self._cursor(row, row.tail)
        return QueueInfo(row.queue_id, row.config, row.created_ts, entries, size, oldest, tail)

    def _appended(self, row: Queue, append: Append) -> None:
        """Write the counters down, remove what is too much, and see to the sweep."""
        retention.hold(self.db, row, append.at, len(append.rows))
        queues.count(self.db, row)
        first_ms = append.expires_first
        if first_ms is not None and (row.sweep_ts is None or first_ms < row.sweep_ts):
            queues.wake(self.db, row, first_ms)
        if row.sweep_ts is not None:
            self._sweep_by(row.sweep_ts, urgent=row.excess > 0)
        self.emit(row.queue_id)
        if row.name is not None:
            self.emit(row.name)

    def _drop(self, row: Queue, victims: Sequence[Victim]) -> int:
        deleted = retention.drop(self.db, row, victims)
        if victims:
            # Had they all expired, too: a clock that steps back would show some again, but not these.
            row.changes += 1
            queues.count(self.db, row)
        return deleted

    def _sweep_by(self, sweep_ts: int, *, urgent: bool) -> None:
        """Have the alarm go off by the store's time `sweep_ts`, or a little later where nothing is urgent."""
        due_ms = self.now_ms
        if not urgent:
            due_ms += max(sweep_ts - self._time(), SWEEP_PAUSE_MS)
        if self._alarm_ms == _UNREAD:
            self._alarm_ms = self.get_alarm()
        if self._alarm_ms is None or due_ms < self._alarm_ms:
            self.set_alarm(due_ms)
            self._alarm_ms = due_ms

    # -- cursors ----------------------------------------------------------------------------------------

    def _cursor(self, row: Queue, position: int) -> str:
        return cursors.encode(self._home().store_id, row.queue_id, position)

    def _position(self, row: Queue, cursor: str) -> int:
        return cursors.decode(self._home().store_id, row.queue_id, cursor)

    def _refuse_cursors(self, queue: str, *texts: str | None) -> None:
        """No cursor belongs to a queue that is not there. Raises InvalidCursor, CursorStore."""
        for text in texts:
            if text is not None:
                cursors.decode(self._home().store_id, queue, text)
