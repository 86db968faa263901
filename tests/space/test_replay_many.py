"""Many dead letters replayed: in their order, each once, at a pace, turn by turn."""

from __future__ import annotations

import pytest

from edgequeues.models import ConsumerConfig, Pull
from edgequeues.models_letters import LetterFilter
from edgequeues.space.dead_verbs import REPLAYED_MAX, ReplayAsk
from edgequeues.space.deadletters import START
from edgequeues.space.shard import SpaceShard

from .jobs import Dead, Jobs
from .replays import ALL, outcomes, replay, turns
from .world import Space, SpaceFile

SECOND, DAY = 1_000, 86_400_000


def dues(space: Space, began_ms: int) -> dict[str, int | None]:
    """When each message of `jobs` is due, in ms after the start; None: at once."""
    return {entry.data: None if entry.due is None else entry.due - began_ms for entry in space.all("jobs")}


# -- order --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordering", ["unordered", "fifo", "per_key"])
def test_messages_come_again_as_they_were_first_pushed(space: Space, ordering: str) -> None:
    """They failed in another order: those at the back first."""
    jobs = Jobs(space, ConsumerConfig(ordering=ordering, attempts_max=1))  # type: ignore[arg-type]
    named = jobs.push(*"012345", key="k")
    for one in (4, 1, 5, 0, 3, 2):
        space.call(SpaceShard.skip, "jobs", None, named[one])
    assert jobs.dlq.data == list("415032")
    results = replay(space)
    assert outcomes(results) == {"replayed"}
    assert [one.message for one in results] == [entry.id for entry in space.all("jobs")]
    given = []
    while messages := jobs.pull(10):
        given += [one.entry.data for one in messages]
        assert {one.attempts for one in messages} == {1}
        jobs.ack(*messages)
    assert given == list("012345")


def test_letters_of_several_queues_go_each_where_it_came_from(space: Space) -> None:
    space.configure("graves", kind="work", on_ack="delete")
    rules = ConsumerConfig(dead_letters="graves")
    jobs, others = Jobs(space, rules), Jobs(space, rules, "others")
    for n in range(3):
        jobs.bury(f'"j{n}"')
        others.bury(f'"o{n}"')
    [part] = turns(space, ReplayAsk(ALL), "graves")
    assert len(part.results) == 6
    assert (jobs.given(), others.given()) == (['"j0"', '"j1"', '"j2"'], ['"o0"', '"o1"', '"o2"'])


def test_many_take_many_turns_and_stay_in_order(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(attempts_max=1))
    numbers = [str(n) for n in range(2 * REPLAYED_MAX + 1)]
    for start in range(0, len(numbers), 500):
        jobs.bury(*numbers[start : start + 500])
    counts = [len(part.results) for part in turns(space, ReplayAsk(ALL))]
    assert counts == [REPLAYED_MAX, REPLAYED_MAX, 1]
    assert space.data("jobs") == numbers


def test_a_turn_moves_no_more_data_than_a_page_holds(space: Space) -> None:
    jobs = Jobs(space)
    for _ in range(3):
        jobs.bury(f'"{"x" * 3_000_000}"')
    named = [*jobs.dlq.ids, "nobody"]
    space.db.execute("SAVEPOINT before")
    assert [one.outcome for one in jobs.dlq.replay(*named)] == ["unknown", "replayed", "replayed"]
    assert [one.id for one in jobs.dlq.replay(named[2])] == [named[2]]
    space.db.execute("ROLLBACK TO before; RELEASE before")
    space.shard.forget()
    assert [len(part.results) for part in turns(space, ReplayAsk(ALL))] == [2, 1]


# -- once ---------------------------------------------------------------------------------------------------


def test_a_turn_that_is_repeated_replays_nothing_twice(space: Space) -> None:
    """Its answer was lost; or two operators do the same."""
    jobs = Jobs(space)
    jobs.bury(*"123")
    ask = ReplayAsk(ALL, limit=2)
    first = space.call(SpaceShard.replay_some, "jobs-dlq", ask)
    again = space.call(SpaceShard.replay_some, "jobs-dlq", ask, START, first.through)
    assert [len(part.results) for part in (first, again)] == [2, 1]
    assert replay(space) == []
    assert jobs.given() == ["1", "2", "3"]


def test_what_dies_again_meanwhile_is_left_alone(space: Space) -> None:
    """Else one that can only fail would be replayed for ever."""
    jobs = Jobs(space)
    jobs.bury(*"1234")
    part = space.call(SpaceShard.replay_some, "jobs-dlq", ReplayAsk(ALL, limit=2))
    jobs.fail(*jobs.pull(10), permanent=True)
    assert part.resume is not None
    rest = space.call(SpaceShard.replay_some, "jobs-dlq", ReplayAsk(ALL), part.resume, part.through)
    assert (len(rest.results), rest.resume) == (2, None)
    assert jobs.given() == ["3", "4"]
    assert len(replay(space)) == 2


@pytest.mark.parametrize("per_second", [None, 4])
def test_a_call_that_broke_off_is_made_anew_and_neither_loses_nor_doubles(
    space_file: SpaceFile, per_second: float | None
) -> None:
    space = space_file
    jobs = Jobs(space)
    numbers = [str(n) for n in range(10)]
    jobs.bury(*numbers)
    began_ms = space.clock.now_ms()
    space.call(SpaceShard.replay_some, "jobs-dlq", ReplayAsk(ALL, 4, per_second))
    space.reopen()
    space.clock.advance(100)
    assert len(replay(space, ALL, per_second)) == 6
    assert space.data("jobs") == numbers
    if per_second is not None:
        expected = [None, *(250 * n for n in range(1, 10))]
        assert list(dues(space, began_ms).values()) == expected


def test_a_letter_whose_queue_is_gone_holds_nobody_up(space: Space) -> None:
    space.configure("graves", kind="work", on_ack="delete")
    rules = ConsumerConfig(dead_letters="graves")
    jobs, others = Jobs(space, rules), Jobs(space, rules, "others")
    jobs.bury("1")
    others.bury("2")
    while space.call(SpaceShard.remove, "jobs"):
        pass
    [part] = turns(space, ReplayAsk(ALL), "graves")
    assert sorted(one.outcome for one in part.results) == ["no_queue", "replayed"]
    assert others.given() == ["2"]
    assert [one.outcome for one in space.call(SpaceShard.replay_some, "graves", ReplayAsk(ALL)).results] == [
        "no_queue"
    ]


def test_what_was_replayed_is_no_message_of_the_dead_letters_queue_any_more(space: Space) -> None:
    """Nobody is given it there, and who holds it is told; what is known of it stays."""
    jobs, graves = Jobs(space), Jobs(space, queue="jobs-dlq")
    jobs.bury(*"12")
    [held] = graves.pull(1)
    replay(space)
    assert graves.fail(held) == ["finished"]
    assert (graves.states, graves.given()) == ({}, [])
    assert [letter.replayed_at for _, letter in jobs.dlq.letters()] == [space.clock.now_ms()] * 2


def test_a_consumer_that_comes_later_is_given_only_letters_that_were_not_replayed(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury(*"123")
    jobs.dlq.replay(jobs.dlq.ids[1])
    space.call(SpaceShard.consume, "jobs-dlq", "late", ConsumerConfig(), "beginning")
    jobs.dlq.replay(jobs.dlq.ids[2])
    space.sweep()
    given = space.call(SpaceShard.pull, "jobs-dlq", "late", Pull(10)).messages
    assert [one.entry.data for one in given] == ["1"]


def test_a_full_queue_takes_what_is_replayed(space: Space) -> None:
    """Else letters could not leave while producers keep it full."""
    jobs = Jobs(space)
    jobs.bury(*"123")
    space.call(SpaceShard.reconfigure, "jobs", {"depth_max": 1})
    assert len(replay(space)) == 3


# -- pace ---------------------------------------------------------------------------------------------------


def test_messages_are_due_one_after_the_other(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury(*"0123")
    began_ms = space.clock.now_ms()
    replay(space, per_second=2)
    assert dues(space, began_ms) == {"0": None, "1": 500, "2": 1_000, "3": 1_500}
    assert jobs.states == {"ready": 1, "scheduled": 3}
    assert jobs.given() == ["0"]
    space.clock.advance(499)
    assert jobs.given() == []
    space.clock.advance(1)
    assert jobs.given() == ["1"]
    space.clock.advance(SECOND)
    assert jobs.given() == ["2", "3"]


def test_a_second_replay_at_a_pace_waits_for_the_first(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury(*"01", key="first")
    jobs.bury("2", key="second")
    began_ms = space.clock.now_ms()
    replay(space, LetterFilter(key="first"), per_second=1)
    replay(space, LetterFilter(key="second"), per_second=10)
    assert dues(space, began_ms) == {"0": None, "1": 1_000, "2": 1_100}
    space.clock.advance(5 * SECOND)
    jobs.ack(*jobs.pull(10))
    jobs.bury("3")
    replay(space, per_second=10)
    assert dues(space, began_ms) == {"3": None}


def test_those_without_a_pace_wait_for_nobody(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury(*"01", key="first")
    jobs.bury("2", key="second")
    replay(space, LetterFilter(key="first"), per_second=0.01)
    replay(space, LetterFilter(key="second"))
    assert jobs.given() == ["0", "2"]


def test_a_message_is_not_made_that_would_be_old_before_its_turn(space: Space) -> None:
    """Half the age a message may reach is 10 s, so at one a second eleven have their turn by then."""
    jobs = Jobs(space)
    jobs.bury(*(str(n) for n in range(13)))
    space.call(SpaceShard.reconfigure, "jobs", {"max_age_ms": 20 * SECOND})
    results = replay(space, per_second=1)
    assert [one.outcome for one in results] == ["replayed"] * 11 + ["later"] * 2
    space.clock.advance(10 * SECOND)
    jobs.ack(*jobs.pull(100))
    assert outcomes(replay(space, per_second=1)) == {"replayed"}
    space.clock.advance(2 * SECOND)
    assert jobs.given() == ["11", "12"]


# -- letters of letters -------------------------------------------------------------------------------------


def test_a_letter_that_comes_back_from_a_second_queue_is_a_letter_again(space: Space) -> None:
    """jobs -> first -> second; replayed to `first`, it is known where it came from, and it can go on to `jobs`."""
    for queue in ("second", "first"):
        space.configure(queue, kind="work", on_ack="delete")
    first = Jobs(space, ConsumerConfig(attempts_max=1, dead_letters="second"), "first")
    jobs = Jobs(space, ConsumerConfig(attempts_max=1, dead_letters="first"))
    [name] = jobs.push("1")
    jobs.fail(jobs.one(), error="no")
    space.clock.advance(DAY)
    first.fail(first.one(), error="neither")
    assert Dead(space, "first").letters() == []
    [(_, letter)] = Dead(space, "second").letters()
    assert (letter.original_queue, letter.last_error) == ("first", "neither")
    [part] = turns(space, ReplayAsk(ALL), "second")
    [(_, letter)] = Dead(space, "first").letters()
    assert (letter.original_queue, letter.original_message_id, letter.last_error) == ("jobs", name, "no")
    assert [one.entry.id for one in first.pull()] == [part.results[0].message]
    [part] = turns(space, ReplayAsk(ALL), "first")
    assert outcomes(part.results) == {"replayed"}
    assert jobs.given() == ["1"]
