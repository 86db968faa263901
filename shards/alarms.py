"""Table `shard_alarm`: the one alarm a shard keeps in its own file, and how often it has failed in a row."""

from __future__ import annotations

from typing import NamedTuple

import apsw

DDL = """
CREATE TABLE shard_alarm (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  due_ms   INTEGER,                                       -- unix ms; NULL: none set
  failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0)  -- runs of the handler that raised, since one did not
) STRICT;
INSERT INTO shard_alarm (id) VALUES (1);
"""
READ = "SELECT due_ms, failures FROM shard_alarm WHERE id = 1"
STORE = "UPDATE shard_alarm SET due_ms = ?, failures = 0 WHERE id = 1 AND (due_ms IS NOT ? OR failures > 0)"
START = "UPDATE shard_alarm SET due_ms = NULL WHERE id = 1"
FINISH = "UPDATE shard_alarm SET failures = 0 WHERE id = 1 AND failures > 0"
POSTPONE = "UPDATE shard_alarm SET due_ms = ?, failures = failures + 1 WHERE id = 1"

RETRY_FIRST_MS = 2_000  # workerd's first delay, doubled each time
RETRY_MAX_MS = 300_000


class Stored(NamedTuple):
    """The row: when the alarm is due, and how many runs of it failed in a row."""

    due_ms: int | None
    failures: int


def stored(db: apsw.Connection) -> Stored:
    """Read the alarm."""
    row = db.execute(READ).get
    return Stored(*row)


def store(db: apsw.Connection, due_ms: int | None) -> None:
    """Set or clear the alarm; a new time starts without failures."""
    db.execute(STORE, (due_ms, due_ms))


def start(db: apsw.Connection) -> None:
    """The handler is about to run: nothing is set any more, but failures are remembered."""
    db.execute(START)


def finish(db: apsw.Connection) -> None:
    """The handler returned."""
    db.execute(FINISH)


def postpone(db: apsw.Connection, now_ms: int) -> int:
    """Count a failed run and set the alarm to after its back-off; return that time."""
    due_ms = now_ms + retry_delay_ms(stored(db).failures)
    db.execute(POSTPONE, (due_ms,))
    return due_ms


def retry_delay_ms(failures: int) -> int:
    """Delay before the next run when `failures` runs in a row had failed before this one."""
    return min(RETRY_FIRST_MS << min(failures, 16), RETRY_MAX_MS)
