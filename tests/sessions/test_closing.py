"""A session that is closed is not delivered to, and one that is written to again is."""

from __future__ import annotations

import pytest
import trio

from edgequeues.inbound import InboundRow
from edgequeues.sessions.inbox import Claimed, Inbox
from edgequeues.sessions.manager import open_manager

from .conftest import Folder
from .deliveries import Deliveries, enqueue
from .memory import MemoryInbox


async def test_closing_cancels_the_delivery_and_expires_the_rest(folder: Folder) -> None:
    """SI-S04: over restarts too, nothing of it is delivered any more."""
    deliver = Deliveries(lasts_s=60.0)
    async with open_manager(folder.make(), deliver) as manager:
        for content in "abc":
            await enqueue(manager, content)
        await enqueue(manager, "other", "t")
        await trio.sleep(1)
        assert await manager.expire_session("s") == 3
        assert deliver.cancelled == ["a"]
        assert manager.active() == ["t"]
        assert await manager.expire_session("s") == 0
        await trio.sleep(600)
        assert deliver.done == ["other"]
    for _ in range(2):
        await folder.restart()
        async with open_manager(folder.make(), deliver):
            await trio.sleep(600)
    assert sorted(deliver.contents) == ["a", "other"]


async def test_closing_ends_what_backs_off(folder: Folder) -> None:
    deliver = Deliveries(0.0, RuntimeError("no pane"))
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "a")
        await trio.sleep(1)
        assert await manager.expire_session("s") == 1
        await trio.sleep(600)
    assert deliver.contents == ["a"]


async def test_a_session_that_was_closed_takes_messages_again(folder: Folder) -> None:
    deliver = Deliveries(lasts_s=10.0)
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "before")
        await trio.sleep(1)
        await manager.expire_session("s")
        await enqueue(manager, "after")
        await trio.sleep(30)
    assert deliver.done == ["after"]
    assert deliver.attempts == [0, 0]


async def test_the_next_message_waits_for_a_delivery_that_is_slow_to_end(folder: Folder) -> None:
    """A function that does not end when it is cancelled has its session to itself until it does."""
    running = 0
    seen: list[tuple[str, int]] = []

    async def deliver(row: InboundRow) -> None:
        nonlocal running
        running += 1
        seen.append((row["content"], running))
        with trio.CancelScope(shield=True):
            await trio.sleep(20)
        running -= 1

    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "before")
        await trio.sleep(1)
        began = trio.current_time()
        await manager.expire_session("s")
        assert trio.current_time() - began == pytest.approx(5, abs=0.1)
        await enqueue(manager, "after")
        await trio.sleep(1)
        assert [content for content, _ in seen] == ["before"]
        await trio.sleep(40)
    assert seen == [("before", 1), ("after", 1)]


class Slow(MemoryInbox):
    """What a claim gives takes a while on its way."""

    async def claim(self, limit: int, *, lock_ms: int, wait_s: float) -> list[Claimed]:
        claimed = await super().claim(limit, lock_ms=lock_ms, wait_s=wait_s)
        await trio.sleep(2)
        return claimed


class SlowToClose(MemoryInbox):
    """A close takes many turns."""

    async def close(self, session_id: str) -> int:
        await trio.sleep(2)
        return await super().close(session_id)


@pytest.mark.parametrize("kind", [Slow, SlowToClose])
async def test_what_was_on_its_way_when_a_session_was_closed_is_not_delivered(
    kind: type[MemoryInbox],
) -> None:
    inbox = kind()
    checked: Inbox = inbox
    deliver = Deliveries()
    async with open_manager(checked, deliver) as manager:
        await trio.sleep(3)
        if kind is Slow:
            await enqueue(manager, "a")
            await trio.sleep(1)
            assert await manager.expire_session("s") == 1
        else:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(manager.expire_session, "s")
                await trio.sleep(1)
                await enqueue(manager, "a")
        await trio.sleep(10)
        assert deliver.contents == []
        await enqueue(manager, "b")
        await trio.sleep(10)
    assert deliver.done == ["b"]
