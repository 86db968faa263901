"""Views of queues that specs declare, and of messages for sessions, for people who open the file with `sqlite3`.

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
# Times are text here, and of one width, so that they sort as what they stand for.
_UTC = "strftime('%Y-%m-%dT%H:%M:%S', {ms} / 1000, 'unixepoch') || printf('.%03dZ', {ms} % 1000)"
INBOUND = f"""
CREATE VIEW IF NOT EXISTS inbound_queue AS
SELECT e.id AS id, e.ordering_key AS session_id, m.data ->> '$.origin' AS origin,
  coalesce(m.data ->> '$.message_type', 'text') AS message_type, coalesce(m.data ->> '$.content', '') AS content,
  m.data -> '$.payload' AS payload_json, m.data ->> '$.actor_id' AS actor_id,
  m.data ->> '$.actor_name' AS actor_name, m.data ->> '$.actor_avatar_url' AS actor_avatar_url,
  CASE coalesce(n.ending, d.state) WHEN 'acked' THEN 'delivered' WHEN 'leased' THEN 'processing'
    WHEN 'backoff' THEN 'failed' WHEN 'expired' THEN 'expired' WHEN 'dead' THEN 'expired'
    WHEN 'cancelled' THEN 'expired' ELSE 'pending' END AS status,
  {_UTC.format(ms="e.created_ts")} AS created_at, {_UTC.format(ms="n.at_ts")} AS processed_at,
  coalesce(n.failures, d.attempts - (d.state = 'leased'), 0) AS attempt_count,
  CASE d.state WHEN 'backoff' THEN {_UTC.format(ms="d.due_ts")} END AS next_retry_at,
  coalesce(n.error, d.last_error) AS last_error,
  CASE d.state WHEN 'leased' THEN {_UTC.format(ms="d.last_ts")} END AS locked_at,
  m.data ->> '$.source_message_id' AS source_message_id, m.data ->> '$.source_channel_id' AS source_channel_id
FROM queues q JOIN queue_entries e ON e.queue_id = q.queue_id
  JOIN (SELECT id, CASE WHEN json_valid(data) THEN data END AS data FROM queue_entries) m ON m.id = e.id
  LEFT JOIN consumers c ON c.queue_id = q.queue_id AND c.name = 'default'
  LEFT JOIN deliveries d ON d.consumer_id = c.consumer_id AND d.entry_id = e.id
  LEFT JOIN endings n ON n.entry_id = e.id
WHERE q.sessions
"""
NAMES = "SELECT name FROM sqlite_schema WHERE type = 'view'"


def remake(db: apsw.Connection, declared: list[Queue], *, sessions: bool) -> None:
    """Make the views of all queues that specs declare, that of messages for sessions if there are any, and no others.

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
    if sessions:
        make_inbound(db)


def make_inbound(db: apsw.Connection) -> None:
    """Make the view of messages for sessions, of all queues that have them, unless it is there."""
    db.execute(INBOUND)
