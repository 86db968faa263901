"""What is pulled, in which order and how much at once it is handled, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from edgequeues.daemon.contract import Artifact, Context, EmailReply, GiveUp, Result, TryAgain
from edgequeues.events.event import SwitchboardEvent

from .service import DEAD_ID, Service
from .working import Sent, daemon, drain, event, number, running


def service_with(count: int, **how: Any) -> Service:
    service = Service(**how)
    service.push(*[event(n) for n in range(1, count + 1)])
    return service


async def a_second(_: SwitchboardEvent, ctx: Context) -> None:
    await trio.sleep(1)


async def fails(_: SwitchboardEvent, ctx: Context) -> None:
    raise ValueError("no such order")


async def test_every_message_is_handled_and_acked() -> None:
    service = service_with(100)
    one = await drain(service)
    assert sorted(one.handled.ended) == list(range(1, 101))
    assert len(service.acked) == len(set(service.acked)) == 100


async def test_a_pull_asks_for_the_batch_and_for_budget_plus_margin() -> None:
    service = service_with(1)
    await drain(service, queue_max_batch=7, processing_budget_seconds=40, visibility_margin_seconds=5)
    assert service.asked("pull")[0] == {"batch_size": 7, "visibility_timeout_ms": 45_000}


async def test_of_a_batch_one_message_is_handled_at_a_time_in_order() -> None:
    service = service_with(20)
    one = await drain(service, a_second, queue_max_concurrent_batches=1)
    assert (one.handled.most, one.handled.ended) == (1, list(range(1, 21)))


async def test_messages_of_a_batch_are_handled_at_once_where_that_is_asked_for() -> None:
    one = await drain(service_with(20), a_second, queue_max_concurrent_batches=1, max_batch_concurrency=5)
    assert one.handled.most == 5


async def test_no_more_batches_than_allowed_are_in_flight() -> None:
    service = service_with(100)
    one = await drain(service, a_second, queue_max_batch=5)
    assert one.handled.most == 4
    held = [len(body["acks"]) for body in service.asked("ack")]
    assert max(held) <= 4


async def test_nothing_is_pulled_while_all_batches_are_in_flight() -> None:
    service = service_with(50)

    async def for_ever(_: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep_forever()

    async with running(service, for_ever, queue_max_batch=5):
        await trio.sleep(15)
        assert len(service.asked("pull")) == 4


async def test_a_message_is_acked_as_soon_as_it_is_handled() -> None:
    service = service_with(3)
    async with running(service, a_second):
        await trio.sleep(1.5)
        assert len(service.acked) == 1


async def test_answers_that_come_together_are_one_call() -> None:
    service = service_with(40)
    service.call_s = 2.0
    await drain(service, a_second, queue_max_batch=10, max_batch_concurrency=10)
    assert max(len(body["acks"]) for body in service.asked("ack")) >= 10
    assert len(service.acked) == 40


async def test_higher_priorities_go_first_inside_what_was_pulled() -> None:
    service = Service()
    for n, priority in enumerate(("low", "normal", "high", "low", "high"), 1):
        service.push(event(n, priority=priority))
    one = await drain(service)
    assert one.handled.ended == [3, 5, 2, 1, 4]


async def test_a_failed_message_comes_again_when_its_visibility_would_have_ended() -> None:
    service = service_with(1)
    async with running(service, fails, queue_max_attempts=2) as one:
        await trio.sleep(29)
        assert one.handled.began == [1]
        await trio.sleep(3)
        assert one.handled.began == [1, 1]


@pytest.mark.parametrize(("on_error", "delay"), [("timeout", 30), ("backoff", None), ("7", 7)])
async def test_the_settings_say_when_a_failed_message_comes_again(on_error: str, delay: int | None) -> None:
    service = service_with(1)
    async with running(service, fails, on_error=on_error):
        await trio.sleep(0.01)
        [retry] = service.asked("ack")[0]["retries"]
        assert retry.get("delay_seconds") == delay


async def test_a_handler_may_say_when_its_message_comes_again() -> None:
    service = service_with(1)

    async def later(_: SwitchboardEvent, ctx: Context) -> None:
        raise TryAgain("busy", delay_s=2.5)

    async with running(service, later):
        await trio.sleep(0.01)
        assert service.asked("ack")[0]["retries"][0]["delay_seconds"] == 3


async def test_a_handler_over_its_budget_is_cancelled_and_has_failed() -> None:
    service = service_with(1, ours=True)

    async def for_ever(_: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep_forever()

    async with running(service, for_ever, on_error="3600") as one:
        await trio.sleep(21)
        assert (one.handled.running, service.acked) == (0, [])
        assert service.left[0].errors == ["CONSUMER_HANDLER_ERROR: the handler was not done within 20 s"]


async def test_a_handler_that_leaves_the_program_has_failed_only() -> None:
    service = service_with(2, ours=True)

    async def leaves(one: SwitchboardEvent, ctx: Context) -> None:
        if number(one) == 1:
            raise SystemExit(3)

    await drain(service, leaves)
    assert service.acked == [service.left[0].id.replace("1", "2")]


class Mute(Exception):
    """Cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("not a word")


@pytest.mark.parametrize(
    "fault",
    [
        Mute(),
        TryAgain("later", delay_s=float("nan")),
        TryAgain("later", delay_s=float("inf")),
        TryAgain("later", delay_s=-1),
        BaseExceptionGroup("of a nursery", [SystemExit(1)]),
        ExceptionGroup("of a nursery", [ValueError("one"), ValueError("two")]),
        ValueError("\ud800"),
        GiveUp("\ud800"),
    ],
    ids=lambda fault: type(fault).__name__,
)
@pytest.mark.parametrize("ours", [True, False])
async def test_whatever_a_handler_raises_the_others_are_handled(fault: BaseException, ours: bool) -> None:
    service = service_with(3, ours=ours)

    async def raises(one: SwitchboardEvent, ctx: Context) -> None:
        if number(one) == 2:
            raise fault

    one = await drain(service, raises, dead=True)
    assert {1, 3} <= set(one.handled.ended)
    assert [
        retry.get("delay_seconds", 0) >= 0 for body in service.asked("ack") for retry in body["retries"]
    ] in (
        [],
        [True],
    )


@pytest.mark.parametrize("ours", [True, False])
async def test_whatever_a_handler_gives_the_others_are_handled(ours: bool) -> None:
    service, replies = service_with(4, ours=ours), Sent("inbox-outbox")

    async def odd(one: SwitchboardEvent, ctx: Context) -> Any:
        if number(one) == 2:
            return Result(artifacts=[Artifact(kind="note", note="\ud800")])
        if number(one) == 3:
            return Result(artifacts=[object()])  # type: ignore[list-item]
        return "text" if number(one) == 4 else Result(reply=EmailReply(text="\ud800"))

    await drain(service, odd, replies=replies)
    assert {1, 2} <= {int(id, 16) for id in service.acked}
    assert len(service.left) == 2


async def test_a_raising_handler_ends_in_the_dlq_after_the_last_attempt_on_a_server_of_ours() -> None:
    service = service_with(1, ours=True)
    async with running(service, fails, queue_max_attempts=3, on_error="1") as one:
        await trio.sleep(10)
        assert one.handled.began == [1, 1, 1]
    assert list(service.dead.values()) == ["CONSUMER_HANDLER_ERROR: ValueError: no such order"]
    assert service.acked == []


async def test_elsewhere_the_last_attempt_pushes_the_envelope_and_acks() -> None:
    service = service_with(1)
    async with running(service, fails, dead=True, queue_max_attempts=2, on_error="1"):
        await trio.sleep(10)
    [letter] = service.pushed
    assert letter["original_message"] == event(1)
    assert (letter["reason"], letter["attempts"], letter["original_queue"]) == ("max_attempts", 2, "inbox")
    assert letter["lastError"] == "CONSUMER_HANDLER_ERROR: ValueError: no such order"
    assert letter["firstSeenAt"].endswith("Z")
    assert letter["lastSeenAt"].endswith("Z")
    assert len(service.acked) == 1


async def test_elsewhere_only_documented_members_are_sent() -> None:
    service = service_with(4)

    async def mixed(one: SwitchboardEvent, ctx: Context) -> Result:
        if number(one) == 1:
            raise GiveUp("never")
        if number(one) == 2:
            raise ValueError("not now")
        return Result(artifacts=[Artifact(kind="note")])

    await drain(service, mixed, dead=True)
    assert {name for body in service.asked("ack") for name in body} == {"acks", "retries"}
    assert {name for body in service.asked("pull") for name in body} == {
        "batch_size",
        "visibility_timeout_ms",
    }


async def test_a_dead_letter_that_cannot_be_pushed_is_not_acked() -> None:
    service = service_with(1)
    service.failing = lambda path: 503 if path == "messages" else None

    async def never(_: SwitchboardEvent, ctx: Context) -> None:
        raise GiveUp("never")

    async with running(service, never, dead=True):
        await trio.sleep(100)
        assert (service.acked, service.pushed) == ([], [])
        service.failing = lambda path: None
        await trio.sleep(100)
        assert len(service.acked) == len(service.pushed) == 1


async def test_elsewhere_without_a_dlq_a_message_is_left_to_the_service() -> None:
    service = service_with(1)
    async with running(service, fails, queue_max_attempts=1, on_error="1") as one:
        await trio.sleep(4)
        assert len(one.handled.began) > 1
        assert service.acked == []


async def test_a_handler_that_gives_up_makes_a_dead_letter_at_once() -> None:
    service = service_with(1, ours=True)

    async def never(_: SwitchboardEvent, ctx: Context) -> None:
        raise GiveUp("we do not sell that")

    one = await drain(service, never)
    assert list(service.dead.values()) == ["POLICY_VIOLATION: we do not sell that"]
    assert one.lines.outcomes() == ["dead"]


async def test_artifacts_are_kept_with_the_acked_message() -> None:
    service = service_with(1, ours=True)

    async def made(_: SwitchboardEvent, ctx: Context) -> Result:
        return Result(artifacts=[Artifact(kind="note", note="seen")])

    await drain(service, made)
    [said] = service.asked("ack")
    assert list(said["results"].values()) == [{"artifacts": [{"kind": "note", "note": "seen"}]}]


async def replying(_: SwitchboardEvent, ctx: Context) -> Result:
    return Result(reply=EmailReply(text="hi"))


async def test_on_a_server_of_ours_a_reply_leaves_with_the_ack() -> None:
    service, replies = service_with(1, ours=True), Sent("inbox-outbox")
    await drain(service, replying, replies=replies)
    [said] = service.asked("ack")
    [emit] = said["emit"]
    assert (emit["lease_id"], emit["queue"], emit["key"]) == (
        said["acks"][0]["lease_id"],
        "inbox-outbox",
        "event-0001:reply",
    )
    assert emit["body"] == {"event": "event-0001", "reply": {"channel": "email", "text": "hi"}}
    assert (replies.sent, replies.told) == ([], [DEAD_ID])


async def test_elsewhere_a_reply_is_sent_before_the_ack() -> None:
    service, replies = service_with(1), Sent("inbox-outbox")
    replies.failing = TryAgain("the mail server is away")
    async with running(service, replying, replies=replies, on_error="1"):
        await trio.sleep(0.5)
        assert (service.acked, replies.sent) == ([], [])
        replies.failing = None
        await trio.sleep(3)
        assert (len(service.acked), replies.sent) == (1, ["event-0001"])


async def test_a_reply_whose_ack_was_lost_leaves_with_the_ack_of_the_duplicate() -> None:
    service, replies = service_with(1, ours=True), Sent("inbox-outbox")
    service.failing = lambda path: 503 if path == "ack" else None
    async with running(service, replying, replies=replies) as one:
        await trio.sleep(65)
        service.failing = lambda path: None
        await trio.sleep(60)
        assert one.handled.began == [1]
    assert len({emit["key"] for emit in service.emitted}) == 1
    assert service.left == []


async def test_a_reply_that_may_not_be_pushed_does_not_hold_up_other_acks() -> None:
    service, replies = service_with(4, ours=True), Sent("inbox-outbox")
    service.call_s = 0.1
    service.failing = lambda path: 403 if path == "ack" and service.calls[-1][1].get("emit") else None

    async def one_reply(one: SwitchboardEvent, ctx: Context) -> Result | None:
        return Result(reply=EmailReply(text="hi")) if number(one) == 2 else None

    async with running(service, one_reply, replies=replies) as one:
        await trio.sleep(5)
        assert sorted(int(id, 16) for id in service.acked) == [1, 3, 4]
        assert any("inbox-outbox" in fields.get("err", "") for _, _, fields in one.lines.said)


async def test_a_token_that_is_revoked_for_a_while_loses_no_ack() -> None:
    service = service_with(40)
    service.failing = lambda path: 401 if path == "ack" else None
    async with running(service) as one:
        await trio.sleep(20)
        assert service.acked == []
        assert len(service.asked("ack")) < 60
        service.failing = lambda path: None
        await trio.sleep(30)
        assert sorted(one.handled.began) == list(range(1, 41))
        assert len(set(service.acked)) == 40


async def test_metrics_tell_what_became_of_messages() -> None:
    service = service_with(3, ours=True)

    async def mixed(one: SwitchboardEvent, ctx: Context) -> None:
        if number(one) == 2:
            raise GiveUp("never")

    one = await drain(service, mixed)
    value = one.metrics.registry.get_sample_value
    assert value("queue_ack_total") == 2
    assert value("queue_dlq_total") == 1
    assert value("queue_messages_inflight") == 0
    assert value("handle_duration_seconds_count") == 3


async def test_the_daemon_that_may_not_pull_says_so_and_ends() -> None:
    service = service_with(1)
    service.failing = lambda path: 401 if path == "pull" else None
    async with daemon(service) as one:
        with pytest.raises(Exception, match="QUEUE_HTTP_TOKEN"):
            await one.batches.run()
