"""The output gate: an answer leaves when every commit it could have seen is on disk, or never.

Commits are numbered. A batch is held under the number of the newest commit at its end, its own or an earlier
one; confirming a number lets out every batch held under it or a lower one. Breaking is for good: the shard is
dropped and opened again from disk, since what was held may or may not be there.
The idea, and the name, are workerd's: https://github.com/cloudflare/workerd/blob/main/src/workerd/io/io-gate.h
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from time import perf_counter
from typing import Any

import trio

from shards.meter import Meter
from shards.turn import Turn

Batch = tuple[int, Sequence[Turn[Any]], Sequence[Hashable], float]


class Gate:
    """Holds the answers and events of finished batches. `emit` receives the events that are let out."""

    def __init__(self, emit: Callable[[Sequence[Hashable]], None], meter: Meter) -> None:
        self._meter = meter
        self.committed = 0  # number of the newest commit
        self.confirmed = 0  # all commits up to this one are on disk
        self.held_turns = 0
        self._emit = emit
        self._held: deque[Batch] = deque()
        self._broken = False
        self._calm = trio.lowlevel.ParkingLot()

    async def wait(self) -> None:
        """Wait until all commits are confirmed, or the gate is broken."""
        while self.confirmed < self.committed and not self._broken:
            await self._calm.park()

    def hold(self, turns: Sequence[Turn[Any]], events: Sequence[Hashable]) -> None:
        """Let the batch out once all commits so far are confirmed; at once if they are."""
        if self.confirmed == self.committed:
            self._meter.held(len(turns), 0.0)
            self._let_out(turns, events)
        else:
            self._held.append((self.committed, turns, events, perf_counter()))
            self.held_turns += len(turns)

    def confirm(self, number: int) -> None:
        """Everything up to commit `number` is on disk."""
        assert self.confirmed <= number <= self.committed
        self.confirmed = number
        now_s = perf_counter()
        while self._held and self._held[0][0] <= number:
            _, turns, events, since_s = self._held.popleft()
            self.held_turns -= len(turns)
            self._meter.held(len(turns), now_s - since_s)
            self._let_out(turns, events)
        if number == self.committed:
            self._calm.unpark_all()

    def break_(self, error: Callable[[], Exception]) -> None:
        """Answer everything held with a new `error()` each; nothing of it was confirmed."""
        while self._held:
            _, turns, _, _ = self._held.popleft()
            for turn in turns:
                turn.fail(error())
                turn.deliver()
        self.held_turns = 0
        self._broken = True
        self._calm.unpark_all()

    def _let_out(self, turns: Sequence[Turn[Any]], events: Sequence[Hashable]) -> None:
        for turn in turns:
            turn.deliver()
        if events:
            self._emit(events)
