"""What is counted of a consumer: states, totals, ages; each right at every moment, before any sweep, too."""

from __future__ import annotations

import pytest
from msgspec import structs

from edgequeues.core.backoff import Backoff
from edgequeues.core.errors import QueueFull
from edgequeues.models import ConsumerConfig, ConsumerInfo, NewEntry, Pull
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .world import Space, turn

SECOND, HOUR = 1_000, 3_600_000
STATES = ("scheduled", "waiting", "ready", "leased", "backoff")
ENDS = ("acked", "exhausted", "permanent", "skipped", "expired", "cancelled")


def unfinished(info: ConsumerInfo) -> int:
    return sum(getattr(info, state) for state in STATES)


def ends(info: ConsumerInfo) -> dict[str, int]:
    """How many ended how, of those ways that any did."""
    return {end: getattr(info, f"total_{end}") for end in ENDS if getattr(info, f"total_{end}")}


def balance(info: ConsumerInfo) -> None:
    """Whatever came in is there or has ended."""
    assert info.total_in == unfinished(info) + sum(ends(info).values())


# -- states and totals --------------------------------------------------------------------------------------


def test_every_state_is_counted(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(ordering="per_key"))
    jobs.push("1", key="leased")
    jobs.push("2", key="backing off")
    leased, failed = jobs.pull(2)
    jobs.fail(failed)
    jobs.push("3", key="leased")
    jobs.push("4", "5", key="leased")
    jobs.push("6", key="scheduled", delay_ms=HOUR)
    jobs.push("7", "8", key="ready")
    assert jobs.states == {"leased": 1, "backoff": 1, "waiting": 4, "scheduled": 1, "ready": 1}
    assert jobs.info.bytes == 8
    balance(jobs.info)
    jobs.ack(leased)
    assert jobs.states == {"backoff": 1, "waiting": 3, "scheduled": 1, "ready": 2}
    balance(jobs.info)


def test_every_end_is_counted_once(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(attempts_max=2, backoff=Backoff(initial_ms=0)))
    named = jobs.push(*"12345678", ttl_ms=HOUR)
    acked, permanent, tired = jobs.pull(3)
    jobs.ack(acked)
    jobs.fail(permanent, permanent=True)
    jobs.fail(tired)
    [tired] = jobs.pull(1)
    jobs.fail(tired)
    space.call(SpaceShard.skip, "jobs", None, named[3])
    space.call(SpaceShard.delete_ids, "jobs", [named[4]])
    assert ends(jobs.info) == {"acked": 1, "exhausted": 1, "permanent": 1, "skipped": 1, "cancelled": 1}
    balance(jobs.info)
    space.clock.advance(HOUR)
    assert ends(jobs.info)["expired"] == 3
    balance(jobs.info)
    jobs.ring()
    assert ends(jobs.info)["expired"] == 3
    balance(jobs.info)


def test_attempts_retries_lapses_and_releases_are_counted(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(lease_ms=SECOND, backoff=Backoff(initial_ms=0)))
    jobs.push("1")
    jobs.fail(jobs.one())
    space.call(SpaceShard.release, "jobs", [jobs.one().lease])
    jobs.one()
    space.clock.advance(SECOND)
    held = jobs.one()
    info = jobs.info
    assert (info.total_attempts, info.total_retried, info.total_released, info.total_lapsed) == (4, 1, 1, 1)
    jobs.ack(held)
    assert jobs.ack(held) == ["finished"]
    assert (jobs.info.total_acked, jobs.info.total_attempts) == (1, 4)


def test_each_reason_of_dead_letters_is_counted_where_they_go_nowhere_too(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(attempts_max=1, lease_ms=SECOND, dead_letters=""))
    named = jobs.push(*"123456")
    first, second = jobs.pull(2)
    jobs.fail(first)
    jobs.fail(second, permanent=True)
    jobs.pull(1)
    space.clock.advance(SECOND)
    space.call(SpaceShard.skip, "jobs", None, named[5])
    assert ends(jobs.info) == {"exhausted": 2, "permanent": 1, "skipped": 1}
    assert jobs.dlq.letters() == []
    balance(jobs.info)


def test_consumers_are_counted_apart(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1", "2")
    space.call(SpaceShard.consume, "jobs", "late", ConsumerConfig(), "new")
    jobs.push("3")
    [message, *_] = space.call(SpaceShard.pull, "jobs", "default", Pull(1)).messages
    space.call(SpaceShard.ack, "jobs", [message.lease])
    first, late = space.call(SpaceShard.consumers, "jobs")
    assert (first.total_in, first.total_acked, late.total_in, late.ready) == (3, 1, 1, 1)
    for info in (first, late):
        balance(info)


# -- the expired --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_age", [True, False])
@pytest.mark.parametrize("ordering", ["unordered", "per_key"])
def test_what_has_expired_is_in_no_state_before_any_sweep(
    space: Space, *, by_age: bool, ordering: str
) -> None:
    jobs = Jobs(space, ConsumerConfig(ordering=ordering, lease_ms=10 * HOUR))  # type: ignore[arg-type]
    ttl = None if by_age else HOUR
    jobs.push("11", "12", key="k", ttl_ms=ttl)
    [_] = jobs.pull(1)
    jobs.push("13", key="l", ttl_ms=ttl)
    jobs.push("14", key="m", ttl_ms=ttl, delay_ms=2 * HOUR)
    if by_age:
        space.call(SpaceShard.reconfigure, "jobs", {"max_age_ms": HOUR})
    space.clock.advance(HOUR - 1)
    before = jobs.info
    assert (unfinished(before), before.bytes, before.total_expired) == (4, 8, 0)
    space.clock.advance(1)
    info = jobs.info
    assert (jobs.states, info.bytes, info.total_expired) == ({"leased": 1}, 2, 3)
    assert info.oldest_ready is None
    balance(info)
    space.clock.advance(SECOND)
    jobs.ring()
    assert jobs.states == {"leased": 1}
    assert structs.replace(jobs.info, oldest_ready=None) == info


def test_the_expired_does_not_hide_what_is_ready(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1", ttl_ms=HOUR)
    space.clock.advance(HOUR - SECOND)
    jobs.push("2")
    space.clock.advance(3 * SECOND)
    assert jobs.info.oldest_ready_age_ms == 3 * SECOND


@pytest.mark.parametrize("worked", [True, False])
def test_the_expired_takes_no_room_in_a_full_queue(space: Space, *, worked: bool) -> None:
    space.configure("jobs", kind="work" if worked else "log", depth_max=2)
    jobs = Jobs(space)
    jobs.push("1", ttl_ms=HOUR)
    jobs.push("2", ttl_ms=2 * HOUR)
    with pytest.raises(QueueFull):
        jobs.push("3")
    space.clock.advance(HOUR)
    jobs.push("3")
    with pytest.raises(QueueFull, match="holds 2 of at most 2"):
        turn(space, SpaceShard.push, "jobs", [NewEntry("4")])
    assert space.data("jobs") == ["2", "3"]
    if worked:
        assert (jobs.states, ends(jobs.info)) == ({"ready": 2}, {"expired": 1})


# -- ages ---------------------------------------------------------------------------------------------------


def age(jobs: Jobs) -> int | None:
    return jobs.info.oldest_ready_age_ms


def test_pl_s09_what_is_parked_has_no_age(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(lease_ms=20 * HOUR))
    jobs.push("delayed", delay_ms=10 * HOUR)
    jobs.push("failed")
    jobs.fail(jobs.one(), delay_ms=5 * HOUR)
    assert (age(jobs), jobs.states) == (None, {"scheduled": 1, "backoff": 1})
    space.clock.advance(HOUR)
    assert age(jobs) is None
    jobs.push("normal", "leased", priority=4)
    jobs.push("urgent", priority=9)
    [_] = jobs.pull(1)
    space.clock.advance(3 * SECOND)
    assert age(jobs) == 3 * SECOND
    assert jobs.states == {"scheduled": 1, "backoff": 1, "ready": 2, "leased": 1}


def test_no_age_is_below_nothing_when_the_clock_steps_back(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1")
    space.clock.advance(HOUR)
    space.call(SpaceShard.release, "jobs", [jobs.one().lease])
    space.clock.advance(-5 * SECOND)
    assert age(jobs) == 0


@pytest.mark.parametrize("looked_at_first", [True, False])
def test_an_age_begins_when_the_time_has_come(space: Space, *, looked_at_first: bool) -> None:
    """A delay, a back-off, the end of a lease; noticed at once or only when somebody asks."""
    rules = ConsumerConfig(lease_ms=HOUR)
    delayed, failed, lapsed = (Jobs(space, rules, queue) for queue in ("delayed", "failed", "lapsed"))
    delayed.push("1", delay_ms=HOUR)
    failed.push("1")
    failed.fail(failed.one(), delay_ms=HOUR)
    lapsed.push("1")
    lapsed.one()
    space.clock.advance(HOUR)
    if looked_at_first:
        delayed.ring()
    space.clock.advance(2 * SECOND)
    assert [age(jobs) for jobs in (delayed, failed, lapsed)] == [2 * SECOND] * 3


def test_an_age_begins_anew_with_a_retry_a_release_and_a_turn(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(ordering="fifo", backoff=Backoff(initial_ms=0)))
    jobs.push("1", "2")
    space.clock.advance(HOUR)
    assert age(jobs) == HOUR
    jobs.fail(jobs.one())
    assert age(jobs) == 0
    space.clock.advance(5)
    assert age(jobs) == 5
    space.call(SpaceShard.release, "jobs", [jobs.one().lease])
    assert age(jobs) == 0
    space.clock.advance(HOUR)
    jobs.ack(jobs.one())
    assert age(jobs) == 0
    space.clock.advance(7)
    assert age(jobs) == 7


@pytest.mark.parametrize("delay_ms", [0, HOUR // 4])
def test_the_age_of_what_was_there_before_a_consumer_counts_from_when_it_was_due(
    space: Space, delay_ms: int
) -> None:
    space.call(SpaceShard.append, "jobs", [NewEntry("1", delay_ms=delay_ms)])
    space.clock.advance(HOUR)
    space.call(SpaceShard.consume, "jobs", "default", ConsumerConfig(), "beginning")
    jobs = Jobs(space)
    jobs.ring()
    assert age(jobs) == HOUR - delay_ms
