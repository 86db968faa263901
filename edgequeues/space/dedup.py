"""Table `dedup`: which messages a producer's idempotency key made, remembered for a while after they are gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import apsw

from edgequeues import tracing
from edgequeues.core.errors import IdempotencyMismatch, InvalidRequest
from edgequeues.models import Appended, NewEntry

WINDOW_MS = 24 * 3_600_000
RENEWED_MS = 3_600_000  # after which it is looked again whether the entry of a lasting key is there

DDL = """
CREATE TABLE dedup (
  scope      TEXT    NOT NULL,  -- within which a key means the same: the id of a queue
  key        TEXT    NOT NULL,
  object_id  TEXT    NOT NULL,
  position   INTEGER NOT NULL,
  version    TEXT    NOT NULL,
  digest     BLOB    NOT NULL,  -- of what was sent with the key
  expires_ts INTEGER NOT NULL,  -- unix ms
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX dedup_expires ON dedup (expires_ts);
"""
STEP_6 = """
ALTER TABLE dedup ADD COLUMN lasting INTEGER NOT NULL DEFAULT 0;  -- does it hold while its entry is there, too?
"""
_IS_THERE = "EXISTS (SELECT 1 FROM queue_entries e WHERE e.id = dedup.position)"
GET = (
    "SELECT object_id, position, version, digest FROM dedup WHERE scope = ? AND key = ?"
    f" AND (expires_ts > ? OR (lasting AND {_IS_THERE}))"
)
PUT = (
    "INSERT OR REPLACE INTO dedup (scope, key, object_id, position, version, digest, expires_ts, lasting)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_OVER = "(scope, key) IN (SELECT scope, key FROM dedup WHERE expires_ts <= ? ORDER BY expires_ts LIMIT ?)"
RENEW = f"UPDATE dedup SET expires_ts = ? WHERE {_OVER} AND lasting AND {_IS_THERE}"
SWEEP = (
    f"DELETE FROM dedup WHERE {_OVER} AND NOT (lasting AND {_IS_THERE})"  # more than were renewed may be over
)
FORGET = "DELETE FROM dedup WHERE (scope, key) IN (SELECT scope, key FROM dedup WHERE scope = ? LIMIT ?)"
SOONEST = "SELECT min(expires_ts) FROM dedup"


class First(NamedTuple):
    """What the first use of a key made."""

    object_id: str
    position: int
    version: str
    digest: bytes


def get(db: apsw.Connection, scope: str, key: str, at: int) -> First | None:
    """What this key made, if it was used within its window before unix ms `at`."""
    row = db.execute(GET, (scope, key, at)).get
    return None if row is None else First(*row)


def put(
    db: apsw.Connection,
    scope: str,
    keys: Iterable[str],
    first: First,
    expires_ts: int,
    *,
    lasting: bool = False,
) -> None:
    """Remember the keys of a message until unix ms `expires_ts`; lasting: and while its entry is there."""
    db.executemany(PUT, [(scope, key, *first, expires_ts, lasting) for key in keys])


def sweep(db: apsw.Connection, at: int, limit: int) -> int:
    """Forget up to `limit` keys whose window is over at unix ms `at`, but for lasting ones; return how many."""
    db.execute(RENEW, (at + RENEWED_MS, at, limit))
    before = db.total_changes()
    db.execute(SWEEP, (at, limit))
    return db.total_changes() - before


def forget(db: apsw.Connection, scope: str, limit: int) -> int:
    """Forget up to `limit` keys of a scope that is no more; return how many."""
    before = db.total_changes()
    db.execute(FORGET, (scope, limit))
    return db.total_changes() - before


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms at which the next window is over."""
    at: int | None = db.execute(SOONEST).get
    return at


# -- messages -----------------------------------------------------------------------------------------------


def repeats(db: apsw.Connection, scope: str, entries: Sequence[NewEntry], at: int) -> dict[int, Appended]:
    """What those of the entries made, by their place, whose keys were used before. Raises IdempotencyMismatch."""
    found: dict[int, Appended] = {}
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        key = entry.idempotency_key
        if key is None:
            continue
        if key in seen:
            raise InvalidRequest(f"idempotency_key {key}: given twice in one call")
        seen.add(key)
        known = get(db, scope, key, at)
        if known is not None and known.digest != _digest(entry):
            raise IdempotencyMismatch(f"idempotency_key {key}")
        if known is not None:
            found[index] = Appended(known.object_id, known.position, known.version, "same")
    return found


def remember(
    db: apsw.Connection, scope: str, entries: Sequence[NewEntry], results: Sequence[Appended], at: int
) -> bool:
    """Remember the keys of what was appended; return whether there was any."""
    rows = [
        (scope, one.idempotency_key, *first(one, made), at + WINDOW_MS, False)
        for one, made in zip(entries, results, strict=True)
        if one.idempotency_key is not None
    ]
    db.executemany(PUT, rows)
    return bool(rows)


def first(entry: NewEntry, made: Appended) -> First:
    """What to remember of a message that was made."""
    return First(made.id, made.position, made.version, _digest(entry))


def _digest(entry: NewEntry) -> bytes:
    parts = (
        entry.object_id,
        entry.type,
        entry.key,
        tracing.unmarked(entry.headers),
        entry.content_type,
        entry.data,
    )
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
