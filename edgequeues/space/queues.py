"""Table `queues`: each queue's configuration, its counters, and when sweeping it may have work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw
from msgspec import Struct

from edgequeues.core import ids
from edgequeues.models import Kind, OnAck, QueueConfig
from edgequeues.space import consumers
from edgequeues.space.consumers import DEFAULT, Consumer
from edgequeues.space.log import Victim
from edgequeues.spec import judging, working
from edgequeues.spec.judging import Judge
from edgequeues.spec.working import Work

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
STEP_2 = """
ALTER TABLE queues ADD COLUMN on_ack          TEXT    NOT NULL DEFAULT 'keep' CHECK (on_ack IN ('keep', 'delete'));
ALTER TABLE queues ADD COLUMN retain_acked_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN delay_ms        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN depth_max       INTEGER;
ALTER TABLE queues ADD COLUMN paused          INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN configured_ts   INTEGER;  -- unix ms; NULL: not since it was made
ALTER TABLE queues ADD COLUMN purge_ts        INTEGER;  -- unix ms at which the last purge began
ALTER TABLE queues ADD COLUMN purge_through   INTEGER NOT NULL DEFAULT 0;  -- and the tail then
CREATE UNIQUE INDEX queues_dlq_of ON queues (dlq_of) WHERE dlq_of IS NOT NULL;
"""
STEP_3 = """
ALTER TABLE queues ADD COLUMN app   TEXT;  -- whose spec declares it
ALTER TABLE queues ADD COLUMN rules TEXT;  -- and how: JSON of a QueueSpec
CREATE INDEX queues_app ON queues (app) WHERE app IS NOT NULL;
"""
STEP_4 = """
ALTER TABLE queues ADD COLUMN command TEXT;  -- what its messages are for, if declared: JSON of a CommandSpec
"""
STEP_6 = """
ALTER TABLE queues ADD COLUMN sessions INTEGER NOT NULL DEFAULT 0 CHECK (sessions IN (0, 1));
CREATE INDEX queues_sessions ON queues (queue_id) WHERE sessions = 1;
"""
_SETTINGS = "max_age_ms, max_entries, mutable, on_ack, retain_acked_ms, delay_ms, depth_max, paused"
COLUMNS = (
    "queue_id, name, kind, max_age_ms, max_entries, mutable, created_ts,"
    " entries, bytes, changes, tail, aged_ts, sweep_ts, on_ack, retain_acked_ms, delay_ms, depth_max, paused,"
    " configured_ts, purge_ts, purge_through, app, rules, command, sessions"
)
BY_ID = f"SELECT {COLUMNS} FROM queues WHERE queue_id = ?"
BY_NAME = f"SELECT {COLUMNS} FROM queues WHERE name_snake = ? AND name = ?"
OWNER = "SELECT queue_id FROM queues WHERE name_snake = ?"
LIST = f"SELECT {COLUMNS} FROM queues WHERE queue_id > ? ORDER BY queue_id LIMIT ?"
# Those whose name, or id where they have none, holds a text, among the next so many.
LIST_LIKE = (
    f"SELECT {COLUMNS} FROM queues WHERE queue_id > ? AND queue_id <= ?"
    " AND instr(lower(coalesce(name, queue_id)), ?) > 0 ORDER BY queue_id LIMIT ?"
)
WINDOW = "SELECT queue_id FROM queues WHERE queue_id > ? ORDER BY queue_id LIMIT 1 OFFSET ?"
DUE = f"SELECT {COLUMNS} FROM queues WHERE sweep_ts <= ? ORDER BY sweep_ts LIMIT ?"
SOONEST = "SELECT min(sweep_ts) FROM queues WHERE sweep_ts IS NOT NULL"
INSERT = (
    f"INSERT INTO queues (queue_id, name, name_snake, kind, sessions, created_ts, {_SETTINGS},"
    " entries, bytes, changes, tail, aged_ts, sweep_ts)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, -1, NULL)"
)
DEAD_LETTERS_OF = "SELECT queue_id FROM queues WHERE dlq_of = ?"
SET_DEAD_LETTERS_OF = "UPDATE queues SET dlq_of = ? WHERE queue_id = ?"
REMOVE = "DELETE FROM queues WHERE queue_id = ?"
COUNT = "UPDATE queues SET entries = ?, bytes = ?, changes = ?, tail = ? WHERE queue_id = ?"
WAKE = "UPDATE queues SET sweep_ts = ? WHERE queue_id = ?"
CONFIGURE = (
    f"UPDATE queues SET (name, name_snake, {_SETTINGS}, aged_ts, changes, configured_ts)"
    " = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE queue_id = ?"
)
OF_APP = f"SELECT {COLUMNS} FROM queues WHERE app = ? ORDER BY queue_id"
DECLARED = f"SELECT {COLUMNS} FROM queues WHERE app IS NOT NULL ORDER BY app, queue_id"
ANY_SESSIONS = "SELECT 1 FROM queues WHERE sessions = 1 LIMIT 1"
GOVERN = "UPDATE queues SET app = ?, rules = ?, command = ? WHERE queue_id = ?"
PURGE = "UPDATE queues SET purge_ts = ?, purge_through = ? WHERE queue_id = ?"


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
    on_ack: OnAck
    retain_acked_ms: int
    delay_ms: int
    depth_max: int | None
    paused: bool
    configured_ts: int | None = None
    purge_ts: int | None = None
    purge_through: int = 0
    app: str | None = None
    rules: str | None = None
    command: str | None = None
    sessions: bool = False
    judge: Judge | None = None  # what the rules say of messages, if they say anything
    work: Work | None = None  # what they have done with them, if anything
    consumers: list[Consumer] = []
    saved: tuple[int, ...] = (0, 0, 0, 0)  # the counters as last written down
    dropped: list[Victim] = []  # entries removed in this turn whose deliveries are still there

    @property
    def counters(self) -> tuple[int, ...]:
        """What entries change that come and go."""
        return self.entries, self.bytes, self.changes, self.tail

    @property
    def config(self) -> QueueConfig:
        """The settings alone."""
        return QueueConfig(
            self.name,
            self.kind,
            self.max_age_ms,
            self.max_entries,
            self.mutable,
            self.on_ack,
            self.retain_acked_ms,
            self.delay_ms,
            self.depth_max,
            self.paused,
            self.sessions,
        )

    @property
    def excess(self) -> int:
        """Rows beyond max_entries; 0 or less: none."""
        return 0 if self.max_entries is None else self.entries - self.max_entries

    def depth(self, added: int) -> int:
        """Unfinished messages, of the consumer that has most, without those `added` just now; entries of a log."""
        return max((one.counts.unfinished for one in self.consumers), default=self.entries - added)

    def due(self, at: int) -> bool:
        """May rows have expired at unix ms `at`, or be too many, that are not yet swept?"""
        return self.sweep_ts is not None and self.sweep_ts <= at


def find(db: apsw.Connection, queue: str) -> Queue | None:
    """The queue with this id or name."""
    if ids.is_ulid(queue):
        return _queue(db, db.execute(BY_ID, (queue,)).get)
    return _queue(db, db.execute(BY_NAME, (ids.snake(queue), queue)).get)


def owner(db: apsw.Connection, name: str) -> str | None:
    """Id of the queue that has this name, or one that counts as the same."""
    queue_id: str | None = db.execute(OWNER, (ids.snake(name),)).get
    return queue_id


def page(db: apsw.Connection, after: str, limit: int) -> list[Queue]:
    """Up to `limit` queues with ids above `after`, in id order."""
    return _queues(db, db.execute(LIST, (after, limit)).fetchall())


def like(
    db: apsw.Connection, part: str, after: str, limit: int, rows_max: int
) -> tuple[list[Queue], str | None]:
    """Up to `limit` of the next `rows_max` queues whose names hold this text, in either case.

    The second value: not None where there may be more, the id to go on after.
    """
    end: str | None = db.execute(WINDOW, (after, rows_max - 1)).get
    asked = (after, "~" if end is None else end, part.lower(), limit)  # no id is above "~"
    found = _queues(db, db.execute(LIST_LIKE, asked).fetchall())
    return found, found[-1].queue_id if len(found) == limit else end


def overdue(db: apsw.Connection, at: int, limit: int) -> list[Queue]:
    """Up to `limit` queues whose sweep is due at unix ms `at`, longest due first."""
    return _queues(db, db.execute(DUE, (at, limit)).fetchall())


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms of the next sweep of any queue."""
    due_ms: int | None = db.execute(SOONEST).get
    return due_ms


def insert(db: apsw.Connection, queue_id: str, config: QueueConfig, now_ms: int) -> Queue:
    """Make an empty queue."""
    snake = None if config.name is None else ids.snake(config.name)
    fixed = (queue_id, config.name, snake, config.kind, config.sessions, now_ms)
    db.execute(INSERT, (*fixed, *_settings(config)))
    return Queue(
        queue_id,
        config.name,
        config.kind,
        config.max_age_ms,
        config.max_entries,
        config.mutable,
        now_ms,
        0,
        0,
        0,
        0,
        -1,
        None,
        config.on_ack,
        config.retain_acked_ms,
        config.delay_ms,
        config.depth_max,
        config.paused,
        sessions=config.sessions,
    )


def count(db: apsw.Connection, queue: Queue) -> None:
    """Write entries, bytes, changes and tail down, if anything changed them."""
    if queue.counters != queue.saved:
        queue.saved = queue.counters
        db.execute(COUNT, (*queue.saved, queue.queue_id))


def wake(db: apsw.Connection, queue: Queue, sweep_ts: int | None) -> None:
    """Set the time of the next sweep, if it is not set so already."""
    if queue.sweep_ts != sweep_ts:
        queue.sweep_ts = sweep_ts
        db.execute(WAKE, (sweep_ts, queue.queue_id))


def configure(db: apsw.Connection, queue: Queue, config: QueueConfig, aged_ts: int, now_ms: int) -> None:
    """Replace the settings (the kind stays), and set `aged_ts`."""
    queue.name, queue.mutable = config.name, config.mutable
    queue.max_age_ms, queue.max_entries = config.max_age_ms, config.max_entries
    queue.on_ack, queue.retain_acked_ms, queue.delay_ms = (
        config.on_ack,
        config.retain_acked_ms,
        config.delay_ms,
    )
    queue.depth_max, queue.paused = config.depth_max, config.paused
    queue.aged_ts, queue.configured_ts = aged_ts, now_ms
    queue.changes += 1
    snake = None if config.name is None else ids.snake(config.name)
    values = (config.name, snake, *_settings(config), aged_ts, queue.changes, now_ms, queue.queue_id)
    db.execute(CONFIGURE, values)


def purge(db: apsw.Connection, queue: Queue, now_ms: int) -> None:
    """Note that a purge begins: of what is there now, and of nothing that comes later."""
    queue.purge_ts, queue.purge_through = now_ms, queue.tail
    db.execute(PURGE, (now_ms, queue.tail, queue.queue_id))


def govern(
    db: apsw.Connection, queue: Queue, app: str | None, rules: str | None, command: str | None
) -> None:
    """Have the rules of an app's spec hold for what is appended from now on; None: no spec declares it any more."""
    queue.app, queue.rules, queue.command = app, rules, command
    _compile(queue)
    db.execute(GOVERN, (app, rules, command, queue.queue_id))


def of_app(db: apsw.Connection, app: str) -> list[Queue]:
    """The queues that the spec of an app declares, in id order."""
    return _queues(db, db.execute(OF_APP, (app,)).fetchall())


def declared(db: apsw.Connection) -> list[Queue]:
    """The queues that any spec declares, by app and id."""
    return _queues(db, db.execute(DECLARED).fetchall())


def any_sessions(db: apsw.Connection) -> bool:
    """Is there a queue whose ordering keys are sessions?"""
    return db.execute(ANY_SESSIONS).get is not None


def dead_letters_of(db: apsw.Connection, queue_id: str) -> str | None:
    """The queue that was made for the dead letters of this one."""
    found: str | None = db.execute(DEAD_LETTERS_OF, (queue_id,)).get
    return found


def set_dead_letters_of(db: apsw.Connection, queue: Queue, source_id: str) -> None:
    """Say whose dead letters a queue was made for."""
    db.execute(SET_DEAD_LETTERS_OF, (source_id, queue.queue_id))


def remove(db: apsw.Connection, queue: Queue) -> None:
    """Forget a queue, whose entries are gone."""
    db.execute(REMOVE, (queue.queue_id,))


def _settings(config: QueueConfig) -> tuple[object, ...]:
    return (
        config.max_age_ms,
        config.max_entries,
        config.mutable,
        config.on_ack,
        config.retain_acked_ms,
        config.delay_ms,
        config.depth_max,
        config.paused,
    )


def default_of(row: Queue) -> Consumer | None:
    """The consumer `default` of a queue, if it has one."""
    return next((one for one in row.consumers if one.name == DEFAULT), None)


def _queue(db: apsw.Connection, row: Any) -> Queue | None:
    if row is None:
        return None
    queue = Queue(*row)
    queue.mutable, queue.paused = bool(queue.mutable), bool(queue.paused)
    queue.sessions = bool(queue.sessions)
    queue.saved = queue.counters
    _compile(queue)
    queue.consumers = consumers.of_queue(db, queue.queue_id)
    return queue


def _compile(queue: Queue) -> None:
    rules = queue.rules
    queue.judge = None if rules is None else judging.of_rules(rules)
    queue.work = None if rules is None else working.of_rules(rules, queue.command)


def _queues(db: apsw.Connection, rows: Iterable[Any]) -> list[Queue]:
    found = (_queue(db, row) for row in rows)
    return [queue for queue in found if queue is not None]
