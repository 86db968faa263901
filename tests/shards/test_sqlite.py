"""What the runtime asks of SQLite beside durability."""

from __future__ import annotations

from pathlib import Path

import apsw

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


def test_a_statement_is_not_prepared_again_for_other_values(tmp_path: Path) -> None:
    """Those with ORDER BY and LIMIT would be, each time, if SQLite were to plan by the values."""
    db = connect(tmp_path / "a.db", "", cache_kib=64)
    db.execute("CREATE TABLE a (b, c, d); CREATE INDEX ab ON a (b, c)")
    prepared: list[int] = []  # one for each thing that a statement does, whenever it is prepared

    def note(action: int, *_: object) -> int:
        prepared.append(action)
        return int(apsw.SQLITE_OK)

    def run(b: int, limit: int) -> None:
        db.execute("SELECT d FROM a WHERE b = ? ORDER BY c LIMIT ?", (b, limit)).fetchall()

    try:
        db.authorizer = note
        run(1, 1)
        assert prepared
        prepared.clear()
        run(2, 2)
        assert not prepared
    finally:
        db.close(True)
