"""The turns waiting for a shard, first in, first out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import trio

from shards.limits import Limits
from shards.meter import Meter
from shards.turn import Turn


class Mailbox:
    """A FIFO with one reader. Its bound is kept by the actor, which knows the unanswered turns too."""

    def __init__(self) -> None:
        self._turns: deque[Turn[Any]] = deque()
        self._reader: trio.lowlevel.Task | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._turns)

    def put(self, turn: Turn[Any]) -> None:
        """Append a turn and wake the reader."""
        assert not self._closed
        self._turns.append(turn)
        self._wake()

    def close(self) -> None:
        """Take no more turns; the reader drains those here, then sees the end."""
        self._closed = True
        self._wake()

    def pop(self) -> Turn[Any] | None:
        """Take the oldest turn, None if there is none now."""
        return self._turns.popleft() if self._turns else None

    def take(self, limits: Limits, meter: Meter) -> Iterator[Turn[Any]]:
        """Give turns to be run one by one, until their batch is as large or has taken as long as it may."""
        before_s = perf_counter()
        ends_s = before_s + limits.batch_ms_max / 1000
        for _ in range(limits.batch_turns_max):
            turn = self.pop()
            if turn is None:
                return
            yield turn
            now_s = perf_counter()
            meter.turn(now_s - before_s)
            if now_s > ends_s:
                return
            before_s = now_s

    async def wait(self) -> bool:
        """Wait until there is a turn (True) or the closed mailbox is empty (False)."""
        while not self._turns and not self._closed:
            self._reader = trio.lowlevel.current_task()

            def give_up(_: object) -> trio.lowlevel.Abort:
                self._reader = None
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(give_up)
        return bool(self._turns)

    def _wake(self) -> None:
        task, self._reader = self._reader, None
        if task is not None:
            trio.lowlevel.reschedule(task)
