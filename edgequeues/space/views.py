"""Views of the queues that specs declare, for people who open the file with `sqlite3`. Made anew with each spec.

They are derived: nothing reads them here, and a file without them lacks nothing. Times are unix ms. A step of the
schema that renames or drops a table has to drop them first.
"""

from __future__ import annotations

from typing import Any

import apsw

from edgequeues.core import ids
from edgequeues.space.queues import Queue

# Of a message: what is unfinished with the consumer `default`. visible_after: for those that are ready, long past.
QUEUE = """
CREATE VIEW "queue_{name}" AS
SELECT e.object_id AS id, e.data AS message_json, k.key AS idempotency_key, d.attempts AS attempts,
  coalesce(d.due_ts, e.due_ts, e.updated_ts) AS visible_after,
  CASE d.state WHEN 'leased' THEN coalesce(d.worker, 'lease ' || d.serial) END AS locked_by,
  e.created_ts AS created_at, coalesce(d.last_ts, e.updated_ts) AS updated_at
FROM deliveries d JOIN queue_entries e ON e.id = d.entry_id
  LEFT JOIN (SELECT position, min(key) AS key FROM dedup WHERE scope = '{queue_id}' GROUP BY position) k
    ON k.position = e.id
WHERE d.consumer_id = (SELECT consumer_id FROM consumers WHERE queue_id = '{queue_id}' AND name = 'default')
"""
DEAD = """
CREATE VIEW "queue_{name}_dlq" AS
SELECT e.object_id AS id, l.source_name AS original_queue, e.data AS message_json, l.failed_ts AS failed_at,
  l.error AS error, l.attempts AS attempts, l.replayed_ts AS replayed_at,
  CASE WHEN l.replay_id IS NOT NULL THEN json_object('new_message_id', l.replay_id) END AS replay_result
FROM dead_letters l JOIN queue_entries e ON e.id = l.entry_id
WHERE l.source_id = '{queue_id}'
"""
KEYS = """
CREATE VIEW idempotency_keys AS
SELECT k.key AS key, coalesce(q.name, q.queue_id) AS queue_name, r.processed_ts AS processed_at,
  r.result AS result_json
FROM dedup k JOIN queues q ON q.queue_id = k.scope LEFT JOIN results r ON r.entry_id = k.position
"""
NAMES = "SELECT name FROM sqlite_schema WHERE type = 'view'"


def remake(db: apsw.Connection, declared: list[Queue]) -> None:
    """Make the views of all queues that specs declare, and no others.

    Where a queue is called as another one's dead letters would be, the name is its own.
    """
    rows: list[tuple[Any, ...]] = db.execute(NAMES).fetchall()
    for (name,) in rows:
        db.execute(f'DROP VIEW "{name}"')
    named = {ids.snake(queue.name): queue.queue_id for queue in declared if queue.name is not None}
    for name, queue_id in named.items():
        assert name.replace("_", "").isalnum(), name
        db.execute(QUEUE.format(name=name, queue_id=queue_id))
        if f"{name}_dlq" not in named:
            db.execute(DEAD.format(name=name, queue_id=queue_id))
    if named:
        db.execute(KEYS)
