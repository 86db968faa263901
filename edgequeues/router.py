"""From an address to its shard. Holds no state but the namespace and how many spaces there may be."""

from __future__ import annotations

from contextlib import AbstractContextManager

import trio

from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import QueueNotFound, RateLimited, TooManySpaces
from edgequeues.space import check
from edgequeues.space.base import CALLS, WORK
from edgequeues.space.blob_verbs import BLOBS
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import CHANGED
from edgequeues.spec.working import Runner
from shards.copying import Copies
from shards.hub import Names, Watch
from shards.meter import Levels
from shards.namespace import Namespace, Ref
from shards.replacing import Replacements

SPACES_MAX = 100_000
STRANGER_SPACES_PER_MINUTE = 60


class Bucket:
    """So many a minute, at once or spread out."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._left = float(per_minute)
        self._at_s = 0.0

    def take(self, at_s: float) -> bool:
        """Take one at this time, in seconds of any clock that does not go back; False: there is none."""
        grown = self._left + (at_s - self._at_s) * self.per_minute / 60
        self._left, self._at_s = min(grown, self.per_minute), at_s
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Router:
    """Finds and makes spaces. Only `make` ever makes one, so reading a name nobody wrote to leaves no file."""

    def __init__(
        self,
        namespace: Namespace[SpaceShard],
        *,
        spaces_max: int = SPACES_MAX,
        stranger_spaces_per_minute: int = STRANGER_SPACES_PER_MINUTE,
    ) -> None:
        self.copies = Copies(namespace)
        self.replacements = Replacements(namespace, self.copies, check.problems)
        self._namespace = namespace
        self._spaces_max = spaces_max
        self._strangers = Bucket(stranger_spaces_per_minute)
        self._spaces_seen: int | None = None  # at least as many as there are

    async def find(self, dxn: Dxn) -> Ref[SpaceShard] | None:
        """Return the shard that owns the queue, None if its space does not exist."""
        return await self._namespace.find(dxn.shard)

    async def require(self, dxn: Dxn) -> Ref[SpaceShard]:
        """Return the shard that owns the queue. Raises QueueNotFound if its space does not exist."""
        ref = await self.find(dxn)
        if ref is None:
            raise QueueNotFound(f"space {dxn.space}")
        return ref

    async def find_shard(self, name: str) -> Ref[SpaceShard] | None:
        """Return the shard of this name, None if it does not exist."""
        return await self._namespace.find(name)

    async def make(self, dxn: Dxn, *, stranger: bool = False) -> Ref[SpaceShard]:
        """Return the shard that owns the queue, to be made by its first call.

        stranger: is it somebody nobody knows who asks? Raises TooManySpaces, RateLimited for strangers.
        """
        ref = await self._namespace.find(dxn.shard)
        if ref is None:
            if stranger and not self._strangers.take(trio.current_time()):
                raise RateLimited(f"strangers may make {self._strangers.per_minute} spaces a minute")
            if self._spaces_seen is None or self._spaces_seen >= self._spaces_max:
                self._spaces_seen = len(await self.shards("", self._spaces_max))
            if self._spaces_seen >= self._spaces_max:
                raise TooManySpaces(f"there are {self._spaces_seen} spaces")
            self._spaces_seen += 1
            ref = self._namespace.ref(dxn.shard)
        return ref

    async def shards(self, after: str, limit: int) -> list[str]:
        """Return the names of up to `limit` shards above `after`, sorted."""
        return await self._namespace.disk.run(lambda: self._namespace.names(after, limit))

    def watch(self, dxn: Dxn) -> AbstractContextManager[Watch]:
        """Watch the queue, by id or name as addressed, for appends; it need not exist yet."""
        return self._namespace.hub.watch(dxn.shard, dxn.queue)

    def watch_work(self, dxn: Dxn, consumer: str | None) -> AbstractContextManager[Watch]:
        """Watch the queue, by id or name as addressed, for messages that can be pulled.

        Those who wait for the same consumer stand in line: what can be pulled wakes one, who wakes the next.
        """
        return self._namespace.hub.watch_in_line(dxn.shard, (WORK, dxn.queue), consumer)

    def watch_changes(self, shard: str) -> AbstractContextManager[Watch]:
        """Watch a shard for anything that is written to it."""
        return self._namespace.hub.watch(shard, CHANGED)

    def watch_calls(self, runner: Runner) -> AbstractContextManager[Names]:
        """Watch all spaces for commands that such a runner carries out. One watcher a kind."""
        return self._namespace.hub.watch_everywhere((CALLS, runner))

    def watch_blobs(self) -> AbstractContextManager[Names]:
        """Watch all spaces for objects whose bytes are to be deleted. One watcher."""
        return self._namespace.hub.watch_everywhere(BLOBS)

    def open_shards(self) -> list[Ref[SpaceShard]]:
        """The shards that are open now, in the order of their names."""
        return [self._namespace.ref(name) for name in self._namespace.open_names]

    def levels(self) -> Levels:
        """How much there is of what has a limit."""
        return self._namespace.levels()

    def unready(self) -> list[str]:
        """Return why this node should get no traffic; empty: it is ready."""
        return self._namespace.unready()
