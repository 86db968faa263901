"""Random work on a real space against a model of it: nothing is lost or doubled, and no line is handed out twice.

What is asserted is named as in the invariants of the design: I1 no accepted message is lost; I2 one live lease at
most for a message and a line; I3 no more attempts than there may be; I4 a stale answer changes nothing; I5 within a
line, first deliveries are in the order of positions; I6 a key's window is exact; I8 counters are counts; I9 readers
see each entry once, in order; I10 all that holds after a restart too, and the alarm is set.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from edgequeues.core.backoff import Backoff
from edgequeues.core.errors import EdgeQueuesError
from edgequeues.models import NewEntry, OnAck, Ordering, Retry, Start
from edgequeues.space.dedup import WINDOW_MS
from edgequeues.space.shard import SpaceShard

from .work_checks import WorkChecks
from .work_model import JOBS, Held

LEASE_MS = 10_000
KEYS = st.sampled_from([None, "a", "b"])
ORDERINGS = st.sampled_from(["unordered", "fifo", "per_key"])
PUSHED = st.fixed_dictionaries(
    {
        "key": KEYS,
        "delay_ms": st.sampled_from([None, None, None, 1_500]),
        "ttl_ms": st.sampled_from([None, None, None, 2_000, 15_000]),
        "priority": st.sampled_from([4, 4, 4, 0, 9]),
        "idempotency_key": st.sampled_from([None, None, "once", "twice"]),
        "again": st.sampled_from([False, False, False, True]),  # under an id that was used before
        "data": st.sampled_from(["1", "2"]),
    }
)
RULES = st.fixed_dictionaries(
    {
        "attempts_max": st.sampled_from([3, 1, 2, None]),
        "lease_ms": st.sampled_from([LEASE_MS, 1_000]),
        "backoff": st.sampled_from([Backoff(1_000, 2_000), Backoff(0, 0), Backoff(list_ms=(500, 3_000))]),
        "starvation_after_ms": st.sampled_from([None, None, 1_000, 12_000]),
        "lapse_delay_ms": st.sampled_from([0, 700]),
        "dead_letters": st.sampled_from([None, ""]),
    }
)


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

    @rule(drawn=st.lists(PUSHED, min_size=1, max_size=4), data=st.data())
    def push(self, drawn: list[dict[str, object]], data: st.DataObject) -> None:
        entries: list[NewEntry] = []
        for one in drawn:
            fields = dict(one)
            if self.fifo:
                fields["priority"] = 4
            fresh = f"m{len(self.named):04}"
            object_id = (
                data.draw(st.sampled_from(self.named)) if fields.pop("again") and self.named else fresh
            )
            if object_id == fresh:
                self.named.append(fresh)
            if not any(object_id == other.object_id for other in entries):
                used = {other.idempotency_key for other in entries}
                if fields["idempotency_key"] in used:
                    fields["idempotency_key"] = None
                entries.append(NewEntry(object_id=object_id, **fields))  # type: ignore[arg-type]
        self.push_all(entries)

    @rule(drawn=PUSHED)
    def push_with_a_key_as_before(self, drawn: dict[str, object]) -> None:
        """I6: what the key made before is the answer; nothing else is made of it."""
        known = self.model.keys.get(str(drawn["idempotency_key"]))
        if known is not None and not (self.fifo and drawn["priority"] != 4):
            object_id, key, text = known.content
            fields = {**drawn, "object_id": object_id, "key": key, "data": text}
            del fields["again"]
            self.push_all([NewEntry(**fields)])  # type: ignore[arg-type]

    @rule(data=st.data())
    def push_another_version(self, data: st.DataObject) -> None:
        """Of a message that is handed out, where there is one."""
        stored = self.model.items
        leased = [held.position for held in self.leases if held.position in stored]
        if stored and self.model.mutable:
            item = stored[data.draw(st.sampled_from(leased or sorted(stored)))]
            self.push_all([NewEntry("2" if item.data == "1" else "1", item.id, key=item.key)])

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.model.items:
            position = data.draw(st.sampled_from(sorted(self.model.items)))
            item = self.model.items[position]
            deleted = self.call(SpaceShard.delete_ids, JOBS, [item.id])
            assert deleted == (not item.expired(self.model.at))
            self.model.cancel(item)

    @rule()
    def purge(self) -> None:
        resume, through, rounds = None, None, 0
        while resume is not None or not rounds:
            part = self.call(SpaceShard.delete_range, JOBS, resume, None, through)
            resume, through, rounds = part.resume, part.through, rounds + 1
        for item in list(self.model.items.values()):
            self.model.cancel(item)

    # -- workers ----------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(["default", "other"]), batch=st.integers(1, 5))
    def pull(self, name: str, batch: int) -> None:
        if name in self.model.workers:
            self.pull_and_compare(name, batch)

    @rule(name=st.sampled_from(["default", "other"]), batch=st.integers(1, 5))
    def pull_again(self, name: str, batch: int) -> None:
        """The same: most of what there is to find is found in messages that were handed out."""
        self.pull(name, batch)

    def drawn_lease(self, data: st.DataObject) -> Held | None:
        if not self.leases:
            return None
        newest = self.leases[-6:]
        return data.draw(st.sampled_from(newest) | st.sampled_from(self.leases))

    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        held = self.drawn_lease(data)
        if held is not None:
            [verdict] = self.settled(SpaceShard.ack, JOBS, [held.text])
            task = self.judge(held, verdict, live=False)
            if task is not None:
                self.model.acked(held.worker, task)

    @rule(
        data=st.data(),
        delay=st.sampled_from([None, None, 0, 500]),
        permanent=st.sampled_from([False, False, True]),
    )
    def retry(self, data: st.DataObject, delay: int | None, permanent: bool) -> None:
        held = self.drawn_lease(data)
        if held is not None:
            ask = Retry(held.text, delay, "no", permanent)
            [verdict] = self.settled(SpaceShard.retry, JOBS, [ask])
            task = self.judge(held, verdict, live=True)
            if task is not None:
                self.model.retried(held.worker, task, ask)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        held = self.drawn_lease(data)
        if held is not None:
            [verdict] = self.settled(SpaceShard.release, JOBS, [held.text])
            task = self.judge(held, verdict, live=True)
            if task is not None:
                self.model.released(held.worker, task)

    @rule(data=st.data(), lease_ms=st.sampled_from([1, 5_000]))
    def extend(self, data: st.DataObject, lease_ms: int) -> None:
        held = self.drawn_lease(data)
        if held is not None:
            [verdict] = self.settled(SpaceShard.extend, JOBS, [held.text], lease_ms)
            task = self.judge(held, verdict, live=True)
            if task is not None:
                task.due = self.model.at + lease_ms

    # -- operators --------------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(["default", "other"]),
        ordering=ORDERINGS,
        start=st.sampled_from(["new", "beginning"]),
        rules=RULES,
    )
    def consume(self, name: str, ordering: Ordering, start: Start, rules: dict[str, object]) -> None:
        """Make a consumer, or give it other rules."""
        found = self.model.workers.get(name)
        self.make(name, ordering if found is None else found.rules.ordering, start, rules)

    @rule(name=st.sampled_from(["other", "other", "default"]))
    def dismiss_one(self, name: str) -> None:
        if name in self.model.workers:
            self.dismiss(name)

    @rule(data=st.data())
    def skip(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(["default", "other"]))
        worker = self.model.workers.get(name)
        if worker is None or not self.model.items:
            return
        position = data.draw(st.sampled_from(sorted(self.model.items)))
        object_id = self.model.items[position].id
        self.settled(SpaceShard.consumers, JOBS)
        refused = None
        try:
            self.call(SpaceShard.skip, JOBS, name, object_id)
        except EdgeQueuesError as error:
            refused = error
        task = worker.tasks.get(position)
        assert (refused is None) == (task is not None and task.state != "leased")
        if task is not None and task.state != "leased":
            self.model.bury(worker, task, "skipped")

    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        letters = self.letters()
        if letters:
            letter, _ = data.draw(st.sampled_from(letters))
            self.replay_one(letter)

    @rule(depth_max=st.sampled_from([None, 3, 6]))
    def limit(self, depth_max: int | None) -> None:
        self.call(SpaceShard.reconfigure, JOBS, {"depth_max": depth_max})
        self.model.depth_max = depth_max

    @rule()
    def pause_or_resume(self) -> None:
        self.model.paused = not self.model.paused
        self.call(SpaceShard.reconfigure, JOBS, {"paused": self.model.paused})

    # -- time, and the machine --------------------------------------------------------------------------

    @rule(
        ms=st.sampled_from([1, 500, 1_000, 2_000, LEASE_MS - 1, LEASE_MS, LEASE_MS, WINDOW_MS]),
        ring=st.booleans(),
    )
    def wait(self, ms: int, ring: bool) -> None:
        self.space.clock.advance(ms)
        if ring:
            self.ring()

    @rule(ms=st.sampled_from([1_000, 3_600_000]))
    def step_the_clock_back(self, ms: int) -> None:
        self.space.clock.advance(-ms)

    @rule()
    def ring_once(self) -> None:
        if self.space.alarm_due():
            self.space.run_alarm()
            self.model.settle()

    @rule()
    def restart(self) -> None:
        """I10: whatever is in memory is gone."""
        self.space.shard.forget()
        self.call(SpaceShard.opened)


TestWork = WorkMachine.TestCase
TestWork.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
