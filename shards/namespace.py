"""All shards of one kind in one folder: finds them by name, opens them on demand, closes them when idle.

`open_namespace` is the way in; `Namespace.ref(name).call(Kind.verb, ...)` the way to work. One process serves a
folder: a lock file says so.
"""

from __future__ import annotations

import heapq
import logging
import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Concatenate, Generic, ParamSpec, TypeVar, cast

import apsw
import trio

from shards import alarm_index, files, folders, repair
from shards.actor import Actor
from shards.alarm_index import AlarmIndex
from shards.bell import Bell
from shards.clock import Clock, SystemClock
from shards.disk import Disk, ThreadDisk
from shards.errors import ShardClosed, ShardError
from shards.hub import Hub
from shards.journal import EmbeddedJournal, Journal
from shards.limits import Limits
from shards.meter import Levels, Meter, Unmeasured, levels
from shards.reserve import Reserve
from shards.shard import Shard, ring
from shards.sqlite import check_version
from shards.tracing import TimedTurn, Tracer
from shards.turn import Turn, require_plain

S = TypeVar("S", bound=Shard)
P = ParamSpec("P")
T = TypeVar("T")

REFUSALS_MAX = 2  # a disk that refused this often is not fit to serve

log = logging.getLogger("shards")


class Ref(Generic[S]):
    """A shard by name. Costs nothing until called; stays good over closing, eviction and breaking."""

    __slots__ = ("_namespace", "name")

    def __init__(self, namespace: Namespace[S], name: str) -> None:
        self._namespace = namespace
        self.name = name

    async def call(self, verb: Callable[Concatenate[S, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb(shard, *args, **kwargs)` as one turn and return what it returns, once that is durable.

        The file is made by the first call. Cancelling stops the wait, never the turn. Raises what the verb
        raises (its writes are then undone), or a ShardError: see shards.errors for each one's remedy.
        """
        namespace = self._namespace
        require_plain(verb)
        await trio.lowlevel.checkpoint_if_cancelled()
        if namespace.reserve.full and getattr(verb, "__shard_grows__", False):
            await namespace.reserve.admit()
        namespace.require_open(self.name)
        if namespace.tracer is not None:
            timed = TimedTurn(verb, args, kwargs)
            return await timed.traced(
                namespace.tracer, self.name, lambda: namespace._actor(self.name).submit(timed)
            )
        turn = Turn(verb, args, kwargs)
        namespace._actor(self.name).submit(turn)
        return await turn.answer()

    async def look(self, verb: Callable[Concatenate[S, P], T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The same for those who watch: None if the shard is not open, and it is not kept open by being looked at.

        Raises what `call` raises.
        """
        require_plain(verb)
        actor = self._namespace._actors.get(self.name)
        if actor is None or actor.state != "running":
            return None
        turn = Turn(verb, args, kwargs)
        actor.submit(turn, is_use=False)
        return await turn.answer()

    def __repr__(self) -> str:
        return f"<Ref {self.name}>"


class Namespace(Generic[S]):
    """The shards of one folder. Made by `open_namespace`."""

    def __init__(
        self,
        kind: type[S],
        folder: Path,
        clock: Clock,
        disk: Disk,
        limits: Limits,
        journal: Callable[[str], Journal],
        randomness: random.Random,
        tracer: Tracer | None,
        meter: Meter,
    ) -> None:
        self.meter = meter
        self.folder = folder
        self.tracer = tracer
        self.clock = clock
        self.disk = disk
        self.limits = limits
        self.hub = Hub()
        self.reserve = Reserve(folder / "reserve", limits.reserve_bytes, disk, clock)
        self.kind = kind
        self._journal = journal
        self._random = randomness
        self._nursery: trio.Nursery  # from `_host` on
        self._alarms = AlarmIndex(folder / alarm_index.FILE_NAME, disk, clock)
        self._bell = Bell(self._alarms, clock, limits.alarms_at_once, self._wake)
        self._actors: OrderedDict[str, Actor[S]] = OrderedDict()  # least recently used first
        self._slots = trio.Semaphore(limits.open_max)
        self._placed: set[Actor[S]] = set()  # those that have a slot
        self._repaired: set[str] = set()
        self._refusals = 0
        self._closing = False

    # -- for callers ------------------------------------------------------------------------------------

    def ref(self, name: str) -> Ref[S]:
        """Return the shard of this name, which need not exist yet. Raises InvalidName."""
        return Ref(self, files.check_name(name))

    async def find(self, name: str) -> Ref[S] | None:
        """Return the shard of this name if its file exists, else None. Makes nothing."""
        if name in self._actors:
            return Ref(self, name)
        ref = self.ref(name)
        return ref if files.path_of(self.folder, name).exists() else None

    def names(self, after: str = "", limit: int = 1000) -> list[str]:
        """Return the names of up to `limit` shards above `after`, sorted. Blocking: walks the folder."""
        return heapq.nsmallest(limit, (name for name, _ in files.walk(self.folder) if name > after))

    @property
    def open_count(self) -> int:
        """How many shards are open, opening or closing."""
        return len(self._actors)

    @property
    def open_names(self) -> list[str]:
        """The shards that take turns now and have their files open, sorted."""
        return sorted(name for name, actor in self._actors.items() if actor.state == "running")

    def levels(self) -> Levels:
        """How much there is of what has a limit."""
        actors = self._actors.values()
        return levels([one.waiting for one in actors], [one.wal_bytes for one in actors], self.reserve.full)

    def unready(self) -> list[str]:
        """Return why this node should get no traffic; empty: it is ready."""
        reasons = ["shutting down"] if self._closing else []
        if self._refusals >= REFUSALS_MAX:
            reasons.append(f"the disk refused {self._refusals} writes or flushes")
        if self._alarms.failed:
            reasons.append(f"alarm index: {self._alarms.failed}")
        return reasons

    async def evict(self, name: str) -> None:
        """Close the shard if it is open, after its queued turns; return when its file is closed."""
        actor = self._actors.get(name)
        if actor is not None:
            actor.drain()
            await actor.closed.wait()

    def require_open(self, name: str) -> None:
        """Raises ShardClosed once all are closing."""
        if self._closing:
            raise ShardClosed(f"shard {name}")

    @asynccontextmanager
    async def closed(self, name: str) -> AsyncIterator[None]:
        """Keep a shard closed until the block ends; its calls wait meanwhile. Raises ShardClosed."""
        self.require_open(name)
        before = self._actors.get(name)
        stand_in = self._new_actor(name)  # which never lives: the next one waits for its end
        stand_in.drain()
        self._actors[name] = stand_in
        try:
            if before is not None:
                before.drain()
                with trio.CancelScope(shield=True):  # the next one must not open what this still has open
                    await before.closed.wait()
            yield
        finally:
            stand_in.state = "closed"
            stand_in.closed.set()
            if self._actors.get(name) is stand_in:
                del self._actors[name]

    async def checkpoint_journal(self, name: str) -> None:
        """Replace the journal's history of shard `name` by an image of it. Raises what a call raises."""
        await self._actor(name).checkpoint_journal()

    # -- actors -----------------------------------------------------------------------------------------

    def _actor(self, name: str) -> Actor[S]:
        """Return the actor that takes turns for `name` now, starting one if need be."""
        actor = self._actors.get(name)
        if actor is None or not actor.accepting:
            predecessor = actor
            actor = self._actors[name] = self._new_actor(name)
            self._nursery.start_soon(self._live, actor, predecessor)
        self._actors.move_to_end(name)
        return actor

    def _new_actor(self, name: str) -> Actor[S]:
        path = files.path_of(self.folder, name)
        return Actor(name, path, self.kind, self, self._journal(name), self._random)

    async def _live(self, actor: Actor[S], predecessor: Actor[S] | None) -> None:
        """Give the actor its slot, its repaired file and its life."""
        if predecessor is not None:
            await predecessor.closed.wait()
        if self._slots.value == 0:
            self._make_room(newcomers=1)
        async with self._slots:
            self._placed.add(actor)
            self._make_room()
            try:
                await self._repair_once(actor)
                await actor.run()
            finally:
                self._placed.discard(actor)
                if self._actors.get(actor.name) is actor:
                    del self._actors[actor.name]

    def _make_room(self, newcomers: int = 0) -> None:
        """Drain the least recently used shards, until as many slots come free as there are waiting for one.

        One that is still opening may be drained too: it answers the calls it has by then, and closes.
        """
        wanted = self._slots.statistics().tasks_waiting + newcomers
        if not wanted:
            return
        wanted -= sum(not actor.accepting for actor in self._placed)
        for actor in self._actors.values():
            if wanted <= 0:
                return
            if actor.accepting and actor in self._placed:
                self.meter.evicted("crowded")
                actor.drain()
                wanted -= 1

    async def _repair_once(self, actor: Actor[S]) -> None:
        """Repair a file the disk has refused a flush of, the first time in this process."""
        if not repair.needed(actor.path) or actor.name in self._repaired:
            return
        self._repaired.add(actor.name)
        try:
            await self.disk.run(lambda: repair.repair(actor.path, self.disk))
        except (ShardError, OSError, apsw.Error) as error:
            self._refusals += not isinstance(error, ShardError)
            log.error("shard %s could not be repaired: %s", actor.name, error)
        else:
            log.warning("shard %s was repaired after the disk had refused a flush", actor.name)

    async def _close_idle(self) -> None:
        """Close shards nobody has called for a while."""
        while True:
            await trio.sleep(self.limits.idle_s / 4)
            oldest_s = trio.current_time() - self.limits.idle_s
            for actor in self._actors.values():
                if actor.state == "running" and actor.used_s < oldest_s and not actor.busy:
                    self.meter.evicted("idle")
                    actor.drain()

    # -- what actors need (actor.Host) ------------------------------------------------------------------

    def emit(self, name: str, events: Sequence[Hashable]) -> None:
        """Wake those who watch the shard for these events."""
        self.hub.emit(name, events)

    def call_in(self, name: str, events: Sequence[Hashable]) -> bool:
        """Wake those who wait in line for these events; return whether there is anybody."""
        return self.hub.call_in(name, events)

    async def alarm_ensure(self, name: str, due_ms: int | None) -> None:
        """Return once the alarm index on disk is not later than `due_ms`."""
        await self._alarms.ensure(name, due_ms)

    def alarm_note(self, name: str, due_ms: int | None, *, settled: bool) -> None:
        """Remember the alarm; once settled the index on disk may move later too."""
        self._alarms.note(name, due_ms)
        if settled:
            self._alarms.relax(name, due_ms)

    async def disk_full(self) -> None:
        """Give up the reserve and refuse what grows."""
        if not self.reserve.full:
            log.error("the disk of %s is full: appends are refused, deletes use the reserve", self.folder)
        await self.reserve.give_up()

    def refused(self, name: str, reason: str) -> None:
        """Count it; what was noted of the shard's alarm may be lost, so have it looked at."""
        del reason
        self._refusals += 1
        self.meter.broke()
        self._alarms.note(name, self.clock.now_ms())

    async def _wake(self, name: str) -> None:
        """Have a shard look at its alarm; unless all are closing, as nobody would wait for one that opens now."""
        if not self._closing:
            turn: Turn[None] = Turn(ring, (), {})
            self._actor(name).submit(turn, bounded=False)
            await turn.answer()

    # -- life -------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        await self.reserve.prepare()
        if not await self._alarms.load():
            names = await self.disk.run(lambda: [name for name, _ in files.walk(self.folder)])
            if names:
                log.warning("the alarm index is missing: looking at all %d shards", len(names))
            self._alarms.fill(names, self.clock.now_ms())

    async def _host(self, task_status: trio.TaskStatus[None]) -> None:
        """Run the shards and the alarm index until `_close`; cancelling the caller's block does not reach them."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._alarms.run)
                task_status.started()

    async def _close(self) -> None:
        """Refuse new calls, drain, flush and close every shard, then write the alarm index."""
        self._closing = True
        while self._actors:
            actors = list(self._actors.values())
            for actor in actors:
                actor.drain()
            for actor in actors:
                await actor.closed.wait()
            await trio.lowlevel.checkpoint()
        self._alarms.stop()


@asynccontextmanager
async def open_namespace(
    kind: type[S],
    folder: Path,
    *,
    clock: Clock | None = None,
    disk: Disk | None = None,
    limits: Limits | None = None,
    journal: Callable[[str], Journal] | None = None,
    randomness: random.Random | None = None,
    tracer: Tracer | None = None,
    meter: Meter | None = None,
) -> AsyncIterator[Namespace[S]]:
    """Serve the shards of `folder` (made if absent) until the block ends; leaving it drains and closes them all.

    So does cancelling the block. What the block raises leaves it as it is, not in a group.
    Raises FolderLocked when another process serves the folder, UnsupportedSQLite, OSError.
    """
    check_version()
    disk = disk or ThreadDisk()
    folders.make(folder, disk)
    with folders.locked(folder):
        namespace = Namespace(
            kind,
            folder,
            clock or SystemClock(),
            disk,
            limits or Limits(),
            journal or (lambda _name: cast(Journal, EmbeddedJournal())),
            randomness or random.SystemRandom(),
            tracer,
            meter or Unmeasured(),
        )
        await namespace._open()
        failed: Exception | None = None
        async with trio.open_nursery() as nursery:
            try:
                with trio.CancelScope(shield=True):  # does not wait; a cancelled start would never end
                    await nursery.start(namespace._host)
                nursery.start_soon(namespace._bell.run, nursery)
                nursery.start_soon(namespace._close_idle)
                yield namespace
            except Exception as error:
                failed = error
            finally:
                namespace._closing = True
                nursery.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    await namespace._close()
        if failed is not None:
            raise failed
