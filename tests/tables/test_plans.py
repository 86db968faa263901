"""How SQLite finds rows: every statement of the table modules goes through an index, the hot ones through theirs."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import apsw
import apsw.ext
import pytest

from edgequeues import space
from edgequeues.models import NewEntry
from edgequeues.space.shard import SpaceShard
from shards.testing import Direct

VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH")
UNPLANNED = {  # modules of which no statement has a plan to keep
    "check": "reads every row of a file that nobody serves",
    "views": "people read them; they are made when a spec is applied",
    "check_work": "reads every row of a file that nobody serves",
}


def is_statement(text: object) -> bool:
    return isinstance(text, str) and text.lstrip().startswith(tuple(f"{verb} " for verb in VERBS))


def statements(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Every statement that a module keeps as a constant, by name; those in a dict by its key, too."""
    for name, value in vars(module).items():
        if name.isupper():
            for key, text in value.items() if isinstance(value, dict) else [("", value)]:
                if is_statement(text):
                    yield f"{module.__name__.rsplit('.', 1)[1]}.{name}{key or ''}", text


def modules() -> Iterator[ModuleType]:
    """All modules of a space but those of UNPLANNED."""
    for found in pkgutil.iter_modules(space.__path__):
        if found.name not in UNPLANNED:
            yield importlib.import_module(f"{space.__name__}.{found.name}")


FOUND = dict(pair for module in modules() for pair in statements(module))
ALL = {  # without private ones that are only the beginning of others
    name: text
    for name, text in FOUND.items()
    if "._" not in name or not any(longer.startswith(f"{text} ") for longer in FOUND.values())
}

HOT = {  # what a statement is to go through that runs with every push, pull, answer, read, alarm or sweep
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
    "searching.LOOK(False, False)": "idx_range (queue_id=? AND id>? AND id<?)",
    "searching.LOOK(True, False)": "idx_range (queue_id=? AND id>? AND id<?)",
    "searching.LOOK(False, True)": "idx_type (queue_id=? AND type_dxn=? AND id>? AND id<?)",
    "searching.LOOK(True, True)": "idx_type (queue_id=? AND type_dxn=? AND id>? AND id<?)",
    "queues.BY_ID": "PRIMARY KEY (queue_id=?)",
    "queues.BY_NAME": "queues_name (name_snake=?)",
    "queues.COUNT": "PRIMARY KEY (queue_id=?)",
    "queues.DUE": "queues_sweep (sweep_ts<?)",
    "deliveries.READY": "deliveries_ready (consumer_id=?)",
    "deliveries.FIRST_OF_RANK": "deliveries_ready (consumer_id=? AND rank=?)",
    "deliveries.STARVING": "deliveries_ready (consumer_id=? AND rank=?)",
    "deliveries.CANDIDATE": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.HEAD": "deliveries_line (consumer_id=? AND line=?)",
    "deliveries.BUSY": "COVERING INDEX deliveries_line (consumer_id=? AND line=?)",
    "deliveries.LEASE": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.GET": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.REMOVE": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.DUE": "deliveries_due (due_ts<?)",
    "deliveries.OF_ENTRY": "deliveries_entry (entry_id=?)",
    "standings.NEXT_RANK": "COVERING INDEX deliveries_ready (consumer_id=? AND rank>?)",
    "standings.FIRST_READY": "deliveries_ready (consumer_id=? AND rank=?)",
    "audit.FRONT": "INTEGER PRIMARY KEY (rowid>?)",
    "audit.OF_NAME": "audit_name (queue_name=? AND rowid>?)",
    "audit.OF_QUEUE": "audit_queue (queue_id=? AND rowid>?)",
    "audit.OF_NAME_BACK": "audit_name (queue_name=? AND rowid<?)",
    "audit.OF_QUEUE_BACK": "audit_queue (queue_id=? AND rowid<?)",
    "audit.PAGE_BACK": "INTEGER PRIMARY KEY (rowid<?)",
    "audit.PAGE": "INTEGER PRIMARY KEY (rowid>?)",
    "audit.SWEEP": "INTEGER PRIMARY KEY (rowid<?)",
    "audit.NEWEST": "SEARCH audit",
    "deadletters.AMONG": "INTEGER PRIMARY KEY (rowid=?)",
    "kinship.HOLDS": "COVERING INDEX dead_letters_queue (queue_id=?)",
    "kinship.LIES_IN": "COVERING INDEX dead_letters_from (source_id=? AND queue_id>?)",
    "kinship.OF_OBJECT": "dead_letters_object (object_id=?)",
    "kinship.OPEN_FROM": "dead_letters_open (queue_id=? AND source_id=?)",
    "kinship.REPLAYED_AS": "dead_letters_replay (replay_id=?)",
    "deadletters.OPEN": "dead_letters_open (queue_id=? AND (source_id,source_entry)>(?,?))",
    "deadletters.IN_ORDER": "dead_letters_queue (queue_id=? AND entry_id>?)",
    "deadletters.REPLAYED_AMONG": "INTEGER PRIMARY KEY (rowid=?)",
    "deadletters.SUMMARIES": "INTEGER PRIMARY KEY (rowid=?)",
    "deadletters.LAST_DUE": "COVERING INDEX dead_letters_pace (queue_id=? AND replay_due_ts>?)",
    "dedup.GET": "PRIMARY KEY (scope=? AND key=?)",
    "store.READ": "INTEGER PRIMARY KEY (rowid=?)",
    "store.SAVE": "INTEGER PRIMARY KEY (rowid=?)",
    "deliveries.EXTEND": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.RELEASE": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.READY_NOW": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.ADVANCE": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.SOONEST": "COVERING INDEX deliveries_due (due_ts>?)",
    "deliveries.ANY_LEASED": "deliveries_entry (entry_id=?)",
    "consumers.SAVE": "INTEGER PRIMARY KEY (rowid=?)",
    "consumers.QUEUE_OF": "INTEGER PRIMARY KEY (rowid=?)",
    "attempts.ENDING": "PRIMARY KEY (consumer_id=? AND entry_id=? AND serial=?)",
    "attempts.REMOVE": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "attempts.REMOVE_OLD": "PRIMARY KEY (consumer_id=? AND entry_id=? AND serial<?)",
    "attempts.REMOVE_SUPERSEDED": "COVERING INDEX attempts_superseded (ended_ts<?)",
    "deadletters.REMOVE": "INTEGER PRIMARY KEY (rowid=?)",
    "dedup.RENEW": "COVERING INDEX dedup_expires (expires_ts<?)",
    "dedup.SWEEP": "COVERING INDEX dedup_expires (expires_ts<?)",
    "dedup.SOONEST": "COVERING INDEX dedup_expires",
    "deadletters.FROM_ENTRY": "dead_letters_source (source_id=? AND source_entry=?)",
    "endings.REMOVE": "INTEGER PRIMARY KEY (rowid=?)",
    "endings.BEFORE": "endings_at (queue_id=? AND at_ts<?)",
    "deliveries.OF_LINE": "deliveries_line (consumer_id=? AND line=? AND entry_id<?)",
    "deliveries.HURRY": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "deliveries.HOLD": "PRIMARY KEY (consumer_id=? AND entry_id=?)",
    "blobs.GET": "PRIMARY KEY (bucket=? AND key=?)",
    "blobs.KEEP": "PRIMARY KEY (bucket=? AND key=?)",
    "blobs.DOOM": "PRIMARY KEY (bucket=? AND key=?)",
    "blobs.DOOMED": "COVERING INDEX blobs_doomed",
    "blobs.DOOM_DUE": "COVERING INDEX blobs_kept (kept_until<?)",
    "blobs.OF_EVENT": "blobs_event (event_id=? AND (bucket,key)>(?,?))",
    "blobs.REMOVE": "PRIMARY KEY (bucket=? AND key=?)",
    "blobs.SOONEST": "COVERING INDEX blobs_kept (kept_until>?)",
    "rates.GET": "PRIMARY KEY (queue_id=? AND key=?)",
    "rates.SWEEP": "COVERING INDEX rates_until (until_us<?)",
    "rates.SOONEST": "COVERING INDEX rates_until",
    "rates.REMOVE": "PRIMARY KEY (queue_id=?)",
    "schedules.GET": "PRIMARY KEY (name=?)",
    "schedules.DUE": "schedules_look (look_ts<?)",
    "schedules.SOONEST": "COVERING INDEX schedules_look",
    "schedules.PAGE": "PRIMARY KEY (name>?)",
    "schedules.OF_APP": "schedules_app (app=?)",
    "schedules.REMOVE": "PRIMARY KEY (name=?)",
    "entities.GET": "PRIMARY KEY (entity_type=? AND entity_id=?)",
    "entities.PAGE": "PRIMARY KEY (entity_type=? AND entity_id>?)",
    "entities.REMOVE": "PRIMARY KEY (entity_type=? AND entity_id=?)",
    "entities.ANY": "COVERING INDEX command_receipts_entity (entity_type=? AND entity_id=?)",
    "entities.SWEEP": "INTEGER PRIMARY KEY (rowid=?)",
    "entities.OLDEST": "INTEGER PRIMARY KEY (rowid>?)",
    "entities.HISTORY": "command_receipts_entity (entity_type=? AND entity_id=? AND receipt_id>?)",
    "results.GET": "INTEGER PRIMARY KEY (rowid=?)",
    "results.PAGE": "INDEX results_queue (queue_id=? AND entry_id>?)",
    "results.SWEEP": "COVERING INDEX results_expires (expires_ts<?)",
    "results.SOONEST": "COVERING INDEX results_expires",
    "log.AT": "INTEGER PRIMARY KEY (rowid=?)",
    "log.ARRIVALS": "idx_range (queue_id=? AND id>?)",
    "log.KEEP_UNTIL": "INTEGER PRIMARY KEY (rowid=?)",
    "log.RETRACT": "INTEGER PRIMARY KEY (rowid>?)",
    "log.OLDEST_LIVE": "idx_updated (queue_id=? AND updated_ts>?)",
    "log.WINDOWS(True, False)": "COVERING INDEX idx_range (queue_id=? AND id>? AND id<?)",
    "log.WINDOWS(True, True)": "COVERING INDEX idx_type (queue_id=? AND type_dxn=? AND id>? AND id<?)",
    "log.PICKS": "INTEGER PRIMARY KEY (rowid=?)",
    "log.PICKSTrue": "INTEGER PRIMARY KEY (rowid=?)",
    "queues.SOONEST": "COVERING INDEX queues_sweep (sweep_ts>?)",
    "queues.WAKE": "PRIMARY KEY (queue_id=?)",
}
COLD = {  # why a statement need not go through any index in particular; it scans no table all the same
    "attempts.OF": "explains a message, or writes down why it died: the hundred newest attempts at most",
    "blobs.DOOMED_OF": "an event is erased; its few objects are looked through",
    "blobs.DOOM_EVENT": "an event is erased",
    "log.NAMING": "an event is erased: all messages of a space are looked through, a few in one turn",
    "consumers.CONFIGURE": "somebody changes rules",
    "consumers.FILLING": "an index of those alone that are being filled",
    "consumers.OF_QUEUE": "once for each queue that is loaded; its few consumers are sorted",
    "consumers.REMOVE": "a consumer goes",
    "deadletters.AT": "dead letters are replayed",
    "deadletters.GET": "a dead letter is looked at",
    "deadletters.NAMED": "dead letters are replayed; those that are named are sorted",
    "deadletters.PAGE": "dead letters are listed",
    "deadletters.REPLAYED": "dead letters are replayed",
    "deadletters.WAITING_FROM": "a spec leaves a queue out",
    "dedup.FORGET": "a queue goes",
    "standings.BEHIND": "a message is explained; counts no further than its limit",
    "standings.EXPIREDage": "consumers are listed",
    "standings.EXPIREDend": "consumers are listed",
    "standings.FIRST_IN": "lines are listed",
    "standings.FIRST_LINE": "lines are listed",
    "standings.NEXT_LINE": "lines are listed, one after the other",
    "standings.IN_LINE": "lines are listed; counts no further than its limit",
    "standings.WINDOW": "messages are looked at; counts no further than its offset",
    "standings.OLDEST": "somebody asks how a queue is",
    "deliveries.LEASED_BY": "a manager of sessions starts: what is due at some time is looked through",
    "deliveries.SOME": "a consumer goes",
    "standings.STANDING": "messages are looked at, by position, whatever state was asked for",
    "queues.ANY_SESSIONS": "a spec is applied",
    "queues.CONFIGURE": "somebody changes settings",
    "queues.DEAD_LETTERS_OF": "a message dies",
    "queues.DECLARED": "a spec is applied",
    "queues.GOVERN": "a spec is applied",
    "queues.LIST": "queues are listed",
    "queues.LIST_LIKE": "queues are looked for by their names",
    "queues.WINDOW": "queues are looked for by their names",
    "queues.OF_APP": "a spec is applied; the queues of one app are sorted",
    "queues.OWNER": "a queue is made or named",
    "queues.PURGE": "a purge begins",
    "queues.REMOVE": "a queue goes",
    "queues.SET_DEAD_LETTERS_OF": "the first message of a queue dies",
    "store.IDENTIFY": "a copy is opened",
    "store.SET_KEY": "a file is opened for the first time",
}
SCANS = {
    "blobs.DOOMED",
    "consumers.FILLING",
    "deliveries.LEASED_BY",
    "queues.ANY_SESSIONS",
    "queues.DECLARED",
}  # of a partial index, which holds what is looked for and nothing else


@pytest.fixture(scope="module")
def db() -> apsw.Connection:
    """A space with a few thousand entries, so that the planner has something to choose for."""
    filled = Direct(SpaceShard)
    for start in range(0, 3_000, 500):
        entries = [
            NewEntry(json.dumps(n), f"o{n}", type=f"t{n % 3}", ttl_ms=10_000 + n)
            for n in range(start, start + 500)
        ]
        filled.call(SpaceShard.append, f"q{start % 3}", entries)
    return filled.db


def plan(db: apsw.Connection, statement: str) -> list[str]:
    """The steps of a statement's query plan."""
    bindings = (None,) * apsw.ext.query_info(db, statement).bindings_count
    rows = db.execute(f"EXPLAIN QUERY PLAN {statement}", bindings).fetchall()
    return [str(row[3]) for row in rows]


def test_every_statement_is_hot_or_cold_or_needs_no_plan(db: apsw.Connection) -> None:
    """Add a new one to HOT, with the index it must use, or to COLD, with the reason why it need not."""
    assert not set(HOT) & set(COLD)
    planned = {name for name, statement in ALL.items() if plan(db, statement)}
    assert planned == set(HOT) | set(COLD)


def test_no_sql_is_hidden_in_a_function() -> None:
    """Statements are constants of their modules: what is put together where it runs escapes every test here."""
    hidden = []
    for module in modules():
        assert module.__file__ is not None
        for outer in ast.parse(Path(module.__file__).read_text()).body:
            constant = isinstance(outer, ast.Assign) and all(
                isinstance(target, ast.Name) and target.id.isupper() for target in outer.targets
            )
            if not constant:
                texts = [node.value for node in ast.walk(outer) if isinstance(node, ast.Constant)]
                hidden += [f"{module.__name__}: {text!r}" for text in texts if is_statement(text)]
    assert hidden == []


@pytest.mark.parametrize("name", ALL)
def test_no_statement_scans_a_table(db: apsw.Connection, name: str) -> None:
    """`SCAN json_each` runs over what the caller gave; a scan of the one row of `store` has no loop to speak of."""
    scans = [step for step in plan(db, ALL[name]) if step.startswith("SCAN") and "json_each" not in step]
    assert all("INDEX" in step for step in scans) if name in SCANS else scans == []


@pytest.mark.parametrize("name", HOT)
def test_hot_statements_use_their_index(db: apsw.Connection, name: str) -> None:
    steps = plan(db, ALL[name])
    assert any(HOT[name] in step for step in steps), steps
    assert not any("TEMP B-TREE" in step for step in steps), steps
