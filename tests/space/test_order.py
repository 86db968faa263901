"""In which order messages are handed out, and that they can all be kept."""

from __future__ import annotations

import pytest

from edgequeues.core.errors import InvalidRequest
from edgequeues.models import ConsumerConfig, NewEntry, Ordering, QueueConfig
from edgequeues.space import check
from edgequeues.space.base import WORK
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .world import Space, SpaceFile, turn

NUMBERS = [str(n) for n in range(50)]


@pytest.mark.parametrize("ordering", ["unordered", "fifo", "per_key"])
@pytest.mark.parametrize("restart", [False, True])
def test_messages_come_in_the_order_of_arrival(
    space_file: SpaceFile, ordering: Ordering, *, restart: bool
) -> None:
    """Those of one push, and of pushes in one ms, too."""
    jobs = Jobs(space_file, ConsumerConfig(ordering=ordering))
    jobs.push(*NUMBERS[:20], key="k")
    for one in NUMBERS[20:]:
        jobs.push(one, key="k")
    if restart:
        space_file.reopen()
    given: list[str] = []
    while messages := jobs.pull(3):
        assert len(messages) == 1 or ordering == "unordered"
        given += [one.entry.data for one in messages]
        jobs.ack(*messages)
    assert given == NUMBERS


@pytest.mark.parametrize("ordering", ["fifo", "per_key"])
def test_a_message_that_failed_keeps_its_place_in_its_line(space: Space, ordering: Ordering) -> None:
    jobs = Jobs(space, ConsumerConfig(ordering=ordering))
    jobs.push("1", "2", "3", key="k")
    jobs.fail(jobs.one(), delay_ms=0)
    assert jobs.given() == ["1"]


@pytest.mark.parametrize("ordering", ["fifo", "per_key"])
def test_a_message_that_was_replaced_goes_to_the_end_of_its_line_and_opens_it(
    space: Space, ordering: Ordering
) -> None:
    """Its holder is told; the new version has all its attempts."""
    jobs = Jobs(space, ConsumerConfig(ordering=ordering))
    space.call(SpaceShard.reconfigure, "jobs", {"mutable": True})
    jobs.push("old", object_id="a", key="k")
    jobs.push("next", key="k")
    held = jobs.one()
    jobs.push("new", object_id="a", key="k")
    then = jobs.one()
    assert (then.entry.data, jobs.pull(), jobs.ack(held)) == ("next", [], ["superseded"])
    jobs.ack(then)
    last = jobs.one()
    assert (last.entry.data, last.attempts) == ("new", 1)


def test_higher_priority_comes_first_and_equal_ones_in_the_order_of_arrival(space: Space) -> None:
    jobs = Jobs(space)
    for number in range(30):
        jobs.push(f"{number % 10}-{number // 10}", priority=number % 10)
    jobs.push("4-plain")
    wanted = [f"{priority}-{round_}" for priority in range(9, -1, -1) for round_ in range(3)]
    wanted.insert(wanted.index("4-2") + 1, "4-plain")
    assert jobs.given(7) + jobs.given(100) == wanted


def test_priority_decides_between_lines_and_never_within_one(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(ordering="per_key"))
    jobs.push("a/1", key="a", priority=1)
    jobs.push("a/2", key="a", priority=9)
    jobs.push("b/1", key="b", priority=5)
    first = jobs.pull(10)
    assert [one.entry.data for one in first] == ["b/1", "a/1"]
    jobs.ack(*first)
    assert jobs.given() == ["a/2"]


def test_a_fifo_queue_takes_no_priorities(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(ordering="fifo"))
    for verb in (SpaceShard.push, SpaceShard.append):
        with pytest.raises(InvalidRequest, match="priority"):
            turn(space, verb, "jobs", [NewEntry("1"), NewEntry("2", priority=9)])
    assert jobs.pull() == []


def test_lines_take_turns_however_long_one_is(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(ordering="per_key"))
    jobs.push(*(f"a/{n}" for n in range(10)), key="a")
    jobs.push("b/0", "b/1", key="b")
    jobs.push("c/0", key="c")
    order = []
    while messages := jobs.pull():
        order.append(messages[0].entry.data)
        jobs.ack(*messages)
    assert order[:6] == ["a/0", "b/0", "c/0", "a/1", "b/1", "a/2"]
    assert order[6:] == [f"a/{n}" for n in range(3, 10)]


def test_a_work_queue_can_keep_all_its_messages(space: Space) -> None:
    """Done ones stay where they were, for whoever reads the log or begins to work it later."""
    space.call(SpaceShard.configure, "jobs", QueueConfig(kind="work", on_ack="keep", mutable=False))
    jobs = Jobs(space)
    jobs.push(*NUMBERS)
    while messages := jobs.pull(20):
        jobs.ack(*messages)
    assert (jobs.states, space.data("jobs")) == ({}, NUMBERS)
    space.call(SpaceShard.consume, "jobs", "later", ConsumerConfig(), start="beginning")
    jobs.ring()
    later = [one for one in space.call(SpaceShard.consumers, "jobs") if one.name == "later"]
    assert [one.ready for one in later] == [len(NUMBERS)]


@pytest.mark.parametrize("ordering", ["unordered", "fifo", "per_key"])
def test_of_a_push_that_is_more_than_the_queue_holds_the_newest_are_handed_out(
    space: Space, ordering: Ordering
) -> None:
    """What is trimmed as it comes is nobody's message: it neither blocks a line nor counts as unfinished."""
    jobs = Jobs(space, ConsumerConfig(ordering=ordering))
    space.call(SpaceShard.reconfigure, "jobs", {"max_entries": 2})
    jobs.push("1", "2", "3", "4", "5", key="k")
    given: list[str] = []
    while messages := jobs.pull(1):
        given += [one.entry.data for one in messages]
        jobs.ack(*messages)
    assert given == ["4", "5"]
    assert (jobs.states, check.problems(space.db)) == ({}, [])


@pytest.mark.parametrize("ordering", ["unordered", "fifo", "per_key"])
def test_expired_messages_do_not_hide_those_behind_them_in_their_line(
    space: Space, ordering: Ordering
) -> None:
    jobs = Jobs(space, ConsumerConfig(ordering=ordering))
    jobs.push(*["old"] * 300, key="k", ttl_ms=1_000)
    jobs.push("new", key="k")
    space.clock.advance(1_000)
    assert jobs.given() == ["new"]


@pytest.mark.parametrize("ordering", ["unordered", "fifo"])
def test_who_waits_is_woken_when_a_pull_found_only_expired_messages_and_there_may_be_more(
    space: Space, ordering: Ordering
) -> None:
    """One pull sees a bounded number of them off; nothing else would tell that a live one is behind them."""
    jobs = Jobs(space, ConsumerConfig(ordering=ordering))
    for _ in range(3):
        jobs.push(*["old"] * 1_000, ttl_ms=1_000)
    jobs.push("new")
    space.clock.advance(1_000)
    pulls = 0
    space.events.clear()
    while not (given := jobs.given()):
        assert (WORK, "jobs") in space.events
        space.events.clear()
        pulls += 1
    assert given == ["new"]
    assert 1 <= pulls <= 5
