"""Random work on a real space against a model of it: nothing is lost or doubled, and no line is handed out twice.

What is asserted is named as in the invariants of the design: I1 no accepted message is lost; I2 one live lease at
most for a message and a line; I3 no more attempts than there may be; I4 a stale answer changes nothing; I5 within a
line, first deliveries are in the order of positions; I6 a key's window is exact; I8 counters are counts; I9 readers
see each entry once, in order; I10 all that holds after a restart too, and the alarm is set.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from msgspec.structs import replace

from edgequeues.core.backoff import Backoff
from edgequeues.core.lifecycle import UNFINISHED, State
from edgequeues.models import PRIORITY, NewEntry, OnAck, Ordering, Retry, Start
from edgequeues.space.dedup import WINDOW_MS
from edgequeues.space.shard import SpaceShard

from .work_checks import WorkChecks
from .work_items import Held, Item, Task
from .work_model import JOBS

LEASE_MS = 10_000
NAMES = st.sampled_from(["default", "default", "other"])
KEYS = st.sampled_from([None, "a", "b"])
ORDERINGS = st.sampled_from(["unordered", "fifo", "per_key"])
PUSHED = st.fixed_dictionaries(
    {
        "key": KEYS,
        "delay_ms": st.sampled_from([None] * 6 + [1_500]),
        "ttl_ms": st.sampled_from([None] * 6 + [2_000, 15_000]),
        "priority": st.sampled_from([4, 4, 0, 9]),
        "idempotency_key": st.sampled_from([None] * 12 + ["new", "new", "once"]),
        "data": st.sampled_from(["1", "2"]),
    }
)
RULES = st.fixed_dictionaries(
    {
        "attempts_max": st.sampled_from([3, 3, 1, 2, None]),
        "lease_ms": st.sampled_from([LEASE_MS, 1_000]),
        "backoff": st.sampled_from([Backoff(1_000, 2_000), Backoff(0, 0), Backoff(list_ms=(500, 3_000))]),
        "starvation_after_ms": st.sampled_from([None, None, 1_000, 12_000]),
        "lapse_delay_ms": st.sampled_from([0, 700]),
        "dead_letters": st.sampled_from([None, ""]),
    }
)
WAITS_MS = st.sampled_from([1, 500, 1_000, 2_000, LEASE_MS - 1] * 2 + [LEASE_MS, LEASE_MS + 300, WINDOW_MS])
OPERATIONS = (
    "delete",
    "skip",
    "skip",
    "hurry",
    "hurry",
    "replay",
    "replay",
    "dismiss",
    "purge",
    "pause",
    "limit",
)
ANSWERS = st.sampled_from(["ack", "ack", "ack", "retry", "retry", "release", "extend"])


class WorkMachine(WorkChecks):
    """Rules: all that callers, operators and time may do."""

    @initialize(
        ordering=ORDERINGS,
        on_ack=st.sampled_from(["delete", "delete", "keep"]),
        mutable=st.booleans(),
        rules=RULES,
    )
    def begin(self, ordering: Ordering, on_ack: OnAck, mutable: bool, rules: dict[str, object]) -> None:
        self.start(on_ack, mutable=mutable)
        self.dismiss("default")
        self.make("default", ordering, "new", rules)

    # -- producers --------------------------------------------------------------------------------------

    @rule(drawn=st.lists(PUSHED, min_size=1, max_size=5))
    def push(self, drawn: list[dict[str, Any]]) -> None:
        entries: list[NewEntry] = []
        for fields in drawn:
            self.named += 1
            one = NewEntry(object_id=f"m{self.named:04}", **fields)
            if self.fifo:
                one = replace(one, priority=PRIORITY)
            if one.idempotency_key == "new":
                one = replace(one, idempotency_key=one.object_id)
            elif one.idempotency_key in {other.idempotency_key for other in entries}:
                one = replace(one, idempotency_key=None)
            entries.append(one)
        self.push_all(entries)

    @rule(data=st.data(), what=st.sampled_from(["key", "version"]))
    def push_as_before(self, data: st.DataObject, what: str) -> None:
        """I6: what a key made before is the answer, and nothing else is made of it while its window lasts."""
        stored = self.model.items
        if what == "key" and self.model.keys:
            key = data.draw(st.sampled_from(sorted(self.model.keys)))
            object_id, ordering_key, text = self.model.keys[key].content
            fields: dict[str, Any] = {"object_id": object_id, "key": ordering_key, "data": text}
            self.push_all([NewEntry(**fields, idempotency_key=key)])
        elif what == "version" and stored:
            leased = [held.position for held in self.leases if held.position in stored]
            item = stored[data.draw(st.sampled_from(leased or sorted(stored)))]
            self.push_all([NewEntry("2" if item.data == "1" else "1", item.id, key=item.key)])

    # -- workers ----------------------------------------------------------------------------------------

    @rule(batch=st.integers(1, 5), data=st.data())
    def pull(self, batch: int, data: st.DataObject) -> None:
        if self.model.workers:
            self.pull_and_compare(data.draw(st.sampled_from(sorted(self.model.workers))), batch)

    @rule(batch=st.integers(1, 5), data=st.data())
    def pull_again(self, batch: int, data: st.DataObject) -> None:
        """The same: most of what there is to find is found in messages that were handed out."""
        self.pull(batch, data)

    @rule(data=st.data(), kind=ANSWERS)
    def answer_what_is_held(self, data: st.DataObject, kind: str) -> None:
        held = [one for one in self.leases if isinstance(self.model.verdict(one, live=False), Task)]
        if held:
            self.answer(data.draw(st.sampled_from(held)), kind, data)

    @rule(data=st.data(), kind=ANSWERS)
    def answer_any(self, data: st.DataObject, kind: str) -> None:
        if self.leases:
            self.answer(
                data.draw(st.sampled_from(self.leases[-4:]) | st.sampled_from(self.leases)), kind, data
            )

    def answer(self, held: Held, kind: str, data: st.DataObject) -> None:
        """I4: a lease that is not in force changes nothing, whatever is said about it."""
        if kind == "retry":
            delay = data.draw(st.sampled_from([None, None, 0, 500]))
            ask = Retry(held.text, delay, "no", data.draw(st.sampled_from([False, False, True])))
            [verdict] = self.settled(SpaceShard.retry, JOBS, [ask])
        elif kind == "extend":
            lease_ms = data.draw(st.sampled_from([1, 5_000]))
            [verdict] = self.settled(SpaceShard.extend, JOBS, [held.text], lease_ms)
        elif kind == "release":
            [verdict] = self.settled(SpaceShard.release, JOBS, [held.text])
        else:
            [verdict] = self.settled(SpaceShard.ack, JOBS, [held.text])
        task = self.judge(held, verdict, live=kind != "ack")
        if task is None:
            return
        if kind == "retry":
            self.model.retried(held.worker, task, ask)
        elif kind == "extend":
            task.due = self.model.at + lease_ms
        elif kind == "release":
            self.model.released(held.worker, task)
        else:
            self.model.acked(held.worker, task)

    @rule(data=st.data())
    def ack_together(self, data: st.DataObject) -> None:
        """In one call, each as if it came alone after those before it; one lease may be named twice."""
        if self.leases:
            some = st.sampled_from(self.leases[-6:]) | st.sampled_from(self.leases)
            together = data.draw(st.lists(some, min_size=2, max_size=6))
            verdicts = self.settled(SpaceShard.ack, JOBS, [held.text for held in together])
            for held, verdict in zip(together, verdicts, strict=True):
                task = self.judge(held, verdict, live=False)
                if task is not None:
                    self.model.acked(held.worker, task)

    # -- operators --------------------------------------------------------------------------------------

    @rule(name=NAMES, ordering=ORDERINGS, start=st.sampled_from(["new", "beginning"]), rules=RULES)
    def consume(self, name: str, ordering: Ordering, start: Start, rules: dict[str, object]) -> None:
        """Make a consumer, or give it other rules."""
        found = self.model.workers.get(name)
        self.make(name, ordering if found is None else found.rules.ordering, start, rules)

    @rule(
        data=st.data(),
        what=st.sampled_from(
            ["delete", "skip", "skip", "hurry", "hurry", "dismiss", "purge", "pause", "limit"]
        ),
    )
    def operate(self, data: st.DataObject, what: str) -> None:
        """One rule, so that not all that is pushed is gone before anything can be done with it."""
        name = data.draw(st.sampled_from(["other", "other", "default"]))
        if what == "limit":
            self.model.depth_max = data.draw(st.sampled_from([None, None, 6, 12]))
            self.call(SpaceShard.reconfigure, JOBS, {"depth_max": self.model.depth_max})
        elif what == "pause":
            self.pause_for_a_pull()
        elif what == "purge":
            self.purge()
        elif what == "replay":
            self.replay_one(data)
        elif what == "dismiss" and name in self.model.workers:
            self.dismiss(name)
        elif what in ("delete", "skip", "hurry") and self.model.items:
            item = self.model.items[data.draw(st.sampled_from(sorted(self.model.items)))]
            act = {"delete": lambda _, one: self.delete(one), "skip": self.skip, "hurry": self.hurry_one}[
                what
            ]
            act(name, item)

    # -- those who look ---------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(["default", "other"]), state=st.sampled_from(UNFINISHED), limit=st.integers(1, 4)
    )
    def peek(self, name: str, state: State, limit: int) -> None:
        worker = self.model.workers.get(name)
        found: list[int] = []
        after: int | None = 0 if worker is not None else None
        while after is not None:
            page = self.call(SpaceShard.peek, JOBS, name, (state,), after, limit)
            found += [one.entry.position for one in page.found]
            after = page.resume
        tasks = {} if worker is None else worker.tasks
        assert found == sorted(position for position, task in tasks.items() if task.state == state)

    def explain(self, item: Item) -> None:
        told = self.call(SpaceShard.explain, JOBS, item.id)
        assert {one.consumer: one.why for one in told} == {
            worker.name: self.model.why(worker, item) for worker in self.model.workers.values()
        }

    def lines(self, name: str) -> None:
        worker = self.model.workers.get(name)
        if worker is not None:
            waiting = Counter(task.line for task in worker.tasks.values() if task.state == "waiting")
            told = self.call(SpaceShard.lines, JOBS, name, None, 10).lines
            assert {one.key: one.waiting for one in told} == waiting

    # -- time, and the machine --------------------------------------------------------------------------

    @rule(data=st.data(), early_ms=st.sampled_from([0, 0, 1]), ring=st.booleans())
    def wait_for_what_comes(self, data: st.DataObject, early_ms: int, ring: bool) -> None:
        """To the millisecond, unless the clock was set back."""
        times = [ms for ms in self.model.times() if ms > self.model.at]
        if times:
            next_ms = data.draw(st.sampled_from(times[:3]) | st.sampled_from(times))
            self.wait(next_ms - self.model.at - early_ms, ring)

    @rule(ms=WAITS_MS, ring=st.booleans())
    def wait(self, ms: int, ring: bool) -> None:
        self.space.clock.advance(ms)
        if ring:
            self.ring()

    @rule(what=st.sampled_from(["restart", "ring", "step back a second", "step back an hour"]))
    def disturb(self, what: str) -> None:
        """I10: whatever is in memory may go, the alarm may ring alone, the clock may be set back."""
        if what == "restart":
            self.space.shard.forget()
            self.call(SpaceShard.opened)
        elif what == "ring" and self.space.alarm_due():
            self.space.run_alarm()
            self.model.settle()
        elif what != "ring":
            self.space.clock.advance(-1_000 if what.endswith("second") else -3_600_000)


TestWork = WorkMachine.TestCase
TestWork.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
