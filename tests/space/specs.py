"""Specs as the tests of the space write them: JSON, with what a test wants to differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgequeues.models import AppendAnswer, NewEntry
from edgequeues.space.shard import SpaceShard
from edgequeues.spec import ir
from edgequeues.spec.ir import Spec
from edgequeues.spec.values import Applied, Arriving, Taken

from .world import Space

Queue = Mapping[str, Any]
ID = {"get": {"expr": {"var": {"input": {"field": "payload"}}}, "path": ["id"]}}
TYPED = {"message_type": {"id": {"type": "string"}, "n": {"type": "int", "optional": True}}}


def field(name: str) -> dict[str, Any]:
    """The expression that is a field of the message."""
    return {"var": {"input": {"field": name}}}


def spec(app: str, /, **queues: Queue) -> Spec:
    """A spec of queues."""
    return ir.decode(msgspec.json.encode({"version": 0, "app": app, "queues": queues}))


class Shop:
    """A space with specs."""

    def __init__(self, space: Space, **queues: Queue) -> None:
        self.space = space
        if queues:
            self.apply(**queues)

    def apply(self, **queues: Queue) -> Applied:
        """As a server does."""
        applied = self.space.call(SpaceShard.apply, spec("shop", **queues))
        for queue_id in applied.gone:
            while self.space.call(SpaceShard.remove, queue_id):
                pass
        return applied

    def apply_other(self, **queues: Queue) -> Applied:
        """The spec of another app."""
        return self.space.call(SpaceShard.apply, spec("other", **queues))

    def would(self, **queues: Queue) -> Applied:
        """Only ask what a spec would do."""
        return self.space.call(SpaceShard.apply, spec("shop", **queues), dry_run=True)

    def changes(self, **queues: Queue) -> dict[str, str]:
        """What a spec does, by queue."""
        return {one.queue: one.change for one in self.apply(**queues).queues}

    def push(self, queue: str, *data: str, **options: object) -> AppendAnswer:
        entries = [NewEntry(one, **options) for one in data]  # type: ignore[arg-type]
        return self.space.call(SpaceShard.push, queue, entries)

    def outcomes(self, queue: str, *data: str, **options: object) -> list[str]:
        return [one.outcome for one in self.push(queue, *data, **options).results]

    def ingest(self, queue: str, *data: str, keys: tuple[str, ...] = ()) -> list[Taken]:
        """Send messages of the same keys."""
        arriving = [Arriving(NewEntry(one), keys) for one in data]
        return self.space.call(SpaceShard.ingest, queue, arriving)

    def names(self) -> set[str | None]:
        """The queues there are."""
        return {one.config.name for one in self.space.call(SpaceShard.queues, "", 100).queues}
