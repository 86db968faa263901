"""Queues of dead letters that others change, remove or fill up: nothing is lost, and nothing gets stuck."""

from __future__ import annotations

from edgequeues.models import ConsumerConfig
from edgequeues.space import check
from edgequeues.space.shard import SpaceShard

from .jobs import Dead, Jobs
from .world import Space

SECOND = 1_000


def remove(space: Space, queue: str) -> None:
    while space.call(SpaceShard.remove, queue):
        pass


def test_a_dead_letter_that_pushes_out_another_one_whose_lease_lapses_with_it(space: Space) -> None:
    """A queue of dead letters keeps one. It is handed out, and its lease ends in the ms of the next burial."""
    jobs = Jobs(space, ConsumerConfig(attempts_max=1, lease_ms=SECOND))
    jobs.bury("1")
    space.call(SpaceShard.reconfigure, "jobs-dlq", {"max_entries": 1})
    jobs.push("2")
    jobs.one()
    graves = Jobs(space, queue="jobs-dlq")
    [held] = graves.pull(lease_ms=SECOND)
    jobs.at(SECOND)
    jobs.ring()
    assert graves.dlq.letters() == []
    assert (jobs.states, graves.states) == ({}, {"ready": 1})
    assert graves.ack(held) == ["finished"]
    assert graves.given() == ["2"]


def test_dead_letters_go_to_the_queues_own_where_the_one_named_cannot_be_made_again(space: Space) -> None:
    """It was removed, and its name is now taken by one that counts as the same."""
    space.configure("the-graves", kind="work")
    jobs = Jobs(space, ConsumerConfig(attempts_max=1, lease_ms=SECOND, dead_letters="the-graves"))
    remove(space, "the-graves")
    space.configure("the_graves", kind="work")
    other = Jobs(space, queue="other")
    other.push("of another queue", delay_ms=SECOND)
    jobs.push("1", "2")
    jobs.pull(2)
    jobs.at(SECOND)
    assert other.given() == ["of another queue"]
    assert jobs.dlq.data == ["1", "2"]


def test_a_named_queue_of_dead_letters_is_made_again_when_it_is_needed(space: Space) -> None:
    space.configure("graves", kind="work")
    jobs = Jobs(space, ConsumerConfig(dead_letters="graves"))
    remove(space, "graves")
    jobs.bury("1", "2")
    assert Dead(space, "graves").data == ["1", "2"]
    assert jobs.dlq.letters() == []


def test_a_queue_of_dead_letters_that_was_removed_is_made_again(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    remove(space, "jobs-dlq")
    jobs.bury("2")
    assert jobs.dlq.data == ["2"]


def test_a_queue_made_anew_under_an_old_name_has_dead_letters_of_its_own(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("old")
    [old] = jobs.dlq.ids
    remove(space, "jobs")
    jobs.bury("new")
    assert (jobs.dlq.data, Dead(space, "jobs-dlq-2").data) == (["old"], ["new"])
    assert [one.outcome for one in jobs.dlq.replay(old)] == ["no_queue"]
    assert jobs.pull() == []


def test_what_failed_often_is_remembered_for_its_newest_attempts_only(space: Space) -> None:
    """Else a message that fails for ever would weigh more every minute."""
    jobs = Jobs(space, ConsumerConfig(attempts_max=None))
    [name] = jobs.push("1")
    for n in range(250):
        assert jobs.fail(jobs.one(), delay_ms=0, error=f"error {n}") == ["done"]
    history = jobs.explain(name).history
    assert [one.attempt for one in history] == list(range(151, 251))
    assert (history[-1].error, jobs.explain(name).attempts) == ("error 249", 250)
    assert check.problems(space.db) == []
    jobs.fail(jobs.one(), permanent=True, error="at last")
    [(_, letter)] = jobs.dlq.letters()
    assert (letter.attempts, letter.last_error) == (251, "at last")
    assert bytes(letter.errors).count(b'"attempt"') == 100


def test_giving_back_untouched_for_ever_costs_no_room(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1")
    for _ in range(250):
        assert space.call(SpaceShard.release, "jobs", [jobs.one().lease]) == ["done"]
    assert space.db.execute("SELECT count(*) FROM attempts").get == 100
    assert check.problems(space.db) == []
    assert jobs.one().attempts == 1
