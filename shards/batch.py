"""The turns of one transaction: run without savepoints, unless one of them raises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shards.clock import Clock
from shards.shard import Context, Shard
from shards.sqlite import DISK_ERRORS, patiently
from shards.storage import Storage
from shards.turn import Turn


class Batch:
    """Runs turns on a shard within a transaction, which the caller commits after `finish`.

    A savepoint for each turn, which hardly any needs, would cost a sixth of a small one. So where a turn raises, the
    transaction is undone and begun anew: what did not raise runs again, and from there on each turn has a savepoint.
    """

    def __init__(self, shard: Shard, context: Context, storage: Storage, clock: Clock) -> None:
        self.turns: list[Turn[Any]] = []  # that were taken, in order
        self._shard = shard
        self._context = context
        self._storage = storage
        self._clock = clock
        self._apart = False  # does each turn have a savepoint?

    async def begin(self) -> None:
        """Open the transaction. Raises apsw.BusyError while another program keeps writing."""
        await patiently(self._begin)

    async def _begin(self) -> None:
        self._storage.begin()

    async def run(self, source: Iterable[Turn[Any]]) -> None:
        """Run the turns of `source`. Raises only what ends the batch."""
        for turn in source:
            self.turns.append(turn)
            if self._apart:
                self._run_undoably(turn)
                continue
            try:
                self._run(turn)
            except DISK_ERRORS:
                raise
            except Exception as error:
                await self._run_again(self.turns[:-1])
                turn.fail(error)

    async def finish(self) -> None:
        """Have what the turns counted written down. Raises only what ends the batch."""
        try:
            self._shard.write_back()
        except DISK_ERRORS:
            raise
        except Exception:
            if self._apart:
                raise
            await self._run_again(self.turns)

    async def _run_again(self, turns: list[Turn[Any]]) -> None:
        """Undo all, then run these anew, those that raised excepted."""
        self._apart = True
        self._storage.rollback()
        self._context.events.clear()
        self._shard.forget()
        await self.begin()
        for turn in turns:
            if not turn.failed:
                self._run_undoably(turn)

    def _run_undoably(self, turn: Turn[Any]) -> None:
        db, context = self._storage.db, self._context
        emitted = len(context.events)
        db.execute("SAVEPOINT turn")
        try:
            self._run(turn)
            self._shard.write_back()
        except DISK_ERRORS:
            raise
        except Exception as error:
            if not db.in_transaction:  # SQLite undid the whole batch by itself
                raise
            db.execute("ROLLBACK TO turn")
            del context.events[emitted:]
            self._shard.forget()
            turn.fail(error)
        db.execute("RELEASE turn")

    def _run(self, turn: Turn[Any]) -> None:
        """Run one turn. Raises what it raises, unless there is nothing to undo."""
        self._context.now_ms = self._clock.now_ms()
        try:
            turn.run(self._shard)
        except DISK_ERRORS:
            raise
        except Exception as error:
            if not getattr(turn.verb, "__shard_reads__", False):
                raise
            turn.fail(error)
