"""Tables `entities` and `command_receipts`: what commands made, and which command did it, each in one transaction."""

from __future__ import annotations

from typing import NamedTuple

import apsw

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


def page(db: apsw.Connection, entity_type: str, after: str, limit: int) -> list[Entity]:
    """Up to `limit` entities of a type, by id from above `after`."""
    return [Entity(*row) for row in db.execute(PAGE, (entity_type, after, limit))]


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
