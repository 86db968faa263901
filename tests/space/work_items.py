"""What the model of work is made of: messages, where they stand, who works on them, and what is seen of the rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from edgequeues.core import backoff
from edgequeues.core.lifecycle import State
from edgequeues.models import ConsumerConfig


@dataclass
class Item:
    """A message as it is stored."""

    id: str
    position: int
    key: str | None
    priority: int
    data: str
    updated: int
    due: int | None
    expires: int | None

    def expired(self, at: int) -> bool:
        return self.expires is not None and self.expires <= at


@dataclass
class Task:
    """Where a message stands with a consumer."""

    item: Item
    line: str | None
    state: State
    due: int | None
    ready: int = 0  # since when it has been, last
    attempts: int = 0
    serial: int = 0
    open: bool = False

    @property
    def row(self) -> tuple[State, int | None, int]:
        return self.state, self.due, self.attempts


@dataclass(eq=False)
class Worker:
    """A consumer, from when it was made until it is dismissed."""

    name: str
    rules: ConsumerConfig
    filled: int
    filling: bool
    tasks: dict[int, Task] = field(default_factory=dict)
    firsts: dict[str, list[int]] = field(default_factory=dict)  # positions by line, as first handed out
    totals: Counter[str] = field(default_factory=Counter)

    def line(self, item: Item) -> str | None:
        ordering = self.rules.ordering
        return "" if ordering == "fifo" else item.key if ordering == "per_key" else None

    def first_of(self, line: str) -> Task:
        return self.tasks[min(position for position, task in self.tasks.items() if task.line == line)]

    def spent(self, task: Task) -> bool:
        return backoff.exhausted(task.attempts, self.rules.attempts_max)

    def next(self, at: int) -> list[Task]:
        """What is ready, in the order in which an unordered consumer is handed it."""
        ready = [task for task in self.tasks.values() if task.state == "ready"]
        ready.sort(key=lambda task: (-task.item.priority, task.item.position))
        starvation_ms, found = self.rules.starvation_after_ms, []
        while starvation_ms is not None and ready:
            first = {task.item.priority: task for task in reversed(ready)}.values()
            starved = [task for task in first if task.ready <= at - starvation_ms]
            found.append(min(starved, key=lambda task: (task.ready, -task.item.priority), default=ready[0]))
            ready.remove(found[-1])
        return found + ready


class Held(NamedTuple):
    """A lease that was given."""

    text: str
    worker: Worker
    position: int
    serial: int


class Letter(NamedTuple):
    """A dead letter."""

    id: str
    consumer: str
    reason: str
    attempts: int
    failed: int


class Known(NamedTuple):
    """What an idempotency key made."""

    content: tuple[object, ...]
    id: str
    position: int
    until: int


class Seen(NamedTuple):
    """What the rows say: positions stored, and of each consumer how far it is filled, and its deliveries."""

    stored: list[int]
    consumers: dict[str, tuple[int, bool, dict[int, tuple[State, int | None, int]]]]
