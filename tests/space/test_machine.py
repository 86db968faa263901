"""Random turns on a space in a file against a small model of it, reopened and swept whenever it likes."""

from __future__ import annotations

import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from edgequeues.core import cursors
from edgequeues.core.errors import EdgeQueuesError, QueueNotFound
from edgequeues.models import Entry, NewEntry, QueueConfig, RangeQuery
from edgequeues.space import check
from edgequeues.space.shard import SpaceShard
from edgequeues.space.timed import SWEEP_PAUSE_MS

from .model import Bounds, Item, Model, Refused
from .world import SpaceFile

QUEUES = st.sampled_from(["one", "two"])
IDS = st.sampled_from([f"o{n}" for n in range(6)])
TYPES = st.sampled_from([None, "A", "B"])
STEPS_MS = st.sampled_from([0, 1, 99, 100, 1_000, 3_600_000, -3_600_000])
STATED = st.sampled_from([None] * 12 + ["zero", "equal", "above", "above", "far"])
APPENDED = st.fixed_dictionaries(
    {
        "object_id": IDS,
        "data": st.sampled_from(["1", "2", '"ä"']),
        "type": TYPES,
        "ttl_ms": st.sampled_from([None, None, 1, 100, 5_000]),
        "stated": STATED,
    }
)
APPENDS = st.lists(APPENDED, min_size=1, max_size=6, unique_by=lambda entry: entry["object_id"])
CONFIGS = st.builds(
    QueueConfig,
    max_age_ms=st.sampled_from([None, 100, 5_000]),
    max_entries=st.sampled_from([None, None, 2, 5]),
    mutable=st.sampled_from([True, True, False]),
)


def item(entry: Entry) -> Item:
    """An entry as the model has it."""
    e = entry
    return Item(e.id, e.position, e.version, e.type, e.created, e.updated, e.expires, e.data)


class SpaceMachine(RuleBasedStateMachine):
    """Whatever the order of things: each surviving entry is read once, in order, and counts are right."""

    marks = Bundle("marks")  # a queue and a position in it, kept across everything

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.space = SpaceFile(Path(self.folder.name) / "space.db")
        home = self.space.shard._home()
        self.model = Model(home.actor)
        self.store_id = home.store_id
        self.tags: dict[tuple[str, str], list[Item]] = {}
        self.followed: dict[str, tuple[str | None, list[int]]] = {"one": (None, []), "two": (None, [])}

    def teardown(self) -> None:
        if hasattr(self, "space"):
            self.space.close()
            self.folder.cleanup()

    @property
    def now_ms(self) -> int:
        return self.space.clock.now_ms()

    def cursor(self, queue: str, position: int | None) -> str | None:
        if position is None:
            return None
        return cursors.encode(self.store_id, self.space.call(SpaceShard.stats, queue).id, position)

    def entry(self, queue: str, drawn: dict[str, Any]) -> NewEntry:
        """The version to state depends on what is stored."""
        stored = [i.version for i in self.model.read(queue, Bounds(ids=(drawn["object_id"],)), self.now_ms)]
        lamport = self.model.lamport
        version = {
            None: None,
            "zero": f"{0:016x}@a",
            "equal": stored[0] if stored else f"{lamport:016x}@a",
            "above": f"{lamport + 3:016x}@a",
            "far": f"{lamport + (1 << 30):016x}@a",
        }[drawn["stated"]]
        return NewEntry(
            drawn["data"], drawn["object_id"], drawn["type"], drawn["ttl_ms"], None, None, version
        )

    @rule(target=marks, queue=QUEUES, drawn=APPENDS)
    def append(self, queue: str, drawn: list[dict[str, Any]]) -> Any:
        entries = [self.entry(queue, one) for one in drawn]
        after = deepcopy(self.model)
        before = self.model.position
        try:
            told = after.append(queue, entries, self.now_ms)
        except Refused:
            try:
                self.space.append(queue, *entries)
            except EdgeQueuesError:
                return multiple()
            raise
        answer = self.space.append(queue, *entries)
        assert [(r.outcome, r.position, r.version) for r in answer.results] == told
        fresh = [position for outcome, position, _ in told if outcome in ("new", "moved")]
        assert fresh == list(range(before + 1, before + 1 + len(fresh)))
        self.model = after
        return multiple(*[(queue, position) for _, position, _ in told[:1]])

    @rule(target=marks, queue=QUEUES, drawn=APPENDS)
    def append_again(self, queue: str, drawn: list[dict[str, Any]]) -> Any:
        """The same: what is appended often meets more of what is stored."""
        return self.append(queue, [one | {"stated": None} for one in drawn])

    @rule(target=marks, queue=QUEUES, drawn=APPENDED)
    def append_one(self, queue: str, drawn: dict[str, Any]) -> Any:
        return self.append(queue, [drawn])

    @rule(queue=QUEUES, ids=st.lists(IDS, max_size=4))
    def delete_ids(self, queue: str, ids: list[str]) -> None:
        log = self.model.logs.get(queue)
        gone = [] if log is None else [i.position for i in log.items if i.id in ids]
        deleted = self.model.delete(queue, gone, self.now_ms)
        assert self.space.call(SpaceShard.delete_ids, queue, ids) == deleted

    @rule(one=marks, other=marks, kind=st.sampled_from(["after", "before", "through", "between", "all"]))
    def delete_range(self, one: tuple[str, int], other: tuple[str, int], kind: str) -> None:
        queue, position = one
        last = other[1] if other[0] == queue else self.model.position
        after, before, through = {
            "after": (position, None, None),
            "before": (None, position, None),
            "through": (None, None, position),
            "between": (position, last, None),
            "all": (None, None, None),
        }[kind]
        gone = [
            p
            for p in range(1, self.model.position + 1)
            if p > (after or 0) and (before is None or p < before) and (through is None or p <= through)
        ]
        mine = {i.position for i in self.model.logs[queue].items}
        deleted = self.model.delete(queue, mine & set(gone), self.now_ms)
        bounds = [self.cursor(queue, place) for place in (after, before, through)]
        answer = self.space.call(SpaceShard.delete_range, queue, *bounds)
        assert (answer.deleted, answer.resume) == (deleted, None)

    @rule(queue=QUEUES, config=CONFIGS)
    def configure(self, queue: str, config: QueueConfig) -> None:
        self.model.configure(queue, config, self.now_ms)
        info = self.space.call(SpaceShard.configure, queue, config)
        assert info.config == self.model.logs[queue].config

    @rule(by_ms=STEPS_MS)
    def step_clock(self, by_ms: int) -> None:
        self.space.clock.advance(by_ms)

    @rule(by_ms=STEPS_MS)
    def sweep_later(self, by_ms: int) -> None:
        self.space.clock.advance(by_ms)
        self.sweep()

    @rule()
    def sweep(self) -> None:
        self.model.sweep(self.now_ms)
        self.space.sweep()
        assert self.space.rows() == sum(len(log.items) for log in self.model.logs.values())

    @rule()
    def ring_when_due(self) -> None:
        """The alarm as the host would ring it."""
        if self.space.alarm_due():
            self.sweep()

    @rule()
    def reopen(self) -> None:
        self.space.reopen()

    @rule(
        mark=marks,
        end=st.integers(0, 10),
        limit=st.sampled_from([None, 1, 3]),
        reverse=st.booleans(),
        wanted=TYPES,
        since=st.sampled_from([None, 0, 100]),
        until=st.sampled_from([None, 0, 100]),
        ids=st.lists(IDS, max_size=3),
    )
    def read(
        self,
        mark: tuple[str, int],
        end: int,
        limit: int | None,
        reverse: bool,
        wanted: str | None,
        since: int | None,
        until: int | None,
        ids: list[str],
    ) -> None:
        queue, low = mark
        high = low + end if end else None
        since, until = (None if ago is None else self.now_ms - ago for ago in (since, until))
        ask = RangeQuery(
            self.cursor(queue, low),
            self.cursor(queue, high),
            limit,
            reverse,
            wanted,
            since,
            until,
            tuple(ids),
        )
        bounds = Bounds(low, high or 1 << 62, limit, reverse, wanted, since, until, tuple(ids))
        told = self.space.all(queue, ask)
        assert [item(entry) for entry in told] == self.model.read(queue, bounds, self.now_ms)
        page = self.space.read(queue, ask)
        if not page.entries:
            assert (page.next_cursor, page.prev_cursor) == (ask.after, ask.before)

    @rule(queue=QUEUES)
    def follow(self, queue: str) -> None:
        """A reader that keeps a cursor, from the beginning of the machine to its end."""
        cursor, seen = self.followed[queue]
        page = self.space.read(queue, RangeQuery(after=cursor))
        seen += [entry.position for entry in page.entries]
        self.followed[queue] = (page.next_cursor, seen)

    @invariant()
    def every_surviving_entry_is_read_once_in_order(self) -> None:
        for queue in ("one", "two"):
            model = self.model.read(queue, Bounds(), self.now_ms)
            page = self.space.read(queue)
            assert [item(entry) for entry in page.entries] == model
            seen = self.followed[queue][1]
            assert seen == sorted(set(seen))
            last = seen[-1] if seen else 0
            ahead = self.space.read(queue, RangeQuery(after=self.followed[queue][0])).entries
            assert [e.position for e in ahead] == [i.position for i in model if i.position > last]

    @invariant()
    def counts_are_of_what_can_be_read(self) -> None:
        for queue in ("one", "two"):
            model = self.model.read(queue, Bounds(), self.now_ms)
            try:
                info = self.space.call(SpaceShard.stats, queue)
            except QueueNotFound:
                assert queue not in self.model.logs
                continue
            size = sum(len(i.data.encode()) for i in model)
            assert (info.entries, info.bytes) == (len(model), size)
            assert info.oldest == (model[0].updated if model else None)

    @invariant()
    def equal_tags_mean_equal_contents(self) -> None:
        for queue in ("one", "two"):
            model = self.model.read(queue, Bounds(), self.now_ms)
            assert self.tags.setdefault((queue, self.space.etag(queue)), model) == model

    @invariant()
    def the_file_is_sound_and_its_alarm_is_set(self) -> None:
        assert check.problems(self.space.db) == []
        due_ms, alarm_ms = (
            self.space.db.execute("SELECT min(sweep_ts) FROM queues").get,
            self.space.shard.get_alarm(),
        )
        if due_ms is not None:
            assert alarm_ms is not None
            assert alarm_ms <= max(due_ms, self.now_ms) + 3_600_000 + SWEEP_PAUSE_MS


TestSpaceMachine = SpaceMachine.TestCase
TestSpaceMachine.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
