"""Table `dead_letters` for those who look: where the letters of a queue lie, and which became of which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from edgequeues.space.deadletters import COLUMNS, LIVE, DeadLetter

STEP_4 = """
CREATE INDEX dead_letters_from   ON dead_letters (source_id, queue_id);
CREATE INDEX dead_letters_object ON dead_letters (object_id);
CREATE INDEX dead_letters_replay ON dead_letters (replay_id) WHERE replay_id IS NOT NULL;
"""

LIES_IN = "SELECT min(queue_id) FROM dead_letters WHERE source_id = ? AND queue_id > ?"
HOLDS = "SELECT 1 FROM dead_letters WHERE queue_id = ? LIMIT 1"
OF_OBJECT = (
    f"SELECT {COLUMNS} FROM dead_letters WHERE object_id = ? AND source_id = ? ORDER BY entry_id LIMIT ?"
)
REPLAYED_AS = f"SELECT {COLUMNS} FROM dead_letters WHERE replay_id = ? AND source_id = ? LIMIT 1"
OPEN_FROM = (
    "SELECT 1 FROM dead_letters l INDEXED BY dead_letters_open JOIN queue_entries e ON e.id = l.entry_id"
    " WHERE l.queue_id = :queue AND l.source_id = :source AND l.replayed_ts IS NULL"
    f" AND {LIVE} LIMIT :limit"
)


def lies_in(db: apsw.Connection, source_id: str, most: int) -> list[str]:
    """Ids of up to `most` queues in which there are dead letters of a queue, in order."""
    found: list[str] = []
    queue_id: str | None = db.execute(LIES_IN, (source_id, "")).get
    while queue_id is not None and len(found) < most:
        found.append(queue_id)
        queue_id = db.execute(LIES_IN, (source_id, queue_id)).get
    return found


def holds(db: apsw.Connection, queue_id: str) -> bool:
    """Are there dead letters in a queue?"""
    return db.execute(HOLDS, (queue_id,)).get is not None


def of_object(db: apsw.Connection, object_id: str, source_id: str, limit: int) -> list[DeadLetter]:
    """The dead letters that a message of a queue, given by its id there, has become, the oldest first."""
    rows: list[tuple[Any, ...]] = db.execute(OF_OBJECT, (object_id, source_id, limit)).fetchall()
    return [DeadLetter(*row) for row in rows]


def replayed_as(db: apsw.Connection, message: str, source_id: str) -> DeadLetter | None:
    """The dead letter that a message of a queue was made of."""
    row: Sequence[Any] | None = db.execute(REPLAYED_AS, (message, source_id)).get
    return None if row is None else DeadLetter(*row)


def open_from(
    db: apsw.Connection, queue_id: str, source_id: str, limit: int, *, at: int, aged_ts: int
) -> int:
    """How many live dead letters of a queue lie in another, not replayed; counts no further than `limit`."""
    asked = {"queue": queue_id, "source": source_id, "limit": limit, "at": at, "aged": aged_ts}
    return len(db.execute(OPEN_FROM, asked).fetchall())
