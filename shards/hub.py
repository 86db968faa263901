"""Who waits for what: tasks that sleep until a shard emits an event.

The hub belongs to the namespace, not to a shard, so a closed or broken shard ends nobody's wait.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

import trio

Key = tuple[str, Hashable]


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


class Hub:
    """Watches by (shard name, event)."""

    def __init__(self) -> None:
        self._watches: dict[Key, set[Watch]] = {}

    @contextmanager
    def watch(self, name: str, event: Hashable) -> Iterator[Watch]:
        """Watch shard `name` for `event`. Begin before you read, or what comes between is missed."""
        key, watch = (name, event), Watch()
        self._watches.setdefault(key, set()).add(watch)
        try:
            yield watch
        finally:
            rest = self._watches[key]
            rest.discard(watch)
            if not rest:
                del self._watches[key]

    def emit(self, name: str, events: Sequence[Hashable]) -> None:
        """Wake the watchers of each event of shard `name`."""
        if self._watches:
            for event in events:
                for watch in self._watches.get((name, event), ()):
                    watch.notify()
