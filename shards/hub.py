"""Who waits for what: tasks that sleep until a shard emits an event.

The hub belongs to the namespace, not to a shard, so a closed or broken shard ends nobody's wait.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

import trio

Key = tuple[str, Hashable]

WOKEN_BY_ONE = 2  # in a line by the one that leaves: so a hundred are awake in seven steps


class Watch:
    """One waiter. Events that come while nobody waits are remembered as one."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    async def wait(self) -> None:
        """Return when something was emitted since the watch began or the last wait returned."""
        await self._event.wait()
        self._event = trio.Event()

    def notify(self) -> None:
        """Something was emitted."""
        self._event.set()

    @property
    def notified(self) -> bool:
        """Was something emitted that nobody waited for yet?"""
        return self._event.is_set()


class Line(Watch):
    """Waiters of whom one is enough. Those that were notified come back here, unless they leave."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        super().__init__()
        self.waiters: dict[Watch, None] = {}  # in the order in which they came

    def notify(self) -> None:
        """Wake the first that is not awake."""
        self.call_in()

    def call_in(self) -> bool:
        """Wake the first that is not awake; return whether there is one."""
        for watch in self.waiters:
            if not watch.notified:
                watch.notify()
                return True
        return False


class Names:
    """Shards that have emitted an event, each once until it is taken, the first one first."""

    __slots__ = ("_event", "_names")

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._event = trio.Event()

    def add(self, name: str) -> None:
        """The shard of this name has something, or still has."""
        self._names.setdefault(name)
        self._event.set()

    async def next(self) -> str:
        """Wait for a name, and take it."""
        while not self._names:
            self._event = trio.Event()
            await self._event.wait()
        name = next(iter(self._names))
        del self._names[name]
        return name


class Hub:
    """Watches by (shard name, event)."""

    def __init__(self) -> None:
        self._everywhere: dict[Hashable, Names] = {}
        self._watches: dict[Key, set[Watch]] = {}
        self._lines: dict[tuple[Key, Hashable], Line] = {}

    @contextmanager
    def watch(self, name: str, event: Hashable) -> Iterator[Watch]:
        """Watch shard `name` for `event`. Begin before you read, or what comes between is missed."""
        key, watch = (name, event), Watch()
        self._add(key, watch)
        try:
            yield watch
        finally:
            self._remove(key, watch)

    @contextmanager
    def watch_in_line(self, name: str, event: Hashable, line: Hashable) -> Iterator[Watch]:
        """Watch with others for what each of them could take: an event wakes the one that came first, not all.

        Whoever leaves wakes others: what woke it may be more than it took, or may not have been taken at all.
        """
        key, watch = (name, event), Watch()
        waiting = self._lines.get((key, line))
        if waiting is None:
            waiting = self._lines[key, line] = Line()
            self._add(key, waiting)
        waiting.waiters[watch] = None
        try:
            yield watch
        finally:
            del waiting.waiters[watch]
            for _ in range(WOKEN_BY_ONE):
                waiting.notify()
            if not waiting.waiters:
                del self._lines[key, line]
                self._remove(key, waiting)

    @contextmanager
    def watch_everywhere(self, event: Hashable) -> Iterator[Names]:
        """Watch all shards for `event`. One watcher an event."""
        assert event not in self._everywhere
        names = self._everywhere[event] = Names()
        try:
            yield names
        finally:
            del self._everywhere[event]

    def _add(self, key: Key, watch: Watch) -> None:
        self._watches.setdefault(key, set()).add(watch)

    def _remove(self, key: Key, watch: Watch) -> None:
        rest = self._watches[key]
        rest.discard(watch)
        if not rest:
            del self._watches[key]

    def call_in(self, name: str, events: Sequence[Hashable]) -> bool:
        """Wake those whose turn it is in the lines for these events; return whether there is anybody.

        This is ahead of `emit`, which follows all the same: what they are woken for may still come to nothing.
        """
        if not self._lines:
            return False
        watches = [one for event in events for one in self._watches.get((name, event), ())]
        called = [one.call_in() for one in watches if isinstance(one, Line)]  # all of them
        return any(called)

    def emit(self, name: str, events: Sequence[Hashable]) -> None:
        """Wake the watchers of each event of shard `name`."""
        if self._everywhere:
            for event in events:
                if (names := self._everywhere.get(event)) is not None:
                    names.add(name)
        if self._watches:
            for event in events:
                for watch in self._watches.get((name, event), ()):
                    watch.notify()
