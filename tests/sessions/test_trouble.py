"""What the manager does when its inbox is away, refuses, or gives a message to somebody else."""

from __future__ import annotations

import logging

import pytest
import trio

from edgequeues.inbound import InboundRow
from edgequeues.sessions.inbox import Outcome
from edgequeues.sessions.manager import Options, open_manager
from edgequeues.store.base import Refused, StoreFailed, Unavailable

from .memory import MemoryInbox


async def hang(row: InboundRow) -> None:
    await trio.sleep_forever()


async def nothing(row: InboundRow) -> None:
    """Every message is delivered at once."""


AWAY = Unavailable("busy", "the file is locked")


async def test_si_s04_a_mark_that_fails_is_said_again_and_the_message_is_delivered_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SI-S04."""
    inbox, seen = MemoryInbox(), list[int]()
    inbox.faults["delivered"] = [AWAY, AWAY, StoreFailed("no answer")]

    async def deliver(row: InboundRow) -> None:
        seen.append(row["id"])

    async with open_manager(inbox, deliver) as manager:
        await manager.enqueue(session_id="s", origin="telegram", content="top secret")
        await trio.sleep(60)
        assert inbox.at(1).status == "delivered"
    assert seen == [1]
    assert "could not be said yet" in caplog.text
    assert "M1" in caplog.text
    assert "top secret" not in caplog.text


async def test_a_mark_is_given_up_when_the_lock_is_over(caplog: pytest.LogCaptureFixture) -> None:
    """SI-S04: the session goes on, though no answer about the message gets through."""
    inbox, seen = MemoryInbox(), list[int]()
    inbox.faults["delivered"] = [AWAY] * 1_000
    inbox.faults["extend"] = [AWAY] * 1_000

    async def deliver(row: InboundRow) -> None:
        seen.append(row["id"])

    async with open_manager(inbox, deliver, Options(lock_ms=60_000)) as manager:
        await manager.enqueue(session_id="s", origin="telegram")
        await trio.sleep(200)
        assert "may come again" in caplog.text
        inbox.faults.clear()
        await trio.sleep(200)
        assert inbox.at(1).status == "delivered"
    assert seen[:1] == [1]
    assert 2 <= len(seen) <= 5


async def test_a_refused_mark_is_not_said_again(caplog: pytest.LogCaptureFixture) -> None:
    inbox = MemoryInbox()
    inbox.faults["delivered"] = [Refused("forbidden", "not with this token")]
    async with open_manager(inbox, nothing) as manager:
        await manager.enqueue(session_id="s", origin="telegram")
        await trio.sleep(5)
        assert [name for name, _ in inbox.calls if name == "delivered"] == ["delivered"]
        assert manager.active() == []
    assert "not with this token" in caplog.text


async def test_claims_go_on_when_the_inbox_is_back_and_its_absence_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inbox, seen = MemoryInbox(), list[int]()

    async def deliver(row: InboundRow) -> None:
        seen.append(row["id"])

    with caplog.at_level(logging.INFO):
        async with open_manager(inbox, deliver) as manager:
            await trio.sleep(1)
            inbox.faults["claim"] = [AWAY] * 9 + [Refused("forbidden", "a token that was taken back")]
            await manager.enqueue(session_id="s", origin="telegram")
            await manager.enqueue(session_id="t", origin="telegram")
            await trio.sleep(120)
            await manager.enqueue(session_id="s", origin="telegram")
            await trio.sleep(1)
    assert sorted(seen) == [1, 2, 3]
    assert caplog.text.count("cannot be claimed") == 1
    assert caplog.text.count("can be claimed again") == 1


async def test_an_inbox_that_is_away_at_the_start_is_taken_over_when_it_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inbox, seen = MemoryInbox(), list[int]()
    inbox.faults["reclaim"] = [AWAY] * 3

    async def deliver(row: InboundRow) -> None:
        seen.append(row["attempt_count"])

    async with open_manager(inbox, hang) as manager:
        await manager.enqueue(session_id="s", origin="telegram")
        await trio.sleep(30)
        assert manager.active() == ["s"]
    inbox.take_away(1)  # and nobody gives it back
    async with open_manager(inbox, deliver):
        await trio.sleep(30)
    assert seen == [1]
    assert "does not answer yet" in caplog.text


async def test_an_inbox_that_refuses_at_the_start_is_an_error() -> None:
    inbox = MemoryInbox()
    inbox.faults["claim"] = [Refused("forbidden", "not with this token")]
    with pytest.raises(Refused, match="not with this token"):
        async with open_manager(inbox, nothing):
            raise AssertionError("it is not entered")


@pytest.mark.parametrize("lost", ["stale", "finished"])
async def test_a_delivery_whose_lock_is_lost_is_cancelled_and_not_marked(lost: str) -> None:
    inbox, ends = MemoryInbox(), list[str]()

    async def deliver(row: InboundRow) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ends.append(row["session_id"])

    async with open_manager(inbox, deliver, Options(lock_ms=300_000)) as manager:
        await manager.enqueue(session_id="s", origin="telegram")
        await manager.enqueue(session_id="other", origin="telegram")
        await trio.sleep(1)
        if lost == "stale":
            inbox.take_away(1)
        else:
            await inbox.close("s")
        await trio.sleep(101)
        assert ends == ["s"]
        assert manager.active() == ["other"]
        assert {name for name, _ in inbox.calls}.isdisjoint({"delivered", "failed", "release"})


async def test_a_message_whose_lock_ended_meanwhile_is_not_delivered_beside_itself() -> None:
    """The extension came too late, and the message is handed out to the same manager again."""
    inbox, begun = MemoryInbox(), list[int]()

    async def deliver(row: InboundRow) -> None:
        begun.append(row["id"])
        await trio.sleep(50)

    async with open_manager(inbox, deliver, Options(lock_ms=30_000)) as manager:
        inbox.faults["extend"] = [AWAY] * 25
        await manager.enqueue(session_id="s", origin="telegram")
        await trio.sleep(60)
    assert begun == [1]
    assert inbox.at(1).status == "delivered"
    assert inbox.at(1).attempts == 2


async def test_locks_are_extended_in_calls_of_bounded_size() -> None:
    inbox = MemoryInbox()
    async with open_manager(inbox, hang) as manager:
        for number in range(250):
            await manager.enqueue(session_id=str(number), origin="telegram")
        await trio.sleep(101)
        assert len(manager.active()) == 250
        sizes = [len(about) for name, about in inbox.calls if name == "extend" and isinstance(about, list)]
        assert sizes == [100, 100, 50]


async def test_a_close_that_fails_leaves_the_message_to_be_delivered_again() -> None:
    inbox, begun = MemoryInbox(), list[int]()

    async def deliver(row: InboundRow) -> None:
        begun.append(row["attempt_count"])
        await trio.sleep(10)

    async with open_manager(inbox, deliver) as manager:
        await manager.enqueue(session_id="s", origin="telegram")
        await trio.sleep(1)
        inbox.faults["close"] = [AWAY]
        with pytest.raises(Unavailable):
            await manager.expire_session("s")
        await trio.sleep(11)
        assert begun == [0, 0]
        assert inbox.at(1).status == "delivered"


class LateToSay(MemoryInbox):
    """An answer that is taken down at once takes a while to come back."""

    async def failed(self, lease: str, error: str) -> Outcome:
        outcome = await super().failed(lease, error)
        await trio.sleep(1)
        return outcome

    async def delivered(self, lease: str) -> Outcome:
        outcome = await super().delivered(lease)
        await trio.sleep(1)
        return outcome


async def test_what_is_handed_out_before_the_last_answer_came_back_waits_for_it() -> None:
    """An operator has a message tried again as soon as its failure is on disk; and one follows upon the other."""
    inbox, seen = LateToSay(), list[tuple[float, int, int]]()
    began = trio.current_time()

    async def deliver(row: InboundRow) -> None:
        seen.append((round(trio.current_time() - began, 2), row["id"], row["attempt_count"]))
        if len(seen) == 1:
            raise ValueError("no pane")

    async with open_manager(inbox, deliver) as manager:
        await manager.enqueue(session_id="s", origin="telegram")
        await manager.enqueue(session_id="s", origin="telegram")
        await trio.sleep(0.5)
        assert await manager.retry_now("s")
        await trio.sleep(10)
    assert seen == [(0.0, 1, 0), (1.0, 1, 1), (2.0, 2, 0)]
    assert [one.status for one in inbox.kept] == ["delivered", "delivered"]
