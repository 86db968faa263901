"""The store's time when the clock is stepped: it never falls, and goes on while the clock catches up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgequeues.models import NewEntry, Pull, Pulled
from edgequeues.space.shard import SpaceShard
from edgequeues.space.store import Store

from .world import Space, SpaceFile

HOUR_MS = 3_600_000


def time(space: Space) -> int:
    return space.call(SpaceShard._time)


def pull(space: Space) -> Pulled:
    return space.call(SpaceShard.pull, "jobs", None, Pull(lease_ms=60_000))


def test_after_a_step_back_time_goes_at_half_pace_until_the_clock_has_caught_up(space: Space) -> None:
    space.put("q", "1")
    began = time(space)
    space.clock.advance(-HOUR_MS)
    space.put("q", "2")
    for passed_ms, expected in ((0, 0), (1_000, 500), (HOUR_MS, HOUR_MS // 2), (2 * HOUR_MS, HOUR_MS)):
        space.clock.advance(began - HOUR_MS + passed_ms - space.clock.now_ms())
        assert time(space) == began + expected
    space.clock.advance(5)
    assert time(space) == began + HOUR_MS + 5 == space.clock.now_ms()


def test_a_lease_ends_after_twice_its_time_at_most_though_nobody_but_consumers_asks(space: Space) -> None:
    space.call(SpaceShard.push, "jobs", [NewEntry("1")])
    assert len(pull(space).messages) == 1
    space.clock.advance(-HOUR_MS)
    assert pull(space).messages == []
    space.clock.advance(119_999)
    assert pull(space).messages == []
    space.clock.advance(1)
    assert len(pull(space).messages) == 1


def test_what_a_lease_was_decided_by_is_not_undone_by_a_step_back_over_a_restart(
    space_file: SpaceFile,
) -> None:
    space_file.call(SpaceShard.push, "jobs", [NewEntry("1")])
    space_file.clock.advance(10 * HOUR_MS)
    [message] = pull(space_file).messages
    decided = time(space_file)
    space_file.clock.advance(-HOUR_MS)
    space_file.reopen()
    assert time(space_file) == decided
    assert space_file.call(SpaceShard.extend, "jobs", [message.lease], 60_000) == ["done"]
    assert space_file.db.execute("SELECT due_ts FROM deliveries").get == decided + 60_000


def test_a_pull_that_finds_nothing_writes_nothing(space: Space) -> None:
    space.call(SpaceShard.push, "jobs", [NewEntry("1", delay_ms=60_000)])
    space.clock.advance(1_000)
    before = space.db.total_changes()
    assert pull(space).messages == []
    assert space.db.total_changes() == before


@given(st.lists(st.tuples(st.integers(-5_000, 5_000), st.booleans()), max_size=30))
def test_time_that_was_taken_down_never_falls_nor_runs_behind_the_clock(
    steps: list[tuple[int, bool]],
) -> None:
    store, now, last = Store("", "", 0, 0, 0, 0), 100_000, 0
    for step_ms, noted in steps:
        now += step_ms
        at = store.at(now)
        assert at >= max(now, last)
        if noted:
            store.note(now)
            assert store.at(now) == at == max(at, store.clock_ms)
            last = at


@given(st.lists(st.integers(1, 7), min_size=1, max_size=50))
def test_time_is_not_slowed_further_by_being_taken_down_often(steps: list[int]) -> None:
    alone, often = (Store("", "", 0, 0, 100_000, 0, wall_ms=50_000) for _ in range(2))
    now = 50_000
    for step_ms in steps:
        now += step_ms
        often.note(now)
    assert often.at(now) == alone.at(now) == 100_000 + (now - 50_000) // 2
