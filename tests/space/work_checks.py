"""What the machine of work shares: turns on the space and on the model, and what holds after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from edgequeues.core.errors import EntryNotFound, InvalidRequest, QueueNotFound
from edgequeues.models import (
    LEASE_MS_MAX,
    Appended,
    ConsumerConfig,
    Entry,
    NewEntry,
    OnAck,
    Ordering,
    Pull,
    QueueConfig,
    Start,
    Verdict,
)
from edgequeues.space import check
from edgequeues.space.letters import RETENTION_MS
from edgequeues.space.shard import SpaceShard
from shards.testing import Direct, FakeClock

from .work_items import Held, Item, Seen, Task, Worker
from .work_model import JOBS, Work
from .world import Space

P = ParamSpec("P")
T = TypeVar("T")

GRAVES = f"{JOBS}-dlq"
STORED = "SELECT id FROM queue_entries JOIN queues USING (queue_id) WHERE name = ?"
CONSUMERS = """
SELECT consumers.name, consumer_id, filled, filling FROM consumers JOIN queues USING (queue_id) WHERE queues.name = ?
"""
ROWS = "SELECT entry_id, state, due_ts, attempts FROM deliveries WHERE consumer_id = ?"
COUNTS = """
SELECT c.name, (c.scheduled, c.waiting, c.ready, c.leased, c.backoff_count, c.bytes)
  = (sum(d.state IS 'scheduled'), sum(d.state IS 'waiting'), sum(d.state IS 'ready'), sum(d.state IS 'leased'),
     sum(d.state IS 'backoff'), coalesce(sum(d.size), 0))
FROM consumers AS c LEFT JOIN deliveries AS d USING (consumer_id) GROUP BY consumer_id
"""
KEPT = """
SELECT total_in - total_acked - total_exhausted - total_permanent - total_skipped - total_expired - total_cancelled
     - scheduled - waiting - ready - leased - backoff_count
FROM consumers
"""
COUNTED = ("acked", "retried", "lapsed", "released", "attempts", "exhausted", "permanent", "skipped")
TOTALS = f"""
SELECT {", ".join(f"total_{name}" for name in COUNTED)} FROM consumers JOIN queues USING (queue_id)
WHERE consumers.name = ? AND queues.name = ?
"""
HEADLESS = """
SELECT line FROM deliveries WHERE line IS NOT NULL GROUP BY consumer_id, line
HAVING sum(state <> 'waiting') <> 1 OR min(entry_id) <> min(entry_id) FILTER (WHERE state <> 'waiting')
"""
FORGOTTEN = """
SELECT entry_id FROM attempts WHERE ending <> 'superseded'
AND (consumer_id, entry_id) NOT IN (SELECT consumer_id, entry_id FROM deliveries)
"""


class SmallTurns(SpaceShard):
    """A space that does little in a turn, so that few messages take many."""

    fill_rows: ClassVar[int] = 2
    removed_rows: ClassVar[int] = 2


class SmallSpace(Space):
    """In memory."""

    def __init__(self) -> None:
        Direct.__init__(self, SmallTurns, FakeClock())


class WorkChecks(RuleBasedStateMachine):
    """A space, its model, and the invariants. sessions: are its ordering keys sessions?"""

    sessions: ClassVar[bool] = False
    space: SmallSpace
    model: Work

    def start(self, on_ack: OnAck, *, mutable: bool) -> None:
        self.space = SmallSpace()
        self.model = Work(on_ack, mutable=mutable)
        self.leases: list[Held] = []
        self.named = 0  # ids that messages were pushed under
        self.replayed: dict[str, str] = {}  # messages that were made of dead letters
        config = QueueConfig(kind="work", on_ack=on_ack, mutable=mutable, sessions=self.sessions)
        self.call(SpaceShard.configure, JOBS, config)
        self.model.consume("default", ConsumerConfig(), "beginning")

    def teardown(self) -> None:
        if hasattr(self, "space"):
            assert check.problems(self.space.db) == []
            self.space.db.close()

    @property
    def fifo(self) -> bool:
        return any(one.rules.ordering == "fifo" for one in self.model.workers.values())

    # -- turns ------------------------------------------------------------------------------------------

    def call(self, verb: Callable[Concatenate[SpaceShard, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self.model.at = self.space.call(SpaceShard._time)
        return self.space.call(verb, *args, **kwargs)

    def settled(self, verb: Callable[Concatenate[SpaceShard, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One turn of a verb that takes on first what has come due."""
        given = self.call(verb, *args, **kwargs)
        self.model.settle()
        return given

    def ring(self) -> None:
        """As the host does, by the clock. After it was set back, what is due is due when it was, or somebody asks."""
        self.model.at = self.space.call(SpaceShard._time)
        for _ in range(100):
            if not self.space.alarm_due():
                return
            self.space.run_alarm()
            self.model.settle()
        raise AssertionError("the alarm never ends")

    def make(self, name: str, ordering: Ordering, start: Start, drawn: dict[str, Any]) -> None:
        rules = ConsumerConfig(ordering, **drawn)
        self.call(SpaceShard.consume, JOBS, name, rules, start)
        self.model.consume(name, rules, start)

    def dismiss(self, name: str) -> None:
        while self.call(SpaceShard.dismiss, JOBS, name):
            pass
        self.model.dismiss(name)

    def push_all(self, entries: Sequence[NewEntry]) -> None:
        self.model.at = self.space.call(SpaceShard._time)
        expected = self.model.expected(entries)
        if not isinstance(expected, list):
            with pytest.raises(expected):
                self.call(SpaceShard.push, JOBS, entries)
            return
        results = self.call(SpaceShard.push, JOBS, entries).results
        assert [one.outcome for one in results] == expected
        self.model.pushed(entries, results)

    def delete(self, item: Item) -> None:
        deleted = self.call(SpaceShard.delete_ids, JOBS, [item.id])
        assert deleted == (not item.expired(self.model.at))
        self.model.cancel(item)

    def purge(self) -> None:
        resume, through, rounds = None, None, 0
        while resume is not None or not rounds:
            part = self.call(SpaceShard.delete_range, JOBS, resume, None, through)
            resume, through, rounds = part.resume, part.through, rounds + 1
        for item in list(self.model.items.values()):
            self.model.cancel(item)

    def skip(self, name: str, item: Item) -> None:
        if name not in self.model.workers:
            return
        worker = self.model.workers[name]
        self.settled(SpaceShard.consumers, JOBS)
        task = worker.tasks.get(item.position)
        if task is None or task.state == "leased":
            with pytest.raises((EntryNotFound, InvalidRequest)):
                self.call(SpaceShard.skip, JOBS, name, item.id)
        else:
            self.call(SpaceShard.skip, JOBS, name, item.id)
            self.model.bury(worker, task, "skipped")

    def hurry_one(self, name: str, item: Item) -> None:
        if name not in self.model.workers:
            return
        self.settled(SpaceShard.consumers, JOBS)
        task = self.model.workers[name].tasks.get(item.position)
        if task is None or task.state not in ("backoff", "scheduled"):
            with pytest.raises((EntryNotFound, InvalidRequest)):
                self.call(SpaceShard.hurry, JOBS, name, item.id)
        else:
            self.call(SpaceShard.hurry, JOBS, name, item.id)
            task.state, task.due, task.ready = "ready", None, self.model.at

    def pause_for_a_pull(self) -> None:
        """Nothing is handed out meanwhile."""
        self.call(SpaceShard.reconfigure, JOBS, {"paused": True})
        self.model.paused = True
        for name in self.model.workers:
            self.pull_and_compare(name, 5)
        self.call(SpaceShard.reconfigure, JOBS, {"paused": False})
        self.model.paused = False

    def pull_and_compare(self, name: str, batch: int) -> None:
        worker = self.model.workers[name]
        self.settled(SpaceShard.consumers, JOBS)
        before = worker.next(self.model.at)
        given = self.call(SpaceShard.pull, JOBS, name, Pull(batch, worker=name))
        assert given.paused == self.model.paused
        assert not (given.paused and given.messages)
        self.model.observe(self.seen())
        for one in given.messages:
            assert not self.model.items[one.entry.position].expired(self.model.at)
            task = self.model.lease(worker, one.entry.position, one.until)
            assert one.attempts == task.attempts
            assert one.until == self.model.at + worker.rules.lease_ms
            self.leases.append(Held(one.lease, worker, one.entry.position, task.serial))
        if not given.paused:
            self.check_choice(worker, before, [one.entry.position for one in given.messages], batch)

    def check_choice(self, worker: Worker, before: list[Task], given: list[int], batch: int) -> None:
        """Were those handed out whose turn it was, and as many as there were?"""
        wanted = [
            task
            for task in before
            if not task.item.expired(self.model.at) and self.may_be_tried(worker, task)
        ]
        if worker.rules.ordering == "unordered":
            assert given == [task.item.position for task in wanted][:batch]
            return
        left = [task for task in wanted if task.state == "ready"]
        if len(given) < batch:
            assert not left
        if worker.rules.starvation_after_ms is not None:
            return  # what is handed out may make the next of its line ready, and that starve
        then_ready = {task.item.position for task in before}
        lowest = min((self.model.items[one].priority for one in given if one in then_ready), default=9)
        assert all(task.item.priority <= lowest for task in left)

    def may_be_tried(self, worker: Worker, task: Task) -> bool:
        """Before this pull handed it out."""
        tried = task.attempts - (task.state == "leased")
        return worker.rules.attempts_max is None or tried < worker.rules.attempts_max

    def judge(self, held: Held, verdict: Verdict, *, live: bool) -> Task | None:
        """The task that an answer was for; None: it must have changed nothing (I4)."""
        expected = self.model.verdict(held, live=live)
        if isinstance(expected, Task):
            assert verdict == "done"
            return expected
        if expected == "superseded" and verdict == "finished":
            since = self.model.superseded[held.worker, held.position, held.serial]
            assert self.model.at - since >= LEASE_MS_MAX, "forgotten too soon"
        else:
            assert verdict == expected
        return None

    def letters(self) -> list[tuple[Entry, Any]]:
        try:
            return list(self.call(SpaceShard.dead_letters, GRAVES, 0, 1_000))
        except QueueNotFound:
            return []

    def replay_one(self, data: st.DataObject) -> None:
        """A full queue takes it all the same."""
        letters = self.letters()
        if not letters:
            return
        letter, _ = data.draw(st.sampled_from(letters))
        entry = NewEntry(letter.data, key=letter.key, priority=letter.priority)
        before = self.replayed.get(letter.id)
        [made] = self.call(SpaceShard.replay, GRAVES, [letter.id])
        if before is not None:
            assert (made.outcome, made.message) == ("already", before)
            return
        assert made.outcome == "replayed"
        assert made.message is not None
        self.replayed[letter.id] = made.message
        position = self.call(SpaceShard.get, JOBS, made.message).position
        self.model.pushed([entry], [Appended(made.message, position, "", "new")])

    # -- what holds -------------------------------------------------------------------------------------

    def seen(self) -> Seen:
        db = self.space.db
        stored: list[Any] = [position for (position,) in db.execute(STORED, (JOBS,)).fetchall()]
        found: dict[Any, Any] = {}
        for name, consumer_id, filled, filling in db.execute(CONSUMERS, (JOBS,)).fetchall():
            rows: list[Any] = db.execute(ROWS, (consumer_id,)).fetchall()
            found[name] = (filled, bool(filling), {position: tuple(row) for position, *row in rows})
        return Seen(stored, found)

    @invariant()
    def every_message_is_where_it_should_be(self) -> None:
        """I1, I2, I4 and I10: rows are as the model has them, whatever was asked and undone."""
        if hasattr(self, "model"):
            self.model.at = self.space.call(SpaceShard._time)
            seen = self.seen()
            self.model.observe(seen)
            self.model.compare(seen)

    @invariant()
    def counters_are_counts(self) -> None:
        """I8, and I1 once more: whatever came in is unfinished or has come to one of the ends."""
        if not hasattr(self, "model"):
            return
        assert all(equal for _, equal in self.space.db.execute(COUNTS).fetchall())
        assert all(kept == 0 for (kept,) in self.space.db.execute(KEPT).fetchall())
        for worker in self.model.workers.values():
            [totals] = self.space.db.execute(TOTALS, (worker.name, JOBS)).fetchall()
            assert list(totals) == [worker.totals[name] for name in COUNTED]

    @invariant()
    def each_line_has_one_head_and_it_is_its_first(self) -> None:
        """I2 and I5, of every queue: no line is in two hands, and it goes on in order."""
        if hasattr(self, "model"):
            assert self.space.db.execute(HEADLESS).fetchall() == []
            for worker in self.model.workers.values():
                assert all(firsts == sorted(firsts) for firsts in worker.firsts.values())

    @invariant()
    def attempts_are_remembered_as_long_as_their_delivery(self) -> None:
        if hasattr(self, "model"):
            assert self.space.db.execute(FORGOTTEN).fetchall() == []

    @invariant()
    def the_alarm_is_set_for_what_is_due(self) -> None:
        """I10."""
        if not hasattr(self, "model"):
            return
        due = self.space.db.execute("SELECT min(due_ts) FROM deliveries").get
        filling = self.space.db.execute("SELECT count(*) FROM consumers WHERE filling").get
        if due is not None or filling:
            alarm = self.space.shard.get_alarm()
            assert alarm is not None
            assert filling or alarm <= max(due, self.space.clock.now_ms())

    @invariant()
    def readers_see_each_entry_once_in_order(self) -> None:
        """I9."""
        if hasattr(self, "model"):
            live = [item for item in self.model.items.values() if not item.expired(self.model.at)]
            assert [entry.position for entry in self.space.all(JOBS)] == sorted(one.position for one in live)

    @invariant()
    def what_was_given_up_is_a_dead_letter(self) -> None:
        """I1: with the facts."""
        if not hasattr(self, "model"):
            return
        told = [
            (one.original_message_id, one.consumer, one.reason, one.attempts) for _, one in self.letters()
        ]
        past = self.model.at - RETENTION_MS
        assert sorted(told) == sorted(letter[:4] for letter in self.model.letters if letter.failed > past)
