"""What the runtime asks of SQLite beside durability."""

from __future__ import annotations

from pathlib import Path

from shards.sqlite import connect


def test_a_statement_that_runs_once_among_hundreds_is_not_prepared_again(tmp_path: Path) -> None:
    db = connect(tmp_path / "a.db", "", cache_kib=64)
    try:
        for statement in ("SELECT 1", "SELECT 2"):
            db.execute(statement).fetchall()
        before = db.cache_stats()["misses"]
        for _ in range(2):
            for _ in range(300):
                db.execute("SELECT 1").fetchall()
            db.execute("SELECT 2").fetchall()
        assert db.cache_stats()["misses"] == before
    finally:
        db.close(True)
