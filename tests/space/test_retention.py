"""Expiry by own end, by age and by count: invisible at once, swept later."""

from __future__ import annotations

import pytest

from edgequeues.core.errors import EntryNotFound
from edgequeues.models import ENTRY_BYTES_MAX, NewEntry, RangeQuery
from edgequeues.space import retention
from edgequeues.space.shard import SpaceShard
from edgequeues.space.timed import SWEEP_PAUSE_MS

from .world import OTHER, ULID, Space, numbers

HOUR_MS = 3_600_000


def test_an_entry_is_there_until_its_end_and_gone_at_it(space: Space) -> None:
    space.append("q", NewEntry("1", "o", ttl_ms=100))
    space.clock.advance(99)
    assert (space.data("q"), space.count("q")) == (["1"], 1)
    space.clock.advance(1)
    assert (space.data("q"), space.count("q")) == ([], 0)
    with pytest.raises(EntryNotFound):
        space.call(SpaceShard.get, "q", "o")


def test_an_entry_ages_from_its_last_append(space: Space) -> None:
    space.configure("q", max_age_ms=100)
    space.fill("q", 2)
    space.clock.advance(60)
    space.put("q", "10", "o0")
    space.clock.advance(40)
    assert numbers(space.all("q")) == [10]
    assert (space.count("q"), space.call(SpaceShard.stats, "q").bytes) == (1, 2)
    space.clock.advance(60)
    assert (space.data("q"), space.count("q")) == ([], 0)


def test_the_earlier_of_both_ends_counts_once(space: Space) -> None:
    space.configure("q", max_age_ms=100)
    space.append("q", NewEntry("1", ttl_ms=50), NewEntry("22", ttl_ms=100), NewEntry("333", ttl_ms=200))
    seen = []
    for _ in range(4):
        info = space.call(SpaceShard.stats, "q")
        seen.append((info.entries, info.bytes, info.oldest is None))
        space.clock.advance(50)
    assert seen == [(3, 6, False), (2, 5, False), (0, 0, True), (0, 0, True)]


def test_the_oldest_entry_is_the_first_that_has_not_expired(space: Space) -> None:
    space.append("q", NewEntry("1", ttl_ms=50))
    space.clock.advance(20)
    space.put("q", "2")
    assert space.call(SpaceShard.stats, "q").oldest == space.clock.now_ms() - 20
    space.clock.advance(30)
    assert space.call(SpaceShard.stats, "q").oldest == space.clock.now_ms() - 30


def test_reads_skip_expired_entries_in_both_directions(space: Space) -> None:
    space.append("q", *[NewEntry(str(n), f"o{n}", "T", ttl_ms=None if n % 2 else 1) for n in range(6)])
    space.clock.advance(1)
    for ask in (RangeQuery(), RangeQuery(type="T"), RangeQuery(ids=tuple(f"o{n}" for n in range(6)))):
        assert numbers(space.all("q", ask)) == [1, 3, 5]
    assert numbers(space.all("q", RangeQuery(reverse=True, limit=2))) == [5, 3]


def test_a_sweep_removes_what_has_expired_and_nothing_else(space: Space) -> None:
    space.configure("aged", max_age_ms=5_000)
    space.fill("aged", 3)
    space.append("q", NewEntry("1", ttl_ms=5_000), NewEntry("2"), NewEntry("3", ttl_ms=9_000))
    space.clock.advance(5_000)
    before = space.read("q"), space.etag("q"), space.read("aged"), space.etag("aged")
    assert space.alarm_due()
    space.sweep()
    assert (space.read("q"), space.etag("q"), space.read("aged"), space.etag("aged")) == before
    assert space.rows() == 2
    assert (space.count("q"), space.count("aged")) == (2, 0)


def test_a_sweep_removes_a_bounded_number_of_rows_a_turn_and_goes_on_at_once(space: Space) -> None:
    for first in range(0, 2_500, 500):
        space.append("q", *[NewEntry(str(n), ttl_ms=10) for n in range(first, first + 500)])
    space.clock.advance(SWEEP_PAUSE_MS)
    left = []
    while space.alarm_due():
        space.run_alarm()
        left.append(space.rows())
    assert left == [1_500, 500, 0]
    assert space.shard.get_alarm() is None


def test_a_sweep_removes_a_bounded_number_of_bytes_a_turn(space: Space) -> None:
    long = '"' + "x" * ENTRY_BYTES_MAX + '"'
    for _ in range(6):
        space.append("q", NewEntry(long, ttl_ms=10))
    space.clock.advance(SWEEP_PAUSE_MS)
    space.run_alarm()
    assert 0 < space.rows() < 6
    assert space.alarm_due()
    space.sweep()
    assert space.rows() == 0


def test_queues_share_a_sweep(space: Space) -> None:
    for queue in (ULID, OTHER):
        space.append(queue, *[NewEntry(str(n), ttl_ms=10) for n in range(1_000)])
        space.append(queue, *[NewEntry(str(n), ttl_ms=10) for n in range(1_000)])
    space.clock.advance(SWEEP_PAUSE_MS)
    left = []
    for _ in range(2):
        space.run_alarm()
        rows = space.db.execute("SELECT min(entries), max(entries) FROM queues").get
        left.append(rows)
    assert left == [(1_500, 1_500), (1_000, 1_000)]


def test_the_alarm_waits_for_the_next_end(space: Space) -> None:
    space.append("q", NewEntry("1", ttl_ms=60_000), NewEntry("2", ttl_ms=90_000))
    start_ms = space.clock.now_ms()
    assert space.shard.get_alarm() == start_ms + 60_000
    space.append("q", NewEntry("3", ttl_ms=30_000))
    assert space.shard.get_alarm() == start_ms + 30_000
    space.append("q", NewEntry("4", ttl_ms=40_000))
    assert space.shard.get_alarm() == start_ms + 30_000
    space.clock.advance(30_000)
    space.run_alarm()
    assert space.shard.get_alarm() == start_ms + 40_000


def test_short_lives_share_one_sweep_a_second(space: Space) -> None:
    start_ms = space.clock.now_ms()
    for _ in range(5):
        space.append("q", NewEntry("1", ttl_ms=1))
        space.clock.advance(10)
    assert space.shard.get_alarm() == start_ms + SWEEP_PAUSE_MS
    space.clock.advance(SWEEP_PAUSE_MS)
    space.append("q", NewEntry("1", ttl_ms=5))
    space.run_alarm()
    assert space.shard.get_alarm() == space.clock.now_ms() + SWEEP_PAUSE_MS


def test_without_anything_to_expire_there_is_no_alarm(space: Space) -> None:
    space.fill("q", 3)
    assert space.shard.get_alarm() is None


def test_a_new_max_age_hides_the_old_at_once_and_wakes_the_sweep(space: Space) -> None:
    space.fill("q", 2)
    space.clock.advance(100)
    space.fill("q", 1, 2)
    space.call(SpaceShard.reconfigure, "q", {"max_age_ms": 50})
    assert numbers(space.all("q")) == [2]
    assert space.alarm_due()
    space.sweep()
    assert space.rows() == 1


@pytest.mark.parametrize("longer", [None, HOUR_MS])
@pytest.mark.parametrize("swept", [False, True])
def test_what_has_expired_stays_so_under_a_longer_max_age(
    space: Space, longer: int | None, swept: bool
) -> None:
    space.configure("q", max_age_ms=50)
    space.fill("q", 2)
    space.clock.advance(50)
    space.fill("q", 1, 2)
    if swept:
        space.sweep()
    space.call(SpaceShard.reconfigure, "q", {"max_age_ms": longer})
    space.clock.advance(-HOUR_MS)
    assert numbers(space.all("q")) == [2]
    assert space.append("q", NewEntry("0", "o0")).results[0].outcome == "new"
    assert numbers(space.all("q")) == [2, 0]
    space.sweep()
    assert space.rows() == 2


def test_an_entry_is_not_born_expired_after_a_change_of_max_age(space: Space) -> None:
    """The change is dated, so a clock that steps back gives no entry a time before it."""
    space.configure("q", max_age_ms=50)
    space.clock.advance(HOUR_MS)
    space.call(SpaceShard.reconfigure, "q", {"max_age_ms": None})
    space.clock.advance(-HOUR_MS)
    space.put("q", "1", "o")
    assert space.call(SpaceShard.get, "q", "o").data == "1"
    assert space.append("q", NewEntry("1", "o")).results[0].outcome == "same"


# -- max_entries ------------------------------------------------------------------------------------------


def test_an_append_beyond_max_entries_removes_the_oldest(space: Space) -> None:
    space.configure("q", max_entries=3)
    alarm_ms = space.shard.get_alarm()
    space.fill("q", 3)
    space.fill("q", 2, 3)
    assert numbers(space.all("q")) == [2, 3, 4]
    assert (space.count("q"), space.rows()) == (3, 3)
    assert space.shard.get_alarm() == alarm_ms


def test_a_move_keeps_the_count(space: Space) -> None:
    space.configure("q", max_entries=3)
    space.fill("q", 3)
    space.put("q", "10", "o0")
    assert numbers(space.all("q")) == [1, 2, 10]


def test_one_append_of_more_than_max_entries_keeps_its_newest(space: Space) -> None:
    space.configure("q", max_entries=3)
    assert [result.position for result in space.fill("q", 10).results] == list(range(1, 11))
    assert numbers(space.all("q")) == [7, 8, 9]


def test_expired_entries_do_not_count_towards_max_entries(space: Space) -> None:
    space.configure("q", max_entries=3)
    space.put("q", "0")
    space.append("q", NewEntry("1", ttl_ms=1), NewEntry("2", ttl_ms=1))
    space.clock.advance(1)
    space.put("q", "3")
    space.put("q", "4")
    assert numbers(space.all("q")) == [0, 3, 4]
    space.put("q", "5")
    assert numbers(space.all("q")) == [3, 4, 5]


def test_a_lowered_max_entries_wakes_the_sweep(space: Space) -> None:
    space.fill("q", 1_000)
    space.fill("q", 1_000, 1_000)
    space.configure("q", max_entries=500)
    assert space.alarm_due()
    before = space.etag("q")
    assert space.sweep() == 2
    assert numbers(space.all("q")) == list(range(1_500, 2_000))
    assert space.etag("q") != before
    assert space.shard.get_alarm() is None


def test_an_append_to_a_far_too_long_queue_removes_a_bounded_number(space: Space) -> None:
    space.fill("q", 1_000)
    space.configure("q", max_entries=10)
    space.put("q", "1000")
    assert space.rows() == 1_001 - (2 + retention.TRIM_EXTRA)
    assert space.alarm_due()
    space.sweep()
    assert numbers(space.all("q")) == list(range(991, 1_001))


def test_more_expired_rows_than_a_turn_removes_are_left_to_the_sweep(space: Space) -> None:
    space.configure("q", max_entries=2_000)
    space.append("q", *[NewEntry(str(n)) for n in range(1_000)])
    for _ in range(2):
        space.append("q", *[NewEntry(str(n), ttl_ms=1) for n in range(500)])
    space.clock.advance(1)
    space.append("q", *[NewEntry(str(n)) for n in range(1_000)])
    space.append("q", *[NewEntry(str(n)) for n in range(500)])
    space.sweep()
    assert space.count("q") == space.rows() == 2_000


# -- a clock that steps back ------------------------------------------------------------------------------


def test_the_time_of_a_position_never_falls(space: Space) -> None:
    space.fill("q", 1)
    space.clock.advance(-HOUR_MS)
    space.fill("q", 1, 1)
    first, second = space.all("q")
    assert second.updated == first.updated == second.created
    assert numbers(space.all("q", RangeQuery(since_ms=first.updated))) == [0, 1]


def test_a_clock_that_steps_back_and_forward_takes_half_the_step_from_a_life_at_most(space: Space) -> None:
    """Nobody can tell a step forward from time that passed; after a step back half of it counts."""
    space.fill("q", 1)
    space.clock.advance(-HOUR_MS)
    space.append("q", NewEntry("9", ttl_ms=HOUR_MS))
    space.clock.advance(HOUR_MS)
    assert numbers(space.all("q")) == [0, 9]
    space.clock.advance(HOUR_MS - 1)
    assert numbers(space.all("q")) == [0, 9]
    space.clock.advance(1)
    assert numbers(space.all("q")) == [0]


def test_what_a_writer_saw_expired_does_not_come_back(space: Space) -> None:
    space.append("q", NewEntry("1", "o", ttl_ms=10))
    space.clock.advance(10)
    space.put("other", "1")
    space.clock.advance(-HOUR_MS)
    assert (space.data("q"), space.count("q")) == ([], 0)


def test_what_was_swept_counts_as_expired_for_good(space: Space) -> None:
    space.append("q", NewEntry("1", "o", ttl_ms=10))
    space.clock.advance(SWEEP_PAUSE_MS)
    space.sweep()
    swept_ms = space.clock.now_ms()
    space.clock.advance(-HOUR_MS)
    space.put("q", "2")
    assert space.all("q")[0].updated == swept_ms


def test_after_a_step_back_a_life_is_twice_as_long_at_most_and_the_alarm_knows(space: Space) -> None:
    space.fill("q", 1)
    space.clock.advance(-HOUR_MS)
    space.append("q", NewEntry("1", ttl_ms=60_000))
    space.sweep()  # what is due is looked at anew, by the clock as it is now
    assert space.shard.get_alarm() == space.clock.now_ms() + 60_000
    space.clock.advance(60_000)
    space.sweep()  # the store's time has gone half as far: the entry lives
    assert space.count("q") == 2
    space.clock.advance(60_000)
    space.sweep()
    assert space.rows() == 1
