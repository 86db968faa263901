"""Faults others reported of dead letters and of their replay, each tried on the space."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import apsw
import pytest
from msgspec import structs

from edgequeues.core.backoff import Backoff
from edgequeues.core.errors import InvalidRequest
from edgequeues.models import ConsumerConfig
from edgequeues.models_letters import LetterFilter
from edgequeues.space.dead_verbs import REPLAYED_MAX, ReplayAsk
from edgequeues.space.shard import SpaceShard

from .jobs import Dead, Jobs
from .world import Space, SpaceFile, turn

SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000
MANY = 730

# -- one place at a time ------------------------------------------------------------------------------------

FAULT = """
CREATE TEMP TRIGGER fault BEFORE INSERT ON queue_entries
WHEN (SELECT count(*) FROM queue_entries WHERE queue_id = new.queue_id) = {after}
BEGIN SELECT {what}; END
"""
OWED = """
SELECT name, data FROM deliveries JOIN queue_entries ON id = entry_id JOIN queues USING (queue_id)
"""


def owed(space: Space) -> Counter[tuple[str, str]]:
    """How often each message is still to be handled, by queue and data."""
    return Counter((str(name), str(data)) for name, data in space.db.execute(OWED).fetchall())


def numbered(queue: str, first: int, end: int) -> Counter[tuple[str, str]]:
    return Counter((queue, str(n)) for n in range(first, end))


MOVES = {"replay": ("jobs-dlq", "jobs"), "filter": ("jobs-dlq", "jobs"), "lapse": ("jobs", "jobs-dlq")}


def fill(space: Space, by: str) -> Jobs:
    """Many messages, which are dead letters already, or will be when their leases lapse."""
    jobs = Jobs(space, ConsumerConfig(attempts_max=1, lease_ms=SECOND))
    jobs.bury("first")  # makes the queue they go to
    space.call(SpaceShard.delete_ids, jobs.dlq.queue, jobs.dlq.ids)
    if by == "lapse":
        jobs.push(*(str(n) for n in range(MANY)))
        while jobs.pull(100):
            pass
        jobs.at(SECOND)
    else:
        jobs.bury(*(str(n) for n in range(MANY)))
    return jobs


def move(jobs: Jobs, by: str) -> None:
    if by == "lapse":
        jobs.ring()
    elif by == "replay":
        jobs.dlq.replay(*jobs.dlq.ids)
    else:
        ask = ReplayAsk(LetterFilter())
        part = jobs.space.call(SpaceShard.replay_some, jobs.dlq.queue, ask)
        while part.resume is not None:
            part = jobs.space.call(SpaceShard.replay_some, jobs.dlq.queue, ask, part.resume, part.through)


@pytest.mark.parametrize("by", MOVES)
@pytest.mark.parametrize("after", [0, 3, REPLAYED_MAX - 1, REPLAYED_MAX, MANY - 1])
def test_dl_s01_a_move_that_fails_half_way_leaves_each_message_in_one_place(
    space: Space, by: str, after: int
) -> None:
    """A turn moves all that is its share, or nothing."""
    jobs = fill(space, by)
    source, target = MOVES[by]
    space.db.execute(FAULT.format(after=after, what="RAISE(ABORT, 'no room')"))
    with pytest.raises(apsw.ConstraintError, match="no room"):
        move(jobs, by)
    moved = after // REPLAYED_MAX * REPLAYED_MAX if by == "filter" else 0
    assert owed(space) == numbered(target, 0, moved) + numbered(source, moved, MANY)
    space.db.execute("DROP TRIGGER fault")
    move(jobs, by)
    assert owed(space) == numbered(target, 0, MANY)


@pytest.mark.parametrize("by", ["replay", "lapse"])
@pytest.mark.parametrize("after", [0, 3, MANY - 1])
def test_dl_s01_a_process_killed_half_way_has_moved_nothing(tmp_path: Path, by: str, after: int) -> None:
    """What lies in the files at that moment is what is opened again."""
    (tmp_path / "killed").mkdir()
    space = SpaceFile(tmp_path / "space.db")
    space.db.pragma("journal_mode", "wal")
    space.db.pragma("cache_size", 1)  # so that much of what is not committed lies in the files
    jobs = fill(space, by)

    def killed(*_: object) -> None:
        for path in tmp_path.glob("space.db*"):
            shutil.copy(path, tmp_path / "killed" / path.name)

    space.db.create_scalar_function("killed", killed, 0)
    space.db.execute(FAULT.format(after=after, what="killed()"))
    move(jobs, by)
    space.close()
    again = SpaceFile(tmp_path / "killed" / "space.db", space.clock)
    source, target = MOVES[by]
    assert owed(again) == numbered(source, 0, MANY)
    jobs.space = jobs.dlq.space = again
    move(jobs, by)
    assert owed(again) == numbered(target, 0, MANY)
    again.close()


# -- how long they are kept ---------------------------------------------------------------------------------


def test_dl_s02_the_age_of_a_dead_letter_counts_from_when_it_failed(space: Space) -> None:
    """The message is almost as old as its queue lets it be, and its dead letters' queue keeps things for less."""
    space.configure("graves", kind="work", on_ack="delete", max_age_ms=4 * DAY)
    jobs = Jobs(space, ConsumerConfig(dead_letters="graves"))
    space.call(SpaceShard.reconfigure, "jobs", {"max_age_ms": 7 * DAY})
    graves = Dead(space, "graves")
    jobs.push("1")
    jobs.at(6 * DAY)
    first = jobs.one()
    jobs.fail(first, delay_ms=23 * HOUR)
    failed_ms = 6 * DAY + 23 * HOUR
    jobs.at(failed_ms)
    jobs.fail(jobs.one(), permanent=True)
    for later_ms in (HOUR, 3 * DAY, 4 * DAY - 1):
        jobs.at(failed_ms + later_ms)
        jobs.ring()
        [(_, letter)] = graves.letters()
        assert letter.failed_at == jobs.began_ms + failed_ms
        assert letter.first_seen_at == jobs.began_ms + 6 * DAY
    jobs.at(failed_ms + 4 * DAY)
    assert graves.letters() == []
    assert space.count("graves") == 0


# -- dead letters of dead letters ---------------------------------------------------------------------------


def chained(space: Space) -> tuple[Jobs, Jobs]:
    """jobs -> first -> second, each after two attempts."""
    rules = ConsumerConfig(attempts_max=2, lease_ms=SECOND)
    for queue in ("second", "first"):
        space.configure(queue, kind="work", on_ack="delete")
    first = Jobs(space, structs.replace(rules, dead_letters="second"), "first")
    return Jobs(space, structs.replace(rules, dead_letters="first")), first


def test_dl_s03_a_dead_letter_has_all_its_attempts_in_the_queue_it_comes_to(space: Space) -> None:
    jobs, first = chained(space)
    jobs.push("1")
    for ms in (0, SECOND):
        jobs.at(ms)
        assert jobs.one().attempts == ms // SECOND + 1
    for ms in (2 * SECOND, 3 * SECOND):
        jobs.at(ms)
        assert first.one().attempts == ms // SECOND - 1
        assert Dead(space, "second").data == []
    [(_, letter)] = Dead(space, "first").letters()
    assert (letter.attempts, letter.original_queue) == (2, "jobs")
    jobs.at(4 * SECOND)
    assert first.pull() == []
    [(_, letter)] = Dead(space, "second").letters()
    assert (letter.attempts, letter.original_queue) == (2, "first")


@pytest.mark.parametrize("leads_to", ["jobs", "first"], ids=["round", "itself"])
def test_dl_s03_dead_letters_never_come_round_again(space: Space, leads_to: str) -> None:
    chained(space)
    with pytest.raises(InvalidRequest, match=f"dead_letters: {leads_to} leads back to first"):
        turn(space, SpaceShard.consume, "first", "default", ConsumerConfig(dead_letters=leads_to))
    with pytest.raises(InvalidRequest, match="dead_letters: there is no queue nowhere"):
        turn(space, SpaceShard.consume, "first", "default", ConsumerConfig(dead_letters="nowhere"))


def test_dl_s03_nor_by_way_of_a_queue_that_nobody_named(space: Space) -> None:
    """jobs -> jobs-dlq, which was made for it -> jobs."""
    jobs = Jobs(space)
    jobs.bury("1")
    with pytest.raises(InvalidRequest, match="leads back"):
        turn(space, SpaceShard.consume, "jobs-dlq", "default", ConsumerConfig(dead_letters="jobs"))


def test_dl_s03_nor_when_a_consumer_names_nobody_any_more(space: Space) -> None:
    """jobs -> elsewhere while jobs-dlq -> jobs is fine; jobs -> its own again would be a circle."""
    jobs = Jobs(space)
    jobs.bury("1")
    space.configure("elsewhere", kind="work")
    space.call(SpaceShard.consume, "jobs", "default", ConsumerConfig(dead_letters="elsewhere"))
    space.call(SpaceShard.consume, "jobs-dlq", "default", ConsumerConfig(dead_letters="jobs"))
    with pytest.raises(InvalidRequest, match="leads back"):
        turn(space, SpaceShard.consume, "jobs", "default", ConsumerConfig())


def test_dl_s03_nor_by_way_of_a_queues_second_consumer(space: Space) -> None:
    chained(space)
    space.call(SpaceShard.consume, "second", "other", ConsumerConfig(dead_letters=""))
    with pytest.raises(InvalidRequest, match="leads back"):
        turn(space, SpaceShard.consume, "second", "third", ConsumerConfig(dead_letters="jobs"))
    space.configure("side", kind="work")
    space.call(SpaceShard.consume, "first", "aside", ConsumerConfig(dead_letters="side"))
    with pytest.raises(InvalidRequest, match="leads back"):
        turn(space, SpaceShard.consume, "side", "default", ConsumerConfig(dead_letters="jobs"))


# -- replay -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attempts_max", [5, 3])
def test_dl_s04_a_replayed_message_starts_afresh_by_the_rules_of_now(space: Space, attempts_max: int) -> None:
    jobs = Jobs(space, ConsumerConfig(attempts_max=5, backoff=Backoff(initial_ms=SECOND)))
    jobs.push("1")
    for wait_ms in (0, SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND):
        space.clock.advance(wait_ms)
        jobs.fail(jobs.one(), error="no")
    space.call(SpaceShard.consume, "jobs", "default", ConsumerConfig(attempts_max=attempts_max))
    [done] = jobs.dlq.replay(*jobs.dlq.ids)
    for attempt, wait_ms in ((1, SECOND), (2, 2 * SECOND)):
        message = jobs.one()
        assert (message.entry.id, message.attempts) == (done.message, attempt)
        jobs.fail(message)
        space.clock.advance(wait_ms - 1)
        assert jobs.pull() == []
        space.clock.advance(1)
    assert jobs.ack(jobs.one()) == ["done"]
    [(_, letter)] = jobs.dlq.letters()
    assert (letter.attempts, letter.new_message_id) == (5, done.message)
    assert letter.replayed_at == space.clock.now_ms() - 3 * SECOND
    assert bytes(letter.errors).count(b'"message":"no"') == 5


def test_dl_s04_by_a_lower_limit_it_is_dead_sooner(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(attempts_max=5))
    jobs.bury("1")
    space.call(
        SpaceShard.consume, "jobs", "default", ConsumerConfig(attempts_max=3, backoff=Backoff(initial_ms=0))
    )
    jobs.dlq.replay(*jobs.dlq.ids)
    for _ in range(3):
        jobs.fail(jobs.one())
    assert [letter.attempts for _, letter in jobs.dlq.letters()] == [1, 3]


def test_dl_s06_a_dead_letter_makes_one_message_however_often_it_is_replayed(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    [dead] = jobs.dlq.ids
    [first] = jobs.dlq.replay(dead)
    [again] = jobs.dlq.replay(dead)
    assert (first.outcome, again.outcome, again.message) == ("replayed", "already", first.message)
    assert jobs.states == {"ready": 1}


def test_dl_s06_what_dies_again_is_one_more_letter_that_leads_back_to_the_first(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    [before] = jobs.dlq.ids
    jobs.dlq.replay(before)
    jobs.fail(jobs.one(), permanent=True)
    [(_, first), (second_entry, second)] = jobs.dlq.letters()
    assert (second.original_message_id, second.replayed_at) == (first.new_message_id, None)
    assert [one.entry.id for one in Jobs(space, queue="jobs-dlq").pull(10)] == [second_entry.id]


def test_dl_s06_a_deleted_letter_is_unknown_and_its_message_goes_on(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1", "2")
    replayed, deleted = jobs.dlq.ids
    jobs.dlq.replay(replayed)
    assert space.call(SpaceShard.delete_ids, "jobs-dlq", [replayed, deleted]) == 2
    assert [one.outcome for one in jobs.dlq.replay(replayed, deleted, "never")] == ["unknown"] * 3
    assert jobs.given() == ["1"]


def test_dl_s06_an_expired_letter_is_not_replayed(space: Space) -> None:
    """It is gone from the list, swept or not."""
    jobs = Jobs(space)
    jobs.bury("1")
    [dead] = jobs.dlq.ids
    jobs.at(7 * DAY)
    assert jobs.dlq.letters() == []
    assert [one.outcome for one in jobs.dlq.replay(dead)] == ["unknown"]
    assert jobs.pull() == []


def test_dl_s06_a_letter_replayed_while_it_is_handed_out_is_nobodys_any_more(space: Space) -> None:
    jobs, graves = Jobs(space), Jobs(space, queue="jobs-dlq")
    jobs.bury("1")
    held = graves.one()
    [done] = jobs.dlq.replay(held.entry.id)
    assert done.outcome == "replayed"
    assert (graves.ack(held), graves.fail(held)) == (["finished"], ["finished"])
    assert (graves.pull(), jobs.given()) == ([], ["1"])
