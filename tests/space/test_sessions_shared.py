"""Queues for sessions beside what else queues may do: other consumers, other producers, repeats by the thousand."""

from __future__ import annotations

import pytest

from edgequeues.inbound import KEPT_MS
from edgequeues.models import ConsumerConfig, NewEntry, Pull, QueueConfig
from edgequeues.space import check
from edgequeues.space.profiles import INBOUND
from edgequeues.space.shard import TIDY_ROWS, SpaceShard

from .chats import HOUR, QUEUE, SECOND, Chats
from .world import Space


@pytest.fixture
def chats(space: Space) -> Chats:
    return Chats(space)


def test_keys_of_messages_that_are_there_stay_known_however_many_fall_due_at_once(chats: Chats) -> None:
    """S4.48: more than one turn looks at. None is forgotten because others were looked at before it."""
    number = TIDY_ROWS + 50
    for n in range(number):
        chats.send("s", str(n), str(n))
    for _ in range(4):
        chats.at(KEPT_MS + HOUR)
    repeats = [chats.send("s", "again", str(n)).id for n in range(number)]
    assert repeats == [None] * number


def test_keys_that_fall_due_are_forgotten_beside_those_that_are_kept(chats: Chats) -> None:
    chats.send("s", "stays", "1")
    chats.send("t", "goes", "2")
    for message in chats.claim(10):
        if message.entry.key == "t":
            chats.ack(message)
    chats.at(HOUR)
    assert chats.clean(2 * HOUR).removed == 1
    chats.at(KEPT_MS + SECOND)
    chats.at(KEPT_MS + HOUR)
    assert chats.space.db.execute("SELECT count(*) FROM dedup").get == 1


def test_what_another_consumer_finishes_is_still_to_be_delivered(chats: Chats) -> None:
    """The view is about the consumer `default`; whoever else reads along decides nothing."""
    chats.send("s", "A")
    space = chats.space
    space.call(SpaceShard.consume, QUEUE, "archive", ConsumerConfig(), "beginning")
    space.run_alarm()  # it is given what was there before it
    [found] = space.call(SpaceShard.pull, QUEUE, "archive", Pull(batch=10)).messages
    space.call(SpaceShard.ack, QUEUE, [found.lease])
    assert chats.statuses() == ["pending"]
    assert check.problems(space.db) == []
    chats.ack(chats.one())
    assert chats.statuses() == ["delivered"]
    assert check.problems(space.db) == []


@pytest.mark.parametrize(("gone", "status"), [("archive", "processing"), ("default", "expired")])
def test_a_consumer_may_go_while_messages_are_unfinished(chats: Chats, gone: str, status: str) -> None:
    """C13: what was cancelled is expired."""
    space = chats.space
    space.call(SpaceShard.provision, QUEUE, *INBOUND)
    space.call(SpaceShard.consume, QUEUE, "archive", ConsumerConfig(), "new")
    chats.send("s", "A")
    chats.one()
    space.call(SpaceShard.dismiss, QUEUE, gone)
    assert chats.statuses() == [status]
    assert check.problems(space.db) == []


def test_a_consumer_that_begins_anew_finds_nothing_finished(chats: Chats) -> None:
    """It was asked to begin at the beginning: what was delivered before is to be delivered again."""
    space = chats.space
    chats.send("s", "A")
    chats.ack(chats.one())
    rules = ConsumerConfig(ordering="per_key")
    space.call(SpaceShard.dismiss, QUEUE, "default")
    space.call(SpaceShard.consume, QUEUE, "default", rules, "beginning")
    space.run_alarm()
    assert chats.statuses() == ["pending"]
    assert check.problems(space.db) == []


def test_the_view_shows_what_was_pushed_by_another_way_too(chats: Chats) -> None:
    """It is not a message for a session then, and hides none of those."""
    chats.send("s", "A")
    chats.space.call(SpaceShard.push, QUEUE, [NewEntry("not JSON", content_type="text/plain", key="t")])
    first, second = chats.rows()
    assert (first["content"], second["content"], second["session_id"]) == ("A", "", "t")
    assert (second["origin"], second["message_type"], second["status"]) == (None, "text", "pending")


def test_what_replaces_a_finished_message_leaves_no_end_behind(chats: Chats) -> None:
    space = chats.space
    config = QueueConfig(kind="work", on_ack="delete", mutable=True, sessions=True, retain_acked_ms=KEPT_MS)
    space.call(SpaceShard.configure, QUEUE, config)
    space.call(SpaceShard.push, QUEUE, [NewEntry("{}", "m", key="s")])
    chats.ack(chats.one())
    space.call(SpaceShard.push, QUEUE, [NewEntry('{"content":"B"}', "m", key="s")])
    assert [(row["content"], row["status"]) for row in chats.rows()] == [("B", "pending")]
    assert check.problems(space.db) == []


def test_what_is_kept_for_ever_shows_how_it_ended(chats: Chats) -> None:
    space = chats.space
    config = QueueConfig(kind="work", on_ack="keep", mutable=False, sessions=True)
    space.call(SpaceShard.configure, QUEUE, config)
    chats.send("s", "A")
    chats.ack(chats.one())
    assert chats.statuses() == ["delivered"]


def test_what_is_not_kept_leaves_no_end_behind(chats: Chats) -> None:
    space = chats.space
    config = QueueConfig(kind="work", on_ack="delete", mutable=False, sessions=True)
    space.call(SpaceShard.configure, QUEUE, config)
    chats.send("s", "A")
    chats.ack(chats.one())
    assert space.db.execute("SELECT count(*) FROM endings").get == 0
    assert check.problems(space.db) == []
