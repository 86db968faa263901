"""What must hold of the rows of a space, whatever happened to it: read-only, for `edgequeues check`."""

from __future__ import annotations

import json

import apsw
import msgspec

from edgequeues.space import check_work

ROWS_MAX = 5  # of each kind of problem that are named

COUNTERS = """
SELECT queue_id || ': the row of the queue says ' || queues.entries || ' entries and ' || queues.bytes
       || ' bytes, there are ' || count(e.id) || ' and ' || coalesce(sum(e.size), 0)
FROM queues LEFT JOIN queue_entries AS e USING (queue_id)
GROUP BY queue_id
HAVING queues.entries <> count(e.id) OR queues.bytes <> coalesce(sum(e.size), 0)
"""
ORPHANS = """
SELECT 'entry ' || id || ' is of queue ' || queue_id || ', which is not there'
FROM queue_entries WHERE queue_id NOT IN (SELECT queue_id FROM queues)
"""
AHEAD = """
SELECT 'entry ' || e.id || ' is ahead of the last position given, ' || store.position
FROM queue_entries AS e, store WHERE e.id > store.position
"""
TAILS = """
SELECT queue_id || ': its tail is ' || queues.tail || ', but an entry is at ' || max(e.id)
FROM queues JOIN queue_entries AS e USING (queue_id) GROUP BY queue_id HAVING max(e.id) > queues.tail
"""
VERSIONS = """
SELECT 'entry ' || e.id || ' has version ' || e.version || ', the counter of the space is at ' || store.lamport
FROM queue_entries AS e, store WHERE substr(e.version, 1, 16) > printf('%016x', store.lamport)
"""
SIZES = """
SELECT 'entry ' || id || ' holds ' || length(CAST(data AS BLOB)) || ' bytes, its row says ' || size
FROM queue_entries WHERE length(CAST(data AS BLOB)) <> size
"""
ORDER = """
SELECT 'entry ' || id || ' of queue ' || queue_id || ' is older than the one before it'
FROM (SELECT id, queue_id, updated_ts, lag(updated_ts) OVER (PARTITION BY queue_id ORDER BY id) AS previous
      FROM queue_entries)
WHERE updated_ts < previous
"""
SWEEPS = """
SELECT queue_id || ': entries expire at ' || due || ', the next sweep is at ' || coalesce(sweep_ts, 'no time')
FROM store, (SELECT q.queue_id, q.sweep_ts,
             min(min(coalesce(e.expires_ts, 9e18), coalesce(e.updated_ts + q.max_age_ms, 9e18))) AS due
      FROM queues AS q JOIN queue_entries AS e USING (queue_id) GROUP BY q.queue_id)
WHERE due < 9e18 AND coalesce(sweep_ts, 9e18) > max(due, clock_ms)  -- what is overdue is swept from now on
"""
SWEEP_ALARM = """
SELECT 'a sweep is due at ' || min(q.sweep_ts) || ', but no alarm is set'
FROM queues AS q, shard_alarm AS a WHERE a.due_ms IS NULL AND q.sweep_ts IS NOT NULL HAVING count(*) > 0
"""
SCHEDULED = """
SELECT 'schedule ' || s.name || ' is for queue ' || (s.spec ->> '$.queue')
       || ', which app ' || s.app || ' does not declare'
FROM schedules AS s WHERE NOT EXISTS (SELECT 1 FROM queues AS q WHERE q.name = s.spec ->> '$.queue' AND q.app = s.app)
"""
SCHEDULE_ALARM = """
SELECT 'schedule ' || min(name) || ' is due at ' || min(look_ts) || ', but no alarm is set'
FROM schedules, shard_alarm AS a WHERE a.due_ms IS NULL AND look_ts IS NOT NULL HAVING count(*) > 0
"""
AUDIT = """
SELECT 'the audit has ' || count(*) || ' records, numbered ' || min(audit_id) || ' to ' || max(audit_id)
FROM audit HAVING count(*) <> max(audit_id) - min(audit_id) + 1
"""
DETAILS = (
    "SELECT 'record ' || audit_id || ' of the audit is not JSON' FROM audit WHERE NOT json_valid(detail)"
)
STORES = "SELECT 'there are ' || count(*) || ' rows in store' FROM store HAVING count(*) <> 1"
QUERIES = (
    STORES,
    COUNTERS,
    ORPHANS,
    AHEAD,
    TAILS,
    VERSIONS,
    SIZES,
    ORDER,
    SWEEPS,
    SWEEP_ALARM,
    SCHEDULED,
    SCHEDULE_ALARM,
    AUDIT,
    DETAILS,
)
DATA = "SELECT id, data FROM queue_entries"


def problems(db: apsw.Connection) -> list[str]:
    """Return what is wrong, at most ROWS_MAX of a kind; empty is good. Reads every row: blocking."""
    found: list[str] = []
    for query in QUERIES + check_work.QUERIES:
        found += [str(text) for (text,) in db.execute(f"{query} LIMIT {ROWS_MAX}").fetchall()]
    return found + _not_json(db)


def _not_json(db: apsw.Connection) -> list[str]:
    found: list[str] = []
    for position, data in db.execute(DATA):
        why_not = _json_fault(str(data))
        if why_not:
            found.append(f"the data of entry {position} is not JSON: {why_not}")
            if len(found) == ROWS_MAX:
                break
    return found


def _json_fault(text: str) -> str:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:  # refuses half surrogates too, which are kept
        try:
            json.loads(text)
        except ValueError as error:
            return str(error)
    return ""
