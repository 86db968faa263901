"""The rules every table keeps, so that a session's patchset of one file replays on another."""

from __future__ import annotations

import apsw
import pytest

from edgequeues.space.shard import SpaceShard
from shards.testing import Direct

SEED_COLUMNS = {  # of the document the log was designed from
    *("id", "version", "object_id", "queue_id", "type_dxn"),
    *("created_ts", "updated_ts", "data"),
}


@pytest.fixture(scope="module")
def db() -> apsw.Connection:
    return Direct(SpaceShard).db


def tables(db: apsw.Connection) -> dict[str, str]:
    rows = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    return {str(name): str(sql) for name, sql in rows.fetchall()}


def test_every_table_is_strict_and_has_a_key_that_replays(db: apsw.Connection) -> None:
    """An INTEGER PRIMARY KEY is the rowid; WITHOUT ROWID has none to differ; anything else hides one."""
    for name, sql in tables(db).items():
        options = sql.rsplit(")", 1)[1]
        assert "STRICT" in options, name
        columns = db.execute(
            f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{name}')"
        ).fetchall()
        keys = [(kind, not_null) for _, kind, not_null, key in columns if key]
        if "WITHOUT ROWID" in options:
            assert keys, name
            assert all(not_null for _, not_null in keys), name
        else:
            assert [kind for kind, _ in keys] == ["INTEGER"], name


def test_there_are_no_triggers_and_no_cascades(db: apsw.Connection) -> None:
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'").get == 0
    for name in tables(db):
        assert db.execute(f"SELECT count(*) FROM pragma_foreign_key_list('{name}')").get == 0


def test_no_state_is_kept_in_pragmas(db: apsw.Connection) -> None:
    assert db.pragma("user_version") == 0
    assert db.pragma("application_id") == 0


def test_queue_entries_has_the_columns_and_indexes_it_was_designed_with(db: apsw.Connection) -> None:
    columns = [
        str(row[0]) for row in db.execute("SELECT name FROM pragma_table_info('queue_entries')").fetchall()
    ]
    assert set(columns) >= SEED_COLUMNS
    assert "INTEGER PRIMARY KEY AUTOINCREMENT" in tables(db)["queue_entries"]
    indexes = {
        str(name): (
            unique,
            [str(row[0]) for row in db.execute(f"SELECT name FROM pragma_index_info('{name}')").fetchall()],
        )
        for name, unique in db.execute(
            "SELECT name, \"unique\" FROM pragma_index_list('queue_entries')"
        ).fetchall()
    }
    assert indexes["idx_range"] == (0, ["queue_id", "id"])
    assert indexes["idx_object_id"] == (1, ["queue_id", "object_id"])
    assert indexes["idx_updated"][1][:2] == ["queue_id", "updated_ts"]
