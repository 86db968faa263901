"""The base class of a shard: what a verb may touch while its turn runs.

A shard is an object that owns one SQLite file. Its verbs are plain methods; each call is a turn, and a turn is
atomic: nothing else runs on the shard meanwhile, an exception undoes everything the turn did, and its answer
leaves only when all it could have seen is on disk. Verbs read the time from `now_ms` and chance from `random`,
both fixed by the host, so that a turn depends on nothing but its arguments, its rows and those two.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import apsw

from shards import alarms
from shards.sqlite import DISK_ERRORS

log = logging.getLogger("shards")

F = TypeVar("F", bound=Callable[..., object])


@dataclass(slots=True)
class Context:
    """What the host lends a shard while it is open. Only the host creates one."""

    db: apsw.Connection
    name: str
    random: random.Random
    file_id: str = ""  # another for a copied or restored file; "" where there is no file
    alarm_changed: bool = False  # did a turn of the running batch set or clear the alarm?
    read_until_s: float = 0.0  # until this time of trio's clock a copy may hold on to the -wal, see `copying`
    now_ms: int = 0  # set by the host when a turn starts
    events: list[Hashable] = field(default_factory=list)  # emitted by the turns of the running batch


class Shard:
    """Derive from this, list the migrations, write verbs as plain methods over `self.db`."""

    migrations: ClassVar[
        Sequence[str]
    ] = ()  # step n is applied once, in order; never edit one that was released

    def __init__(self, context: Context) -> None:
        self._context = context
        self.db = context.db
        self.name = context.name
        self.random = context.random

    @property
    def now_ms(self) -> int:
        """Unix ms at which the running turn started; the same however long the turn takes."""
        return self._context.now_ms

    @property
    def file_id(self) -> str:
        """Tells this file from a copy of it; "" in memory."""
        return self._context.file_id

    # -- to override ------------------------------------------------------------------------------------

    def opened(self) -> None:
        """Run once after the file is open and migrated, as a turn of its own, before any other call."""

    def alarm(self) -> None:
        """Run when the alarm is due. If it raises, its writes are undone and it runs again after a back-off."""

    def write_back(self) -> None:
        """Write down what turns changed in memory alone: the host calls this before it commits them.

        Turns share a transaction, so what each of them counts is written once. A verb that reads such rows by a
        statement calls this first.
        """

    def forget(self) -> None:
        """Drop whatever is remembered of rows, written down or not: some turns, perhaps `opened`, were undone."""

    # -- for verbs --------------------------------------------------------------------------------------

    def set_alarm(self, due_ms: int | None) -> None:
        """Have `alarm` called at unix ms `due_ms`; None clears it. There is one alarm; this replaces it."""
        alarms.store(self.db, due_ms)
        self._context.alarm_changed = True

    def get_alarm(self) -> int | None:
        """When the alarm is due in unix ms, None if none is set (as inside `alarm`, unless set anew)."""
        return alarms.stored(self.db).due_ms

    def emit(self, event: Hashable) -> None:
        """Tell the hub's watchers of (this shard, `event`), once what this turn wrote is on disk."""
        self._context.events.append(event)

    def delete_all(self) -> None:
        """Delete every row of every table of the shard, and the alarm. The schema stays."""
        for (table,) in self.db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            " AND name NOT LIKE 'shard\\_%' ESCAPE '\\'"
        ).fetchall():
            self.db.execute(f'DELETE FROM "{table}"')
        self.set_alarm(None)


def ring(shard: Shard) -> None:
    """Turn of the host: run the alarm if it is due. A handler that raises is undone, logged and postponed."""
    context = shard._context
    context.alarm_changed = True  # whatever is set now is news to the index
    stored = alarms.stored(shard.db)
    if stored.due_ms is None or stored.due_ms > shard.now_ms:
        return
    emitted = len(context.events)
    shard.write_back()  # what was done before must not be forgotten, should this be undone
    try:
        with shard.db:
            alarms.start(shard.db)
            shard.alarm()
            shard.write_back()
            alarms.finish(shard.db)
    except DISK_ERRORS:
        raise
    except Exception:
        if not shard.db.in_transaction:
            raise
        del context.events[emitted:]
        shard.forget()
        due_ms = alarms.postpone(shard.db, shard.now_ms)
        log.exception(
            "alarm of shard %s failed %d times, next run in %d ms",
            shard.name,
            stored.failures + 1,
            due_ms - shard.now_ms,
        )


def grows(verb: F) -> F:
    """Mark a verb that needs room on the disk: while the disk is full it is refused with `DiskFull` at once."""
    verb.__shard_grows__ = True  # type: ignore[attr-defined]
    return verb


def reads(verb: F) -> F:
    """Mark a verb that changes nothing, neither rows nor what the shard remembers of them.

    Where any other raises, the turns that ran before it in the same transaction are undone and run again.
    """
    verb.__shard_reads__ = True  # type: ignore[attr-defined]
    return verb
