"""Tables `entities` and `command_receipts`: what commands made, and which command did it, each in one transaction."""

from __future__ import annotations

from typing import NamedTuple

import apsw

RECEIPTS_KEPT_MS = 90 * 86_400_000
PAGE_BYTES_MAX = 4 * 1024 * 1024  # of attributes; the entity that goes beyond ends its page

DDL = """
CREATE TABLE entities (
  entity_type TEXT    NOT NULL,
  entity_id   TEXT    NOT NULL,
  state       TEXT,
  attributes  TEXT    NOT NULL,  -- JSON object
  version     INTEGER NOT NULL,  -- 1 when it was made, one more with each command
  created_ts  INTEGER NOT NULL,  -- unix ms
  updated_ts  INTEGER NOT NULL,  -- unix ms
  PRIMARY KEY (entity_type, entity_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE command_receipts (
  receipt_id  INTEGER PRIMARY KEY,  -- a position of the space
  entity_type TEXT    NOT NULL,
  entity_id   TEXT    NOT NULL,
  version     INTEGER NOT NULL,     -- of the entity after the command
  command     TEXT    NOT NULL,
  queue_id    TEXT,                 -- where the message lay that the command was made of; NULL: there was none
  object_id   TEXT,                 -- its id there
  executed_ts INTEGER NOT NULL      -- unix ms
) STRICT;
CREATE INDEX command_receipts_entity ON command_receipts (entity_type, entity_id, receipt_id);
"""
_COLUMNS = "entity_type, entity_id, state, attributes, version, created_ts, updated_ts"
_RECEIPT = "receipt_id, entity_type, entity_id, version, command, queue_id, object_id, executed_ts"
GET = f"SELECT {_COLUMNS} FROM entities WHERE entity_type = ? AND entity_id = ?"
PAGE = f"SELECT {_COLUMNS} FROM entities WHERE entity_type = ? AND entity_id > ? ORDER BY entity_id LIMIT ?"
PUT = f"INSERT OR REPLACE INTO entities ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
REMOVE = "DELETE FROM entities WHERE entity_type = ? AND entity_id = ?"
RECORD = f"INSERT INTO command_receipts ({_RECEIPT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
HISTORY = (
    f"SELECT {_RECEIPT} FROM command_receipts WHERE entity_type = ? AND entity_id = ? AND receipt_id > ?"
    " ORDER BY receipt_id LIMIT ?"
)

ANY = "SELECT 1 FROM command_receipts WHERE entity_type = ? AND entity_id = ? LIMIT 1"
# Receipts are as old as their numbers say: looking at the lowest of them is looking at the oldest.
SWEEP = (
    "DELETE FROM command_receipts WHERE executed_ts <= ? AND receipt_id IN"
    " (SELECT receipt_id FROM command_receipts WHERE receipt_id > 0 ORDER BY receipt_id LIMIT ?)"
)
OLDEST = "SELECT executed_ts FROM command_receipts WHERE receipt_id > 0 ORDER BY receipt_id LIMIT 1"


class Entity(NamedTuple):
    """A thing that commands act on. attributes: JSON object. created, updated: unix ms."""

    entity_type: str
    entity_id: str
    state: str | None
    attributes: str
    version: int
    created: int
    updated: int


class Receipt(NamedTuple):
    """That a command was carried out on an entity. executed: unix ms."""

    receipt_id: int
    entity_type: str
    entity_id: str
    version: int
    command: str
    queue_id: str | None
    object_id: str | None
    executed: int


def get(db: apsw.Connection, entity_type: str, entity_id: str) -> Entity | None:
    """The entity, if there is one."""
    row = db.execute(GET, (entity_type, entity_id)).fetchone()
    return None if row is None else Entity(*row)


def page(db: apsw.Connection, entity_type: str, after: str, limit: int) -> tuple[list[Entity], bool]:
    """Up to `limit` entities of a type, or about PAGE_BYTES_MAX of them, by id from above `after`.

    The second value: is there a further one?
    """
    found: list[Entity] = []
    room = PAGE_BYTES_MAX
    cursor = db.execute(PAGE, (entity_type, after, limit + 1))
    try:
        for row in cursor:  # row by row: a page of the largest would be gigabytes
            if room <= 0 or len(found) == limit:
                return found, True
            found.append(Entity(*row))
            room -= len(found[-1].attributes)
    finally:
        cursor.close()  # a half-read statement would keep the transaction from committing
    return found, False


def put(db: apsw.Connection, entity: Entity) -> None:
    """Keep an entity as it is now."""
    db.execute(PUT, entity)


def remove(db: apsw.Connection, entity_type: str, entity_id: str) -> None:
    """Forget an entity; what was done to it stays on record."""
    db.execute(REMOVE, (entity_type, entity_id))


def record(db: apsw.Connection, receipt: Receipt) -> None:
    """Write down that a command was carried out."""
    db.execute(RECORD, receipt)


def history(db: apsw.Connection, entity_type: str, entity_id: str, after: int, limit: int) -> list[Receipt]:
    """Up to `limit` commands on an entity, the oldest first, from above receipt `after`."""
    return [Receipt(*row) for row in db.execute(HISTORY, (entity_type, entity_id, after, limit))]


def has_history(db: apsw.Connection, entity_type: str, entity_id: str) -> bool:
    """Is there a receipt of a command on this entity?"""
    return db.execute(ANY, (entity_type, entity_id)).get is not None


def sweep(db: apsw.Connection, at: int, limit: int) -> None:
    """Forget up to `limit` receipts that were written RECEIPTS_KEPT_MS before unix ms `at`, or earlier."""
    db.execute(SWEEP, (at - RECEIPTS_KEPT_MS, limit))


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms at which the time of the next receipt is over."""
    oldest: int | None = db.execute(OLDEST).get
    return None if oldest is None else oldest + RECEIPTS_KEPT_MS
