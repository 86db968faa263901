"""Keeps the leases of what is held: extends each well before it ends, as long as nothing was said of its message."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from edgequeues.daemon.held import Held
from edgequeues.daemon.queue import HttpQueue
from edgequeues.daemon.wire import LEASES_MAX, QueueError, Refused
from edgequeues.logs import Log

BEATS = 3  # in the life of a lease
AGAIN_S = 1.0  # after an extension that failed
UNKNOWN = (400, 404, 405)  # how a service answers that has no such call


class Leases:
    """The leases of one daemon. held: what it holds now. calls: see `Answering`."""

    def __init__(
        self, queue: HttpQueue, held: Iterable[Held], visibility_s: float, calls: trio.Lock, log: Log
    ) -> None:
        self._queue = queue
        self._held = held
        self._visibility_s = visibility_s
        self._calls = calls
        self._log = log

    async def keep(self) -> None:
        """Extend them, until the service turns out to have no such call; then leases end when they end."""
        beat_s = self._visibility_s / BEATS
        pause_s = beat_s
        while True:
            await trio.sleep(pause_s)
            pause_s = beat_s
            due = [held for held in self._held if held.answer is None and held.left_s <= 2 * beat_s]
            try:
                for first in range(0, len(due), LEASES_MAX):
                    await self._extend(due[first : first + LEASES_MAX])
            except QueueError as error:
                if isinstance(error, Refused) and error.status in UNKNOWN:
                    self._log.tell("warning", "this service extends no leases", err=str(error))
                    return
                self._log.tell("warning", "leases could not be extended", err=str(error))
                pause_s = min(beat_s, AGAIN_S)

    async def _extend(self, some: list[Held]) -> None:
        async with self._calls:
            some = [held for held in some if held.answer is None]
            if not some:
                return
            ends_s = trio.current_time() + self._visibility_s
            by_lease = {held.lease: held for held in some}
            ids = {held.lease: held.message.id for held in some}
            extended = await self._queue.extend(ids, round(self._visibility_s * 1000))
            for old, held in by_lease.items():
                if (warning := extended.warnings.get(old)) is not None:
                    self._log.tell("warning", "a lease was not extended", err=warning, **held.fields())
                    continue
                held.lease = extended.leases.get(old, old)
                held.ends_s = ends_s
