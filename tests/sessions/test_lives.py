"""What a manager does at its start and its end, and that locks hold for as long as a delivery takes."""

from __future__ import annotations

import pytest
import trio

from edgequeues.inbound import LOCK_MS, Inbound
from edgequeues.sessions.manager import Options, open_manager

from .conftest import Folder
from .deliveries import Deliveries, enqueue

HOUR_S = 3_600.0


async def held_by(folder: Folder, worker: str, *contents: str) -> None:
    """Messages of one session, of which a worker that was killed held the first."""
    inbox = folder.make(worker)
    for content in contents:
        await inbox.enqueue(Inbound(session_id="s", origin="o", content=content))
    assert len(await inbox.claim(10, lock_ms=LOCK_MS, wait_s=0)) == 1
    await trio.sleep(10)
    await folder.stop()


# -- starts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step_s", [0, -7_200, 7_200])
async def test_what_was_being_delivered_when_it_was_killed_is_resumed_at_once_in_order(
    folder: Folder, step_s: int
) -> None:
    """SI-S05: also where the clock was wrong and the lock is from the future (fault 1 of the origin)."""
    await held_by(folder, "manager", "a", "b", "c")
    folder.clock.skew_ms += step_s * 1_000
    await folder.start()
    deliver = Deliveries()
    async with open_manager(folder.make("manager"), deliver):
        await trio.sleep(1)
        assert deliver.done == ["a", "b", "c"]
        assert deliver.attempts == [1, 0, 0]
        await trio.sleep(HOUR_S)
    assert deliver.done == ["a", "b", "c"]


@pytest.mark.parametrize("step_s", [0, -7_200])
async def test_what_another_worker_held_that_was_killed_comes_when_its_lock_ends(
    folder: Folder, step_s: int
) -> None:
    """SI-S05: after five minutes; after ten where the clock was set back: the store's then goes at half its pace."""
    await held_by(folder, "another", "a", "b", "c")
    folder.clock.skew_ms += step_s * 1_000
    await folder.start()
    deliver = Deliveries()
    async with open_manager(folder.make("manager"), deliver):
        await trio.sleep(LOCK_MS / 1_000 - 11)
        assert deliver.begun == []
        await trio.sleep(12 if step_s == 0 else LOCK_MS / 1_000 + 15)
        assert deliver.done == ["a", "b", "c"]


async def test_what_backed_off_goes_on_backing_off_in_the_next_life(folder: Folder) -> None:
    async with open_manager(folder.make(), Deliveries(0.0, *[RuntimeError("no pane")] * 2)) as manager:
        await enqueue(manager, "a")
        await enqueue(manager, "b")
        await trio.sleep(6)  # it failed at 0 and 5 s; due at 15 s
    await folder.restart()
    deliver = Deliveries()
    async with open_manager(folder.make(), deliver):
        await trio.sleep(8.5)
        assert deliver.begun == []
        await trio.sleep(1)
        assert deliver.done == ["a", "b"]
        assert deliver.attempts == [2, 0]


async def test_a_message_that_is_none_ends_and_the_rest_is_delivered(folder: Folder) -> None:
    inbox = folder.make()
    await inbox.enqueue(Inbound(session_id="s", origin="o", content="a"))
    await folder.push('{"session_id": "s", "origin": 7}', key="s")
    await folder.push('{"session_id": "t", "origin": "o"}', key="s")
    await inbox.enqueue(Inbound(session_id="s", origin="o", content="b"))
    deliver = Deliveries()
    async with open_manager(inbox, deliver):
        await trio.sleep(1)
    assert deliver.done == ["a", "b"]
    assert [status for (status,) in await folder.table("status")] == [
        "delivered",
        "expired",
        "expired",
        "delivered",
    ]


# -- locks -------------------------------------------------------------------------------------------------


async def test_a_delivery_may_take_an_hour(folder: Folder) -> None:
    """Its lock of five minutes is extended: nobody else is given the message meanwhile."""
    deliver, others = Deliveries(lasts_s=HOUR_S), Deliveries()
    async with (
        open_manager(folder.make("one"), deliver) as manager,
        open_manager(folder.make("two"), others),
    ):
        others.lasts_s = 1.0
        await enqueue(manager, "a")
        await enqueue(manager, "b")
        await trio.sleep(3 * HOUR_S)
    assert sorted(deliver.done + others.done) == ["a", "b"]
    assert sorted(deliver.attempts + others.attempts) == [0, 0]


async def test_a_message_of_a_session_that_was_closed_elsewhere_is_no_longer_delivered(
    folder: Folder,
) -> None:
    deliver = Deliveries(lasts_s=HOUR_S)
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "a")
        await trio.sleep(1)
        assert await folder.make("operator").close("s") == 1
        await trio.sleep(LOCK_MS / 3_000)
        assert deliver.cancelled == ["a"]
        assert manager.active() == []
        await enqueue(manager, "b")
        await trio.sleep(1)
        assert deliver.contents == ["a", "b"]


async def test_what_comes_in_after_a_session_was_closed_elsewhere_ends_the_delivery_at_once(
    folder: Folder,
) -> None:
    deliver = Deliveries(lasts_s=HOUR_S)
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "a")
        await trio.sleep(1)
        await folder.make("operator").close("s")
        await enqueue(manager, "b")
        await trio.sleep(1)
        assert deliver.cancelled == ["a"]
        assert deliver.contents == ["a", "b"]
        assert deliver.most == 1


# -- ends --------------------------------------------------------------------------------------------------


async def test_at_the_end_messages_are_given_back_as_if_they_had_not_been_begun(folder: Folder) -> None:
    deliver = Deliveries(lasts_s=HOUR_S)
    async with open_manager(folder.make("first"), deliver) as manager:
        for number in range(250):
            await enqueue(manager, f"{number}", f"s{number}")
        await trio.sleep(1)
        assert len(manager.active()) == 250
        began = trio.current_time()
    assert trio.current_time() - began < 1
    assert len(deliver.cancelled) == 250
    await folder.restart()
    again = Deliveries()
    async with open_manager(folder.make("second"), again):
        await trio.sleep(1)
    assert len(again.done) == 250
    assert set(again.attempts) == {0}


async def test_deliveries_are_given_their_grace(folder: Folder) -> None:
    deliver = Deliveries(lasts_s=10.0)
    async with open_manager(folder.make(), deliver, Options(grace_s=30.0)) as manager:
        await enqueue(manager, "a")
        await enqueue(manager, "b")
        await trio.sleep(5)
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(5, abs=0.1)
    assert deliver.contents == deliver.done == ["a"]
    assert await folder.table("status") == [("delivered",), ("pending",)]


async def test_who_is_cancelled_gives_back_too(folder: Folder) -> None:
    deliver = Deliveries(lasts_s=HOUR_S)
    with trio.move_on_after(5):
        async with open_manager(folder.make(), deliver) as manager:
            await enqueue(manager, "a")
            await trio.sleep_forever()
    assert await folder.table("status, attempt_count, locked_at") == [("pending", 0, None)]


async def test_what_the_block_raises_comes_out_as_it_is(folder: Folder) -> None:
    with pytest.raises(KeyError, match="of the block"):
        async with open_manager(folder.make(), Deliveries()):
            raise KeyError("of the block")


async def test_a_delivery_that_ends_as_it_is_cancelled_is_delivered(folder: Folder) -> None:
    done: list[str] = []

    async def deliver(row: object) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(2)
        done.append("a")

    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "a")
        await trio.sleep(1)
    assert done == ["a"]
    assert await folder.table("status") == [("delivered",)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("concurrency", 0), ("lock_ms", 999), ("clean_every_s", 0.0), ("keep_ms", -1), ("grace_s", -1.0)],
)
def test_options_that_cannot_be_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Options(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", range(8))
async def test_what_a_claim_that_is_cancelled_was_handed_is_not_left_locked(
    folder: Folder, steps: int
) -> None:
    """Either the one who is cancelled is given it, who then gives it back, or it was not handed out."""
    inbox, claimed = folder.make(), list[str]()
    await inbox.enqueue(Inbound(session_id="s", origin="o"))

    async def claim() -> None:
        claimed.extend(one.lease for one in await inbox.claim(1, lock_ms=LOCK_MS, wait_s=60))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(claim)
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    await inbox.release(claimed)
    assert len(await inbox.claim(1, lock_ms=LOCK_MS, wait_s=0)) == 1
