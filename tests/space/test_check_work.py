"""What `check` says of consumers, deliveries, dead letters and keys: of each damage its finding, and no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgequeues.core.backoff import Backoff
from edgequeues.models import ConsumerConfig, NewEntry, Ordering, Pull, QueueConfig, Retry
from edgequeues.space import check, check_work
from edgequeues.space.shard import SpaceShard
from edgequeues.space.work_verbs import REMOVED_ROWS

from .world import Space

JOBS, FEED, KEYED = (
    f"consumer {name}: "
    for name in ("default of queue jobs", "watch of queue feed", "default of queue keyed")
)
DAMAGE = [  # what was done, and what is said; {names} stand for positions and other numbers: see `numbers`
    (
        "UPDATE consumers SET queue_id = 'x' WHERE name = 'idle'",
        "consumer idle is of queue x, which is not there",
    ),
    *(
        (f"UPDATE consumers SET {column} = {column} + 1 WHERE consumer_id = {{jobs}}", JOBS + said)
        for column, said in (
            ("scheduled", "its row says 2 scheduled, there are 1"),
            ("waiting", "its row says 1 waiting, there are 0"),
            ("ready", "its row says 2 ready, there are 1"),
            ("leased", "its row says 2 leased, there are 1"),
            ("backoff_count", "its row says 2 backoff, there are 1"),
            ("bytes", "its row says 30 bytes, its deliveries come to 29"),
            ("total_expired", "5 deliveries were made, but 4 are unfinished and 2 have ended"),
            ("total_in", "6 deliveries were made, but 4 are unfinished and 1 have ended"),
        )
    ),
    (
        "UPDATE consumers SET filled = filled - 1 WHERE name = 'idle'",
        "consumer idle of queue feed: it was given entries up to {first}, the last one was at {second}",
    ),
    (
        "UPDATE consumers SET filled = filled + 1, filling = 1 WHERE name = 'idle'",
        "consumer idle of queue feed: it was given entries up to {beyond}, the last one was at {second}",
    ),
    (
        "DELETE FROM queue_entries WHERE id = {ready};"
        "UPDATE queues SET entries = entries - 1, bytes = bytes - 7 WHERE name = 'jobs'",
        JOBS + "it has a delivery of entry {ready}, which is not in the queue",
    ),
    (
        "INSERT INTO deliveries (consumer_id, entry_id, state, rank, turn, attempts, serial, open, size)"
        " VALUES (999, {ready}, 'ready', 2, 1, 0, 0, 0, 7)",
        "entry {ready} has a delivery to consumer 999, who is not there",
    ),
    (
        "UPDATE consumers SET filling = 1, filled = filled - 1 WHERE name = 'watch'",
        FEED + "it has a delivery of entry {second}, but was given entries up to {first}",
    ),
    (
        "UPDATE deliveries SET size = 8 WHERE entry_id = {ready};"
        "UPDATE consumers SET bytes = bytes + 1 WHERE consumer_id = {jobs}",
        JOBS + "the delivery of entry {ready} says 8 bytes, the entry 7",
    ),
    (
        "UPDATE deliveries SET rank = 0 WHERE entry_id = {ready}",
        JOBS + "the delivery of entry {ready} has rank 0, its priority is 7",
    ),
    # -- lines
    (
        "UPDATE deliveries SET line = 'x' WHERE entry_id = {alone}",
        KEYED + 'entry {alone} stands in line "x", with per_key it belongs in line "j"',
    ),
    (
        "UPDATE deliveries SET line = NULL WHERE entry_id = {alone}",
        KEYED + 'entry {alone} stands in no line, with per_key it belongs in line "j"',
    ),
    (
        "UPDATE deliveries SET line = '' WHERE entry_id = {free}",
        KEYED + 'entry {free} stands in line "", with per_key it belongs in none',
    ),
    (
        "UPDATE deliveries SET state = 'ready', turn = 1 WHERE entry_id = {behind};"
        "UPDATE consumers SET waiting = waiting - 1, ready = ready + 1 WHERE consumer_id = {keyed}",
        KEYED + 'line "k", from entry {head} on, has 2 messages that may be handed out, not one',
    ),
    (
        "UPDATE deliveries SET state = 'waiting' WHERE entry_id = {first};"
        "UPDATE consumers SET waiting = waiting + 1, ready = ready - 1 WHERE name = 'watch'",
        FEED + 'line "", from entry {first} on, has 0 messages that may be handed out, not one',
    ),
    (
        "UPDATE deliveries SET state = 'waiting' WHERE entry_id = {first};"
        "UPDATE deliveries SET state = 'ready', turn = 1 WHERE entry_id = {second}",
        FEED + 'it is the turn of entry {second} in line "", but entry {first} waits before it',
    ),
    (
        "UPDATE deliveries SET state = 'waiting' WHERE entry_id = {ready};"
        "UPDATE consumers SET waiting = 1, ready = 0 WHERE consumer_id = {jobs}",
        JOBS + "entry {ready} waits, but stands in no line",
    ),
    (
        "UPDATE deliveries SET turn = 2 WHERE entry_id = {first}",
        FEED + "entry {first} has turn 2, the last one given is 1",
    ),
    # -- leases
    (
        "UPDATE deliveries SET open = 0 WHERE entry_id = {leased}",
        JOBS + "entry {leased} is leased, but no lease of it is open",
    ),
    (
        "UPDATE deliveries SET serial = 1, attempts = 1 WHERE entry_id = {later};"
        "INSERT INTO attempts VALUES ({jobs}, {later}, 1, 1, 'retried', NULL, 1, 2, NULL)",
        JOBS + "entry {later} is scheduled, but was handed out already",
    ),
    (
        "UPDATE deliveries SET serial = 0, attempts = 0 WHERE entry_id = {failed};"
        "DELETE FROM attempts WHERE entry_id = {failed}",
        JOBS + "entry {failed} backs off, but was never handed out",
    ),
    (
        "UPDATE queue_entries SET due_ts = {due}1 WHERE id = {later}",
        JOBS + "entry {later} is scheduled for {due}, the entry says {due}1",
    ),
    (
        "UPDATE shard_alarm SET due_ms = {late}",
        JOBS + "entry {leased} is due at {lapse}, but the alarm is set for {late}",
    ),
    (
        "DELETE FROM attempts WHERE entry_id = {failed}",
        JOBS
        + "entry {failed} was handed out 1 times and is backoff, but the ends of 0 attempts are written down",
    ),
    (
        "INSERT INTO attempts VALUES ({jobs}, {leased}, 2, 1, 'retried', NULL, 1, 2, NULL)",
        JOBS
        + "entry {leased} was handed out 2 times and is leased, but the ends of 2 attempts are written down",
    ),
    (
        "UPDATE attempts SET serial = 9 WHERE entry_id = {failed}",
        JOBS + "entry {failed} was handed out 1 times, but an end of lease 9 is written down",
    ),
    (
        "UPDATE deliveries SET attempts = 2 WHERE entry_id = {leased}",
        JOBS + "entry {leased} was handed out 2 times and released 1, but 2 attempts are counted",
    ),
    (
        "INSERT INTO attempts VALUES ({jobs}, {first}, 1, 1, 'retried', NULL, 1, 2, NULL)",
        JOBS + "attempt 1 at entry {first} is remembered, but there is no such delivery",
    ),
    (
        "INSERT INTO attempts VALUES (999, {first}, 1, 1, 'retried', NULL, 1, 2, NULL)",
        "consumer 999: attempt 1 at entry {first} is remembered, but there is no such delivery",
    ),
    # -- what is kept and remembered
    (
        "DELETE FROM deliveries WHERE entry_id = {ready};"
        "UPDATE consumers SET ready = 0, bytes = bytes - 7, total_acked = 1 WHERE consumer_id = {jobs}",
        "entry {ready} of queue jobs is kept, but no consumer needs it",
    ),
    ("UPDATE dead_letters SET entry_id = 999", "dead letter 999 of queue jobs-dlq has no entry there"),
    (
        "UPDATE dead_letters SET replay_id = 'x'",
        "dead letter {dead} of queue jobs-dlq was replayed at no time as x",
    ),
    (
        "UPDATE dedup SET scope = 'x'",
        "idempotency key once is remembered for queue x, which is not there",
    ),
    (
        "UPDATE dedup SET position = 9999",
        "idempotency key once of queue {jobs_id} made entry 9999, ahead of the last position given, {last}",
    ),
    *(
        (
            f"UPDATE queues SET sessions = {sessions} WHERE name = 'jobs';"
            f"INSERT INTO endings VALUES ({position}, '{queue}', 'acked', 0, NULL, 0)",
            f"entry {position} of queue {said}",
        )
        for sessions, position, queue, said in (
            (0, "{ready}", "x", "x has ended as acked, but its queue is not there"),
            (0, "{ready}", "{jobs_id}", "jobs has ended as acked, in a queue without sessions"),
            (1, "9999", "{jobs_id}", "jobs has ended as acked, but is not there"),
            (1, "{ready}", "{jobs_id}", "jobs has ended as acked, but is unfinished"),
        )
    ),
]


def pull(space: Space, queue: str, batch: int = 1) -> list[str]:
    return [one.lease for one in space.call(SpaceShard.pull, queue, None, Pull(batch)).messages]


def work() -> Space:
    """A space whose queues are in the middle of being worked; objects are named for how they stand.

    jobs: unordered, with a dead letter. keyed: one line of two, one of one, and a message in none. feed: a log, which
    `watch` works in order, and `idle` has nothing of.
    """
    space = Space()
    space.call(SpaceShard.configure, "jobs", QueueConfig(kind="work", on_ack="delete", mutable=False))
    space.call(SpaceShard.consume, "jobs", "default", ConsumerConfig(backoff=Backoff(initial_ms=60_000)))
    jobs = [
        NewEntry('"is leased"', "leased", priority=9, idempotency_key="once"),
        NewEntry('"failed"', "failed", priority=9),
        NewEntry('"dead"', "dead", priority=9),
        NewEntry("100", "later", delay_ms=90_000),
        NewEntry('"ready"', "ready", priority=7),
    ]
    space.call(SpaceShard.push, "jobs", jobs)
    leased, failed, dead = pull(space, "jobs", 3)
    space.call(
        SpaceShard.retry, "jobs", [Retry(failed, error="no"), Retry(dead, error="broken", permanent=True)]
    )
    space.call(SpaceShard.release, "jobs", [leased])
    pull(space, "jobs")
    space.call(SpaceShard.configure, "keyed", QueueConfig(kind="work", on_ack="delete", mutable=False))
    space.call(SpaceShard.dismiss, "keyed", "default")
    space.call(SpaceShard.consume, "keyed", "default", ConsumerConfig(ordering="per_key"))
    keyed = {"head": "k", "behind": "k", "alone": "j", "free": None}
    space.call(SpaceShard.push, "keyed", [NewEntry("1", name, key=key) for name, key in keyed.items()])
    pull(space, "keyed")
    space.call(SpaceShard.configure, "feed", QueueConfig())
    space.call(SpaceShard.consume, "feed", "watch", ConsumerConfig(ordering="fifo"))
    space.append("feed", NewEntry("1", "first"), NewEntry("2", "second"))
    space.call(SpaceShard.consume, "feed", "idle", ConsumerConfig())
    return space


@pytest.fixture(name="worked")
def _worked() -> Iterator[Space]:
    space = work()
    yield space
    space.db.close()


def numbers(space: Space) -> dict[str, object]:
    """Positions by the names of objects, consumers by their queues, and what else findings say."""
    entries = space.db.execute("SELECT object_id, id FROM queue_entries").fetchall()
    consumers = space.db.execute(
        "SELECT q.name, consumer_id FROM consumers JOIN queues AS q USING (queue_id)"
    ).fetchall()
    known = {str(name): int(str(number)) for name, number in [*entries, *consumers]}
    now = space.clock.now_ms()
    return {
        **known,
        "beyond": known["second"] + 1,
        "lapse": now + 30_000,
        "late": now + 31_000,
        "due": now + 90_000,
        "dead": space.db.execute("SELECT entry_id FROM dead_letters").get,
        "jobs_id": space.db.execute("SELECT queue_id FROM queues WHERE name = 'jobs'").get,
        "last": space.db.execute("SELECT position FROM store").get,
    }


def test_queues_that_are_worked_have_no_problems(worked: Space) -> None:
    assert check.problems(worked.db) == []


@pytest.mark.parametrize(("damage", "said"), DAMAGE)
def test_each_damage_has_its_finding_and_no_other(worked: Space, damage: str, said: str) -> None:
    known = numbers(worked)
    worked.db.execute(damage.format(**known)).fetchall()
    assert check.problems(worked.db) == [said.format(**known)]


def test_every_statement_has_its_damage() -> None:
    silent = set(check_work.QUERIES)
    for damage, _ in DAMAGE:
        space = work()
        space.db.execute(damage.format(**numbers(space))).fetchall()
        silent -= {query for query in silent if space.db.execute(query).fetchall()}
        space.db.close()
    assert silent == {check_work.FILL_ALARM}


def test_no_statement_reads_a_queue_again_for_each_of_its_rows(space: Space) -> None:
    """A file with a million messages can be checked, too."""
    plans = [space.db.execute(f"EXPLAIN QUERY PLAN {query}").fetchall() for query in check_work.QUERIES]
    assert [row for plan in plans for row in plan if "CORRELATED LIST" in str(row[3])] == []


def test_work_that_no_alarm_is_set_for_is_found(space: Space) -> None:
    space.call(SpaceShard.push, "jobs", [NewEntry("1", delay_ms=5)])
    space.db.execute("UPDATE shard_alarm SET due_ms = NULL")
    due = space.clock.now_ms() + 5
    assert check.problems(space.db) == [JOBS + f"entry 2 is due at {due}, but no alarm is set"]


def test_a_consumer_that_nobody_will_fill_is_found(space: Space) -> None:
    space.fill("log", 3)
    space.call(SpaceShard.consume, "log", "new", ConsumerConfig(), start="beginning")
    assert check.problems(space.db) == []
    space.db.execute("UPDATE shard_alarm SET due_ms = NULL")
    said = "consumer new of queue log: it is still to be given entries above 0, but no alarm is set"
    assert check.problems(space.db) == [said]


def test_what_is_overdue_is_no_problem(worked: Space) -> None:
    """Nobody rang while the file was closed."""
    worked.clock.advance(100_000)
    assert check.problems(worked.db) == []
    worked.sweep()
    assert check.problems(worked.db) == []


def test_a_replayed_dead_letter_is_kept_without_a_delivery(worked: Space) -> None:
    [(entry, _)] = worked.call(SpaceShard.dead_letters, "jobs-dlq", 0, 10)
    [replayed] = worked.call(SpaceShard.replay, "jobs-dlq", [entry.id])
    assert replayed.outcome == "replayed"
    assert check.problems(worked.db) == []


def test_what_was_finished_while_it_was_to_be_kept_is_no_problem(space: Space) -> None:
    space.append("log", NewEntry("1"))
    space.call(SpaceShard.consume, "log", "watch", ConsumerConfig())
    space.append("log", NewEntry("2"))
    space.call(SpaceShard.ack, "log", pull(space, "log"))
    space.call(SpaceShard.reconfigure, "log", {"on_ack": "delete"})
    assert check.problems(space.db) == []
    assert space.data("log") == ["1", "2"]


# -- consumers that go --------------------------------------------------------------------------------------


def test_a_consumer_that_goes_takes_nothing_from_the_others(space: Space) -> None:
    space.call(SpaceShard.push, "jobs", [NewEntry(str(number)) for number in range(3)])
    space.call(SpaceShard.consume, "jobs", "other", ConsumerConfig(), start="beginning")
    space.sweep()
    space.call(SpaceShard.ack, "jobs", pull(space, "jobs"))
    space.call(SpaceShard.dismiss, "jobs", "other")
    assert check.problems(space.db) == []
    assert space.data("jobs") == ["1", "2"]  # what `default` has finished went with the last who needed it


def test_what_waited_only_for_a_consumer_that_was_being_filled_goes_with_it(space: Space) -> None:
    space.call(SpaceShard.push, "jobs", [NewEntry(str(number)) for number in range(3)])
    space.call(SpaceShard.consume, "jobs", "other", ConsumerConfig(), start="beginning")
    space.call(SpaceShard.ack, "jobs", pull(space, "jobs"))
    assert space.data("jobs") == ["0", "1", "2"]
    while space.call(SpaceShard.dismiss, "jobs", "other"):
        pass
    assert check.problems(space.db) == []
    assert space.data("jobs") == ["1", "2"]


@pytest.mark.parametrize("ordering", ["fifo", "per_key"])
def test_a_consumer_that_is_half_gone_can_still_be_worked(space: Space, ordering: Ordering) -> None:
    """The server may end between two turns of removing it."""
    space.configure("log")
    space.call(SpaceShard.consume, "log", "watch", ConsumerConfig(ordering=ordering))
    for start in range(0, REMOVED_ROWS + 500, 500):
        space.append("log", *(NewEntry(str(n), key="k") for n in range(start, start + 500)))
    assert space.call(SpaceShard.dismiss, "log", "watch")
    assert check.problems(space.db) == []
    [message] = space.call(SpaceShard.pull, "log", "watch", Pull()).messages
    assert message.entry.data == str(REMOVED_ROWS)
