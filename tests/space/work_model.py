"""What consumers of a queue are owed, in lists and dicts: the rules of deliveries without SQL, counters or alarms.

The model is told what became of time: which messages expired, how far a new consumer was filled. It says whether
that may be so, and decides everything else by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgequeues.core import backoff
from edgequeues.core.errors import (
    EdgeQueuesError,
    EntryExists,
    IdempotencyMismatch,
    InvalidRequest,
    QueueFull,
)
from edgequeues.models import PRIORITY, Appended, ConsumerConfig, NewEntry, OnAck, Retry, Start, Verdict
from edgequeues.space.dedup import WINDOW_MS
from edgequeues.space.explaining import REASONS

from .work_items import Held, Item, Known, Letter, Seen, Task, Worker

JOBS = "jobs"


class Work:
    """One queue with its consumers."""

    def __init__(self, on_ack: OnAck, *, mutable: bool) -> None:
        self.on_ack, self.mutable = on_ack, mutable
        self.at = 0  # the store's time; whoever uses this keeps it
        self.depth_max: int | None = None
        self.paused = False
        self.tail = 0
        self.items: dict[int, Item] = {}
        self.workers: dict[str, Worker] = {}
        self.letters: list[Letter] = []
        self.keys: dict[str, Known] = {}
        self.superseded: dict[tuple[Worker, int, int], int] = {}  # when each lease was

    # -- arriving ---------------------------------------------------------------------------------------

    def expected(self, entries: Sequence[NewEntry]) -> list[str] | type[EdgeQueuesError]:
        """What a push of these comes to: outcomes, or a refusal of all."""
        fifo = any(one.rules.ordering == "fifo" for one in self.workers.values())
        if fifo and any(entry.priority != PRIORITY for entry in entries):
            return InvalidRequest
        known = [self.repeat(entry) for entry in entries]
        if any(
            found and found.content != content(entry) for entry, found in zip(entries, known, strict=True)
        ):
            return IdempotencyMismatch
        outcomes = [
            "same" if found else self.outcome(entry) for entry, found in zip(entries, known, strict=True)
        ]
        if "exists" in outcomes:
            return EntryExists
        fresh = [entry for entry, outcome in zip(entries, outcomes, strict=True) if outcome != "same"]
        full = self.depth_max is not None and self.depth(fresh) + len(fresh) > self.depth_max
        return QueueFull if fresh and full else outcomes

    def outcome(self, entry: NewEntry) -> str:
        old = self.stored(entry.object_id)
        if old is None or old.expired(self.at):
            return "new"
        return "same" if old.data == entry.data else "moved" if self.mutable else "exists"

    def repeat(self, entry: NewEntry) -> Known | None:
        found = self.keys.get(entry.idempotency_key or "")
        return found if found is not None and found.until > self.at else None

    def stored(self, object_id: str | None) -> Item | None:
        return next((item for item in self.items.values() if item.id == object_id), None)

    def depth(self, fresh: Sequence[NewEntry]) -> int:
        """Without what has expired, which goes before anything is refused for it."""
        if self.workers:
            workers = self.workers.values()
            return max(sum(not self.is_over(task.item) for task in one.tasks.values()) for one in workers)
        replaced = [self.stored(entry.object_id) for entry in fresh]
        return sum(not item.expired(self.at) and item not in replaced for item in self.items.values())

    def is_over(self, item: Item) -> bool:
        """It has expired, and nobody holds it."""
        return item.expired(self.at) and not any(held(one, item) for one in self.workers.values())

    def pushed(self, entries: Sequence[NewEntry], results: Sequence[Appended]) -> None:
        """Take in what a push has made."""
        arrived = []
        for entry, made in zip(entries, results, strict=True):
            key = entry.idempotency_key
            repeated = self.repeat(entry)
            if repeated is not None:
                assert (made.id, made.position) == (repeated.id, repeated.position), "I6: not what it made"
            elif key is not None:
                self.keys[key] = Known(content(entry), made.id, made.position, self.at + WINDOW_MS)
            if made.outcome == "same":
                continue
            old = self.stored(made.id)
            if old is not None:
                self.cancel(old, superseded=True)
            due = self.at + (entry.delay_ms or 0)
            expires = None if entry.ttl_ms is None else self.at + entry.ttl_ms
            arrived.append(
                Item(
                    made.id,
                    made.position,
                    entry.key,
                    entry.priority,
                    entry.data,
                    self.at,
                    due if due > self.at else None,
                    expires,
                )
            )
        for item in arrived:
            self.tail = item.position
            self.items[item.position] = item
            for worker in self.workers.values():
                if not worker.filling:
                    self.give(worker, item)
                    worker.filled = item.position

    def give(self, worker: Worker, item: Item) -> None:
        line = worker.line(item)
        task = Task(item, line, "waiting", None)
        if line is None or all(other.line != line for other in worker.tasks.values()):
            self.turn(task)
            task.ready = item.due or item.updated
        worker.tasks[item.position] = task
        worker.totals["in"] += 1

    # -- working ----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """What has come due by now, is."""
        for worker in self.workers.values():
            for task in list(worker.tasks.values()):
                if task.due is None or task.due > self.at:
                    continue
                if task.state == "leased":
                    self.lapse(worker, task)
                else:
                    task.state, task.ready, task.due = "ready", task.due, None

    def lapse(self, worker: Worker, task: Task) -> None:
        worker.totals["lapsed"] += 1
        if worker.spent(task):
            self.bury(worker, task, "exhausted")
        else:
            assert task.due is not None
            self.park(task, task.due + worker.rules.lapse_delay_ms - self.at)

    def park(self, task: Task, delay_ms: int) -> None:
        task.state, task.due = ("backoff", self.at + delay_ms) if delay_ms > 0 else ("ready", None)
        task.ready = self.at + min(delay_ms, 0)

    def lease(self, worker: Worker, position: int, until: int) -> Task:
        """Hand a message out."""
        task = worker.tasks[position]
        assert task.state == "ready", "I2: it is not to be had"
        if task.line is not None:
            assert worker.first_of(task.line) is task, "I5: not its turn"
            if task.serial == 0:
                worker.firsts.setdefault(task.line, []).append(position)
        task.state, task.due, task.open = "leased", until, True
        task.attempts += 1
        task.serial += 1
        worker.totals["attempts"] += 1
        assert worker.rules.attempts_max is None or task.attempts <= worker.rules.attempts_max, "I3"
        return task

    def verdict(self, held: Held, *, live: bool) -> Verdict | Task:
        """What a lease is about, or why it is about nothing any more. live: must it still hide the message?"""
        task = held.worker.tasks.get(held.position)
        if held.worker not in self.workers.values():
            return "finished"
        if task is None:
            return "superseded" if held[1:] in self.superseded else "finished"
        if task.serial != held.serial or not task.open:
            return "stale"
        return task if task.state == "leased" or not live else "lapsed"

    def acked(self, worker: Worker, task: Task) -> None:
        worker.totals["acked"] += 1
        self.end(worker, task)

    def retried(self, worker: Worker, task: Task, ask: Retry) -> None:
        if ask.permanent or worker.spent(task):
            self.bury(worker, task, "permanent" if ask.permanent else "exhausted")
            return
        delay_ms = ask.delay_ms
        if delay_ms is None:
            delay_ms = backoff.delay_ms(worker.rules.backoff, task.attempts)
        worker.totals["retried"] += 1
        self.park(task, delay_ms)
        task.open = False

    def released(self, worker: Worker, task: Task) -> None:
        worker.totals["released"] += 1
        self.park(task, 0)
        task.open = False
        task.attempts -= 1

    # -- operators --------------------------------------------------------------------------------------

    def consume(self, name: str, rules: ConsumerConfig, start: Start) -> None:
        if name in self.workers:
            self.workers[name].rules = rules
            return
        filled = self.tail if start == "new" or not self.items else 0
        self.workers[name] = Worker(name, rules, filled, filled < self.tail)

    # -- endings ----------------------------------------------------------------------------------------

    def bury(self, worker: Worker, task: Task, reason: str) -> None:
        worker.totals[reason] += 1
        if worker.rules.dead_letters != "":
            self.letters.append(Letter(task.item.id, worker.name, reason, task.attempts, self.at))
        self.end(worker, task)

    def end(self, worker: Worker, task: Task) -> None:
        """A consumer is done with a message; the next of its line has its turn."""
        del worker.tasks[task.item.position]
        if task.line is not None and task.state != "waiting":
            following = [other for other in worker.tasks.values() if other.line == task.line]
            if following:
                first = worker.first_of(task.line)
                self.turn(first)
        self.finish(task.item.position)

    def finish(self, position: int) -> None:
        """Nobody may need an entry any more."""
        needed = any(one.filled < position or position in one.tasks for one in self.workers.values())
        if self.on_ack == "delete" and not needed:
            self.items.pop(position, None)

    def cancel(self, item: Item, *, superseded: bool = False) -> None:
        """An entry goes, whoever still needs it."""
        for worker in self.workers.values():
            task = worker.tasks.get(item.position)
            if task is not None:
                held = task.state == "leased"
                if superseded and held:
                    self.superseded[worker, item.position, task.serial] = self.at
                worker.totals["expired" if item.expired(self.at) and not held else "cancelled"] += 1
                self.end(worker, task)
        self.items.pop(item.position, None)

    def dismiss(self, name: str) -> None:
        """What nobody else has still to do goes with a consumer; with the last one nothing does."""
        gone = self.workers.pop(name)
        if self.workers:
            for position in list(self.items):
                if position in gone.tasks or position > gone.filled:
                    self.finish(position)

    def turn(self, task: Task) -> None:
        """It is this message's turn in its line."""
        due = task.item.due
        if due is not None and due > self.at:
            task.state, task.due = "scheduled", due
        else:
            task.state, task.due, task.ready = "ready", None, self.at

    def why(self, worker: Worker, item: Item) -> str:
        """Why it is not delivered now."""
        task = worker.tasks.get(item.position)
        if task is None:
            return "filling" if worker.filling and item.position > worker.filled else "finished"
        if task.state != "leased" and item.expired(self.at):
            return "expired"
        if task.state == "ready" and self.paused:
            return "paused"
        return REASONS[task.state]

    def times(self) -> list[int]:
        """When something may change by itself, soonest first."""
        found = {task.due for worker in self.workers.values() for task in worker.tasks.values()}
        found |= {item.expires for item in self.items.values()}
        found |= {key.until for key in self.keys.values()}
        return sorted(ms for ms in found if ms is not None)

    # -- what became of time ----------------------------------------------------------------------------

    def observe(self, seen: Seen) -> None:
        """Take in what was filled and what has gone by itself, if it may."""
        for worker in self.workers.values():
            filled, worker.filling, _ = seen.consumers[worker.name]
            for position in sorted(self.items):
                if worker.filled < position <= filled:
                    self.give(worker, self.items[position])
            worker.filled = filled
        for item in list(self.items.values()):
            if item.position not in seen.stored and item.expired(self.at):
                assert not any(held(one, item) for one in self.workers.values()), "I1: gone while leased"
                self.cancel(item)
        for worker in self.workers.values():
            rows = seen.consumers[worker.name][2]
            for position in sorted(worker.tasks.keys() - rows.keys()):
                self.fade(worker, worker.tasks[position])

    def compare(self, seen: Seen) -> None:
        """All is as it is here."""
        for worker in self.workers.values():
            rows = seen.consumers[worker.name][2]
            assert {position: task.row for position, task in worker.tasks.items()} == rows, "I1"
        assert set(self.items) == set(seen.stored), "I1: not what is stored"

    def fade(self, worker: Worker, task: Task) -> None:
        """A delivery has gone by itself: it expired, or was ready but had no attempts left."""
        if task.item.expired(self.at) and task.state != "leased":
            worker.totals["expired"] += 1
            self.end(worker, task)
        else:
            assert task.state == "ready", "I1: it was lost"
            assert worker.spent(task), "I1: it was lost"
            self.bury(worker, task, "exhausted")


def held(worker: Worker, item: Item) -> bool:
    task = worker.tasks.get(item.position)
    return task is not None and task.state == "leased"


def content(entry: NewEntry) -> tuple[object, ...]:
    """What a key stands for."""
    return entry.object_id, entry.key, entry.data
