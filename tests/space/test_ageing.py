"""`starvation_after_ms`: a message of low priority is handed out though more important ones keep coming."""

from __future__ import annotations

from edgequeues.models import WORK_QUEUE, ConsumerConfig, Ordering
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .world import Space

STARVATION_MS = 60_000


def work(space: Space, ordering: Ordering = "unordered", starvation_ms: int | None = STARVATION_MS) -> Jobs:
    space.call(SpaceShard.configure, "jobs", WORK_QUEUE)
    return Jobs(space, ConsumerConfig(ordering=ordering, starvation_after_ms=starvation_ms))


def given(jobs: Jobs, batch: int = 10) -> list[str]:
    return [one.entry.data for one in jobs.pull(batch)]


def test_a_message_that_was_ready_for_so_long_goes_before_younger_ones_of_higher_priority(
    space: Space,
) -> None:
    jobs = work(space)
    jobs.push("1", priority=0)
    jobs.at(STARVATION_MS - 1)
    jobs.push("2", "3", priority=9)
    assert given(jobs, 1) == ["2"]
    jobs.at(STARVATION_MS)
    assert given(jobs) == ["1", "3"]


def test_without_it_priority_is_all_that_counts(space: Space) -> None:
    jobs = work(space, starvation_ms=None)
    jobs.push("1", priority=0)
    jobs.at(365 * 86_400_000)
    jobs.push("2", priority=1)
    assert given(jobs) == ["2", "1"]


def test_an_old_message_of_high_priority_does_not_wait_for_a_younger_one_that_starves(space: Space) -> None:
    jobs = work(space)
    jobs.push("1", priority=9)
    jobs.at(1_000)
    jobs.push("2", priority=0)
    jobs.at(STARVATION_MS + 1_000)
    jobs.push("3", priority=9)
    assert given(jobs) == ["1", "2", "3"]


def test_a_delay_is_no_waiting(space: Space) -> None:
    jobs = work(space)
    jobs.push("1", priority=0, delay_ms=STARVATION_MS)
    jobs.at(STARVATION_MS)
    jobs.push("2", priority=9)
    [second] = jobs.pull()
    assert second.entry.data == "2"
    jobs.ack(second)
    jobs.at(2 * STARVATION_MS)
    jobs.push("3", priority=9)
    assert given(jobs) == ["1", "3"]


def test_a_line_keeps_its_order_and_its_head_may_starve(space: Space) -> None:
    jobs = work(space, "per_key")
    jobs.push("1", "2", key="a", priority=0)
    jobs.at(STARVATION_MS)
    jobs.push("3", key="b", priority=9)
    assert given(jobs) == ["1", "3"]


def test_what_has_expired_is_passed_over_though_it_starved(space: Space) -> None:
    jobs = work(space)
    jobs.push(*"123", priority=0, ttl_ms=1_000)
    jobs.push("4", priority=1)
    jobs.at(STARVATION_MS)
    jobs.push("5", priority=9)
    assert given(jobs, 2) == ["4", "5"]
