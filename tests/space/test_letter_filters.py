"""Dead letters by filter: which are replayed, purged, previewed, and how many a turn looks at."""

from __future__ import annotations

import pytest

from edgequeues.models import ConsumerConfig, NewEntry
from edgequeues.models_letters import LetterFilter
from edgequeues.space.dead_verbs import LOOKED_AT, ReplayAsk
from edgequeues.space.shard import SpaceShard

from .jobs import Dead, Jobs
from .replays import outcomes, preview, purge, replay, turns
from .world import Space

SECOND, DAY = 1_000, 86_400_000


@pytest.fixture
def varied(space: Space) -> Space:
    """Letters a to e in one queue, each failed a second after the one before, each with something of its own."""
    space.configure("jobs-dlq", kind="work", on_ack="delete")
    jobs, others = (
        Jobs(space, ConsumerConfig(attempts_max=2, dead_letters="jobs-dlq"), queue)
        for queue in ("jobs", "others")
    )
    first_ms = space.clock.now_ms()

    def fail(where: Jobs, data: str, *, permanent: bool, **options: object) -> None:
        where.push(data, **options)
        where.fail(where.one(), delay_ms=0)
        where.fail(where.one(), permanent=permanent, error=f"no luck with {data}: 100%_sure")
        space.clock.advance(SECOND)

    fail(jobs, '"a"', permanent=False, key="k")
    fail(jobs, '"b"', permanent=True, type="T")
    fail(others, '"c"', permanent=True, key="k")
    [skipped] = jobs.push('"d"')
    space.call(SpaceShard.skip, "jobs", None, skipped)
    space.clock.advance(SECOND)
    fail(others, '"e"', permanent=True, type="T", key="other")
    assert [letter.failed_at - first_ms for _, letter in Dead(space, "jobs-dlq").letters()] == [
        *range(0, 5 * SECOND, SECOND)
    ]
    return space


FILTERS = [
    ({}, "abcde"),
    ({"reason": ("exhausted",)}, "a"),
    ({"reason": ("exhausted", "skipped")}, "ad"),
    ({"queue": "others"}, "ce"),
    ({"queue": "nobody"}, ""),
    ({"key": "k"}, "ac"),
    ({"type": "T"}, "be"),
    ({"type": "T", "key": "other"}, "e"),
    ({"since": 1_000}, "bcde"),
    ({"until": 1_000}, "ab"),
    ({"since": 1_000, "until": 3_000}, "bcd"),
    ({"error": '"b"'}, "b"),
    ({"error": "100%_sure"}, "abce"),
    ({"error": "100%sure"}, ""),
    ({"error": "NO LUCK"}, ""),
    ({"error": "skipped by"}, "d"),
    ({"reason": ("permanent",), "queue": "jobs"}, "b"),
]


def filtered(space: Space, fields: dict[str, object]) -> LetterFilter:
    """Times are given from when the first letter failed."""
    first_ms = Dead(space, "jobs-dlq").letters()[0][1].failed_at
    times = {name: first_ms + value for name, value in fields.items() if isinstance(value, int)}
    return LetterFilter(**fields | times)  # type: ignore[arg-type]


@pytest.mark.parametrize(("fields", "found"), FILTERS)
def test_a_filter_names_what_is_replayed(varied: Space, fields: dict[str, object], found: str) -> None:
    wanted = filtered(varied, fields)
    looked = preview(varied, wanted, show=9)
    assert sorted(entry.data for entry, _ in looked.shown) == [f'"{one}"' for one in found]
    assert looked.count == len(found)
    replay(varied, wanted)
    assert sorted(varied.data("jobs") + varied.data("others")) == [f'"{one}"' for one in found]


@pytest.mark.parametrize(("fields", "found"), FILTERS)
def test_a_filter_names_what_is_purged(varied: Space, fields: dict[str, object], found: str) -> None:
    assert purge(varied, filtered(varied, fields)) == len(found)
    left = [f'"{one}"' for one in "abcde" if one not in found]
    assert Dead(varied, "jobs-dlq").data == left
    assert varied.count("jobs-dlq") == len(left)
    assert varied.db.execute("SELECT count(*) FROM dead_letters").get == len(left)


def test_a_queue_that_is_gone_is_named_as_it_was_called(varied: Space) -> None:
    while varied.call(SpaceShard.remove, "others"):
        pass
    assert purge(varied, LetterFilter(queue="others")) == 2


def test_a_queue_that_was_renamed_is_named_as_it_is_called(varied: Space) -> None:
    varied.call(SpaceShard.reconfigure, "others", {"name": "mine"})
    assert preview(varied, LetterFilter(queue="mine")).count == 2


def test_purge_can_take_only_those_that_were_replayed(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury(*"123")
    jobs.dlq.replay(jobs.dlq.ids[1])
    assert purge(space, LetterFilter(replayed=True)) == 1
    assert jobs.dlq.data == ["1", "3"]
    assert purge(space, LetterFilter(replayed=False)) == 2


def test_purge_by_filter_leaves_entries_of_other_origin(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    space.call(SpaceShard.push, "jobs-dlq", [NewEntry("2")])
    assert purge(space) == 1
    assert space.data("jobs-dlq") == ["2"]


def test_what_was_purged_is_nobodys_message_any_more(space: Space) -> None:
    jobs, graves = Jobs(space), Jobs(space, queue="jobs-dlq")
    jobs.bury(*"12")
    [held] = graves.pull(1)
    purge(space)
    assert graves.ack(held) == ["finished"]
    assert (graves.states, replay(space)) == ({}, [])


def test_the_expired_is_not_found_before_any_sweep(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    [named] = jobs.dlq.ids
    space.clock.advance(7 * DAY)
    assert outcomes(jobs.dlq.replay(named)) == {"unknown"}
    assert (preview(space).count, replay(space), purge(space)) == (0, [], 0)
    assert jobs.given() == []


def test_a_preview_changes_nothing_and_shows_the_first_few(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury(*"12345")
    jobs.dlq.replay(jobs.dlq.ids[0])
    looked = preview(space, show=2)
    assert (looked.count, [entry.data for entry, _ in looked.shown]) == (4, ["2", "3"])
    assert preview(space, show=2) == looked
    assert jobs.given() == ["1"]


def test_a_turn_looks_at_a_bounded_number(space: Space) -> None:
    """None of them is wanted, so there is nothing else to end it."""
    jobs = Jobs(space)
    for _ in range(0, LOOKED_AT + 500, 500):
        jobs.bury(*(["1"] * 500))
    nobody = LetterFilter(key="nobody")
    for part in (
        preview(space, nobody),
        space.call(SpaceShard.replay_some, "jobs-dlq", ReplayAsk(nobody)),
        space.call(SpaceShard.purge_letters, "jobs-dlq", nobody),
    ):
        assert part.resume is not None
    assert [len(part.results) for part in turns(space, ReplayAsk(nobody))] == [0, 0]
