"""Looking at much a part at a time: what is rare is found, and no turn looks at all there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgequeues.core.lifecycle import State
from edgequeues.models import WORK_QUEUE, ConsumerConfig, Line, NewEntry, Ordering
from edgequeues.space.explaining import LINES_LOOKED_AT, LOOKED_AT
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .world import Space


def push(space: Space, keys: list[str | None]) -> None:
    for start in range(0, len(keys), 1_000):
        entries = [NewEntry("1", key=key) for key in keys[start : start + 1_000]]
        space.call(SpaceShard.push, "jobs", entries)


def peeked(space: Space, state: State, limit: int = 100) -> Iterator[list[int]]:
    """Positions, page by page."""
    after: int | None = 0
    while after is not None:
        page = space.call(SpaceShard.peek, "jobs", None, (state,), after, limit)
        yield [one.entry.position for one in page.found]
        after = page.resume


def work(space: Space, ordering: Ordering) -> Jobs:
    space.call(SpaceShard.configure, "jobs", WORK_QUEUE)
    return Jobs(space, ConsumerConfig(ordering=ordering))


def lines(space: Space, limit: int = 100) -> Iterator[list[Line]]:
    after: str | None = None
    while True:
        page = space.call(SpaceShard.lines, "jobs", None, after, limit)
        yield page.lines
        if page.resume is None:
            return
        assert after is None or page.resume > after
        after = page.resume


def test_the_one_message_in_a_state_is_found_behind_many_in_others(space: Space) -> None:
    push(space, [None] * (2 * LOOKED_AT))
    [late] = [space.call(SpaceShard.push, "jobs", [NewEntry("1", delay_ms=1_000)]).results[0].position]
    pages = list(peeked(space, "scheduled"))
    assert [page for page in pages if page] == [[late]]
    assert len(pages) >= 3


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_of_a_state_hold_each_of_its_messages_once_in_order(space: Space, limit: int) -> None:
    jobs = Jobs(space)
    jobs.push(*"123456")
    leased = sorted(one.entry.position for one in jobs.pull(3))
    ready = [position for page in peeked(space, "ready", limit) for position in page]
    assert [position for page in peeked(space, "leased", limit) for position in page] == leased
    assert ready == sorted(ready)
    assert len(ready) == 3
    assert not set(ready) & set(leased)


def test_a_page_that_is_not_full_and_has_no_more_behind_it_is_the_last(space: Space) -> None:
    Jobs(space).push(*"123")
    assert [len(page) for page in peeked(space, "ready")] == [3]
    assert [len(page) for page in peeked(space, "leased")] == [0]


def test_of_many_lines_some_are_looked_at_in_one_turn_and_all_in_several(space: Space) -> None:
    work(space, "per_key")
    keys = [f"k{number:05}" for number in range(LINES_LOOKED_AT + 500)]
    push(space, [*keys, keys[3], keys[-1], keys[-1]])
    pages = [[(one.key, one.waiting) for one in page] for page in lines(space)]
    assert pages == [[(keys[3], 1)], [(keys[-1], 2)]]


def test_the_longest_lines_come_first_and_a_very_long_one_does_not_hide_those_after_it(space: Space) -> None:
    work(space, "per_key")
    push(space, ["a", "a", *["b"] * (LOOKED_AT + 500), *["c"] * 4, *["d"] * 5])
    first, second = lines(space)
    assert [(one.key, one.waiting) for one in first] == [("b", LOOKED_AT - 2), ("a", 1)]
    assert [(one.key, one.waiting, one.state) for one in second] == [("d", 4, "ready"), ("c", 3, "ready")]


def test_the_line_of_a_whole_queue_is_listed_without_a_key(space: Space) -> None:
    work(space, "fifo")
    push(space, ["a", "b", "c"])
    [[line]] = lines(space)
    assert (line.key, line.waiting) == ("", 2)


def test_what_comes_next_is_told_without_being_handed_out(space: Space) -> None:
    """As a pull would give it: by priority, what has come due, nothing that has expired."""
    jobs = work(space, "unordered")
    jobs.push("expired", ttl_ms=1_000)
    jobs.push("low", priority=0)
    jobs.push("high", priority=9)
    jobs.push("delayed", delay_ms=1_000)
    jobs.push("later", delay_ms=1_001)
    jobs.at(1_000)
    told = [one.entry.data for one in space.call(SpaceShard.upcoming, "jobs", None, 10)]
    assert told == ["high", "delayed", "low"]
    assert jobs.given() == told
