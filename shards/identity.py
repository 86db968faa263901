"""Table `shard_file`: which file these rows belong to, so that a copy or a restored backup knows it is one."""

from __future__ import annotations

import apsw

DDL = """
CREATE TABLE shard_file (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  identity   TEXT    NOT NULL,  -- as files.identity gave it when the file was last opened
  generation INTEGER NOT NULL   -- how often the file was found to be a copy
) STRICT;
INSERT INTO shard_file (id, identity, generation) VALUES (1, '', 0);
"""
READ = "SELECT identity, generation FROM shard_file WHERE id = 1"
COPY = "copy"  # the identity of no file
STORE = "UPDATE shard_file SET identity = ?, generation = ? WHERE id = 1"


def recognise(db: apsw.Connection, identity: str) -> int:
    """Return the generation: one higher than stored if `identity` is another file's. The caller commits."""
    known, generation = db.execute(READ).get
    if known != identity:
        generation += bool(known)
        db.execute(STORE, (identity, generation))
    return int(generation)


def adopt(db: apsw.Connection, identity: str) -> None:
    """Say that the rows moved to another file that is not a copy: a repair."""
    _, generation = db.execute(READ).get
    db.execute(STORE, (identity, generation))


def disown(db: apsw.Connection) -> None:
    """Say that these rows are a copy, in whatever file they are opened next."""
    _, generation = db.execute(READ).get
    db.execute(STORE, (COPY, generation))
