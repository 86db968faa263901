"""The turns of one transaction: run without savepoints, unless one of them raises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shards.clock import Clock
from shards.shard import Context, Shard
from shards.sqlite import DISK_ERRORS
from shards.storage import Storage
from shards.turn import Turn


class Batch:
    """Runs turns on a shard, within a transaction that the caller begins and ends."""

    def __init__(self, shard: Shard, context: Context, storage: Storage, clock: Clock) -> None:
        self.turns: list[Turn[Any]] = []  # that were taken, in order
        self._shard = shard
        self._context = context
        self._storage = storage
        self._clock = clock
        self._done = 0  # of the turns, so many were run and did not raise

    def run_together(self, source: Iterator[Turn[Any]]) -> bool:
        """Run all of `source`; False: one raised and all was undone: `run_apart` must follow in a new transaction.

        A savepoint for each turn, which hardly any needs, would cost a sixth of a small one.
        """
        try:
            for turn in source:
                self.turns.append(turn)
                self._run(turn)
                self._done += 1
            self._shard.write_back()
        except DISK_ERRORS:
            raise
        except Exception as error:
            if self._done < len(self.turns):
                self.turns[-1].fail(error)
            self._storage.rollback()
            self._context.events.clear()
            self._shard.forget()
            return False
        return True

    def run_apart(self, source: Iterator[Turn[Any]]) -> None:
        """Run those again that did not raise, and what is left of `source`, each undone by itself if it raises."""
        for turn in self.turns[: self._done]:
            self._run_undoably(turn)
        for turn in source:
            self.turns.append(turn)
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
