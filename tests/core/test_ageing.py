"""Ageing: what has waited too long goes first, everything else by priority."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core import ageing

RANKS = st.lists(st.lists(st.integers(0, 20), max_size=6), min_size=1, max_size=4).map(
    lambda ranks: [
        [(10 * rank + place, since) for place, since in enumerate(times)] for rank, times in enumerate(ranks)
    ]
)


def test_the_highest_priority_goes_first_while_nothing_has_waited_too_long() -> None:
    assert ageing.order([[], [(1, 50), (2, 51)], [(3, 40)]], 39, 10) == [1, 2, 3]


def test_what_has_waited_too_long_goes_before_a_higher_priority_and_what_has_waited_longest_before_that() -> (
    None
):
    ranks = [[(1, 50), (2, 51)], [(3, 30)], [(4, 20), (5, 60)]]
    assert ageing.order(ranks, 30, 10) == [4, 3, 1, 2, 5]
    assert ageing.order(ranks, 20, 10) == [4, 1, 2, 3, 5]


def test_what_has_waited_equally_long_goes_by_priority() -> None:
    assert ageing.order([[(1, 20)], [(2, 20)], [(3, 20)]], 20, 10) == [1, 2, 3]


@given(RANKS, st.integers(-1, 21), st.integers(0, 30))
def test_each_is_there_once_and_those_of_a_priority_keep_their_order(
    ranks: list[list[tuple[int, int]]], starved_ts: int, limit: int
) -> None:
    order = ageing.order(ranks, starved_ts, limit)
    every = [position for messages in ranks for position, _ in messages]
    assert len(order) == len(set(order)) == min(limit, len(every))
    assert order == ageing.order(ranks, starved_ts, len(every))[:limit]
    for messages in ranks:
        mine = [position for position, _ in messages]
        assert [position for position in order if position in mine] == mine[: len(set(mine) & set(order))]


@given(RANKS, st.integers(0, 30))
def test_where_the_first_of_no_priority_has_waited_too_long_priority_is_all_that_counts(
    ranks: list[list[tuple[int, int]]], limit: int
) -> None:
    """Though others behind them have: those are next of their priority when it is their turn anyway."""
    soonest = min((messages[0][1] for messages in ranks if messages), default=0)
    by_priority = [position for messages in ranks for position, _ in messages]
    assert ageing.order(ranks, soonest - 1, limit) == by_priority[:limit]
