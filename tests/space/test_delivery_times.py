"""When messages come: to the millisecond, whoever looks or not, over restarts, and when the clock is set anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edgequeues.core.backoff import Backoff
from edgequeues.models import ConsumerConfig, Message, QueueConfig
from edgequeues.space.dedup import WINDOW_MS
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .world import Space, SpaceFile

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
STATES = "SELECT e.data, d.state FROM deliveries AS d JOIN queue_entries AS e ON e.id = d.entry_id"


def comes_at(jobs: Jobs, ms: int) -> Message:
    """The only message, which can be pulled from that ms on and not a ms sooner."""
    jobs.at(ms - 1)
    assert jobs.pull() == []
    jobs.at(ms)
    return jobs.one()


def untouched(space: Space) -> dict[str, str]:
    """The state of each message by its data, without a turn that would bring it up to date."""
    return {str(data): str(state) for data, state in space.db.execute(STATES).fetchall()}


# -- back-off -----------------------------------------------------------------------------------------------


def test_waits_double_from_the_first_failure_on_up_to_their_maximum(space: Space) -> None:
    """1, 2, 4, 8 s: after failure n it is 2^(n-1)."""
    jobs = Jobs(space, ConsumerConfig(attempts_max=None, backoff=Backoff(max_ms=60 * SECOND)))
    jobs.push("1")
    now, message = 0, jobs.one()
    for wait_s in (1, 2, 4, 8, 16, 32, 60, 60, 60):
        jobs.fail(message)
        now += wait_s * SECOND
        message = comes_at(jobs, now)
    assert message.attempts == 10


def test_listed_waits_are_taken_in_turn_and_the_last_one_for_ever(space: Space) -> None:
    waits_s = (5, 10, 20, 40, 80, 160, 300)
    listed = Backoff(list_ms=tuple(wait * SECOND for wait in waits_s))
    jobs = Jobs(space, ConsumerConfig(attempts_max=None, backoff=listed))
    jobs.push("1")
    now, message = 0, jobs.one()
    for wait_s in (*waits_s, 300, 300):
        jobs.fail(message)
        now += wait_s * SECOND
        message = comes_at(jobs, now)


def test_chance_only_shortens_a_wait_and_by_its_share_at_most(space: Space) -> None:
    rules = ConsumerConfig(attempts_max=None, backoff=Backoff(initial_ms=1_000, max_ms=1_000, jitter=0.2))
    jobs = Jobs(space, rules)
    jobs.push("1")
    waits = set()
    for _ in range(50):
        jobs.fail(jobs.one())
        due = space.db.execute("SELECT due_ts FROM deliveries").get
        waits.add(due - space.clock.now_ms())
        space.clock.advance(SECOND)
    assert len(waits) > 20
    assert min(waits) >= 800
    assert max(waits) <= 1_000


@pytest.mark.parametrize("delay_ms", [0, 1, 7 * SECOND, 365 * DAY])
def test_a_stated_delay_goes_before_the_back_off(space: Space, delay_ms: int) -> None:
    """Zero is a delay, too: at once."""
    jobs = Jobs(space)
    jobs.push("1")
    jobs.fail(jobs.one(), delay_ms=delay_ms)
    if delay_ms == 0:
        assert jobs.one().attempts == 2
    else:
        assert comes_at(jobs, delay_ms).attempts == 2


# -- delays and leases --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "comes_ms"),
    [({}, 10 * SECOND), ({"delay_ms": 0}, 0), ({"delay_ms": 3_000}, 3_000), ({"due": 1}, 0)],
    ids=["as the queue has it", "zero", "a delay", "long ago"],
)
def test_what_a_push_says_goes_before_the_delay_of_its_queue(
    space: Space, said: dict[str, int], comes_ms: int
) -> None:
    """Zero is not the same as nothing."""
    jobs = Jobs(space)
    space.call(SpaceShard.configure, "jobs", QueueConfig(kind="work", delay_ms=10 * SECOND))
    jobs.push("1", **said)
    message = jobs.one() if comes_ms == 0 else comes_at(jobs, comes_ms)
    assert message.attempts == 1


def test_a_message_is_due_at_the_ms_it_was_pushed_for(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1", due=jobs.began_ms + 90 * SECOND)
    assert comes_at(jobs, 90 * SECOND).attempts == 1


def test_a_lease_takes_thirty_seconds_where_nobody_says_else(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1")
    assert jobs.one().until == jobs.began_ms + 30 * SECOND
    assert comes_at(jobs, 30 * SECOND).attempts == 2


@pytest.mark.parametrize("lease_ms", [1, 12 * HOUR])
def test_a_lease_ends_at_its_ms_and_not_sooner(space: Space, lease_ms: int) -> None:
    jobs = Jobs(space, ConsumerConfig(lease_ms=5 * SECOND))
    jobs.push("1")
    [message] = jobs.pull(lease_ms=lease_ms)
    assert message.until == jobs.began_ms + lease_ms
    assert comes_at(jobs, lease_ms).until == jobs.began_ms + lease_ms + 5 * SECOND


@pytest.mark.parametrize("lease_ms", [1, 40 * SECOND])
def test_an_extended_lease_ends_so_long_after_it_was_extended(space: Space, lease_ms: int) -> None:
    """That may be sooner than it would have been."""
    jobs = Jobs(space)
    jobs.push("1")
    message = jobs.one()
    jobs.at(20 * SECOND)
    assert space.call(SpaceShard.extend, "jobs", [message.lease], lease_ms) == ["done"]
    assert comes_at(jobs, 20 * SECOND + lease_ms).attempts == 2


# -- when nobody looks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True])
def test_what_comes_due_is_seen_to_though_nobody_polls(space_file: SpaceFile, *, restart: bool) -> None:
    """The alarm is set for the ms at which something is next to do, and does it."""
    jobs = Jobs(space_file, ConsumerConfig(lease_ms=9 * SECOND, attempts_max=1))
    jobs.push("delayed", delay_ms=3 * SECOND)
    jobs.push("leased")
    assert jobs.given() == ["leased"]
    for ms, states in (
        (3 * SECOND, {"delayed": "ready", "leased": "leased"}),
        (9 * SECOND, {"delayed": "ready"}),
    ):
        if restart:
            space_file.reopen()
        assert space_file.shard.get_alarm() == jobs.began_ms + ms
        jobs.at(ms - 1)
        assert not space_file.alarm_due()
        jobs.at(ms)
        space_file.run_alarm()
        in_jobs = {data: state for data, state in untouched(space_file).items() if data in states}
        assert in_jobs == states
    [(entry, letter)] = jobs.dlq.letters()
    assert (entry.data, letter.failed_at) == ("leased", jobs.began_ms + 9 * SECOND)


def test_the_alarm_is_told_of_a_lapse_once_and_nobody_is_given_it_twice(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(lease_ms=SECOND))
    [name] = jobs.push("1")
    jobs.one()
    jobs.at(SECOND)
    jobs.ring()
    jobs.ring()
    assert (jobs.info.total_lapsed, jobs.states) == (1, {"ready": 1})
    [ended] = jobs.explain(name).history
    assert (ended.ending, ended.began, ended.ended) == ("lapsed", jobs.began_ms, jobs.began_ms + SECOND)
    assert (len(jobs.pull(10)), jobs.pull(10)) == (1, [])


# -- after a lapse ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noticed", ["by a pull", "by the alarm", "late", "after a restart"])
def test_a_lapsed_message_waits_its_delay_from_the_end_of_its_lease(
    space_file: SpaceFile, noticed: str
) -> None:
    jobs = Jobs(space_file, ConsumerConfig(lease_ms=10 * SECOND, lapse_delay_ms=20 * SECOND))
    jobs.push("1")
    jobs.one()
    jobs.at(15 * SECOND if noticed == "late" else 10 * SECOND)
    if noticed == "after a restart":
        space_file.reopen()
    if noticed == "by a pull":
        assert jobs.pull() == []
    if noticed in ("by the alarm", "late"):
        jobs.ring()
        assert untouched(space_file) == {"1": "backoff"}
    assert comes_at(jobs, 30 * SECOND).attempts == 2


def test_a_lapse_noticed_when_its_delay_is_over_too_waits_no_more(space_file: SpaceFile) -> None:
    jobs = Jobs(space_file, ConsumerConfig(lease_ms=10 * SECOND, lapse_delay_ms=20 * SECOND))
    jobs.push("1")
    jobs.one()
    space_file.reopen()
    jobs.at(HOUR)
    assert jobs.one().attempts == 2


# -- how long things are remembered -------------------------------------------------------------------------


def test_a_dead_letter_is_kept_for_seven_days_from_when_it_failed(space: Space) -> None:
    jobs = Jobs(space)
    jobs.push("1")
    message = jobs.one()
    jobs.at(20 * SECOND)
    jobs.fail(message, permanent=True)
    for ms, left in ((7 * DAY + 20 * SECOND - 1, ["1"]), (7 * DAY + 20 * SECOND, [])):
        jobs.at(ms)
        jobs.ring()
        assert jobs.dlq.data == left
        assert space.count("jobs-dlq") == len(left)
    space.sweep()
    assert space.db.execute("SELECT count(*) FROM dead_letters").get == 0


@pytest.mark.parametrize("restart", [False, True])
def test_an_idempotency_key_counts_for_a_day_and_not_a_ms_longer(
    space_file: SpaceFile, *, restart: bool
) -> None:
    """However soon its message is done. A repeat does not make the day longer."""
    jobs = Jobs(space_file)
    first = jobs.push("1", idempotency_key="once")
    jobs.ack(jobs.one())
    for ms in (HOUR, WINDOW_MS - 1):
        jobs.at(ms)
        if restart:
            space_file.reopen()
        jobs.ring()
        assert jobs.push("1", idempotency_key="once") == first
        assert jobs.pull() == []
    assert WINDOW_MS == 24 * HOUR
    jobs.at(WINDOW_MS)
    assert jobs.push("1", idempotency_key="once") != first
    assert jobs.given() == ["1"]


# -- when the clock is set anew -----------------------------------------------------------------------------


class Wall:
    """Time as it really passes, while the clock may be set forward and back. Every ten seconds somebody pulls."""

    def __init__(self, space: SpaceFile, *, restart: bool) -> None:
        self.space = space
        self.restart = restart
        self.jobs = Jobs(space, ConsumerConfig(attempts_max=None, lease_ms=MINUTE))
        self.passed_ms = 0
        self.given: dict[str, list[int]] = {}  # when each message was given, by its data
        self.held: list[Message] = []

    def set_by(self, ms: int) -> None:
        if self.restart:
            self.space.close()
        self.space.clock.advance(ms)
        if self.restart:
            self.space.open()

    def let_pass(self, until_ms: int, *, until: Callable[[], bool] = lambda: False) -> None:
        while self.passed_ms < until_ms and not until():
            self.passed_ms += 10 * SECOND
            self.space.clock.advance(10 * SECOND)
            self.jobs.ring()
            self.pull()

    def pull(self) -> None:
        for message in self.jobs.pull(100):
            self.given.setdefault(message.entry.data, []).append(self.passed_ms)
            self.held.append(message)


STEPS = {
    "forward": (HOUR,),
    "back": (-HOUR,),
    "there and back": (HOUR, -HOUR),
    "back and forth": (-HOUR, HOUR),
}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("busy", [False, True])
def test_nothing_is_lost_or_later_than_twice_its_time_when_the_clock_is_set_by_an_hour(
    space_file: SpaceFile, *, restart: bool, steps: str, busy: bool
) -> None:
    """A delayed, a failed and a leased message, due after a minute. busy: others are pushed at every step.

    A step forward is taken for time that passed; it may make a message early.
    """
    wall = Wall(space_file, restart=restart)
    jobs = wall.jobs
    jobs.push("leased", "failed")
    leased, failed = jobs.pull(2)
    jobs.fail(failed, delay_ms=MINUTE)
    jobs.push("delayed", delay_ms=MINUTE)
    wanted = {"leased", "failed", "delayed"}
    for number, step_ms in enumerate(STEPS[steps]):
        wall.let_pass(wall.passed_ms + 10 * SECOND)
        wall.set_by(step_ms)
        if busy:
            jobs.push(f"pushed {number}", delay_ms=MINUTE)
            wanted.add(f"pushed {number}")
    wall.let_pass(2 * HOUR + 5 * MINUTE, until=lambda: wanted <= wall.given.keys())
    assert wall.given.keys() == wanted
    for data, times in wall.given.items():
        assert times[0] <= 2 * MINUTE + 30 * SECOND, data
        if steps == "back":
            assert times[0] >= MINUTE, f"{data} came before its time had passed"
    newest = {message.entry.data: message for message in wall.held}
    assert jobs.ack(leased) == ["stale"]
    assert jobs.ack(*newest.values()) == ["done"] * len(newest)
    assert (jobs.states, space_file.count("jobs")) == ({}, 0)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("busy", [False, True])
def test_a_leased_message_is_nobody_elses_when_the_clock_goes_back(
    space_file: SpaceFile, *, restart: bool, busy: bool
) -> None:
    """Not within its minute, however often the clock is set back; and it comes again in the end."""
    wall = Wall(space_file, restart=restart)
    wall.jobs.push("1")
    wall.pull()
    for _ in range(5):
        wall.set_by(-HOUR)
        if busy:
            wall.jobs.push("other", delay_ms=DAY)
        wall.let_pass(wall.passed_ms + 10 * SECOND)
    assert wall.given == {"1": [0]}
    assert wall.jobs.ack(wall.held[0]) == ["done"]
    wall.jobs.push("2")
    wall.pull()
    pulled_ms = wall.passed_ms
    wall.let_pass(7 * HOUR, until=lambda: len(wall.given["2"]) > 1)
    assert wall.given["2"][1] - pulled_ms >= MINUTE


def test_a_key_still_counts_when_the_clock_goes_back(space_file: SpaceFile) -> None:
    jobs = Jobs(space_file)
    first = jobs.push("1", idempotency_key="once")
    space_file.clock.advance(-HOUR)
    space_file.reopen()
    assert jobs.push("1", idempotency_key="once") == first
    assert len(jobs.pull(10)) == 1
