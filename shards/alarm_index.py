"""The namespace's index of alarms: which shard is due when, known without opening any.

Invariant: the time on disk here is never later than the one in the shard's own file. So moving an alarm earlier
is written here, and is durable, before the shard commits; moving it later is written some time after. A time that
is too early is harmless: the shard is woken, finds nothing due, and the index learns the truth.

The rule is workerd's: https://github.com/cloudflare/workerd/blob/main/src/workerd/io/actor-sqlite.c%2B%2B
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import apsw
import trio

from shards.clock import Clock, MovableClock
from shards.disk import Disk
from shards.errors import UnusableFile
from shards.sqlite import NOT_A_DATABASE, connect

DDL = """
CREATE TABLE IF NOT EXISTS alarms (
  name   TEXT PRIMARY KEY NOT NULL,
  due_ms INTEGER NOT NULL  -- unix ms
) STRICT, WITHOUT ROWID
"""
READ = "SELECT name, due_ms FROM alarms"
PUT = "INSERT INTO alarms (name, due_ms) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET due_ms = excluded.due_ms"
DELETE = "DELETE FROM alarms WHERE name = ?"

COMPLETE = 1  # user_version, once every shard was looked at: a crash may come before that
FILE_NAME = "alarms.sqlite"
RELAX_S = 1.0  # later times are written together, at most this often
WAL_BYTES_MAX = 4 * 1024 * 1024


def read(db: apsw.Connection) -> list[tuple[str, int]]:
    """Return the index as it is on disk."""
    return [(str(name), cast(int, due_ms)) for name, due_ms in db.execute(READ).fetchall()]


class _Wait:
    """Somebody waits for the write under way; `error` is why it failed."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.error: Exception | None = None


class AlarmIndex:
    """Due times by shard, in memory and on disk. `run` writes; all else only touches memory."""

    def __init__(self, path: Path, disk: Disk, clock: Clock | None = None) -> None:
        """clock: where it is one that is moved by hand, what is due then is not waited for."""
        self.path = path
        self.failed = ""  # the last write's error; "" while all is well
        self._disk = disk
        self._db: apsw.Connection | None = None
        self._due: dict[str, int] = {}  # as the shards have it
        self._durable: dict[str, int] = {}  # as the disk has it; while a write is under way, never earlier
        self._heap: list[tuple[int, str]] = []
        self._ringing: set[str] = set()
        self._changed = trio.Event()  # something is due earlier than all else
        self._dirty: dict[str, int | None] = {}  # what is to be written, in the order it came
        self._waits: list[_Wait] = []
        self._work = trio.Event()
        self._urgent = trio.Event()
        self._refused = False  # the disk refused a write or sync: the file is not to be trusted any more
        self._stopping = False
        if isinstance(clock, MovableClock):
            clock.follow(self)

    def __len__(self) -> int:
        return len(self._due)

    # -- opening ----------------------------------------------------------------------------------------

    async def load(self) -> bool:
        """Read the index; return False if it was missing or unreadable and has to be filled anew."""
        rows, complete = await self._disk.run(self._open)
        self._durable = dict(rows)
        self._due = dict(rows)
        self._heap = [(due_ms, name) for name, due_ms in rows]
        heapq.heapify(self._heap)
        return complete

    def _open(self) -> tuple[list[tuple[str, int]], bool]:
        try:
            self._db = self._connect()
            rows = read(self._db)
            complete = self._db.pragma("user_version") == COMPLETE
        except (UnusableFile, *NOT_A_DATABASE, apsw.SQLError):
            rows, complete = [], False
            self._start_over()
        self._disk.sync_folder(self.path.parent)
        return rows, complete

    def _start_over(self) -> None:
        """Begin a new file: there is nothing in the old one that the shards do not know."""
        if self._db is not None:
            self._db.close(True)
            self._db = None
        for suffix in ("", "-wal", "-shm"):
            self._disk.remove(Path(f"{self.path}{suffix}"))
        self._db = self._connect()

    def _connect(self) -> apsw.Connection:
        db = connect(self.path, self._disk.vfs, cache_kib=256)
        db.pragma("synchronous", "full")  # rare writes, in a worker thread: SQLite may sync them itself
        db.execute(DDL)
        return db

    def fill(self, names: Iterable[str], due_ms: int) -> None:
        """Have every shard of `names` looked at: the way to rebuild a lost index."""
        for name in names:
            if name not in self._due:
                self.note(name, due_ms)
                self._mark(name, due_ms)
        self._work.set()  # even if there are none: from now on the index is complete

    # -- for actors -------------------------------------------------------------------------------------

    async def ensure(self, name: str, due_ms: int | None) -> None:
        """Before the shard commits `due_ms`: return once the disk holds a time that is not later.

        Raises apsw.Error or OSError when the index cannot be written.
        """
        if due_ms is None:
            return
        if self._durable.get(name, math.inf) <= due_ms:
            coming = self._dirty.get(name, due_ms)
            if coming is None or coming > due_ms:  # would be written after this commit, and be too late
                self._mark(name, due_ms)
            return
        self.note(name, due_ms)
        self._mark(name, due_ms)
        wait = _Wait()
        self._waits.append(wait)
        self._urgent.set()
        await wait.done.wait()
        if wait.error is not None:
            raise wait.error

    def note(self, name: str, due_ms: int | None) -> None:
        """Remember when the shard is due, for this process only."""
        if due_ms is None:
            self._due.pop(name, None)
        elif self._due.get(name) != due_ms:
            self._due[name] = due_ms
            self._push(name)

    def relax(self, name: str, due_ms: int | None) -> None:
        """The shard's own disk says `due_ms`, and no turn is about to change it: write it here too, in a while."""
        if self._durable.get(name) != due_ms:
            self._mark(name, due_ms)

    # -- for the namespace ------------------------------------------------------------------------------

    def pop_due(self, now_ms: int) -> str | None:
        """Take one shard that is due. The caller wakes it, then says `rung`."""
        while self._heap and self._heap[0][0] <= now_ms:
            due_ms, name = heapq.heappop(self._heap)
            if self._due.get(name) == due_ms and name not in self._ringing:
                self._ringing.add(name)
                return name
        return None

    def rung(self, name: str) -> None:
        """The shard was woken; what is noted of it now counts."""
        self._ringing.discard(name)
        if name in self._due:
            self._push(name)

    def next_due_ms(self) -> int | None:
        """When the next shard is due; None if none is."""
        while self._heap and (
            self._due.get(self._heap[0][1]) != self._heap[0][0] or self._heap[0][1] in self._ringing
        ):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def nudge(self) -> None:
        """The clock was moved: what waits for it looks again."""
        self._changed.set()

    def quiet(self, now_ms: int) -> bool:
        """Is nothing due, and nobody being woken?"""
        due_ms = self.next_due_ms()
        return not self._ringing and (due_ms is None or due_ms > now_ms)

    async def wait_changed(self) -> None:
        """Return when something became due earlier than all else, or the clock was moved."""
        await self._changed.wait()
        self._changed = trio.Event()

    def _push(self, name: str) -> None:
        heapq.heappush(self._heap, (self._due[name], name))
        if self._heap[0][1] == name:
            self._changed.set()

    # -- writing ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write what changed until `stop`: urgent things at once and together, the rest every RELAX_S."""
        while not self._stopping:
            await self._work.wait()
            self._work = trio.Event()
            with trio.move_on_after(RELAX_S):
                await self._urgent.wait()
            self._urgent = trio.Event()
            await self._write()
        if self._dirty:
            await self._write()
        assert self._db is not None
        db = self._db
        await self._disk.run(lambda: db.close(True))

    def stop(self) -> None:
        """Let `run` write the rest and return."""
        self._stopping = True
        self._work.set()
        self._urgent.set()

    def _mark(self, name: str, due_ms: int | None) -> None:
        self._dirty[name] = due_ms
        self._work.set()

    async def _write(self) -> None:
        changes, self._dirty = list(self._dirty.items()), {}
        waits, self._waits = self._waits, []
        error: Exception | None = None
        for name, due_ms in changes:  # until the write ends, the disk holds the old time or the new one
            old = self._durable.pop(name, None)
            if old is not None and due_ms is not None:
                self._durable[name] = max(old, due_ms)
        try:
            await self._disk.run(lambda: self._store(changes))
        except (apsw.Error, OSError) as caught:
            error = caught
        self.failed = "" if error is None else f"{self.path}: {error}"
        for name, due_ms in changes:
            if error is not None:
                self._durable.pop(name, None)  # unknown: the next `ensure` writes
                self._dirty.setdefault(name, due_ms)  # tried again with the next change
            elif due_ms is not None:
                self._durable[name] = due_ms
        if isinstance(error, apsw.IOError | OSError):
            self._refused = True
            self._durable.clear()
            self._dirty = {**self._due, **self._dirty}
            self._work.set()
        for wait in waits:
            wait.error = error
            wait.done.set()

    def _store(self, changes: list[tuple[str, int | None]]) -> None:
        if self._refused:
            self._start_over()
            self._disk.sync_folder(self.path.parent)
            self._refused = False
        db = self._db
        assert db is not None
        with db:
            db.executemany(PUT, [(name, due_ms) for name, due_ms in changes if due_ms is not None])
            db.executemany(DELETE, [(name,) for name, due_ms in changes if due_ms is None])
            db.pragma("user_version", COMPLETE)
        if Path(f"{self.path}-wal").stat().st_size > WAL_BYTES_MAX:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
