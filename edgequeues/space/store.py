"""Table `store`: who this store is, and the counters its queues share. One row, at most one UPDATE a commit."""

from __future__ import annotations

from hashlib import blake2b

import apsw
from msgspec import Struct

DDL = """
CREATE TABLE store (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  store_id   TEXT    NOT NULL,  -- ULID; cursors are bound to it
  file_id    TEXT    NOT NULL,  -- the file it was last opened in; '' if there was none
  lamport    INTEGER NOT NULL CHECK (lamport >= 0),   -- highest counter of any version given or stated
  position   INTEGER NOT NULL CHECK (position >= 0),  -- last one given to an entry, in whatever queue
  clock_ms   INTEGER NOT NULL,  -- unix ms; latest time at which an entry was appended, expired or swept
  created_ts INTEGER NOT NULL   -- unix ms
) STRICT;
"""
STEP_2 = """
ALTER TABLE store ADD COLUMN lease_key BLOB;  -- signs leases; NULL until the next opening
ALTER TABLE store ADD COLUMN wall_ms INTEGER NOT NULL DEFAULT 0;  -- unix ms; what the clock said at clock_ms
UPDATE store SET wall_ms = clock_ms;
"""
READ = "SELECT store_id, file_id, lamport, position, clock_ms, created_ts, lease_key, wall_ms FROM store WHERE id = 1"
CREATE = (
    "INSERT INTO store (id, store_id, file_id, lamport, position, clock_ms, created_ts)"
    " VALUES (1, ?, ?, 0, 0, 0, ?)"
)
SAVE = "UPDATE store SET lamport = ?, position = ?, clock_ms = ?, wall_ms = ? WHERE id = 1"
SET_KEY = "UPDATE store SET lease_key = ? WHERE id = 1"
IDENTIFY = "UPDATE store SET store_id = ?, file_id = ? WHERE id = 1"


class Store(Struct):
    """The row in memory. Whoever changes its counters has `save` called before the commit."""

    store_id: str
    file_id: str
    lamport: int
    position: int
    clock_ms: int
    created_ts: int
    lease_key: bytes | None = None
    wall_ms: int = 0
    saved: tuple[int, ...] = ()  # the counters as last written down
    actor: str = ""  # names this store in versions whose writer gave no name

    def __post_init__(self) -> None:
        self.actor = blake2b(self.store_id.encode(), digest_size=4).hexdigest()

    @property
    def counters(self) -> tuple[int, ...]:
        """What turns change."""
        return self.lamport, self.position, self.clock_ms, self.wall_ms

    def at(self, now_ms: int) -> int:
        """The store's time in unix ms: the clock, but never before what was decided by already.

        After the clock was stepped back, the store's time goes on from where it was at half the clock's pace, until
        the clock has caught up. So it never falls as positions rise, what has expired for a writer stays expired,
        and what is delayed or leased takes no longer than twice its time.
        """
        return max(now_ms, self.clock_ms + max(now_ms - self.wall_ms, 0) // 2)

    def stepped_back(self, now_ms: int) -> bool:
        """Has the clock been stepped back since the time was noted?"""
        return now_ms < self.wall_ms

    def note(self, now_ms: int) -> None:
        """Take down what time it is, so that it is never earlier."""
        at, back = self.at(now_ms), self.stepped_back(now_ms)
        if back or at > self.clock_ms:
            # At half pace, so far and no further: what is left of an odd ms is not forgotten.
            self.wall_ms = now_ms if back else min(now_ms, self.wall_ms + 2 * (at - self.clock_ms))
            self.clock_ms = at


def load(db: apsw.Connection) -> Store | None:
    """Read the row; None before `create`."""
    row = db.execute(READ).get
    if row is None:
        return None
    found = Store(*row)
    found.saved = found.counters
    return found


def create(db: apsw.Connection, store_id: str, file_id: str, now_ms: int) -> None:
    """Write the row, all counters 0."""
    db.execute(CREATE, (store_id, file_id, now_ms))


def save(db: apsw.Connection, store: Store) -> None:
    """Write the counters down, if anything changed them."""
    if store.counters != store.saved:
        store.saved = store.counters
        db.execute(SAVE, store.saved)


def set_key(db: apsw.Connection, key: bytes) -> None:
    """Sign leases with this from now on; those given before are unknown."""
    db.execute(SET_KEY, (key,))


def identify(db: apsw.Connection, store_id: str, file_id: str) -> None:
    """Make this the store `store_id` in the file `file_id`; the counters go on."""
    db.execute(IDENTIFY, (store_id, file_id))
