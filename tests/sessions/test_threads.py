"""Plain functions deliver in threads; one that hangs holds up its own session and nothing else. In real time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from edgequeues.inbound import InboundRow
from edgequeues.sessions.errors import SessionNotFound
from edgequeues.sessions.local import open_inbox
from edgequeues.sessions.manager import Options, open_manager

from .deliveries import enqueue

WITHIN_S = 30.0  # against hanging; nothing is said of how long anything takes


class Threads:
    """Delivers in threads; those to sessions that start with `hangs` hang until `let_go`."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.seen: list[str] = []
        self.hanging: set[str] = set()
        self.changed = trio.Event()

    def __call__(self, row: InboundRow) -> str:
        if row["session_id"].startswith("hangs"):
            self.hanging.add(row["session_id"])
            trio.from_thread.run_sync(self._change)
            self.let_go.wait()
        self.seen.append(row["content"])
        trio.from_thread.run_sync(self._change)
        return "ignored"

    def _change(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    async def until(self, *, hanging: int = 0, seen: int = 0) -> None:
        with trio.fail_after(WITHIN_S):
            while len(self.hanging) < hanging or len(self.seen) < seen:
                await self.changed.wait()


@pytest.fixture
def threads() -> Iterator[Threads]:
    found = Threads()
    yield found
    found.let_go.set()


async def test_more_that_hang_than_trio_has_threads_hold_up_no_other_and_no_end(
    tmp_path: Path, threads: Threads
) -> None:
    """By default trio has 40 threads for all there is."""
    async with open_inbox(tmp_path) as inbox:
        async with open_manager(inbox, threads) as manager:
            for number in range(60):
                await enqueue(manager, "hangs", f"hangs{number}")
            await threads.until(hanging=60)
            await enqueue(manager, "hangs", "hangs1")
            await enqueue(manager, "one", "other")
            await enqueue(manager, "two", "other")
            await threads.until(seen=2)
            assert threads.seen == ["one", "two"]
            assert threads.hanging <= set(manager.active())
            assert await manager.expire_session("hangs7") == 1
            assert "hangs7" not in manager.active()
        page = await inbox.sessions(limit=100)
        assert {session.head.state for session in page.sessions} == {"ready"}
        assert {session.head.failures for session in page.sessions} == {0}
        assert len(page.sessions) == 59


async def test_threads_that_were_left_behind_leave_room_for_others(tmp_path: Path, threads: Threads) -> None:
    async with open_inbox(tmp_path) as inbox, open_manager(inbox, threads, Options(concurrency=1)) as manager:
        for number in range(3):
            await enqueue(manager, "hangs", f"hangs{number}")
            await threads.until(hanging=number + 1)
            await manager.expire_session(f"hangs{number}")
        await enqueue(manager, "one", "other")
        await threads.until(seen=1)
    assert threads.seen == ["one"]


async def test_what_a_plain_function_raises_counts_as_what_an_async_one_does(tmp_path: Path) -> None:
    told: list[str] = []

    def deliver(row: InboundRow) -> None:
        told.append(row["content"])
        if row["content"] == "rejected":
            raise SessionNotFound("s")
        if row["content"] == "exits":
            raise SystemExit(2)

    async with open_inbox(tmp_path) as inbox, open_manager(inbox, deliver) as manager:
        for content in ("rejected", "delivered", "exits", "behind it"):
            await enqueue(manager, content)
        with trio.fail_after(WITHIN_S):
            while len(told) < 3 or (await manager.sessions()).sessions[0].head.failures == 0:  # noqa: ASYNC110
                await trio.sleep(0.01)
        page = (await manager.sessions()).sessions
        assert told == ["rejected", "delivered", "exits"]
        assert page[0].depth == 2


async def test_a_plain_function_that_gives_something_to_wait_for_is_waited_for(tmp_path: Path) -> None:
    """A lambda around an async function does not look like one."""
    seen, done = list[str](), trio.Event()

    async def deliver(name: str, row: InboundRow) -> None:
        await trio.sleep(0.01)
        seen.append(name + row["content"])
        done.set()

    async with (
        open_inbox(tmp_path) as inbox,
        open_manager(inbox, lambda row: deliver("to s: ", row)) as manager,
    ):
        await enqueue(manager, "a")
        with trio.fail_after(WITHIN_S):
            await done.wait()
    assert seen == ["to s: a"]


async def test_a_plain_function_may_show_the_sign_of_typing(tmp_path: Path) -> None:
    shown = trio.Event()

    def typing(session_id: str, origin: str) -> None:
        assert (session_id, origin) == ("s", "telegram")
        trio.from_thread.run_sync(shown.set)

    async with open_inbox(tmp_path) as inbox, open_manager(inbox, lambda row: None) as manager:
        await manager.enqueue(session_id="s", origin="telegram", typing=typing)
        with trio.fail_after(WITHIN_S):
            await shown.wait()
