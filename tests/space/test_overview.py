"""How queues are doing, for those who watch over a space."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgequeues.core.errors import QueueFull, QueueNotFound
from edgequeues.models import WORK_QUEUE, ConsumerConfig, NewEntry, Pull
from edgequeues.space import overview, watched
from edgequeues.space.overview import Doing
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import CHANGED

from .jobs import Jobs
from .world import Space, SpaceFile, turn


def doing(space: Space, queue: str = "jobs") -> Doing:
    [found] = [one for one in space.call(SpaceShard.doing, "", 100).queues if one.name == queue]
    return found


def per_minute(space: Space, queue: str = "jobs") -> int:
    return doing(space, queue).per_minute


def test_every_message_that_is_put_in_counts_for_a_minute(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1", "2")
    space.clock.advance(59_000)
    jobs.push("3")
    assert per_minute(space) == 3
    space.clock.advance(1_000)
    assert per_minute(space) == 1
    space.clock.advance(60_000)
    assert per_minute(space) == 0


def test_what_was_replayed_or_died_counts_where_it_came_to(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    assert (per_minute(space), per_minute(space, "jobs-dlq")) == (1, 1)
    jobs.dlq.replay(*jobs.dlq.ids)
    assert per_minute(space) == 2


def test_what_was_undone_did_not_come(space: Space) -> None:
    jobs = Jobs(space)
    space.call(SpaceShard.configure, "jobs", WORK_QUEUE)
    space.call(SpaceShard.reconfigure, "jobs", {"depth_max": 2})
    jobs.push("1", "2")
    for _ in range(3):
        with pytest.raises(QueueFull):
            turn(space, SpaceShard.push, "jobs", [NewEntry("3")])
    assert per_minute(space) == 2


def test_a_change_of_settings_forgets_no_count(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1")
    space.call(SpaceShard.reconfigure, "jobs", {"name": "tasks"})
    assert per_minute(space, "tasks") == 1


def test_the_count_starts_anew_when_the_file_is_opened_again(tmp_path: Path) -> None:
    space = SpaceFile(tmp_path / "space.db")
    jobs = Jobs(space)
    jobs.push("1")
    space.reopen()
    assert per_minute(space) == 0
    jobs.push("2")
    assert per_minute(space) == 1


def test_only_so_many_queues_are_counted(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "RATES_MAX", 2)
    for name in ("a", "b", "a", "c"):
        space.put(name, "1")
    assert [per_minute(space, name) for name in "abc"] == [2, 0, 1]


def test_depth_is_what_waits_in_any_way(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(ordering="per_key"))
    jobs.push("1", "2", key="k")
    jobs.push("3")
    jobs.push("4", delay_ms=60_000)
    first, _ = jobs.pull(batch=2)
    jobs.fail(first, delay_ms=10_000)
    found = doing(space)
    assert jobs.states == {"scheduled": 1, "waiting": 1, "leased": 1, "backoff": 1}
    assert (found.depth, found.in_flight) == (3, 1)


def test_the_consumer_with_most_to_do_counts(space: Space) -> None:
    space.fill("log", 3)
    for name, start in (("fresh", "new"), ("late", "beginning")):
        space.call(SpaceShard.consume, "log", name, ConsumerConfig(), start=start)  # type: ignore[arg-type]
    space.sweep()
    assert (doing(space, "log").depth, doing(space, "log").in_flight) == (3, 0)


def test_what_has_expired_is_neither_deep_nor_old(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1", ttl_ms=5_000)
    space.clock.advance(3_000)
    jobs.push("2")
    assert doing(space).at - (doing(space).oldest or 0) == 3_000
    space.clock.advance(2_000)
    found = doing(space)
    assert (found.depth, found.at - (found.oldest or 0)) == (1, 2_000)


def test_a_close_up_counts_letters_that_wait_up_to_a_bound(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(space)
    jobs.bury("1", "2", "3", "4")
    jobs.dlq.replay(jobs.dlq.ids[0])
    found = space.call(SpaceShard.close_up, "jobs")
    assert (found.letters, found.graves, found.doing.depth) == (3, ["jobs-dlq"], 1)
    monkeypatch.setattr(overview, "LETTERS_MAX", 2)
    assert space.call(SpaceShard.close_up, "jobs").letters == 2
    space.clock.advance(8 * 86_400_000)
    assert space.call(SpaceShard.close_up, "jobs").letters == 0
    with pytest.raises(QueueNotFound):
        space.call(SpaceShard.close_up, "nobody")


def test_who_watches_the_space_hears_of_whatever_is_written_and_of_nothing_else(space: Space) -> None:
    def heard(verb: Callable[..., object], *args: object) -> bool:
        space.events.clear()
        space.call(verb, *args)
        return CHANGED in space.events

    assert heard(SpaceShard.push, "jobs", [NewEntry("1")])
    assert heard(SpaceShard.reconfigure, "jobs", {"paused": True})
    assert heard(SpaceShard.reconfigure, "jobs", {"paused": False})
    assert heard(SpaceShard.pull, "jobs", None, Pull())
    for looking in (SpaceShard.stats, SpaceShard.consumers, SpaceShard.close_up, SpaceShard.watch_closely):
        assert not heard(looking, "jobs")
    assert not heard(SpaceShard.doing, "", 100)
    assert not heard(SpaceShard.pull, "jobs", None, Pull())


def test_what_is_acked_counts_in_its_second_whoever_acks_it(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1", "2", "3")
    space.clock.advance(2_000)
    first, second = jobs.pull(batch=2)
    jobs.ack(first)
    space.clock.advance(1_000)
    jobs.ack(second)
    jobs.bury("4")
    found = doing(space)
    assert (found.came[-4:], found.acked[-4:]) == ([3, 0, 0, 1], [0, 0, 1, 1])
    assert (len(found.came), len(found.acked)) == (60, 60)


def test_names_are_compared_turn_by_turn(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "LOOKED_AT", 2)
    for name in ("a1", "b1", "b2", "a2", "a3"):
        space.put(name, "1")
        space.clock.advance(1)
    found: list[str | None] = []
    turns, after = 0, ""
    while True:
        page = space.call(SpaceShard.doing, after, 100, "A")
        found, turns = found + [one.name for one in page.queues], turns + 1
        if page.resume is None:
            break
        after = page.resume
    assert (found, turns) == (["a1", "a2", "a3"], 3)


def test_entries_are_those_that_have_not_expired_as_far_as_a_list_looks(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "EXPIRED_MAX", 2)
    jobs = Jobs(space)
    jobs.push("1", "2", "3", ttl_ms=500)
    jobs.push("4")
    space.clock.advance(500)
    assert doing(space).entries == 2
