"""The port through which a commit can be replicated before it counts.

Order of a batch: execute, `append` its effects, COMMIT, flush, gate. The embedded journal records nothing, so a
lone node pays nothing; a replicated one is handed SQLite patchsets and decides, by refusing a record, who owns
the shard. A shard that is refused steps down: it rolls back, answers nobody with a result, and closes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, NamedTuple, Protocol

import apsw

Kind = Literal["claim", "effects", "migration", "image"]

AT_DDL = """
CREATE TABLE IF NOT EXISTS shard_at (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  sequence INTEGER NOT NULL  -- of the newest record these rows hold
) STRICT
"""
AT_READ = "SELECT sequence FROM shard_at WHERE id = 1"
AT_STORE = """
INSERT INTO shard_at (id, sequence) VALUES (1, ?)
ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence
"""
LOCAL_TABLES = frozenset(
    {"shard_at", "shard_file", "shard_schema", "sqlite_sequence"}
)  # never part of a patchset


class Claim(NamedTuple):
    """An owner's turn of office: `epoch` rises with every claim, `tail` is the last record before it."""

    epoch: int
    tail: int


class Effects(NamedTuple):
    """What one batch changed. data: a patchset; for a migration the number of the step, as decimal digits."""

    kind: Kind
    data: bytes


class Record(NamedTuple):
    """An entry of the journal."""

    sequence: int
    kind: Kind
    data: bytes


class Journal(Protocol):
    """One shard's replicated commit log, as one owner sees it."""

    records_effects: bool  # must the shard hand over patchsets?

    async def claim(self) -> Claim:
        """Become the owner; every earlier owner is fenced from now on."""
        ...

    def replay(self, after: int) -> AsyncIterator[Record]:
        """Yield the records after sequence `after`, up to our claim."""
        ...

    async def append(self, effects: Effects) -> int:
        """Return the record's sequence once it is durable. Raises Fenced; never guesses."""
        ...

    async def barrier(self) -> None:
        """Return if still the owner, for batches that only read. Raises Fenced."""
        ...

    async def checkpoint(self, image: bytes) -> int:
        """Replace the history by an image of the whole database, at the tail. Raises Fenced."""
        ...

    async def image(self, record: Record) -> bytes:
        """Fetch the database an image record stands for."""
        ...


class EmbeddedJournal:
    """No replication: the local file is the only truth."""

    records_effects = False

    async def claim(self) -> Claim:
        """Epoch 1: nobody else can own a file in our locked folder."""
        return Claim(epoch=1, tail=0)

    async def replay(self, after: int) -> AsyncIterator[Record]:
        """Nothing to replay."""
        del after
        records: tuple[Record, ...] = ()
        for record in records:
            yield record

    async def append(self, effects: Effects) -> int:
        """Do nothing."""
        del effects
        return 0

    async def barrier(self) -> None:
        """Do nothing."""

    async def checkpoint(self, image: bytes) -> int:
        """Do nothing."""
        del image
        return 0

    async def image(self, record: Record) -> bytes:
        """There are none."""
        raise AssertionError(record)


def start_recording(db: apsw.Connection) -> apsw.Session:
    """Record what the following transaction changes, in every table but the local ones."""
    session = apsw.Session(db, "main")
    session.table_filter(lambda table: table not in LOCAL_TABLES)
    session.attach()
    return session


def replay_effects(db: apsw.Connection, patchset: bytes) -> None:
    """Apply a recorded patchset. Raises apsw.AbortError where the rows differ from those it was made on."""

    def conflict(_reason: int, _change: apsw.TableChange) -> int:
        return int(apsw.SQLITE_CHANGESET_ABORT)

    apsw.Changeset.apply(patchset, db, conflict=conflict)


def read_at(db: apsw.Connection) -> int:
    """Return the sequence of the last record this file holds; 0 for none."""
    db.execute(AT_DDL)
    return int(db.execute(AT_READ).get or 0)


def store_at(db: apsw.Connection, sequence: int) -> None:
    """Write down, in the same transaction, which record it came from."""
    db.execute(AT_STORE, (sequence,))


def image_of(db: apsw.Connection) -> bytes:
    """Return the whole database as one file's bytes, readable without a -wal."""
    image = bytearray(db.serialize("main"))
    image[18:20] = b"\x01\x01"  # a serialised WAL database says "WAL" in its header and could not be opened
    return bytes(image)


def restore_image(db: apsw.Connection, image: bytes) -> None:
    """Replace the content of `db` by the image, in one transaction."""
    source = apsw.Connection(":memory:")
    source.deserialize("main", image)
    with db.backup("main", source, "main") as backup:
        while not backup.done:
            backup.step()
    source.close()
