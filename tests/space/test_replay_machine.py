"""Random work on dead letters: wherever a call stops or is repeated, each message is in one place."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from edgequeues.models import ConsumerConfig, Ordering
from edgequeues.models_letters import LetterFilter
from edgequeues.space import check
from edgequeues.space.dead_verbs import ReplayAsk, Replays
from edgequeues.space.deadletters import START
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .replays import ALL
from .world import Space

DLQ = "jobs-dlq"
PUSHED_AT = "SELECT e.object_id, l.source_entry FROM dead_letters l JOIN queue_entries e ON e.id = l.entry_id"
PACES = [None, None, 0.5, 3, 1_000]


class ReplayMachine(RuleBasedStateMachine):
    """Messages are numbers, each pushed once. live, dead: where they are; what is acked or purged is in neither."""

    @initialize(ordering=st.sampled_from(["unordered", "fifo", "per_key"]))
    def begin(self, ordering: Ordering) -> None:
        self.space = Space()
        self.jobs = Jobs(self.space, ConsumerConfig(ordering=ordering))
        self.live: set[str] = set()
        self.dead: set[str] = set()
        self.letters: dict[str, str] = {}  # of each dead letter there ever was, what number it held
        self.made: dict[str, str] = {}  # of each that was replayed, the message that was made
        self.parts: list[Replays] = []  # where calls have come to
        self.pushed = 0
        self.push(1)
        self.fail(1)

    def teardown(self) -> None:
        if hasattr(self, "space"):
            self.space.db.close()

    # -- rules ------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 4))
    def push(self, count: int) -> None:
        for _ in range(count):
            self.pushed += 1
            self.jobs.push(str(self.pushed), key="ab"[self.pushed % 2])
            self.live.add(str(self.pushed))

    @rule(count=st.integers(1, 4))
    def fail(self, count: int) -> None:
        messages = self.jobs.pull(count)
        self.jobs.fail(*messages, permanent=True)
        self.bury({one.entry.data for one in messages})

    @rule(data=st.data())
    def skip(self, data: st.DataObject) -> None:
        """Messages die in any order."""
        if self.live:
            entry = data.draw(st.sampled_from(self.space.all("jobs")))
            self.space.call(SpaceShard.skip, "jobs", None, entry.id)
            self.bury({entry.data})

    def bury(self, numbers: set[str]) -> None:
        assert numbers <= self.live
        self.live -= numbers
        self.dead |= numbers
        self.letters |= {entry.id: entry.data for entry, _ in self.jobs.dlq.letters()}

    @rule(count=st.integers(1, 3))
    def ack(self, count: int) -> None:
        messages = self.jobs.pull(count)
        self.jobs.ack(*messages)
        self.live -= {one.entry.data for one in messages}

    @rule(
        data=st.data(),
        limit=st.integers(1, 4),
        pace=st.sampled_from(PACES),
        key=st.sampled_from([None, None, "a"]),
        anew=st.booleans(),
    )
    def replay_some(
        self, data: st.DataObject, limit: int, pace: float | None, key: str | None, anew: bool
    ) -> None:
        """One turn of a call: of a new one, or of one that went on, broke off, or lost its answer."""
        ask = ReplayAsk(LetterFilter(key=key), limit, pace)
        goes_on = [part for part in self.parts if part.resume is not None]
        if goes_on and not anew:
            before = data.draw(st.sampled_from(goes_on))
            assert before.resume is not None
            part = self.space.call(SpaceShard.replay_some, DLQ, ask, before.resume, before.through)
        else:
            part = self.space.call(SpaceShard.replay_some, DLQ, ask, START, None)
        self.parts.append(part)
        assert len(part.results) <= limit
        numbers = [int(self.letters[one.id]) for one in part.results]
        assert key is None or all(number % 2 == 0 for number in numbers)
        for one in part.results:
            assert (one.outcome, one.id in self.made) == ("replayed", False)
            self.revive(one.id, one.message)

    @rule(limit=st.integers(1, 3), pace=st.sampled_from(PACES))
    def replay_to_the_end(self, limit: int, pace: float | None) -> None:
        """None is passed over, and they come in the order in which they were pushed."""
        ask = ReplayAsk(ALL, limit, pace)
        part = self.space.call(SpaceShard.replay_some, DLQ, ask)
        results = [*part.results]
        while part.resume is not None:
            part = self.space.call(SpaceShard.replay_some, DLQ, ask, part.resume, part.through)
            results += part.results
        for one in results:
            self.revive(one.id, one.message)
        assert self.dead == set()
        pushed_at = {str(name): int(str(at)) for name, at in self.space.db.execute(PUSHED_AT).fetchall()}
        order = [pushed_at[one.id] for one in results]
        assert order == sorted(order)

    @rule(data=st.data(), pace=st.sampled_from(PACES))
    def replay_named(self, data: st.DataObject, pace: float | None) -> None:
        named = data.draw(st.lists(st.sampled_from(sorted(self.letters)), min_size=1, unique=True))
        for one in self.space.call(SpaceShard.replay, DLQ, named, pace):
            if one.outcome == "replayed":
                assert one.id not in self.made
                self.revive(one.id, one.message)
            elif one.outcome == "already":
                assert self.made[one.id] == one.message
            else:
                assert one.outcome == "unknown"
                assert one.id not in self.jobs.dlq.ids

    def revive(self, letter: str, message: str | None) -> None:
        number = self.letters[letter]
        assert number in self.dead
        assert message is not None
        self.dead.remove(number)
        self.live.add(number)
        self.made[letter] = message

    @rule(replayed=st.sampled_from([None, True, True, False]))
    def purge(self, replayed: bool | None) -> None:
        part = self.space.call(SpaceShard.purge_letters, DLQ, LetterFilter(replayed=replayed, key="b"))
        assert part.resume is None
        if replayed is not True:
            self.dead -= {number for number in self.dead if int(number) % 2}

    @rule(ms=st.sampled_from([1, 1_000, 10_000]), ring=st.booleans())
    def wait(self, ms: int, ring: bool) -> None:
        self.space.clock.advance(ms)
        if ring:
            self.jobs.ring()

    @rule()
    def forget(self) -> None:
        self.space.shard.forget()

    # -- what holds -------------------------------------------------------------------------------------

    @invariant()
    def every_message_is_in_one_place(self) -> None:
        if not hasattr(self, "space"):
            return
        assert sorted(self.space.data("jobs")) == sorted(self.live)
        letters = self.jobs.dlq.letters()
        assert sorted(one.data for one, letter in letters if letter.replayed_at is None) == sorted(self.dead)
        assert {one.id: letter.new_message_id for one, letter in letters if letter.replayed_at} == {
            one.id: self.made[one.id] for one, _ in letters if one.id in self.made
        }
        assert Jobs(self.space, queue=DLQ).info.ready == len(self.dead)

    @invariant()
    def the_rows_are_sound(self) -> None:
        if hasattr(self, "space"):
            assert check.problems(self.space.db) == []


TestReplay = ReplayMachine.TestCase
TestReplay.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)
