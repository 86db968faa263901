"""Messages from outside are taken once, and a repeat is told what became of the first."""

from __future__ import annotations

import pytest

from edgequeues.core.errors import InvalidMessage, QueueFull, QueueNotFound
from edgequeues.models import NewEntry
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.values import Arriving, Taken

from .jobs import Dead, Jobs
from .specs import TYPED, Shop, field
from .world import Space

SECOND, HOUR = 1_000, 3_600_000
DAY = 24 * HOUR


def one(taken: list[Taken]) -> tuple[str, str | None, str | None]:
    [found] = taken
    return found.outcome, found.state, found.result


def test_the_same_key_is_one_message(space: Space) -> None:
    shop = Shop(space, hooks={})
    [first] = shop.ingest("hooks", "1", keys=("e1",))
    [again] = shop.ingest("hooks", '"other"', keys=("e1",))
    assert (first.outcome, again.outcome, again.state) == ("queued", "duplicate", "queued")
    assert again.id == first.id
    assert Jobs(space, queue="hooks").given() == ["1"]


def test_any_of_several_keys_tells_a_repeat(space: Space) -> None:
    shop = Shop(space, hooks={})
    shop.ingest("hooks", "1", keys=("header-1", "digest"))
    assert one(shop.ingest("hooks", "1", keys=("header-2", "digest")))[0] == "duplicate"
    assert one(shop.ingest("hooks", "2", keys=("header-2", "other digest")))[0] == "queued"


def test_twins_in_one_call_are_one_message(space: Space) -> None:
    shop = Shop(space, hooks={})
    assert [found.outcome for found in shop.ingest("hooks", "1", "2", keys=("k",))] == ["queued", "duplicate"]
    assert Jobs(space, queue="hooks").given() == ["1"]


@pytest.mark.parametrize("fate", ["ack", "purge", "delete", "bury"])
def test_wh_s15_a_repeat_is_known_when_the_message_is_gone(space: Space, fate: str) -> None:
    """For 24 hours, whatever became of it; then it is new."""
    shop, jobs = Shop(space, hooks={}), Jobs(space, queue="hooks")
    [first] = shop.ingest("hooks", "1", keys=("e9",))
    jobs.at(SECOND)
    if fate == "ack":
        jobs.ack(jobs.one())
    elif fate == "purge":
        space.call(SpaceShard.purge, "hooks")
    elif fate == "delete":
        space.call(SpaceShard.delete_ids, "hooks", [first.id])
    else:
        jobs.fail(jobs.one(), permanent=True)
    for ms in (2 * SECOND, HOUR, DAY - 60 * SECOND):
        jobs.at(ms)
        jobs.ring()
        state = "dead" if fate == "bury" else "finished"
        assert one(shop.ingest("hooks", "1", keys=("e9",))) == ("duplicate", state, None)
    jobs.at(DAY + 60 * SECOND)
    jobs.ring()
    assert one(shop.ingest("hooks", "1", keys=("e9",)))[0] == "queued"


def test_a_repeat_is_given_the_result_that_an_ack_left(space: Space) -> None:
    shop, jobs = Shop(space, hooks={}), Jobs(space, queue="hooks")
    shop.ingest("hooks", "1", keys=("k",))
    held = jobs.one()
    space.call(SpaceShard.ack, "hooks", [held.lease], results={held.lease: '{"id":7}'})
    assert one(shop.ingest("hooks", "1", keys=("k",))) == ("duplicate", "processed", '{"id":7}')
    jobs.at(DAY + HOUR)
    jobs.ring()
    assert space.db.execute("SELECT count(*) FROM results").get == 0


def test_a_result_is_kept_only_for_what_was_acked(space: Space) -> None:
    shop, jobs = Shop(space, hooks={}), Jobs(space, queue="hooks")
    shop.ingest("hooks", "1", keys=("k",))
    held = jobs.one()
    jobs.at(31 * SECOND)
    [newer] = jobs.pull(1)
    stale = space.call(SpaceShard.ack, "hooks", [held.lease], results={held.lease: "1"})
    assert stale == ["stale"]
    assert one(shop.ingest("hooks", "1", keys=("k",))) == ("duplicate", "queued", None)
    assert jobs.ack(newer) == ["done"]


def test_a_replayed_letter_is_told_as_such(space: Space) -> None:
    shop, jobs = Shop(space, hooks={}), Jobs(space, queue="hooks")
    shop.ingest("hooks", "1", keys=("k",))
    jobs.fail(jobs.one(), permanent=True)
    [(letter, _)] = jobs.dlq.letters()
    space.call(SpaceShard.replay, "hooks-dlq", [letter.id])
    assert one(shop.ingest("hooks", "1", keys=("k",))) == ("duplicate", "replayed", None)


def test_wh_s11_a_full_queue_refuses_what_is_new_and_knows_what_is_not(space: Space) -> None:
    shop = Shop(space, hooks={"retention": {"max_depth": 1}})
    shop.ingest("hooks", "1", keys=("a",))
    with pytest.raises(QueueFull):
        shop.ingest("hooks", "2", keys=("b",))
    assert one(shop.ingest("hooks", "1", keys=("a",))) == ("duplicate", "queued", None)
    jobs = Jobs(space, queue="hooks")
    jobs.ack(jobs.one())
    assert one(shop.ingest("hooks", "2", keys=("b",)))[0] == "queued"


def test_what_is_malformed_is_buried_once(space: Space) -> None:
    shop = Shop(space, hooks=TYPED | {"on_invalid": "dead_letter"})
    [first] = shop.ingest("hooks", "{}", keys=("k",))
    assert (first.outcome, first.state) == ("dead", "dead")
    assert first.error is not None
    assert one(shop.ingest("hooks", "{}", keys=("k",))) == ("duplicate", "dead", None)
    assert Dead(space, "hooks-dlq").data == ["{}"]


def test_what_its_sender_says_is_unfit_is_buried_as_it_is(space: Space) -> None:
    Shop(space, hooks=TYPED | {"on_invalid": "dead_letter"})
    entry = NewEntry('"not JSON"', content_type="text")
    space.call(SpaceShard.ingest, "hooks", [Arriving(entry, ("k",), "payload: not JSON")])
    [(found, letter)] = Dead(space, "hooks-dlq").letters()
    assert (found.data, found.content_type, letter.last_error) == ('"not JSON"', "text", "payload: not JSON")


def test_s2_39_keys_are_cleaned_up_when_their_24_hours_are_over(space: Space) -> None:
    shop, jobs = Shop(space, hooks={}), Jobs(space, queue="hooks")
    shop.ingest("hooks", "1", keys=("a", "b"))
    jobs.at(DAY - SECOND)
    jobs.ring()
    assert space.db.execute("SELECT count(*) FROM dedup").get == 2
    jobs.at(DAY + HOUR)
    jobs.ring()
    assert space.db.execute("SELECT count(*) FROM dedup").get == 0


def test_a_refused_call_keeps_no_key(space: Space) -> None:
    shop = Shop(space, hooks=TYPED)
    with pytest.raises(InvalidMessage):
        space.call(
            SpaceShard.ingest,
            "hooks",
            [Arriving(NewEntry('{"id":"1"}'), ("a",)), Arriving(NewEntry("{}"), ("b",))],
        )
    assert space.db.execute("SELECT count(*) FROM dedup").get == 0
    assert one(shop.ingest("hooks", '{"id":"1"}', keys=("a",)))[0] == "queued"


def test_the_key_of_the_queues_own_spec_counts_beside_those_of_the_sender(space: Space) -> None:
    shop = Shop(space, hooks={"idempotency_key": field("id")})
    shop.ingest("hooks", '{"id":"1"}', keys=("header-1",))
    assert one(shop.ingest("hooks", '{"id":"1"}', keys=("header-2",)))[0] == "duplicate"
    assert shop.outcomes("hooks", '{"id":"1"}') == ["same"]  # of a push, too


def test_an_unknown_queue_takes_nothing(space: Space) -> None:
    with pytest.raises(QueueNotFound):
        Shop(space).ingest("hooks", "1")
