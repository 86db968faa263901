"""Table `consumers`: who works a queue, by which rules, and how far they have come.

Counters are kept in the transactions that change what they count.
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec
from msgspec import Struct

from edgequeues.core.backoff import Backoff
from edgequeues.core.lifecycle import State
from edgequeues.models import ConsumerConfig

DEFAULT = "default"  # the consumer a work queue is born with, and who is meant where none is named

DDL = """
CREATE TABLE consumers (
  consumer_id     INTEGER PRIMARY KEY,
  queue_id        TEXT    NOT NULL,
  name            TEXT    NOT NULL,
  ordering        TEXT    NOT NULL CHECK (ordering IN ('unordered', 'fifo', 'per_key')),
  lease_ms        INTEGER NOT NULL CHECK (lease_ms > 0),
  batch           INTEGER NOT NULL CHECK (batch > 0),
  attempts_max    INTEGER CHECK (attempts_max > 0),  -- deliveries in all; NULL: no end
  backoff         TEXT    NOT NULL,                  -- JSON
  lapse_delay_ms  INTEGER NOT NULL CHECK (lapse_delay_ms >= 0),
  starvation_ms   INTEGER CHECK (starvation_ms > 0),  -- what has been ready so long goes first; NULL: it does not
  dead_letters    TEXT,               -- name or id of the queue they go to; NULL: the implicit one; '': nowhere
  letter_body     TEXT    NOT NULL CHECK (letter_body IN ('original', 'envelope')),  -- what dialects show of one
  facts           TEXT    NOT NULL,   -- JSON that a dialect keeps with it
  created_ts      INTEGER NOT NULL,   -- unix ms
  filled          INTEGER NOT NULL,   -- entries up to this position have deliveries, or had
  filling         INTEGER NOT NULL CHECK (filling IN (0, 1)),  -- are there entries above that?
  bytes           INTEGER NOT NULL CHECK (bytes >= 0),  -- of data, of all deliveries
  turns           INTEGER NOT NULL,   -- given to heads of lines, so that lines take turns
  scheduled       INTEGER NOT NULL CHECK (scheduled >= 0),
  waiting         INTEGER NOT NULL CHECK (waiting >= 0),
  ready           INTEGER NOT NULL CHECK (ready >= 0),
  leased          INTEGER NOT NULL CHECK (leased >= 0),
  backoff_count   INTEGER NOT NULL CHECK (backoff_count >= 0),
  total_in        INTEGER NOT NULL,   -- deliveries that were made
  total_attempts  INTEGER NOT NULL,   -- leases that were given
  total_acked     INTEGER NOT NULL,
  total_retried   INTEGER NOT NULL,
  total_lapsed    INTEGER NOT NULL,
  total_released  INTEGER NOT NULL,
  total_exhausted INTEGER NOT NULL,   -- dead: failed too often
  total_permanent INTEGER NOT NULL,   -- dead: failed for good
  total_skipped   INTEGER NOT NULL,   -- dead: given up by an operator
  total_expired   INTEGER NOT NULL,
  total_cancelled INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX consumers_name ON consumers (queue_id, name);
CREATE INDEX        consumers_fill ON consumers (consumer_id) WHERE filling = 1;
"""
_FIXED = "consumer_id, queue_id, name, created_ts"
_RULES = (
    "ordering, lease_ms, batch, attempts_max, backoff, lapse_delay_ms, starvation_ms, dead_letters, letter_body,"
    " facts"
)
_STATE = (
    "filled, filling, bytes, turns, scheduled, waiting, ready, leased, backoff_count, total_in, total_attempts,"
    " total_acked, total_retried, total_lapsed, total_released, total_exhausted, total_permanent, total_skipped,"
    " total_expired, total_cancelled"
)
COLUMNS = f"{_FIXED}, {_RULES}, {_STATE}"
OF_QUEUE = f"SELECT {COLUMNS} FROM consumers WHERE queue_id = ? ORDER BY consumer_id"
QUEUE_OF = "SELECT queue_id FROM consumers WHERE consumer_id = ?"
FILLING = "SELECT consumer_id FROM consumers WHERE filling = 1 LIMIT ?"
INSERT = f"INSERT INTO consumers ({COLUMNS}) VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))})"
SAVE = f"UPDATE consumers SET ({_STATE}) = ({', '.join('?' * (_STATE.count(',') + 1))}) WHERE consumer_id = ?"
CONFIGURE = (
    f"UPDATE consumers SET ({_RULES}) = ({', '.join('?' * (_RULES.count(',') + 1))}) WHERE consumer_id = ?"
)
REMOVE = "DELETE FROM consumers WHERE consumer_id = ?"


class Counts(Struct):
    """How many deliveries are in each state, and what became of all there were. See the columns of the same names."""

    scheduled: int = 0
    waiting: int = 0
    ready: int = 0
    leased: int = 0
    backoff: int = 0
    total_in: int = 0
    total_attempts: int = 0
    total_acked: int = 0
    total_retried: int = 0
    total_lapsed: int = 0
    total_released: int = 0
    total_exhausted: int = 0
    total_permanent: int = 0
    total_skipped: int = 0
    total_expired: int = 0
    total_cancelled: int = 0

    def move(self, before: State | None, after: State | None, count: int = 1) -> None:
        """Deliveries go from one state to another; None: they are made, or removed."""
        if before is not None:
            setattr(self, before, getattr(self, before) - count)
        if after is not None:
            setattr(self, after, getattr(self, after) + count)

    @property
    def unfinished(self) -> int:
        """Deliveries there are."""
        return self.scheduled + self.waiting + self.ready + self.leased + self.backoff


class Consumer(Struct):
    """A row in memory. Change it, then `save` what changed."""

    consumer_id: int
    queue_id: str
    name: str
    created_ts: int
    config: ConsumerConfig
    filled: int
    filling: bool
    bytes: int
    turns: int
    counts: Counts
    dirty: bool = False


def of_queue(db: apsw.Connection, queue_id: str) -> list[Consumer]:
    """The consumers of a queue, in the order in which they were made."""
    return [_consumer(row) for row in db.execute(OF_QUEUE, (queue_id,)).fetchall()]


def queue_of(db: apsw.Connection, consumer_id: int) -> str | None:
    """The queue that a consumer works."""
    queue_id: str | None = db.execute(QUEUE_OF, (consumer_id,)).get
    return queue_id


def filling(db: apsw.Connection, limit: int) -> list[int]:
    """Consumers of any queue that have not been given all entries yet."""
    rows: list[tuple[Any, ...]] = db.execute(FILLING, (limit,)).fetchall()
    return [consumer_id for (consumer_id,) in rows]


def insert(
    db: apsw.Connection,
    consumer_id: int,
    queue_id: str,
    name: str,
    config: ConsumerConfig,
    *,
    filled: int,
    tail: int,
    now_ms: int,
) -> Consumer:
    """Make a consumer that has been given all entries up to position `filled`. Its id must never have been used."""
    row = Consumer(consumer_id, queue_id, name, now_ms, config, filled, filled < tail, 0, 0, Counts())
    values = (consumer_id, queue_id, name, now_ms, *_rules(config), *_state(row))
    db.execute(INSERT, values)
    return row


def save(db: apsw.Connection, consumer: Consumer) -> None:
    """Write progress and counters down, if anything changed them."""
    if consumer.dirty:
        db.execute(SAVE, (*_state(consumer), consumer.consumer_id))
        consumer.dirty = False


def configure(db: apsw.Connection, consumer: Consumer, config: ConsumerConfig) -> None:
    """Replace the rules; the order stays."""
    consumer.config = config
    db.execute(CONFIGURE, (*_rules(config), consumer.consumer_id))


def remove(db: apsw.Connection, consumer_id: int) -> None:
    """Delete the row."""
    db.execute(REMOVE, (consumer_id,))


def _rules(config: ConsumerConfig) -> tuple[Any, ...]:
    backoff = msgspec.json.encode(config.backoff).decode()
    facts = msgspec.json.encode(config.facts).decode()
    return (
        config.ordering,
        config.lease_ms,
        config.batch,
        config.attempts_max,
        backoff,
        config.lapse_delay_ms,
        config.starvation_after_ms,
        config.dead_letters,
        config.dead_letter_body,
        facts,
    )


def _state(row: Consumer) -> tuple[int, ...]:
    return (row.filled, row.filling, row.bytes, row.turns, *msgspec.structs.astuple(row.counts))


def _consumer(row: tuple[Any, ...]) -> Consumer:
    consumer_id, queue_id, name, created_ts, ordering, lease_ms, batch, attempts_max, backoff, *rest = row
    (
        lapse_delay_ms,
        starvation_ms,
        dead_letters,
        letter_body,
        facts,
        filled,
        filling_,
        size,
        turns,
        *counts,
    ) = rest
    config = ConsumerConfig(
        ordering=ordering,
        lease_ms=lease_ms,
        batch=batch,
        attempts_max=attempts_max,
        backoff=msgspec.json.decode(backoff, type=Backoff),
        lapse_delay_ms=lapse_delay_ms,
        starvation_after_ms=starvation_ms,
        dead_letters=dead_letters,
        dead_letter_body=letter_body,
        facts=msgspec.json.decode(facts, type=dict[str, str]),
    )
    return Consumer(
        consumer_id, queue_id, name, created_ts, config, filled, bool(filling_), size, turns, Counts(*counts)
    )
