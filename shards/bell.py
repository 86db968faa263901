"""Rings the alarms of shards as they come due, a few at a time."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable

import trio

from shards.alarm_index import AlarmIndex
from shards.clock import Clock
from shards.errors import ShardError

LOOK_AGAIN_S = 60.0  # the wall clock may be stepped: alarms are compared with it at least this often
RETRY_MS = 5_000  # a shard that could not be opened for its alarm is tried again after this

log = logging.getLogger("shards")


class Bell:
    """at_once: shards that are woken at the same time. wake: returns when a shard has looked at its alarm."""

    def __init__(
        self, alarms: AlarmIndex, clock: Clock, at_once: int, wake: Callable[[str], Awaitable[None]]
    ) -> None:
        self._alarms = alarms
        self._clock = clock
        self._places = trio.Semaphore(at_once)
        self._wake = wake

    async def run(self, nursery: trio.Nursery) -> None:
        """Wake shards when they are due, in tasks of the nursery. Does not return."""
        while True:
            await self._places.acquire()
            name = self._alarms.pop_due(self._clock.now_ms())
            if name is not None:
                nursery.start_soon(self._ring, name)
                continue
            self._places.release()
            due_ms = self._alarms.next_due_ms()
            wait_s = math.inf if due_ms is None else max(due_ms - self._clock.now_ms(), 1) / 1000
            with trio.move_on_after(min(wait_s, LOOK_AGAIN_S)):
                await self._alarms.wait_changed()

    async def _ring(self, name: str) -> None:
        try:
            await self._wake(name)
        except ShardError as error:
            log.warning("shard %s could not be woken by its alarm: %s", name, error)
            self._alarms.note(name, self._clock.now_ms() + RETRY_MS)
        finally:
            self._alarms.rung(name)
            self._places.release()
