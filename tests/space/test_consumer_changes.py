"""What becomes of messages when consumers come, go, and are given other rules."""

from __future__ import annotations

from edgequeues.core.backoff import Backoff
from edgequeues.models import ConsumerConfig, NewEntry, Pull, Retry
from edgequeues.space.shard import SpaceShard

from .work_checks import SmallSpace
from .world import Space

AT_ONCE = Backoff(0, 0)


def push(space: Space, *data: str) -> None:
    space.call(SpaceShard.push, "jobs", [NewEntry(one) for one in data])


def pulled(space: Space, batch: int = 10, consumer: str | None = None) -> list[str]:
    return [one.entry.data for one in space.call(SpaceShard.pull, "jobs", consumer, Pull(batch)).messages]


def dismiss(space: Space, consumer: str = "default") -> None:
    while space.call(SpaceShard.dismiss, "jobs", consumer):
        pass


def consume(space: Space, consumer: str = "default", **rules: object) -> None:
    config = ConsumerConfig(**rules)  # type: ignore[arg-type]
    space.call(SpaceShard.consume, "jobs", consumer, config, start="beginning")
    while space.alarm_due():
        space.run_alarm()


def fail(space: Space) -> None:
    [message] = space.call(SpaceShard.pull, "jobs", None, Pull()).messages
    assert space.call(SpaceShard.retry, "jobs", [Retry(message.lease, error="no luck")]) == ["done"]


def dead(space: Space) -> list[tuple[str, str, int, str]]:
    letters = space.call(SpaceShard.dead_letters, "jobs-dlq", 0, 10)
    return [(entry.data, one.reason, one.attempts, one.last_error) for entry, one in letters]


def test_the_only_consumer_takes_nothing_along_so_that_the_one_made_in_its_place_is_given_all() -> None:
    space = SmallSpace()
    push(space, "1", "2", "3", "4", "5")
    [first] = space.call(SpaceShard.pull, "jobs", None, Pull()).messages
    dismiss(space)
    assert space.data("jobs") == ["1", "2", "3", "4", "5"]
    push(space, "6")
    consume(space)
    assert space.call(SpaceShard.ack, "jobs", [first.lease]) == ["finished"]
    assert pulled(space) == ["1", "2", "3", "4", "5", "6"]


def test_what_only_a_consumer_that_goes_had_to_do_goes_with_it() -> None:
    space = SmallSpace()
    push(space, "1", "2", "3")
    consume(space, "other")
    for message in space.call(SpaceShard.pull, "jobs", "default", Pull(2)).messages:
        space.call(SpaceShard.ack, "jobs", [message.lease])
    dismiss(space, "other")
    assert space.data("jobs") == ["3"]
    assert pulled(space) == ["3"]


def test_what_waited_for_a_consumer_that_was_still_being_filled_does_not_stay_for_ever() -> None:
    space = SmallSpace()
    push(space, *"123456789")
    space.call(SpaceShard.consume, "jobs", "other", ConsumerConfig(), start="beginning")
    for message in space.call(SpaceShard.pull, "jobs", "default", Pull(8)).messages:
        space.call(SpaceShard.ack, "jobs", [message.lease])
    assert space.count("jobs") == 9
    dismiss(space, "other")
    assert space.data("jobs") == ["9"]


def test_consumers_made_together_are_filled_by_turns() -> None:
    space = SmallSpace()
    push(space, *"123456789")
    space.call(SpaceShard.consume, "jobs", "second", ConsumerConfig(), start="beginning")
    space.call(SpaceShard.push, "short", [NewEntry("1")])
    space.call(SpaceShard.consume, "short", "third", ConsumerConfig(), start="beginning")
    for _ in range(2):
        space.run_alarm()
    [second] = [one for one in space.call(SpaceShard.consumers, "jobs") if one.name == "second"]
    [third] = [one for one in space.call(SpaceShard.consumers, "short") if one.name == "third"]
    assert (second.filling, third.filling) == (True, False)


def test_a_message_tried_more_often_than_a_lowered_maximum_is_dead_and_not_handed_out(space: Space) -> None:
    space.configure("jobs", kind="work", on_ack="delete")
    consume(space, attempts_max=5, backoff=AT_ONCE)
    push(space, "1")
    fail(space)
    fail(space)
    push(space, "2")
    consume(space, attempts_max=2, backoff=AT_ONCE)
    assert pulled(space) == ["2"]
    assert dead(space) == [("1", "exhausted", 2, "no luck")]


def test_a_message_in_hand_while_the_maximum_is_lowered_is_dead_when_it_fails(space: Space) -> None:
    space.configure("jobs", kind="work", on_ack="delete")
    consume(space, attempts_max=5, backoff=AT_ONCE)
    push(space, "1")
    fail(space)
    [message] = space.call(SpaceShard.pull, "jobs", None, Pull()).messages
    consume(space, attempts_max=1)
    space.call(SpaceShard.retry, "jobs", [Retry(message.lease, error="no luck")])
    assert dead(space) == [("1", "exhausted", 2, "no luck")]


def test_many_messages_without_attempts_left_are_given_up_by_several_pulls_and_hide_nothing(
    space: Space,
) -> None:
    space.configure("jobs", kind="work", on_ack="delete")
    consume(space, attempts_max=5, backoff=AT_ONCE)
    push(space, *(["0"] * 150))
    leases = [
        one.lease for _ in range(2) for one in space.call(SpaceShard.pull, "jobs", None, Pull(75)).messages
    ]
    space.call(SpaceShard.retry, "jobs", [Retry(lease) for lease in leases])
    push(space, "1")
    consume(space, attempts_max=1)
    space.events.clear()
    assert pulled(space, 1) == []
    assert ("work", "jobs") in space.events  # whoever waits looks again
    assert pulled(space, 1) == ["1"]
    assert space.data("jobs") == ["1"]


def test_an_expired_version_that_is_replaced_while_it_is_handed_out_counts_as_cancelled(space: Space) -> None:
    """What is handed out does not expire before its lease ends."""
    space.configure("jobs", kind="work", mutable=True, on_ack="delete")
    space.call(SpaceShard.push, "jobs", [NewEntry("1", "a", ttl_ms=1_000)])
    [message] = space.call(SpaceShard.pull, "jobs", None, Pull()).messages
    space.clock.advance(2_000)
    space.call(SpaceShard.push, "jobs", [NewEntry("2", "a")])
    [info] = space.call(SpaceShard.consumers, "jobs")
    assert (info.total_cancelled, info.total_expired) == (1, 0)
    assert space.call(SpaceShard.ack, "jobs", [message.lease]) == ["superseded"]
