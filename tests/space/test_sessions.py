"""Messages for sessions: one at a time, in order, until they are delivered or their session is over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edgequeues.core.errors import ConfigConflict, InvalidRequest, QueueNotFound
from edgequeues.inbound import KEPT_MS, RETRIES_MS, Inbound
from edgequeues.models import ConsumerConfig, NewEntry, QueueConfig
from edgequeues.space import check
from edgequeues.space.shard import SpaceShard

from .chats import HOUR, MINUTE, QUEUE, SECOND, Chats
from .world import Space, SpaceFile

DAY = 24 * HOUR


@pytest.fixture
def chats(space: Space) -> Chats:
    return Chats(space)


# -- order, and what keeps it --------------------------------------------------------------------------------


def test_a_session_waits_for_its_first_message_through_back_off(chats: Chats) -> None:
    """S4.4, S4.19. The origin's second fault: B overtook A while A backed off."""
    chats.send("s", "A")
    chats.send("s", "B")
    chats.send("other", "C")
    first, other = chats.claim(10)
    assert [chats.content(one) for one in (first, other)] == ["A", "C"]
    chats.fail(first)
    chats.at(RETRIES_MS[0] - 1)
    assert chats.contents() == []
    chats.at(RETRIES_MS[0])
    again = chats.one()
    assert (chats.content(again), again.attempts) == ("A", 2)
    chats.ack(again)
    assert chats.contents() == ["B"]


def test_retries_follow_the_list_and_never_end(chats: Chats) -> None:
    """S4.35, S4.36, S4.37."""
    chats.send("s", "A")
    at = 0
    for wait in (*RETRIES_MS, RETRIES_MS[-1], RETRIES_MS[-1]):
        chats.fail(chats.one())
        chats.at(at + wait - 1)
        assert chats.contents() == []
        at += wait
        chats.at(at)
    assert [wait // SECOND for wait in RETRIES_MS] == [5, 10, 20, 40, 80, 160, 300]
    for _ in range(100):
        chats.fail(chats.one())
        at += RETRIES_MS[-1]
        chats.at(at)
    assert chats.one().attempts == 110


def test_a_lock_that_nobody_answers_ends_after_five_minutes(chats: Chats) -> None:
    """S4.38. The origin's first fault: what was `processing` when it crashed stayed so."""
    chats.send("s", "A")
    chats.send("s", "B")
    chats.one()
    chats.at(5 * MINUTE - 1)
    assert (chats.statuses(), chats.contents()) == (["processing", "pending"], [])
    chats.at(5 * MINUTE)
    assert chats.contents() == ["A"]


def test_si_s05_what_an_earlier_life_held_is_taken_over_at_once(space_file: SpaceFile) -> None:
    """Only its own; order holds; what it held has failed."""
    chats = Chats(space_file)
    for content in "ABC":
        chats.send("s1", content)
    chats.send("s2", "other")
    chats.claim(1)
    chats.claim(1, worker="another")
    space_file.reopen()
    assert space_file.call(SpaceShard.reclaim, QUEUE, "manager") == 1
    assert space_file.call(SpaceShard.reclaim, QUEUE, "manager") == 0
    assert [row["status"] for row in chats.rows()] == ["pending", "pending", "pending", "processing"]
    for content in "ABC":
        message = chats.one()
        assert chats.content(message) == content
        chats.ack(message)
    assert chats.rows()[0]["attempt_count"] == 1


def test_si_s05_a_lock_from_a_clock_that_was_wrong_ends_in_time(space_file: SpaceFile) -> None:
    """The clock was an hour ahead when the lock was given; the space's own time does not fall."""
    chats = Chats(space_file)
    chats.send("s", "A")
    chats.at(HOUR)
    chats.one()
    space_file.clock.advance(-HOUR)
    space_file.reopen()
    assert space_file.call(SpaceShard.reclaim, QUEUE, "another") == 0  # as a manager asks when it starts
    chats.at(10 * MINUTE + SECOND)  # until the clock has caught up, time goes at half pace
    assert chats.contents() == ["A"]


def test_the_alarm_is_set_to_when_a_message_is_due_again(chats: Chats) -> None:
    """S4.28. The origin's third fault: a worker slept past it, and nothing woke it."""
    chats.send("s", "A")
    chats.fail(chats.one())
    alarm_ms = chats.space.shard.get_alarm()
    assert alarm_ms is not None
    assert alarm_ms <= chats.begun + RETRIES_MS[0]


def test_of_two_claims_one_wins(chats: Chats) -> None:
    """S4.23, S4.24."""
    chats.send("s", "A")
    chats.send("s", "B")
    assert [len(chats.claim(10)), len(chats.claim(10))] == [1, 0]


def test_an_ack_of_a_lock_that_was_taken_over_changes_nothing(chats: Chats) -> None:
    chats.send("s", "A")
    slow = chats.one()
    chats.at(5 * MINUTE)
    fast = chats.one()
    assert (chats.ack(slow), chats.ack(fast)) == ("stale", "done")
    assert chats.statuses() == ["delivered"]


# -- repeats -------------------------------------------------------------------------------------------------


def test_si_s01_ids_of_messages_are_unique_within_origin_and_channel(chats: Chats) -> None:
    """S4.48, S4.49: whatever session they are for; those without an id are all new."""
    new = [
        chats.send("s", "1", "17", channel="c1"),
        chats.send("s", "2", "17", channel="c2"),
        chats.send("s", "3", "17", channel="c1", origin="discord"),
        chats.send("s", "4"),
        chats.send("s", "5"),
    ]
    assert all(one.id is not None for one in new)
    assert chats.send("another", "6", "17", channel="c1").position is None
    with pytest.raises(InvalidRequest, match="source_message_id"):
        chats.send("s", "7", "")
    assert [row["content"] for row in chats.rows()] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("fate", ["delivered", "closed", "unfinished"])
def test_a_repeat_is_known_for_as_long_as_its_message_is_there(chats: Chats, fate: str) -> None:
    """72 h, and longer where it is tried longer or kept longer."""
    chats.send("s", "A", "17")
    chats.at(70 * HOUR)
    if fate == "delivered":
        chats.ack(chats.one())
    elif fate == "closed":
        chats.close("s")
    for hours in (71, 73, 141):
        chats.at(hours * HOUR)
        assert chats.send("s", "again", "17").id is None, hours
    if fate != "unfinished":
        chats.at(145 * HOUR)
        assert chats.rows() == []
        assert chats.send("s", "again", "17").id is not None


def test_clean_up_does_not_forget_what_came(chats: Chats) -> None:
    """S4.54: of what was finished long ago; the memory of repeats has a time of its own."""
    chats.send("s", "A", "17")
    chats.send("s", "B")
    chats.ack(chats.one())
    chats.at(HOUR)
    chats.ack(chats.one())
    assert chats.clean(HOUR).removed == 1
    assert [row["content"] for row in chats.rows()] == ["B"]
    assert chats.send("s", "A", "17").id is None
    chats.at(71 * HOUR)
    assert chats.send("s", "A", "17").id is None
    chats.at(72 * HOUR + 2 * MINUTE)
    assert chats.send("s", "A", "17").id is not None


def test_what_is_finished_goes_by_itself_after_72_hours(chats: Chats) -> None:
    """S4.55."""
    chats.send("s", "A")
    chats.send("s", "B")
    chats.ack(chats.one())
    chats.at(KEPT_MS - SECOND)
    assert chats.statuses() == ["delivered", "pending"]
    chats.at(KEPT_MS + 2 * MINUTE)
    assert chats.statuses() == ["pending"]
    assert chats.space.db.execute("SELECT count(*) FROM endings").get == 0


# -- the end of a session ------------------------------------------------------------------------------------


def test_closing_a_session_expires_what_is_handed_out_too(chats: Chats) -> None:
    """S4.20, S4.51. What comes later is not meant; what the worker says then changes nothing."""
    for content in "ABC":
        chats.send("s", content)
    chats.send("other", "D")
    held = chats.one()
    assert chats.close("s").expired == 3
    assert chats.statuses() == ["expired", "expired", "expired", "pending"]
    assert (chats.ack(held), chats.fail(held)) == ("finished", "finished")
    chats.send("s", "E")
    assert sorted(chats.contents()) == ["D", "E"]
    assert check.problems(chats.space.db) == []


@pytest.mark.parametrize("act", ["ready", "backing off"])
def test_a_session_is_closed_in_whatever_state_its_head_is(chats: Chats, act: str) -> None:
    chats.send("s", "A")
    chats.send("s", "B")
    if act == "backing off":
        chats.fail(chats.one(), "the terminal is gone")
    assert chats.close("s").expired == 2
    first, second = chats.rows()
    assert (first["status"], first["last_error"]) == (
        "expired",
        "the terminal is gone" if act == "backing off" else None,
    )
    assert second["processed_at"] is not None
    chats.at(HOUR)
    assert chats.contents() == []


def test_a_long_session_is_closed_turn_by_turn_and_nothing_of_it_comes_meanwhile(chats: Chats) -> None:
    for number in range(2_500):
        chats.send("s", str(number))
    held = chats.one()
    first = chats.close("s")
    assert (first.expired, first.through) == (1_000, 2_501)
    late = chats.send("s", "late")
    assert chats.contents() == []
    second = chats.close("s", first.through)
    third = chats.close("s", second.through)
    assert (second.expired, third.expired, third.through) == (1_000, 500, None)
    assert chats.ack(held) == "finished"
    [left] = chats.claim(10)
    assert left.entry.position == late.position


def test_what_can_never_be_delivered_is_expired_with_its_reason(chats: Chats) -> None:
    """C23: and no dead letter; the session goes on."""
    chats.send("s", "A")
    chats.send("s", "B")
    assert chats.fail(chats.one(), "there is no session s", permanent=True) == "done"
    row = chats.rows()[0]
    assert (row["status"], row["last_error"], row["attempt_count"]) == ("expired", "there is no session s", 1)
    assert row["next_retry_at"] is None
    assert chats.contents() == ["B"]
    with pytest.raises(QueueNotFound):
        chats.space.count("inbound-dlq")


# -- operators -----------------------------------------------------------------------------------------------


def test_an_operator_skips_the_message_that_a_session_waits_for(chats: Chats) -> None:
    sent = chats.send("s", "A")
    chats.send("s", "B")
    held = chats.one()
    skip = SpaceShard.skip_head
    assert chats.space.call(skip, QUEUE, "s") is None
    chats.fail(held)
    assert chats.space.call(skip, QUEUE, "s") == sent.id
    assert chats.space.call(skip, QUEUE, "nobody") is None
    assert chats.rows()[0]["status"] == "expired"
    assert chats.rows()[0]["last_error"] == "skipped by an operator"
    assert chats.contents() == ["B"]


def test_an_operator_has_a_message_tried_now(chats: Chats) -> None:
    sent = chats.send("s", "A")
    hurry = SpaceShard.hurry_head
    assert chats.space.call(hurry, QUEUE, "s") is None
    chats.fail(chats.one())
    assert chats.space.call(hurry, QUEUE, "s") == sent.id
    again = chats.one()
    assert again.attempts == 2
    chats.fail(again)
    chats.at(RETRIES_MS[1] - 1)
    assert chats.contents() == []
    chats.at(RETRIES_MS[1])
    assert chats.contents() == ["A"]
    assert check.problems(chats.space.db) == []


def test_sessions_are_shown_with_what_they_wait_for(chats: Chats) -> None:
    for number in range(3):
        chats.send("a", str(number))
    chats.send("b", "x", origin="discord")
    chats.send("done", "y")
    for message in chats.claim(10):
        if message.entry.key == "a":
            chats.at(SECOND)
            chats.fail(message, "the pane is busy")
        elif message.entry.key == "done":
            chats.ack(message)
    page = chats.space.call(SpaceShard.sessions, QUEUE, None, 10)
    assert page.resume is None
    a, b = page.sessions
    assert (a.session_id, a.depth, a.oldest) == ("a", 3, chats.begun)
    assert (a.head.state, a.head.failures, a.head.last_error) == ("backoff", 1, "the pane is busy")
    assert a.head.blocked_since == chats.begun
    assert a.head.due == chats.begun + SECOND + RETRIES_MS[0]
    assert (b.session_id, b.head.origin, b.head.state, b.head.blocked_since) == (
        "b",
        "discord",
        "leased",
        None,
    )
    first = chats.space.call(SpaceShard.sessions, QUEUE, None, 1)
    assert [one.session_id for one in first.sessions] == ["a"]
    rest = chats.space.call(SpaceShard.sessions, QUEUE, first.resume, 10)
    assert [one.session_id for one in rest.sessions] == ["b"]
    assert chats.session("a") == a
    assert chats.session("done") is None


# -- the queue -----------------------------------------------------------------------------------------------

VERBS: list[Callable[[Space], object]] = [
    lambda space: space.call(SpaceShard.receive, "jobs", [Inbound(session_id="s", origin="o")]),
    lambda space: space.call(SpaceShard.close_session, "jobs", "s"),
    lambda space: space.call(SpaceShard.skip_head, "jobs", "s"),
    lambda space: space.call(SpaceShard.hurry_head, "jobs", "s"),
    lambda space: space.call(SpaceShard.reclaim, "jobs", "w"),
    lambda space: space.call(SpaceShard.clean, "jobs", 0),
    lambda space: space.call(SpaceShard.sessions, "jobs", None, 1),
]


@pytest.mark.parametrize("verb", VERBS)
def test_another_queue_has_no_sessions(space: Space, verb: Callable[[Space], object]) -> None:
    space.call(SpaceShard.push, "jobs", [NewEntry("1")])
    with pytest.raises(ConfigConflict, match="jobs is not for sessions"):
        verb(space)
    assert space.count("jobs") == 1


def test_a_queue_is_for_sessions_from_the_start_or_never(chats: Chats) -> None:
    chats.send("s", "A")
    space = chats.space
    with pytest.raises(ConfigConflict, match="sessions"):
        space.call(SpaceShard.reconfigure, QUEUE, {"sessions": False})
    space.call(SpaceShard.dismiss, QUEUE, "default")
    with pytest.raises(InvalidRequest, match="per_key"):
        space.call(SpaceShard.consume, QUEUE, "default", ConsumerConfig(), "beginning")
    with pytest.raises(InvalidRequest, match="per_key"):
        space.call(
            SpaceShard.provision,
            "new",
            QueueConfig(kind="work", on_ack="delete", mutable=False, sessions=True),
            ConsumerConfig(),
        )


def test_without_leave_to_make_one_there_is_no_queue(space: Space) -> None:
    with pytest.raises(QueueNotFound):
        space.call(SpaceShard.receive, QUEUE, [Inbound(session_id="s", origin="o")], make=False)
    assert space.call(SpaceShard.queues, "", 10).queues == []


def test_removing_the_queue_leaves_nothing_of_it(chats: Chats) -> None:
    chats.send("s", "A", "17")
    chats.send("s", "B")
    chats.ack(chats.one())
    while chats.space.call(SpaceShard.remove, QUEUE):
        pass
    for table in ("endings", "dedup", "deliveries", "queue_entries"):
        assert chats.space.db.execute(f"SELECT count(*) FROM {table}").get == 0
    assert check.problems(chats.space.db) == []
