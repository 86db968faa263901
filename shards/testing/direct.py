"""Run turns on a shard in memory without an event loop: for table tests and state machines."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Concatenate, Generic, ParamSpec, TypeVar

import apsw

from shards import migrate
from shards.clock import Clock
from shards.shard import Context, Shard
from shards.sqlite import new_connection
from shards.testing.clock import FakeClock

S = TypeVar("S", bound=Shard)
P = ParamSpec("P")
T = TypeVar("T")


class Direct(Generic[S]):
    """A shard over an in-memory database; each `call` is a turn with a savepoint, as the real host runs it."""

    def __init__(
        self, kind: Callable[[Context], S], clock: Clock | None = None, *, name: str = "test"
    ) -> None:
        self.clock = clock or FakeClock()
        self.events: list[Hashable] = []  # all that turns emitted, in order
        self.context = Context(db=new_connection(":memory:"), name=name, random=random.Random(0))
        self.context.now_ms = self.clock.now_ms()
        self.shard = kind(self.context)
        migrate.migrate(self.context.db, type(self.shard).migrations, now_ms=self.context.now_ms)
        self.call(type(self.shard).opened)

    @property
    def db(self) -> apsw.Connection:
        """The connection, for looking at rows."""
        return self.context.db

    def call(self, verb: Callable[Concatenate[S, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one turn; what it raises, it raises here, with its writes undone."""
        self.context.now_ms = self.clock.now_ms()
        self.context.events.clear()
        before = self.db.total_changes()
        try:
            with self.context.db:
                answer = verb(self.shard, *args, **kwargs)
                self.shard.write_back()
            assert not getattr(verb, "__shard_reads__", False) or self.db.total_changes() == before
        except BaseException:
            self.shard.forget()
            raise
        self.events += self.context.events
        return answer

    def alarm_due(self) -> bool:
        """Is the alarm due by the test's clock?"""
        due_ms = self.shard.get_alarm()
        return due_ms is not None and due_ms <= self.clock.now_ms()

    def run_alarm(self) -> None:
        """Clear the alarm and run its handler as one turn, as the host does when it is due."""

        def turn(shard: S) -> None:
            shard.set_alarm(None)
            shard.alarm()

        self.call(turn)
