"""How SQLite finds rows: every statement of the table modules goes through an index, the hot ones through theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType

import apsw
import apsw.ext
import pytest

from edgequeues.models import NewEntry
from edgequeues.space import attempts, deadletters, dedup, deliveries, log, queues, store
from edgequeues.space.shard import SpaceShard
from shards.testing import Direct


def statements(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Every statement that a table module keeps as a constant, by name; those in a dict by its key, too."""
    for name, value in vars(module).items():
        if name.isupper() and not name.startswith("_"):
            for key, text in value.items() if isinstance(value, dict) else [("", value)]:
                if isinstance(text, str) and text.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE"):
                    yield f"{module.__name__.rsplit('.', 1)[1]}.{name}{key or ''}", text


ALL = dict(
    pair
    for module in (log, queues, store, deliveries, attempts, deadletters, dedup)
    for pair in statements(module)
)

HOT = {  # what a statement that runs with every append, read or sweep is to go through
    "log.FIND": "idx_object_id (queue_id=? AND object_id=?)",
    "log.GET": "idx_object_id (queue_id=? AND object_id=?)",
    "log.POSITIONS": "idx_object_id (queue_id=? AND object_id=?)",
    "log.NAMED": "idx_object_id (queue_id=? AND object_id=?)",
    "log.SCANS(False, False)": "idx_range (queue_id=? AND id>? AND id<?)",
    "log.SCANS(True, False)": "idx_range (queue_id=? AND id>? AND id<?)",
    "log.SCANS(False, True)": "idx_type (queue_id=? AND type_dxn=? AND id>? AND id<?)",
    "log.SCANS(True, True)": "idx_type (queue_id=? AND type_dxn=? AND id>? AND id<?)",
    "log.WINDOWS(False, False)": "COVERING INDEX idx_range (queue_id=? AND id>? AND id<?)",
    "log.WINDOWS(False, True)": "COVERING INDEX idx_type (queue_id=? AND type_dxn=? AND id>? AND id<?)",
    "log.BETWEEN": "idx_range (queue_id=? AND id>? AND id<?)",
    "log.AGED": "COVERING INDEX idx_updated (queue_id=? AND updated_ts<?)",
    "log.OLDEST": "COVERING INDEX idx_updated (queue_id=?)",
    "log.LAPSED": "COVERING INDEX idx_expires (queue_id=? AND expires_ts<?)",
    "log.COUNT_AGED": "COVERING INDEX idx_updated (queue_id=? AND updated_ts<?)",
    "log.COUNT_LAPSED": "COVERING INDEX idx_expires (queue_id=? AND expires_ts<?)",
    "log.NEXT_AGE": "COVERING INDEX idx_updated (queue_id=? AND updated_ts>?)",
    "log.NEXT_END": "COVERING INDEX idx_expires (queue_id=? AND expires_ts>?)",
    "log.PASSED": "COVERING INDEX idx_updated (queue_id=? AND updated_ts<?)",
    "log.REMOVE": "INTEGER PRIMARY KEY (rowid=?)",
    "queues.BY_ID": "PRIMARY KEY (queue_id=?)",
    "queues.BY_NAME": "queues_name (name_snake=?)",
    "queues.COUNT": "PRIMARY KEY (queue_id=?)",
    "queues.DUE": "queues_sweep (sweep_ts<?)",
    "deliveries.READY": "deliveries_ready (consumer_id=?)",
    "deliveries.HEAD": "deliveries_line (consumer_id=? AND line=?)",
    "deliveries.BUSY": "COVERING INDEX deliveries_line (consumer_id=? AND line=?)",
    "deliveries.LEASE": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.GET": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.REMOVE": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.DUE": "deliveries_due (due_ts<?)",
    "deliveries.OF_ENTRY": "deliveries_entry (entry_id=?)",
    "deliveries.FIRST_READY": "deliveries_ready (consumer_id=? AND rank=?)",
    "deadletters.OPEN": "dead_letters_open (queue_id=? AND (source_id,source_entry)>(?,?))",
    "deadletters.IN_ORDER": "dead_letters_queue (queue_id=? AND entry_id>?)",
    "deadletters.SUMMARIES": "INTEGER PRIMARY KEY (rowid=?)",
    "deadletters.LAST_DUE": "COVERING INDEX dead_letters_pace (queue_id=? AND replay_due_ts>?)",
    "dedup.GET": "PRIMARY KEY (scope=? AND key=?)",
    "store.READ": "INTEGER PRIMARY KEY (rowid=?)",
    "store.SAVE": "INTEGER PRIMARY KEY (rowid=?)",
}


@pytest.fixture(scope="module")
def db() -> apsw.Connection:
    """A space with a few thousand entries, so that the planner has something to choose for."""
    space = Direct(SpaceShard)
    for start in range(0, 3_000, 500):
        entries = [
            NewEntry(json.dumps(n), f"o{n}", type=f"t{n % 3}", ttl_ms=10_000 + n)
            for n in range(start, start + 500)
        ]
        space.call(SpaceShard.append, f"q{start % 3}", entries)
    return space.db


def plan(db: apsw.Connection, statement: str) -> list[str]:
    """The steps of a statement's query plan."""
    bindings = (None,) * apsw.ext.query_info(db, statement).bindings_count
    rows = db.execute(f"EXPLAIN QUERY PLAN {statement}", bindings).fetchall()
    return [str(row[3]) for row in rows]


def test_all_statements_were_found() -> None:
    assert len(ALL) > 30
    assert set(HOT) <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_no_statement_scans_a_table(db: apsw.Connection, name: str) -> None:
    """`SCAN json_each` runs over what the caller gave; a scan of the one row of `store` has no loop to speak of."""
    scans = [step for step in plan(db, ALL[name]) if step.startswith("SCAN") and "json_each" not in step]
    assert scans == []


@pytest.mark.parametrize("name", HOT)
def test_hot_statements_use_their_index(db: apsw.Connection, name: str) -> None:
    steps = plan(db, ALL[name])
    assert any(HOT[name] in step for step in steps), steps
    assert not any("TEMP B-TREE" in step for step in steps), steps
