"""A space with schedules, as the tests of them ask it: times are written in UTC."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from edgequeues.space.shard import SpaceShard
from edgequeues.spec import ir
from edgequeues.spec.values import Applied, ScheduleInfo

from .jobs import Jobs
from .world import Space

NOW = {"var": {"now": True}}
AT = {"message": {"at": NOW}}


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


class Planned:
    """A space with the schedules of an app, which all fill the queue `jobs` unless they say otherwise."""

    def __init__(self, space: Space, start: str = "2026-01-05T09:00:30") -> None:
        self.space = space
        self.jobs = Jobs(space)
        self.to(start)

    def to(self, text: str) -> None:
        """Let it be a time in UTC; nobody looks at the space meanwhile."""
        self.space.clock.advance(ms(text) - self.space.clock.now_ms())

    def ring_at(self, text: str) -> None:
        self.to(text)
        self.jobs.ring()

    def apply(self, app: str = "shop", queue: dict[str, Any] | None = None, /, **named: Any) -> Applied:
        given = {name: {"queue": "jobs"} | AT | one for name, one in named.items()}
        text = {"version": 0, "app": app, "queues": {"jobs": queue or {}}, "schedules": given}
        return self.space.call(SpaceShard.apply, ir.decode(msgspec.json.encode(text)))

    def ring_through(self, until: str) -> None:
        """Run each alarm when it is due, as a server does that is up all the time."""
        while (due := self.space.shard.get_alarm()) is not None and due <= ms(until):
            self.space.clock.advance(max(due - self.space.clock.now_ms(), 0))
            self.space.run_alarm()
        self.to(until)

    @property
    def times(self) -> list[str]:
        """For when the messages are that are there, in UTC."""
        found = [json.loads(one)["at"] for one in self.space.data("jobs")]
        return [datetime.fromtimestamp(one, UTC).strftime("%d %H:%M") for one in found]

    def info(self, name: str = "tick") -> ScheduleInfo:
        [found] = [
            one for one in self.space.call(SpaceShard.schedules, "", 100).schedules if one.name == name
        ]
        return found
