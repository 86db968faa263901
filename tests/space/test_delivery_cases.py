"""Faults others reported of queues that are pulled and of ordered work, each tried on the space."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from edgequeues.core.backoff import Backoff, delay_ms
from edgequeues.models import ConsumerConfig, Deleted, Message
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .world import Space, SpaceFile

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
EXHAUST = "UPDATE deliveries SET attempts = ?"

# -- pulling ------------------------------------------------------------------------------------------------


def test_pl_s03_a_batch_holds_no_more_than_asked_and_one_failure_is_its_own(space: Space) -> None:
    jobs = Jobs(space)
    ids = jobs.push(*(str(n) for n in range(130)))
    batch = jobs.pull(10)
    assert [one.entry.id for one in batch] == ids[:10]
    standing = space.call(SpaceShard.peek, "jobs", None, ("ready",), 0, 1_000).found
    assert [(one.entry.id, one.attempts) for one in standing] == [(one, 0) for one in ids[10:]]
    failed = batch.pop(7)
    assert jobs.fail(failed) == ["done"]
    assert [jobs.ack(one) for one in batch] == [["done"]] * 9
    assert jobs.states == {"ready": 120, "backoff": 1}
    assert len(jobs.pull()) == 1


def test_pl_s04_a_long_retry_outlives_every_restart_and_ends_after_its_attempts(
    space_file: SpaceFile,
) -> None:
    """Nobody holds a timer: a minute after each retry the process dies, and comes back."""
    jobs = Jobs(space_file, ConsumerConfig(attempts_max=4))
    jobs.push("1")
    for attempt in range(1, 5):
        due = (attempt - 1) * 120 * SECOND
        space_file.reopen()
        jobs.at(due - 1)
        jobs.ring()
        assert attempt == 1 or jobs.pull() == []
        jobs.at(due)
        jobs.ring()
        message = jobs.one()
        assert message.attempts == attempt
        jobs.fail(message, delay_ms=120 * SECOND)
        jobs.at(due + 60 * SECOND)
        space_file.reopen()
    jobs.at(HOUR)
    assert jobs.pull() == []
    [(entry, letter)] = jobs.dlq.letters()
    assert (entry.data, letter.attempts) == ("1", 4)


@pytest.mark.parametrize("hidden", ["pushed", "retried", "leased"])
def test_pl_s05_a_delay_goes_on_over_a_restart_and_does_not_start_anew(
    space_file: SpaceFile, hidden: str
) -> None:
    """Hidden for 100 s; the space is closed at 10 s and opened at 50 s."""
    jobs = Jobs(space_file)
    jobs.push("1", delay_ms=100 * SECOND if hidden == "pushed" else 0)
    if hidden != "pushed":
        [message] = jobs.pull(lease_ms=100 * SECOND)
    if hidden == "retried":
        jobs.fail(message, delay_ms=100 * SECOND)
    jobs.at(10 * SECOND)
    space_file.close()
    jobs.at(50 * SECOND)
    space_file.open()
    for ms in (60 * SECOND, 100 * SECOND - 1):
        jobs.at(ms)
        assert jobs.pull() == []
    jobs.at(100 * SECOND)
    assert jobs.given() == ["1"]


def test_pl_s07_however_an_attempt_fails_it_counts_and_the_schedule_goes_by_attempts(space: Space) -> None:
    """Told of with and without a reason, or not at all: a lapse is no shorter way round the back-off."""
    jobs = Jobs(space, ConsumerConfig(lease_ms=500, lapse_delay_ms=700, attempts_max=5))
    jobs.push("1")
    now = 0
    for attempt, (how, wait) in enumerate([("raised", 1_000), ("lapsed", 700), ("refused", 4_000)], 1):
        message = jobs.one()
        assert message.attempts == attempt
        if how == "lapsed":
            now += 500
        else:
            jobs.fail(message, error="raised" if how == "raised" else None)
        now += wait
        jobs.at(now - 1)
        assert (how, jobs.pull()) == (how, [])
        jobs.at(now)
    assert jobs.one().attempts == 4


def test_pl_s07_by_default_a_lapsed_message_is_there_when_its_lease_ends(space: Space) -> None:
    """Thirty seconds of lease are longer than the first back-off, which has passed by then."""
    jobs = Jobs(space)
    jobs.push("1")
    jobs.one()
    jobs.at(30 * SECOND - 1)
    assert jobs.pull() == []
    jobs.at(30 * SECOND)
    jobs.fail(jobs.one())
    jobs.at(32 * SECOND - 1)
    assert jobs.pull() == []
    jobs.at(32 * SECOND)
    assert jobs.one().attempts == 3


def test_pl_s08_a_purge_takes_what_was_there_and_nothing_that_came_after(space: Space) -> None:
    """Pushes between its turns are confirmed, so they stay, all of them."""
    jobs = Jobs(space)
    for _ in range(5):
        jobs.push(*["old"] * 1_000)
    confirmed: list[str] = []
    turns, part = 0, space.call(SpaceShard.delete_range, "jobs")
    deleted = part.deleted
    while part.resume is not None:
        confirmed += jobs.push(*["new"] * 100)
        part = purge_on(space, part)
        deleted, turns = deleted + part.deleted, turns + 1
    assert (deleted, turns, len(confirmed)) == (5_000, 4, 400)
    assert space.call(SpaceShard.stats, "jobs").entries == 400
    got: list[str] = []
    while batch := jobs.pull(100):
        got += [one.entry.id for one in batch]
    assert got == confirmed


def purge_on(space: Space, part: Deleted) -> Deleted:
    return space.call(SpaceShard.delete_range, "jobs", part.resume, None, part.through)


def test_pl_s09_only_what_could_be_pulled_now_has_an_age(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("parked", delay_ms=10 * HOUR)
    jobs.push("failed")
    assert jobs.oldest_ready() == space.clock.now_ms()
    jobs.fail(jobs.one(), delay_ms=HOUR)
    assert jobs.oldest_ready() is None
    jobs.at(60 * SECOND)
    jobs.push("plain")
    jobs.at(63 * SECOND)
    assert jobs.oldest_ready() == space.clock.now_ms() - 3 * SECOND
    assert jobs.states == {"scheduled": 1, "backoff": 1, "ready": 1}
    jobs.one()
    assert jobs.oldest_ready() is None
    assert jobs.states == {"scheduled": 1, "backoff": 1, "leased": 1}
    jobs.at(HOUR + 2 * SECOND)
    assert jobs.info.oldest_ready_age_ms == 2 * SECOND, (
        "ready since its retry was due, not since it was pushed"
    )
    jobs.ack(*jobs.pull(2))
    jobs.at(10 * HOUR)
    assert jobs.info.oldest_ready_age_ms == 0
    space.clock.advance(-5 * SECOND)
    assert jobs.info.oldest_ready_age_ms == 0


def test_pl_s10_an_attempt_that_kills_its_worker_and_the_server_counts(space_file: SpaceFile) -> None:
    """It never fails tidily; still it is given up after its attempts, and not handed out once more."""
    jobs = Jobs(space_file, ConsumerConfig(attempts_max=2))
    jobs.push("1")
    for death in (1, 2):
        assert jobs.one().attempts == death
        space_file.reopen()
        jobs.at(death * 30 * SECOND)
        jobs.ring()
    assert jobs.pull() == []
    [(_, letter)] = jobs.dlq.letters()
    assert (letter.reason, letter.attempts) == ("exhausted", 2)
    assert letter.last_error == "the lease lapsed without an answer"


@pytest.mark.parametrize("attempts_max", [1, 2, 5])
def test_pl_s11_a_message_is_delivered_as_often_as_its_attempts_and_no_less(
    space: Space, attempts_max: int
) -> None:
    jobs = Jobs(space, ConsumerConfig(attempts_max=attempts_max, backoff=Backoff(initial_ms=0)))
    jobs.push("1")
    seen = []
    while messages := jobs.pull():
        assert jobs.dlq.letters() == []
        seen.append(messages[0].attempts)
        jobs.fail(*messages)
    assert seen == list(range(1, attempts_max + 1))
    [(_, letter)] = jobs.dlq.letters()
    assert letter.attempts == attempts_max


def late(space: Space) -> tuple[Jobs, Message]:
    """A message whose holder worked for three seconds under a lease of one."""
    jobs = Jobs(space, ConsumerConfig(lease_ms=SECOND, attempts_max=2))
    jobs.push("1", "2")
    message = jobs.pull()[0]
    jobs.at(3 * SECOND)
    return jobs, message


def test_pl_s12_a_late_ack_counts_while_nobody_else_was_given_the_message(space: Space) -> None:
    jobs, message = late(space)
    assert jobs.ack(message) == ["done"]
    assert jobs.given() == ["2"]


def test_pl_s12_a_late_ack_is_stale_once_another_has_the_message(space: Space) -> None:
    jobs, message = late(space)
    again = jobs.pull()[0]
    assert (again.entry.id, jobs.ack(message)) == (message.entry.id, ["stale"])
    assert jobs.ack(again) == ["done"]
    assert jobs.ack(message) == ["finished"]
    assert jobs.given() == ["2"]


def test_pl_s12_where_even_a_stale_ack_counts_the_other_holders_is_harmless(space: Space) -> None:
    """As Cloudflare has it."""
    jobs, message = late(space)
    again = jobs.pull()[0]
    assert jobs.ack(message, even_stale=True) == ["done"]
    assert jobs.ack(again) == ["finished"]
    assert jobs.fail(again) == ["finished"]
    assert jobs.given() == ["2"]


def test_pl_s12_an_ack_of_a_dead_letter_changes_nothing(space: Space) -> None:
    jobs, message = late(space)
    jobs.pull()
    jobs.at(4 * SECOND)
    jobs.ring()
    assert jobs.ack(message, even_stale=True) == ["finished"]
    assert jobs.dlq.data == ["1"]


# -- order --------------------------------------------------------------------------------------------------

PER_KEY = ConsumerConfig(ordering="per_key", lease_ms=MINUTE)


def test_ob_s01_what_arrives_does_not_open_a_line_that_is_busy(space: Space) -> None:
    jobs = Jobs(space, PER_KEY)
    jobs.push("k/1", key="k")
    first = jobs.one()
    jobs.push("k/2", key="k")
    jobs.push("j/1", key="j")
    assert (jobs.given(), jobs.given()) == (["j/1"], [])
    jobs.fail(first, delay_ms=SECOND)
    assert jobs.given() == []
    jobs.at(SECOND)
    assert jobs.given() == ["k/1"]


@pytest.mark.parametrize("end", ["ack", "dead"])
def test_ob_s01_a_line_opens_when_its_first_is_done_or_given_up(space: Space, end: str) -> None:
    jobs = Jobs(space, PER_KEY)
    jobs.push("k/1", "k/2", key="k")
    first = jobs.one()
    if end == "ack":
        jobs.ack(first)
    else:
        jobs.fail(first, permanent=True)
    assert jobs.given() == ["k/2"]


def test_ob_s02_no_two_pullers_hold_one_key_and_each_key_keeps_its_order(space: Space) -> None:
    """Eight pullers, in random turns, a tenth of their work fails; 5 keys of 20 messages."""
    chance = random.Random(2)
    jobs = Jobs(space, ConsumerConfig(ordering="per_key", attempts_max=None, backoff=Backoff(initial_ms=200)))
    for n in range(20):
        for key in "abcde":
            jobs.push(f"{n}", key=key)
    held: dict[int, list[Message]] = {puller: [] for puller in range(8)}
    handled: dict[str | None, list[int]] = {key: [] for key in "abcde"}
    while any(len(numbers) < 20 for numbers in handled.values()):
        space.clock.advance(chance.randrange(50))
        mine = held[chance.randrange(8)]
        if not mine:
            mine += jobs.pull(3)
            keys = [one.entry.key for others in held.values() for one in others]
            assert len(keys) == len(set(keys)), "a key is worked on twice at once"
            continue
        one = mine.pop()
        if chance.random() < 0.1:
            assert jobs.fail(one) == ["done"]
        else:
            assert jobs.ack(one) == ["done"]
            handled[one.entry.key].append(int(one.entry.data))
    assert handled == {key: list(range(20)) for key in "abcde"}


def test_ob_s03_a_key_stays_shut_through_the_back_off_and_others_go_on(space: Space) -> None:
    rules = ConsumerConfig(ordering="per_key", attempts_max=3, backoff=Backoff(list_ms=(SECOND, 2 * SECOND)))
    jobs = Jobs(space, rules)
    jobs.push("k/1", "k/2", "k/3", key="k")
    jobs.push("j/1", key="j")
    seen: list[tuple[str, int]] = []
    for ms in range(0, 4_000, 250):
        jobs.at(ms)
        for message in jobs.pull(10):
            seen.append((message.entry.data, ms))
            if message.entry.data == "k/1":
                [line] = space.call(SpaceShard.lines, "jobs", None, None, 10).lines
                assert (line.key, line.state, line.waiting) == ("k", "leased", 2)
                jobs.fail(message)
            else:
                jobs.ack(message)
    assert seen == [
        ("k/1", 0),
        ("j/1", 0),
        ("k/1", 1_000),
        ("k/1", 3_000),
        ("k/2", 3_250),
        ("k/3", 3_500),
    ]
    [(dead, _)] = jobs.dlq.letters()
    assert (dead.data, dead.key) == ("k/1", "k")


@pytest.mark.parametrize("dead_letters", [None, ""])
def test_ob_s04_a_message_that_always_fails_holds_a_fifo_up_for_its_schedule_only(
    space: Space, dead_letters: str | None
) -> None:
    """1 + 2 + 4 + 8 s; meanwhile it is seen who blocks whom until when. Without dead letters it is counted."""
    jobs = Jobs(space, ConsumerConfig(ordering="fifo", dead_letters=dead_letters))
    [poison, *_] = jobs.push(*(str(n) for n in range(101)))
    now = 0
    for attempt in range(1, 6):
        jobs.at(now)
        message = jobs.one()
        assert (message.entry.id, message.attempts) == (poison, attempt)
        jobs.fail(message, error="no")
        if attempt < 5:
            now += 2 ** (attempt - 1) * SECOND
            [line] = space.call(SpaceShard.lines, "jobs", None, None, 10).lines
            assert (line.position, line.state, line.attempts) == (message.entry.position, "backoff", attempt)
            assert (line.due, line.waiting) == (jobs.began_ms + now, 100)
            assert jobs.pull() == []
    assert now == 15 * SECOND
    flowed = []
    while messages := jobs.pull():
        flowed.append(messages[0].entry.data)
        jobs.ack(*messages)
    assert flowed == [str(n) for n in range(1, 101)]
    assert jobs.dlq.data == ([] if dead_letters == "" else ["0"])
    assert jobs.info.total_exhausted == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_ob_s05_what_is_replayed_of_one_key_runs_one_after_the_other(space: Space, at_once: bool) -> None:
    """Together in their old order; one by one as they were asked for. Behind what was pushed before."""
    jobs = Jobs(space, PER_KEY)
    jobs.bury("k/1", "k/2", "k/3", "k/4", "k/5", key="k")
    jobs.push("k/6", key="k")
    by_number = jobs.dlq.ids
    order = [3, 1, 5, 2, 4]
    wanted = [by_number[n - 1] for n in order]
    results = jobs.dlq.replay(*wanted) if at_once else [jobs.dlq.replay(one)[0] for one in wanted]
    assert [one.outcome for one in results] == ["replayed"] * 5
    assert [one.id for one in results] == (by_number if at_once else wanted)
    ran: list[tuple[str, str]] = []
    while messages := jobs.pull(10):
        assert len(messages) == 1
        ran.append((messages[0].entry.id, messages[0].entry.data))
        jobs.ack(*messages)
    assert [data for _, data in ran] == ["k/6", *(f"k/{n}" for n in ([1, 2, 3, 4, 5] if at_once else order))]
    assert [object_id for object_id, _ in ran[1:]] == [one.message for one in results]


@pytest.mark.parametrize("attempts", [63, 64, 1_100, 10**6])
@pytest.mark.parametrize("cap_ms", [MINUTE, 300 * SECOND])
def test_ob_s06_a_high_count_of_attempts_waits_for_the_cap(space: Space, attempts: int, cap_ms: int) -> None:
    jobs = Jobs(space, ConsumerConfig(attempts_max=None, backoff=Backoff(max_ms=cap_ms)))
    jobs.push("1")
    space.db.execute(EXHAUST, (attempts,))
    message = jobs.one()
    assert (message.attempts, jobs.fail(message)) == (attempts + 1, ["done"])
    jobs.at(cap_ms - 1)
    assert jobs.pull() == []
    jobs.at(cap_ms)
    assert jobs.one().attempts == attempts + 2


def test_ob_s06_a_wait_is_a_whole_number_of_ms_that_never_falls() -> None:
    waits = [delay_ms(Backoff(), failures) for failures in (-1, 0, *range(1, 2_000), 10**6)]
    assert all(type(wait) is int for wait in waits)
    assert all(before <= after for before, after in pairwise(waits))
    assert (waits[0], waits[1], waits[2], waits[-1]) == (1_000, 1_000, 1_000, 60_000)
