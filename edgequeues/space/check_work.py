"""What must hold of consumers, deliveries, attempts, dead letters and keys, whatever happened: see `check`."""

from __future__ import annotations

from edgequeues.space import attempts

# Each statement gives one sentence a row. These name who and what it is about, and go with the tables as named below.
_CONSUMER = "'consumer ' || c.name || ' of queue ' || coalesce(q.name, c.queue_id)"
_LETTER = "'dead letter ' || l.entry_id || ' of queue ' || coalesce(q.name, l.queue_id)"
_OWNERS = "consumers AS c LEFT JOIN queues AS q USING (queue_id)"
_OWNED = "JOIN consumers AS c USING (consumer_id) LEFT JOIN queues AS q USING (queue_id)"
_HELD = f"deliveries AS d {_OWNED}"
_COPIED = f"{_HELD} JOIN queue_entries AS e ON e.id = d.entry_id"

# -- consumers ----------------------------------------------------------------------------------------------

STRAYS = """
SELECT 'consumer ' || name || ' is of queue ' || queue_id || ', which is not there'
FROM consumers WHERE queue_id NOT IN (SELECT queue_id FROM queues)
"""
COUNTS = f"""
WITH said AS (
  SELECT consumer_id, 'scheduled' AS state, scheduled AS number FROM consumers
  UNION ALL SELECT consumer_id, 'waiting', waiting FROM consumers
  UNION ALL SELECT consumer_id, 'ready', ready FROM consumers
  UNION ALL SELECT consumer_id, 'leased', leased FROM consumers
  UNION ALL SELECT consumer_id, 'backoff', backoff_count FROM consumers
), found AS (SELECT consumer_id, state, count(*) AS number FROM deliveries GROUP BY consumer_id, state)
SELECT {_CONSUMER} || ': its row says ' || said.number || ' ' || state || ', there are ' || coalesce(found.number, 0)
FROM said {_OWNED} LEFT JOIN found USING (consumer_id, state)
WHERE said.number <> coalesce(found.number, 0)
"""
BYTES = f"""
SELECT {_CONSUMER} || ': its row says ' || c.bytes || ' bytes, its deliveries come to ' || coalesce(sum(d.size), 0)
FROM {_OWNERS} LEFT JOIN deliveries AS d USING (consumer_id)
GROUP BY consumer_id HAVING c.bytes <> coalesce(sum(d.size), 0)
"""
_ENDED = "total_acked + total_exhausted + total_permanent + total_skipped + total_expired + total_cancelled"
TOTALS = f"""
SELECT {_CONSUMER} || ': ' || total_in || ' deliveries were made, but ' || count(d.entry_id) || ' are unfinished and '
       || ({_ENDED}) || ' have ended'
FROM {_OWNERS} LEFT JOIN deliveries AS d USING (consumer_id)
GROUP BY consumer_id HAVING total_in <> count(d.entry_id) + {_ENDED}
"""
PROGRESS = f"""
SELECT {_CONSUMER} || ': it was given entries up to ' || filled || ', the last one was at ' || q.tail
FROM {_OWNERS} WHERE filled > q.tail OR (filled < q.tail AND NOT filling)
"""
FILL_ALARM = f"""
SELECT {_CONSUMER} || ': it is still to be given entries above ' || filled || ', but no alarm is set'
FROM {_OWNERS}, shard_alarm WHERE filling AND due_ms IS NULL
"""

# -- deliveries ---------------------------------------------------------------------------------------------

NO_ENTRY = f"""
SELECT {_CONSUMER} || ': it has a delivery of entry ' || d.entry_id || ', which is not in the queue'
FROM {_HELD} WHERE NOT EXISTS (SELECT 1 FROM queue_entries AS e WHERE e.id = d.entry_id AND e.queue_id = c.queue_id)
"""
NO_CONSUMER = """
SELECT 'entry ' || entry_id || ' has a delivery to consumer ' || consumer_id || ', who is not there'
FROM deliveries WHERE consumer_id NOT IN (SELECT consumer_id FROM consumers)
"""
TOO_EARLY = f"""
SELECT {_CONSUMER} || ': it has a delivery of entry ' || d.entry_id || ', but was given entries up to ' || filled
FROM {_HELD} WHERE d.entry_id > filled
"""
SIZES = f"""
SELECT {_CONSUMER} || ': the delivery of entry ' || d.entry_id || ' says ' || d.size || ' bytes, the entry ' || e.size
FROM {_COPIED} WHERE d.size <> e.size
"""
RANKS = f"""
SELECT {_CONSUMER} || ': the delivery of entry ' || d.entry_id || ' has rank ' || d.rank || ', its priority is '
       || e.priority
FROM {_COPIED} WHERE d.rank <> 9 - e.priority
"""
LINES = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' stands in ' || coalesce('line "' || d.line || '"', 'no line')
       || ', with ' || c.ordering || ' it belongs in ' || coalesce('line "' || proper || '"', 'none')
FROM (SELECT d.consumer_id, d.entry_id, d.line,
             CASE c.ordering WHEN 'fifo' THEN '' WHEN 'per_key' THEN e.ordering_key END AS proper
      FROM {_COPIED}) AS d {_OWNED}
WHERE d.line IS NOT proper
"""
_HEADS = "count(*) FILTER (WHERE d.state <> 'waiting')"
HEADS = f"""
SELECT {_CONSUMER} || ': line "' || d.line || '", from entry ' || min(d.entry_id) || ' on, has ' || {_HEADS}
       || ' messages that may be handed out, not one'
FROM {_HELD} WHERE d.line IS NOT NULL GROUP BY d.consumer_id, d.line HAVING {_HEADS} <> 1
"""
_HEAD = "min(d.entry_id) FILTER (WHERE d.state <> 'waiting')"
OVERTAKEN = f"""
SELECT {_CONSUMER} || ': it is the turn of entry ' || {_HEAD} || ' in line "' || d.line || '", but entry '
       || min(d.entry_id) || ' waits before it'
FROM {_HELD} WHERE d.line IS NOT NULL GROUP BY d.consumer_id, d.line HAVING {_HEADS} = 1 AND {_HEAD} > min(d.entry_id)
"""
NO_LINE = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' waits, but stands in no line'
FROM {_HELD} WHERE d.state = 'waiting' AND d.line IS NULL
"""
TURNS = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' has turn ' || d.turn || ', the last one given is ' || c.turns
FROM {_HELD} WHERE d.line IS NOT NULL AND d.state <> 'waiting' AND d.turn > c.turns
"""

# -- leases -------------------------------------------------------------------------------------------------

LEASED = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' is leased, but no lease of it is open'
FROM {_HELD} WHERE d.state = 'leased' AND NOT (d.open AND d.serial > 0 AND d.last_ts IS NOT NULL)
"""
PARKED = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' is ' || d.state || ', but was handed out already'
FROM {_HELD} WHERE d.state IN ('scheduled', 'waiting') AND d.serial > 0
"""
UNTRIED = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' backs off, but was never handed out'
FROM {_HELD} WHERE d.state = 'backoff' AND d.serial = 0
"""
SCHEDULES = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' is scheduled for ' || d.due_ts || ', the entry says '
       || coalesce(e.due_ts, 'no time')
FROM {_COPIED} WHERE d.state = 'scheduled' AND d.due_ts IS NOT e.due_ts
"""
DUE_ALARM = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' is due at ' || d.due_ts || ', but '
       || coalesce('the alarm is set for ' || a.due_ms, 'no alarm is set')
FROM (SELECT consumer_id, entry_id, due_ts FROM deliveries WHERE due_ts IS NOT NULL ORDER BY due_ts LIMIT 1) AS d
     {_OWNED}, shard_alarm AS a, store
WHERE a.due_ms IS NULL OR (a.failures = 0 AND a.due_ms > max(d.due_ts, clock_ms))  -- what is overdue is due now
"""
_TRIED = f"""
(SELECT d.*, count(t.serial) AS ends, count(t.serial) FILTER (WHERE ending = 'released') AS released
 FROM deliveries AS d LEFT JOIN attempts AS t USING (consumer_id, entry_id) GROUP BY consumer_id, entry_id) AS d
{_OWNED}
"""
ENDINGS = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' was handed out ' || d.serial || ' times and is ' || d.state
       || ', but the ends of ' || ends || ' attempts are written down'
FROM {_TRIED} WHERE ends <> min(d.serial - (d.state = 'leased'), {attempts.KEPT})
"""
ATTEMPTS = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' was handed out ' || d.serial || ' times and released ' || released
       || ', but ' || d.attempts || ' attempts are counted'
FROM {_TRIED} WHERE d.attempts <> d.serial - released AND d.serial <= {attempts.KEPT}
"""
UNGIVEN = f"""
SELECT {_CONSUMER} || ': entry ' || d.entry_id || ' was handed out ' || d.serial || ' times, but an end of lease '
       || max(t.serial) || ' is written down'
FROM {_HELD} JOIN attempts AS t USING (consumer_id, entry_id)
GROUP BY d.consumer_id, d.entry_id HAVING max(t.serial) > d.serial
"""
FORGOTTEN = f"""
SELECT coalesce({_CONSUMER}, 'consumer ' || t.consumer_id) || ': attempt ' || t.attempt || ' at entry ' || t.entry_id
       || ' is remembered, but there is no such delivery'
FROM attempts AS t LEFT {_OWNED}
WHERE ending <> 'superseded'
      AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE (d.consumer_id, d.entry_id) = (t.consumer_id, t.entry_id))
"""

# -- what is kept and remembered ----------------------------------------------------------------------------

# The id of a consumer was a position when it was made: what came later was given to it. What was there when the queue
# was configured may have been finished while it was to be kept; what has an end of its own may be kept until then.
UNNEEDED = """
SELECT 'entry ' || e.id || ' of queue ' || coalesce(q.name, q.queue_id) || ' is kept, but no consumer needs it'
FROM queues AS q
JOIN (SELECT queue_id, min(consumer_id) AS made, min(filled) AS filled FROM consumers GROUP BY queue_id)
     USING (queue_id)
JOIN queue_entries AS e USING (queue_id)
WHERE on_ack = 'delete' AND e.id > made AND e.id <= filled AND e.expires_ts IS NULL
      AND e.updated_ts > coalesce(configured_ts, -1)
      AND NOT EXISTS (SELECT 1 FROM deliveries WHERE entry_id = e.id)
      AND NOT EXISTS (SELECT 1 FROM dead_letters WHERE entry_id = e.id AND replay_id IS NOT NULL)
"""
LETTERS = f"""
SELECT {_LETTER} || ' has no entry there'
FROM dead_letters AS l LEFT JOIN queues AS q USING (queue_id)
WHERE NOT EXISTS (SELECT 1 FROM queue_entries AS e WHERE e.id = l.entry_id AND e.queue_id = l.queue_id)
"""
REPLAYS = f"""
SELECT {_LETTER} || ' was replayed at ' || coalesce(replayed_ts, 'no time') || ' as '
       || coalesce(replay_id, 'nothing')
FROM dead_letters AS l LEFT JOIN queues AS q USING (queue_id)
WHERE (replayed_ts IS NULL) <> (replay_id IS NULL)
"""
OVER = """
SELECT 'entry ' || n.entry_id || ' of queue ' || coalesce(q.name, n.queue_id) || ' has ended as ' || n.ending
       || CASE WHEN q.queue_id IS NULL THEN ', but its queue is not there' WHEN NOT q.sessions
          THEN ', in a queue without sessions' WHEN e.id IS NULL THEN ', but is not there'
          ELSE ', but is unfinished' END
FROM endings AS n LEFT JOIN queues AS q USING (queue_id)
  LEFT JOIN queue_entries AS e ON e.id = n.entry_id AND e.queue_id = n.queue_id
  LEFT JOIN consumers AS c ON c.queue_id = n.queue_id AND c.name = 'default'
  LEFT JOIN deliveries AS d ON d.consumer_id = c.consumer_id AND d.entry_id = n.entry_id
WHERE q.queue_id IS NULL OR NOT q.sessions OR e.id IS NULL OR d.entry_id IS NOT NULL
"""
KEYS = """
SELECT 'idempotency key ' || key || ' is remembered for queue ' || scope || ', which is not there'
FROM dedup WHERE scope NOT IN (SELECT queue_id FROM queues)
"""
KEYS_AHEAD = """
SELECT 'idempotency key ' || key || ' of queue ' || scope || ' made entry ' || dedup.position
       || ', ahead of the last position given, ' || store.position
FROM dedup, store WHERE dedup.position > store.position
"""

QUERIES = (
    *(STRAYS, COUNTS, BYTES, TOTALS, PROGRESS, FILL_ALARM),
    *(NO_ENTRY, NO_CONSUMER, TOO_EARLY, SIZES, RANKS, LINES, HEADS, OVERTAKEN, NO_LINE, TURNS),
    *(LEASED, PARKED, UNTRIED, SCHEDULES, DUE_ALARM, ENDINGS, UNGIVEN, ATTEMPTS, FORGOTTEN),
    *(UNNEEDED, LETTERS, REPLAYS, OVER, KEYS, KEYS_AHEAD),
)
