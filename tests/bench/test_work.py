"""What the benches of work queues stand on: filled queues are sound, and SQL told again does the same."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from bench import work, work_fill
from edgequeues.models import Ordering
from edgequeues.space import check
from shards import files

TABLES = ("queue_entries", "deliveries", "attempts", "consumers", "queues")
COUNTERS = "SELECT lamport, position, clock_ms FROM store"  # a copied file calls itself another store


def _opened(folder: Path, name: str) -> apsw.Connection:
    return apsw.Connection(str(files.path_of(folder, name)), flags=apsw.SQLITE_OPEN_READONLY)


@pytest.mark.parametrize(
    ("ordering", "waiting"),
    [("unordered", 0), ("per_key", 30 - 3), ("fifo", 30 - 1)],
    ids=str,
)
def test_a_filled_queue_is_as_the_engine_would_have_left_it(
    tmp_path: Path, ordering: Ordering, waiting: int
) -> None:
    work_fill.fill(tmp_path, "full", ordering, 30, lambda number: f"key{number % 3}")
    db = _opened(tmp_path, "full")
    assert check.problems(db) == []
    assert db.execute("SELECT count(*) FROM deliveries WHERE state = 'waiting'").get == waiting
    assert db.execute("SELECT ready, waiting FROM consumers").get == (30 - waiting, waiting)


@pytest.mark.parametrize("shape", work.SHAPES, ids=str)
def test_sql_told_again_leaves_an_equal_file(tmp_path: Path, shape: work.Shape) -> None:
    compared = work.Compared(tmp_path / "seed", shape, work.batches(shape, 2 * shape.callers))
    left = []
    for name, leave in (("taped", compared.tape), ("bare", compared.bare)):
        leave(tmp_path / name)
        db = _opened(tmp_path / name, work.SPACE)
        left.append({table: db.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES})
        left[-1]["store"] = db.execute(COUNTERS).fetchall()
    assert left[0]["queues"]
    assert left[0] == left[1]
