"""Dead letters: where they go whatever is there, what is told of them, and what is left when they are done."""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import pytest

from edgequeues.core.errors import InvalidRequest
from edgequeues.models import WORK_QUEUE, ConsumerConfig, NewEntry, Pull, QueueConfig, Retry
from edgequeues.space import check, letters
from edgequeues.space.letters import RETENTION_MS
from edgequeues.space.shard import SpaceShard
from edgequeues.space.timed import SWEEP_PAUSE_MS

from .jobs import Dead, Jobs
from .world import Space, turn

SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000


def bury(space: Space, data: str) -> None:
    space.call(SpaceShard.push, "jobs", [NewEntry(data)])
    [message] = space.call(SpaceShard.pull, "jobs", None, Pull()).messages
    assert space.call(SpaceShard.retry, "jobs", [Retry(message.lease, permanent=True)]) == ["done"]


def test_a_full_queue_of_dead_letters_takes_one_more(space: Space) -> None:
    bury(space, "1")
    space.call(SpaceShard.reconfigure, "jobs-dlq", {"depth_max": 1})
    bury(space, "2")
    assert len(space.call(SpaceShard.dead_letters, "jobs-dlq", 0, 10)) == 2
    assert space.call(SpaceShard.configure, "jobs", QueueConfig(kind="work")).entries == 0


def test_an_acked_dead_letter_takes_its_facts_along(space: Space) -> None:
    bury(space, "1")
    bury(space, "2")
    [first] = space.call(SpaceShard.pull, "jobs-dlq", None, Pull()).messages
    space.call(SpaceShard.ack, "jobs-dlq", [first.lease])
    assert [entry.data for entry, _ in space.call(SpaceShard.dead_letters, "jobs-dlq", 0, 1)] == ["2"]


def test_a_dead_letter_that_is_appended_anew_is_none_any_more(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    space.call(SpaceShard.reconfigure, "jobs-dlq", {"mutable": True})
    space.append("jobs-dlq", NewEntry("2", jobs.dlq.ids[0]))
    assert (jobs.dlq.letters(), space.data("jobs-dlq")) == ([], ["2"])
    assert check.problems(space.db) == []


# -- how long they are kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kept_ms", [RETENTION_MS, HOUR, None])
@pytest.mark.parametrize("explicit", [False, True])
def test_they_are_kept_from_when_they_failed_for_as_long_as_their_queue_says(
    space: Space, *, explicit: bool, kept_ms: int | None
) -> None:
    """The message was six days old when it failed, and had half a day left of its own."""
    if explicit:
        space.call(SpaceShard.configure, "graves", msgspec.structs.replace(WORK_QUEUE, max_age_ms=kept_ms))
    jobs = Jobs(space, ConsumerConfig(dead_letters="graves" if explicit else None))
    graves = Dead(space, "graves" if explicit else "jobs-dlq")
    jobs.push("1", ttl_ms=6 * DAY + DAY // 2)
    jobs.at(6 * DAY)
    jobs.fail(jobs.one(), permanent=True)
    if not explicit and kept_ms != RETENTION_MS:
        space.call(SpaceShard.reconfigure, "jobs-dlq", {"max_age_ms": kept_ms})
    space.clock.advance((1_000 * DAY if kept_ms is None else kept_ms) - 1)
    jobs.ring()
    [(_, letter)] = graves.letters()
    assert letter.failed_at == jobs.began_ms + 6 * DAY
    space.clock.advance(1)
    assert graves.data == (["1"] if kept_ms is None else [])
    space.clock.advance(SWEEP_PAUSE_MS)
    jobs.ring()
    assert space.count(graves.queue) == (1 if kept_ms is None else 0)
    assert space.db.execute("SELECT count(*) FROM dead_letters").get == space.count(graves.queue)


# -- where they may go --------------------------------------------------------------------------------------


def chain(space: Space, *queues: str) -> None:
    """Work queues, the dead letters of each going to the next."""
    for queue in reversed(queues):
        space.call(SpaceShard.configure, queue, WORK_QUEUE)
    for queue, following in pairwise(queues):
        space.call(SpaceShard.consume, queue, "default", ConsumerConfig(dead_letters=following))


def test_a_new_name_may_not_close_a_circle(space: Space) -> None:
    """a -> b -> c, c is gone: whoever is called c now gets what dies in b."""
    chain(space, "a", "b", "c")
    space.call(SpaceShard.remove, "c")
    with pytest.raises(InvalidRequest, match="dead_letters: b leads back to c"):
        turn(space, SpaceShard.reconfigure, "a", {"name": "c"})
    space.call(SpaceShard.configure, "d", WORK_QUEUE)
    space.call(SpaceShard.reconfigure, "d", {"name": "c"})
    jobs = Jobs(space, queue="b")
    jobs.bury("1")
    assert Dead(space, "c").data == ["1"]


def test_a_queue_may_not_take_the_name_its_own_letters_go_to(space: Space) -> None:
    chain(space, "a", "b")
    space.call(SpaceShard.remove, "b")
    with pytest.raises(InvalidRequest, match="leads back"):
        turn(space, SpaceShard.reconfigure, "a", {"name": "b"})


def test_a_name_that_closes_no_circle_is_given(space: Space) -> None:
    chain(space, "a", "b", "c")
    space.call(SpaceShard.reconfigure, "a", {"name": "d"})
    space.call(SpaceShard.reconfigure, "c", {"name": "e"})
    assert {one.config.name for one in space.call(SpaceShard.queues, "", 9).queues} == {"b", "d", "e"}


def test_a_circle_through_a_second_consumer_is_none_either(space: Space) -> None:
    chain(space, "a", "b")
    space.call(SpaceShard.consume, "a", "default", ConsumerConfig(dead_letters=""))
    space.call(SpaceShard.consume, "a", "second", ConsumerConfig(dead_letters="b"))
    for name in ("default", "new"):
        with pytest.raises(InvalidRequest, match="dead_letters: a leads back to b"):
            turn(space, SpaceShard.consume, "b", name, ConsumerConfig(dead_letters="a"))


def test_a_circle_through_a_queue_that_nobody_named_is_none_either(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    rules = ConsumerConfig(dead_letters="jobs")
    with pytest.raises(InvalidRequest, match="dead_letters: jobs leads back to jobs-dlq"):
        turn(space, SpaceShard.consume, "jobs-dlq", "default", rules)
    space.call(SpaceShard.consume, "jobs", "default", ConsumerConfig(dead_letters=""))
    space.call(SpaceShard.consume, "jobs-dlq", "default", rules)
    with pytest.raises(InvalidRequest, match="dead_letters: jobs-dlq leads back to jobs"):
        turn(space, SpaceShard.consume, "jobs", "default", ConsumerConfig())


# -- what is told of them -----------------------------------------------------------------------------------


def test_what_dialects_tell_is_found_by_position(space: Space) -> None:
    jobs = Jobs(space, ConsumerConfig(attempts_max=2))
    began_ms = space.clock.now_ms()
    [name] = jobs.push('{"n": 1}')
    jobs.fail(jobs.one(), delay_ms=SECOND, error="no")
    jobs.at(SECOND)
    jobs.fail(jobs.one(), error="no again")
    space.call(SpaceShard.push, "jobs-dlq", [NewEntry("2")])
    letter, other = space.all("jobs-dlq")
    summaries = letters.summaries(space.db, [letter.position, other.position])
    assert {position: tuple(one) for position, one in summaries.items()} == {
        letter.position: ("no again", 2, began_ms, began_ms + SECOND, "jobs")
    }
    assert letters.envelope_json(space.db, other.position) is None
    shown = letters.envelope_json(space.db, letter.position)
    assert shown is not None
    assert shown.startswith(b'{"originalMessage":{"n": 1},')  # byte for byte
    told = json.loads(shown)
    assert (told["originalMessageId"], told["lastError"], told["attempts"]) == (name, "no again", 2)
    assert [one["message"] for one in told["errors"]] == ["no", "no again"]


@pytest.mark.parametrize("body", ["original", "envelope"])
def test_the_queue_made_for_dead_letters_shows_them_as_its_maker_wants(space: Space, body: str) -> None:
    jobs = Jobs(space, ConsumerConfig(dead_letter_body=body, batch=7))  # type: ignore[arg-type]
    jobs.bury("1")
    config = Jobs(space, queue="jobs-dlq").info.config
    assert (config.dead_letter_body, config.batch) == (body, 7)
    space.shard.forget()
    assert Jobs(space, queue="jobs-dlq").info.config == config
