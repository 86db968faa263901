"""Table `queues`: each queue's configuration, its counters, and when sweeping it may have work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw
from msgspec import Struct

from edgequeues.core import ids
from edgequeues.models import Kind, QueueConfig

DDL = """
CREATE TABLE queues (
  queue_id    TEXT    NOT NULL PRIMARY KEY,
  name        TEXT,
  name_snake  TEXT,              -- the form under which names are unique
  kind        TEXT    NOT NULL CHECK (kind IN ('log', 'work')),
  max_age_ms  INTEGER CHECK (max_age_ms > 0),
  max_entries INTEGER CHECK (max_entries > 0),
  mutable     INTEGER NOT NULL CHECK (mutable IN (0, 1)),
  created_ts  INTEGER NOT NULL,  -- unix ms
  entries     INTEGER NOT NULL CHECK (entries >= 0),  -- rows of the queue, expired ones not yet swept included
  bytes       INTEGER NOT NULL CHECK (bytes >= 0),    -- of their data, in UTF-8
  changes     INTEGER NOT NULL,  -- grows with every change but the sweeping of expired rows
  tail        INTEGER NOT NULL,  -- the last position given in this queue, 0 if none was
  aged_ts     INTEGER NOT NULL,  -- unix ms; appended then or earlier: expired, whatever max_age_ms is now
  sweep_ts    INTEGER,           -- unix ms; sweeping may have work then, never has any before. NULL: never
  dlq_of      TEXT,              -- the queue whose dead letters these are
  CHECK ((name IS NULL) = (name_snake IS NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX queues_name  ON queues (name_snake) WHERE name_snake IS NOT NULL;
CREATE INDEX        queues_sweep ON queues (sweep_ts)   WHERE sweep_ts IS NOT NULL;
"""
COLUMNS = (
    "queue_id, name, kind, max_age_ms, max_entries, mutable, created_ts,"
    " entries, bytes, changes, tail, aged_ts, sweep_ts"
)
BY_ID = f"SELECT {COLUMNS} FROM queues WHERE queue_id = ?"
BY_NAME = f"SELECT {COLUMNS} FROM queues WHERE name_snake = ? AND name = ?"
OWNER = "SELECT queue_id FROM queues WHERE name_snake = ?"
LIST = f"SELECT {COLUMNS} FROM queues WHERE queue_id > ? ORDER BY queue_id LIMIT ?"
DUE = f"SELECT {COLUMNS} FROM queues WHERE sweep_ts <= ? ORDER BY sweep_ts LIMIT ?"
SOONEST = "SELECT min(sweep_ts) FROM queues WHERE sweep_ts IS NOT NULL"
INSERT = (
    "INSERT INTO queues (queue_id, name, name_snake, kind, max_age_ms, max_entries, mutable, created_ts,"
    " entries, bytes, changes, tail, aged_ts, sweep_ts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, -1, NULL)"
)
COUNT = "UPDATE queues SET entries = ?, bytes = ?, changes = ?, tail = ? WHERE queue_id = ?"
WAKE = "UPDATE queues SET sweep_ts = ? WHERE queue_id = ?"
CONFIGURE = (
    "UPDATE queues SET name = ?, name_snake = ?, max_age_ms = ?, max_entries = ?, mutable = ?,"
    " aged_ts = ?, changes = ? WHERE queue_id = ?"
)


class Queue(Struct):
    """A row in memory. Change it, then call the function that writes what you changed."""

    queue_id: str
    name: str | None
    kind: Kind
    max_age_ms: int | None
    max_entries: int | None
    mutable: bool
    created_ts: int
    entries: int
    bytes: int
    changes: int
    tail: int
    aged_ts: int
    sweep_ts: int | None

    @property
    def config(self) -> QueueConfig:
        """The settings alone."""
        return QueueConfig(self.name, self.kind, self.max_age_ms, self.max_entries, self.mutable)

    @property
    def excess(self) -> int:
        """Rows beyond max_entries; 0 or less: none."""
        return 0 if self.max_entries is None else self.entries - self.max_entries

    def due(self, at: int) -> bool:
        """May rows have expired at unix ms `at`, or be too many, that are not yet swept?"""
        return self.sweep_ts is not None and self.sweep_ts <= at


def find(db: apsw.Connection, queue: str) -> Queue | None:
    """The queue with this id or name."""
    if ids.is_ulid(queue):
        return _queue(db.execute(BY_ID, (queue,)).get)
    return _queue(db.execute(BY_NAME, (ids.snake(queue), queue)).get)


def owner(db: apsw.Connection, name: str) -> str | None:
    """Id of the queue that has this name, or one that counts as the same."""
    queue_id: str | None = db.execute(OWNER, (ids.snake(name),)).get
    return queue_id


def page(db: apsw.Connection, after: str, limit: int) -> list[Queue]:
    """Up to `limit` queues with ids above `after`, in id order."""
    return _queues(db.execute(LIST, (after, limit)).fetchall())


def overdue(db: apsw.Connection, at: int, limit: int) -> list[Queue]:
    """Up to `limit` queues whose sweep is due at unix ms `at`, longest due first."""
    return _queues(db.execute(DUE, (at, limit)).fetchall())


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms of the next sweep of any queue."""
    due_ms: int | None = db.execute(SOONEST).get
    return due_ms


def insert(db: apsw.Connection, queue_id: str, config: QueueConfig, now_ms: int) -> Queue:
    """Make an empty queue."""
    snake = None if config.name is None else ids.snake(config.name)
    settings = (config.max_age_ms, config.max_entries, config.mutable)
    db.execute(INSERT, (queue_id, config.name, snake, config.kind, *settings, now_ms))
    return Queue(queue_id, config.name, config.kind, *settings, now_ms, 0, 0, 0, 0, -1, None)


def count(db: apsw.Connection, queue: Queue) -> None:
    """Write entries, bytes, changes and tail down."""
    db.execute(COUNT, (queue.entries, queue.bytes, queue.changes, queue.tail, queue.queue_id))


def wake(db: apsw.Connection, queue: Queue, sweep_ts: int | None) -> None:
    """Set the time of the next sweep, if it is not set so already."""
    if queue.sweep_ts != sweep_ts:
        queue.sweep_ts = sweep_ts
        db.execute(WAKE, (sweep_ts, queue.queue_id))


def configure(db: apsw.Connection, queue: Queue, config: QueueConfig, aged_ts: int) -> None:
    """Replace the settings (the kind stays), and set `aged_ts`."""
    queue.name, queue.mutable = config.name, config.mutable
    queue.max_age_ms, queue.max_entries = config.max_age_ms, config.max_entries
    queue.aged_ts = aged_ts
    queue.changes += 1
    snake = None if config.name is None else ids.snake(config.name)
    settings = (config.max_age_ms, config.max_entries, config.mutable)
    db.execute(CONFIGURE, (config.name, snake, *settings, aged_ts, queue.changes, queue.queue_id))


def _queue(row: Any) -> Queue | None:
    if row is None:
        return None
    queue = Queue(*row)
    queue.mutable = bool(queue.mutable)
    return queue


def _queues(rows: Iterable[Any]) -> list[Queue]:
    found = map(_queue, rows)
    return [queue for queue in found if queue is not None]
