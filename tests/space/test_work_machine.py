"""Random work on a real space against a small model: nothing is lost or doubled, and no line is handed out twice."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from edgequeues.core.backoff import Backoff
from edgequeues.models import ConsumerConfig, NewEntry, Ordering, Pull, QueueConfig, Retry
from edgequeues.space.shard import SpaceShard

from .world import Space

JOBS, ATTEMPTS_MAX, LEASE_MS = "jobs", 3, 10_000
RULES = ConsumerConfig(
    attempts_max=ATTEMPTS_MAX, lease_ms=LEASE_MS, backoff=Backoff(initial_ms=1_000, max_ms=2_000)
)
COUNTS = """
SELECT state, count(*) FROM deliveries WHERE consumer_id = (SELECT min(consumer_id) FROM consumers
WHERE queue_id = (SELECT queue_id FROM queues WHERE name = 'jobs')) GROUP BY state
"""

STORED = "SELECT object_id FROM queue_entries JOIN queues USING (queue_id) WHERE name = 'jobs'"
HEADLESS = """
SELECT line FROM deliveries WHERE line IS NOT NULL GROUP BY consumer_id, line
HAVING sum(state <> 'waiting') <> 1 OR min(entry_id) <> min(entry_id) FILTER (WHERE state <> 'waiting')
"""
FORGOTTEN = """
SELECT entry_id FROM attempts WHERE ending <> 'superseded'
AND (consumer_id, entry_id) NOT IN (SELECT consumer_id, entry_id FROM deliveries)
"""


class Held(NamedTuple):
    """A lease that was given."""

    lease: str
    id: str
    until: int


class WorkMachine(RuleBasedStateMachine):
    """The model: which messages are owed, who holds which lease, and what was acked or buried."""

    def __init__(self) -> None:
        super().__init__()
        self.space = Space()
        self.owed: dict[str, str | None] = {}  # id of what is unfinished, and its key
        self.acked: set[str] = set()
        self.held: dict[str, Held] = {}  # by id; the newest lease, lapsed or not
        self.old: list[str] = []  # leases that were answered or followed by others
        self.attempts: dict[str, int] = {}
        self.handed: dict[str | None, list[str]] = {}  # first deliveries, by key
        self.pushed = 0

    @initialize(ordering=st.sampled_from(["unordered", "fifo", "per_key"]))
    def begin(self, ordering: Ordering) -> None:
        self.ordering = ordering
        self.space.call(SpaceShard.configure, JOBS, QueueConfig(kind="work", on_ack="delete", mutable=False))
        self.space.call(SpaceShard.dismiss, JOBS, "default")
        rules = ConsumerConfig(
            **{name: getattr(RULES, name) for name in RULES.__struct_fields__} | {"ordering": ordering}
        )
        self.space.call(SpaceShard.consume, JOBS, "default", rules)

    def line(self, message: str) -> str | None:
        key = self.owed[message]
        return None if self.ordering == "unordered" else "" if self.ordering == "fifo" else key

    # -- rules ------------------------------------------------------------------------------------------

    @rule(
        keys=st.lists(st.sampled_from([None, "a", "b"]), min_size=1, max_size=4),
        delay=st.sampled_from([0, 0, 1_500]),
    )
    def push(self, keys: list[str | None], delay: int) -> None:
        entries = []
        for key in keys:
            self.pushed += 1
            entries.append(NewEntry("1", f"m{self.pushed:04}", key=key, delay_ms=delay))
            self.owed[f"m{self.pushed:04}"] = key
        self.space.call(SpaceShard.push, JOBS, entries)

    @rule(batch=st.integers(1, 5))
    def pull(self, batch: int) -> None:
        now = self.space.clock.now_ms()
        given = self.space.call(SpaceShard.pull, JOBS, None, Pull(batch)).messages
        self.catch_up()
        for one in given:
            message = one.entry.id
            assert message in self.owed
            live = self.held.get(message)
            assert live is None or live.until <= now or live.lease in self.old, "handed out twice"
            line = self.line(message)
            if line is not None:
                before = [other for other in self.owed if self.line(other) == line and other < message]
                assert not before, "not its turn"
            if live is not None:
                self.old.append(live.lease)
            self.attempts[message] = self.attempts.get(message, 0) + 1
            assert one.attempts == self.attempts[message] <= ATTEMPTS_MAX
            self.held[message] = Held(one.lease, message, one.until)

    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        if not self.held:
            return
        held = self.held[data.draw(st.sampled_from(sorted(self.held)))]
        [verdict] = self.space.call(SpaceShard.ack, JOBS, [held.lease])
        self.catch_up()
        if held.lease in self.old:
            assert verdict in ("stale", "finished")
        elif held.id in self.owed:
            assert verdict == "done"
            del self.owed[held.id]
            self.acked.add(held.id)
            self.old.append(held.lease)
        else:
            assert verdict == "finished"

    @rule(data=st.data(), delay=st.sampled_from([None, 0, 500]), permanent=st.booleans())
    def retry(self, data: st.DataObject, delay: int | None, permanent: bool) -> None:
        if not self.held:
            return
        held = self.held[data.draw(st.sampled_from(sorted(self.held)))]
        now = self.space.clock.now_ms()
        ask = Retry(held.lease, delay, "no", permanent)
        [verdict] = self.space.call(SpaceShard.retry, JOBS, [ask])
        self.catch_up()
        if held.lease not in self.old and held.id in self.owed and now < held.until:
            assert verdict == "done"
            self.old.append(held.lease)
            if permanent or self.attempts[held.id] >= ATTEMPTS_MAX:
                del self.owed[held.id]
        else:
            assert verdict in ("stale", "finished", "lapsed")

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if not self.held:
            return
        held = self.held[data.draw(st.sampled_from(sorted(self.held)))]
        now = self.space.clock.now_ms()
        [verdict] = self.space.call(SpaceShard.release, JOBS, [held.lease])
        self.catch_up()
        if held.lease not in self.old and held.id in self.owed and now < held.until:
            assert verdict == "done"
            self.old.append(held.lease)
            self.attempts[held.id] -= 1
        else:
            assert verdict in ("stale", "finished", "lapsed")

    @rule(old=st.data())
    def use_an_old_lease(self, old: st.DataObject) -> None:
        if self.old:
            lease = old.draw(st.sampled_from(self.old))
            [verdict] = self.space.call(SpaceShard.ack, JOBS, [lease])
            self.catch_up()
            assert verdict in ("stale", "finished")

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.owed:
            message = data.draw(st.sampled_from(sorted(self.owed)))
            self.space.call(SpaceShard.delete_ids, JOBS, [message])
            self.catch_up()
            self.owed.pop(message, None)

    @rule(ms=st.sampled_from([1, 500, 1_000, 2_000, LEASE_MS - 1, LEASE_MS]), ring=st.booleans())
    def wait(self, ms: int, ring: bool) -> None:
        self.space.clock.advance(ms)
        while ring and self.space.alarm_due():
            self.space.run_alarm()
        if ring:
            self.catch_up()

    @rule()
    def forget(self) -> None:
        self.space.shard.forget()

    # -- what holds -------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """What lapsed for the last time is dead by now."""
        now = self.space.clock.now_ms()
        for message, held in self.held.items():
            spent = self.attempts[message] >= ATTEMPTS_MAX and held.lease not in self.old
            if message in self.owed and spent and held.until <= now:
                del self.owed[message]

    @invariant()
    def every_message_is_somewhere_once(self) -> None:
        if not hasattr(self, "ordering"):
            return
        [info] = self.space.call(SpaceShard.consumers, JOBS)
        self.catch_up()
        counted = {
            state: getattr(info, state) for state in ("scheduled", "waiting", "ready", "leased", "backoff")
        }
        rows: dict[str, int] = {
            str(state): int(str(n)) for state, n in self.space.db.execute(COUNTS).fetchall()
        }
        assert {state: count for state, count in counted.items() if count} == rows
        stored = {name for (name,) in self.space.db.execute(STORED).fetchall()}
        assert stored == set(self.owed)
        assert sum(rows.values()) == len(self.owed)
        assert not self.acked & stored

    @invariant()
    def each_line_has_one_head_and_it_is_its_first(self) -> None:
        assert self.space.db.execute(HEADLESS).fetchall() == []

    @invariant()
    def attempts_are_remembered_as_long_as_their_delivery(self) -> None:
        assert self.space.db.execute(FORGOTTEN).fetchall() == []

    @invariant()
    def the_alarm_is_set_for_what_is_due(self) -> None:
        due = self.space.db.execute("SELECT min(due_ts) FROM deliveries").get
        if due is not None:
            alarm = self.space.shard.get_alarm()
            assert alarm is not None
            assert alarm <= max(due, self.space.clock.now_ms())


TestWork = WorkMachine.TestCase
TestWork.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
