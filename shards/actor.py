"""One open shard: opens the file, runs the turns in groups, flushes, wakes the callers, closes.

Life: opening, running, draining, closed; or broken from any of them, which is for good. Two tasks share the
work. `_execute` runs waiting turns in one transaction and commits it; `_flush` makes commits durable, one flush
at a time, each covering every commit made before it began.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

import apsw
import trio

from shards import alarms, journal, opening, repair
from shards.batch import Batch
from shards.errors import DiskFull, Fenced, Moved, Overloaded, ShardBroken, ShardBusy, ShardError
from shards.gate import Gate
from shards.journal import Effects, Journal
from shards.mailbox import Mailbox
from shards.meter import Meter
from shards.shard import Context, Shard
from shards.sqlite import DISK_ERRORS, patiently
from shards.storage import FlushRefused, Storage
from shards.turn import Turn

S = TypeVar("S", bound=Shard)

State = Literal["opening", "running", "draining", "closed"]
LARGE_TURN_S = 0.0002  # twice what a commit costs
RESTART_MAX_S = 0.5  # how long turns wait for other programs' readers to let go of a -wal that is too long

log = logging.getLogger("shards")


class Host(opening.Host, Protocol):
    """What an actor needs of its namespace."""

    meter: Meter

    def emit(self, name: str, events: Sequence[Hashable]) -> None:
        """Pass a shard's events on to the watchers."""
        ...

    def call_in(self, name: str, events: Sequence[Hashable]) -> bool:
        """Wake those who wait in line for what a batch is about to commit; return whether there is anybody."""
        ...

    async def alarm_ensure(self, name: str, due_ms: int | None) -> None:
        """Return once the index on disk is not later than `due_ms`."""
        ...

    def alarm_note(self, name: str, due_ms: int | None, *, settled: bool) -> None:
        """The shard's alarm is `due_ms`; settled: its file says so on disk and no turn is about to change it."""
        ...

    async def disk_full(self) -> None:
        """A write found no room."""
        ...

    def refused(self, name: str, reason: str) -> None:
        """The disk refused a write or flush of shard `name`."""
        ...


class Actor(Generic[S]):
    """Runs one shard from its first call to its closing. Used once; a new one takes over from a closed one."""

    def __init__(
        self,
        name: str,
        path: Path,
        kind: type[S],
        host: Host,
        shard_journal: Journal,
        randomness: random.Random,
    ) -> None:
        self.name = name
        self.path = path
        self.state: State = "opening"
        self.used_s = trio.current_time()
        self.wal_bytes = 0  # of the -wal in use
        self.opened = trio.Event()  # or could not be
        self.closed = trio.Event()
        self._kind, self._host, self._journal = kind, host, shard_journal
        self._random = randomness
        self._mailbox = Mailbox()
        self._gate = Gate(lambda events: host.emit(name, events), host.meter)
        self._turns_lock = trio.Lock()  # held by a batch, and by a checkpoint that needs the turns to wait
        self._flush_wanted = trio.Event()
        self._turn_s = 0.0  # that a turn of the last batch took, on average
        self._executed = False  # no batch will come any more
        self._checkpointing = False
        self._alarm_ms: int | None = None  # as of the newest commit
        self._alarm_settled = True  # does the index know?
        self._failure: Callable[[], ShardError] | None = None
        self._broken = trio.Event()  # the disk refused: no flush, no checkpoint any more
        self._storage: Storage
        self._context: Context
        self._shard: S

    # -- for callers ------------------------------------------------------------------------------------

    @property
    def accepting(self) -> bool:
        """May turns be submitted? If not, a successor takes over once this one is closed."""
        return self.state in ("opening", "running")

    @property
    def busy(self) -> bool:
        """Is anything waiting, running or held?"""
        return self.waiting > 0 or self._turns_lock.locked()

    @property
    def waiting(self) -> int:
        """Calls that have no answer yet."""
        return len(self._mailbox) + self._gate.held_turns

    def submit(self, turn: Turn[Any], *, bounded: bool = True, is_use: bool = True) -> None:
        """Queue a turn. is_use: does it keep the shard open? Raises Overloaded when too many calls are unanswered."""
        assert self.accepting
        if bounded and self.waiting >= self._host.limits.mailbox_max:
            raise Overloaded(f"shard {self.name}")
        self.used_s = trio.current_time() if is_use else self.used_s
        self._mailbox.put(turn)

    def drain(self) -> None:
        """Take no more turns, answer those here, flush and close."""
        if self.accepting:
            self.state = "draining"
            self._mailbox.close()

    async def checkpoint_journal(self) -> None:
        """Hand the journal an image of the whole file in place of its history so far."""
        await self.opened.wait()
        if self._failure is not None:
            raise self._failure()
        async with self._turns_lock:
            sequence = await self._journal.checkpoint(journal.image_of(self._storage.db))
            with self._storage.db:
                journal.store_at(self._storage.db, sequence)
            self._gate.committed += 1
            self._flush_wanted.set()

    # -- life -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Live one life. The file must be closed everywhere else."""
        try:
            usable = await self._opened()
            self.opened.set()
            if usable:
                await self._serve()
        finally:
            self.state = "closed"
            self.closed.set()

    async def _opened(self) -> bool:
        try:
            await self._open()
        except Exception as error:
            self._fail(opening.explain(self.name, self.path, error))
            if isinstance(error, apsw.FullError):
                await self._host.disk_full()
            elif isinstance(error, FlushRefused | apsw.IOError):
                self._refused(f"opening: {error}")
            return False
        if self.state == "opening":
            self.state = "running"
        return True

    async def _serve(self) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._flush, nursery)
                await self._execute()
                self._executed = True
                self._flush_wanted.set()
        finally:
            with trio.CancelScope(shield=True):
                await self._close()

    async def _close(self) -> None:
        orderly = self._failure is None and self._executed
        try:
            await self._host.disk.run(lambda: self._storage.close(tidy=orderly))
        except (apsw.Error, OSError) as error:
            log.warning("shard %s: while closing: %s", self.name, error)
            if not isinstance(error, apsw.FullError):
                self._refused(f"closing: {error}")

    async def _open(self) -> None:
        opened = await opening.open_file(self.name, self.path, self._kind, self._journal, self._host)
        self._storage = opened.storage
        try:
            self._context = Context(
                db=opened.storage.db, name=self.name, random=self._random, file_id=str(opened.generation)
            )
            self._shard = self._kind(self._context)
            self._context.alarm_changed = True  # the index may lag behind a file that was put here by hand
            first: Turn[None] = Turn(self._kind.opened, (), {})
            await self._batch(iter((first,)))
            if first.result is None or self._failure is not None:
                raise ShardBroken(f"shard {self.name} could not be opened")
            first.result.unwrap()
            await self._host.disk.run(self._storage.ready)
            self._gate.confirm(self._gate.committed)
            self._host.meter.opened()
        except BaseException:
            with trio.CancelScope(shield=True):
                await self._host.disk.run(lambda: self._storage.close(tidy=False))
            raise

    # -- running turns ----------------------------------------------------------------------------------

    async def _execute(self) -> None:
        """Run batch after batch until the closed mailbox is empty.

        Each begins when no flush is under way: what is committed meanwhile would wait for the next flush all the
        same, and one large commit costs less than two small ones. Where turns are large, what matters is that they
        run during the flush.
        """
        while await self._mailbox.wait():
            if self._turn_s < LARGE_TURN_S:
                await self._gate.wait()
            try:
                await self._batch(self._mailbox.take(self._host.limits, self._host.meter))
            except apsw.BusyError:
                self._answer_queued(lambda: ShardBusy(str(self.path)))

    async def _batch(self, source: Iterator[Turn[Any]]) -> None:
        """Run the turns of `source` as one transaction and hand them to the gate."""
        batch = Batch(self._shard, self._context, self._storage, self._host.clock)
        async with self._turns_lock:
            await batch.begin()
            try:
                session = journal.start_recording(self._storage.db) if self._journal.records_effects else None
                began = time.perf_counter()
                await batch.run(source)
                self._turn_s = (time.perf_counter() - began) / max(len(batch.turns), 1)
                if await self._called_in():
                    await batch.run(self._mailbox.take(self._host.limits, self._host.meter))
                await batch.finish()
                await self._before_commit(session)
                wrote = self._storage.commit(self._host.meter)
            except Exception as error:
                await self._abandon(batch.turns, error)
                return
            self._finish(batch.turns, wrote)

    async def _called_in(self) -> bool:
        """Have those queue their turns who wait in line for what was done in this batch, so that one flush does for
        both; return whether there is anybody.
        """
        if self.state != "running" or not self._host.call_in(self.name, self._context.events):
            return False
        for _ in range(2):  # in the first, they may run after this task
            await trio.lowlevel.checkpoint()
        return True

    async def _before_commit(self, session: apsw.Session | None) -> None:
        db = self._storage.db
        if self._context.alarm_changed:
            self._alarm_ms = alarms.stored(db).due_ms
            await self._host.alarm_ensure(self.name, self._alarm_ms)
        if session is not None:
            patchset = session.patchset()
            session.close()
            if patchset:
                journal.store_at(db, await self._journal.append(Effects("effects", patchset)))
            else:
                await self._journal.barrier()
        if self._failure is not None:  # a flush failed while this waited
            raise self._failure()

    def _finish(self, turns: Sequence[Turn[Any]], wrote: bool) -> None:
        """The batch is committed: number it, hold its answers, ask for its flush."""
        context, gate = self._context, self._gate
        self._host.meter.batch(len(turns))
        self.wal_bytes = self._storage.wal_bytes
        if wrote:
            gate.committed += 1
            self._flush_wanted.set()
        events, context.events = context.events, []
        self._alarm_settled, context.alarm_changed = self._alarm_settled and not context.alarm_changed, False
        gate.hold(turns, events)
        self._note_alarm()

    def _note_alarm(self) -> None:
        """Have the index follow the alarm, which no turn is about to change, unless it does already."""
        if not self._alarm_settled:
            self._alarm_settled = self._gate.confirmed == self._gate.committed
            self._host.alarm_note(self.name, self._alarm_ms, settled=self._alarm_settled)

    # -- when it goes wrong -----------------------------------------------------------------------------

    async def _abandon(self, turns: Sequence[Turn[Any]], error: Exception) -> None:
        """The batch cannot be committed: undo it, answer it, and let a fresh actor open the file again."""
        failure: Callable[[], ShardError] = lambda: ShardBroken(f"shard {self.name}: {error}")  # noqa: E731
        if isinstance(error, apsw.FullError):
            failure = lambda: DiskFull(f"shard {self.name}")  # noqa: E731
        elif isinstance(error, Fenced):
            failure = lambda: Moved(f"shard {self.name}")  # noqa: E731
        elif self._failure is not None:
            failure = self._failure
        elif isinstance(error, DISK_ERRORS):
            self._break(str(error))
        else:
            log.error("shard %s gave up a batch", self.name, exc_info=error)
        try:
            self._storage.rollback()
        except apsw.Error as second:
            log.warning("shard %s: while rolling back: %s", self.name, second)
        for turn in turns:
            turn.fail(failure())
            turn.deliver()
        self._fail(failure)
        if isinstance(error, apsw.FullError):
            await self._host.disk_full()

    def _fail(self, failure: Callable[[], ShardError]) -> None:
        """Take no more turns and answer those queued. What is held stays with the gate."""
        self._failure = self._failure or failure
        self.state = "draining"
        self._mailbox.close()
        self._answer_queued(failure)

    def _answer_queued(self, failure: Callable[[], ShardError]) -> None:
        while (turn := self._mailbox.pop()) is not None:
            turn.fail(failure())
            turn.deliver()

    def _break(self, reason: str) -> None:
        """The disk refused: nothing held may be confirmed, and the file may not be opened before its repair."""
        failure: Callable[[], ShardError] = lambda: ShardBroken(f"shard {self.name}: {reason}")  # noqa: E731
        log.error("shard %s broke: %s", self.name, reason)
        self._broken.set()
        self._flush_wanted.set()
        self._gate.break_(failure)
        self._fail(failure)
        self._refused(reason)

    def _refused(self, reason: str) -> None:
        self._host.refused(self.name, reason)
        try:
            repair.mark(self.path, self._host.disk, reason)
        except OSError as error:
            log.error("shard %s: the marker could not be written either: %s", self.name, error)

    # -- the disk ---------------------------------------------------------------------------------------

    async def _flush(self, nursery: trio.Nursery) -> None:
        """Make commits durable and let their answers out, until the last batch is."""
        gate = self._gate
        while not self._broken.is_set():
            while gate.confirmed < gate.committed:
                number, began_s = gate.committed, time.perf_counter()
                try:
                    await self._host.disk.flush(self.name, self._storage.flush)
                except FlushRefused as error:
                    self._break(f"flush: {error}")
                    return
                if self._broken.is_set():  # a checkpoint broke it meanwhile
                    return
                self._host.meter.flush(time.perf_counter() - began_s)
                gate.confirm(number)
                if not self._turns_lock.locked():
                    self._note_alarm()
                if self._storage.wants_checkpoint() and not self._checkpointing and self._failure is None:
                    self._checkpointing = True
                    nursery.start_soon(self._checkpoint)
            if self._executed:
                return
            await self._flush_wanted.wait()
            self._flush_wanted = trio.Event()

    async def _checkpoint(self) -> None:
        """Copy the -wal into the database; if it is over its bound, hold the turns until it can start over."""
        storage, run = self._storage, self._host.disk.run
        try:
            await run(lambda: storage.checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE))
            if storage.over_bound() and trio.current_time() >= self._context.read_until_s:
                restart = partial(storage.checkpoint, apsw.SQLITE_CHECKPOINT_RESTART)
                async with self._turns_lock:
                    await patiently(lambda: run(restart), max_s=RESTART_MAX_S)
        except apsw.BusyError:
            log.warning("shard %s: another program keeps its -wal of %d bytes", self.name, storage.wal_bytes)
        except apsw.FullError:
            await self._host.disk_full()
        except apsw.Error as error:
            self._break(f"checkpoint: {error}")
        finally:
            self._checkpointing = False
