"""How managers of sessions end under asyncio: left, cancelled, broken, or with their loop gone."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from edgequeues.inbound import InboundRow
from edgequeues.sessions import open_asyncio_manager
from edgequeues.sessions.inbox import Inbox
from edgequeues.sessions.local import open_inbox
from edgequeues.sessions.on_asyncio import ManagerClosed
from shards.errors import FolderLocked

from .asyncio_host import WITHIN_S, Delivering, folder, names, run, until


def test_leaving_gives_messages_back_and_calls_raise_afterwards(tmp_path: Path) -> None:
    delivering = Delivering()

    async def work() -> None:
        async with open_asyncio_manager(folder(tmp_path), delivering) as manager:
            await manager.enqueue(session_id="hangs", origin="o", content="kept")
            await until(lambda: len(delivering.begun) == 1)
        assert delivering.cancelled == ["kept"]
        with pytest.raises(ManagerClosed, match="Open one anew"):
            await manager.enqueue(session_id="s", origin="o")
        seen: list[InboundRow] = []
        async with open_asyncio_manager(folder(tmp_path), seen.append):
            await until(lambda: len(seen) == 1)
        assert (seen[0]["content"], seen[0]["attempt_count"]) == ("kept", 0)

    run(work)
    assert names() == []


def test_what_is_delivered_in_the_very_moment_of_leaving_is_not_delivered_again(tmp_path: Path) -> None:
    """The task has ended on this loop, which goes on to stop the manager before that is told."""
    seen: list[str] = []

    async def work() -> None:
        for number in range(3):
            delivered = asyncio.Event()

            async def deliver(row: InboundRow, delivered: asyncio.Event = delivered) -> None:
                await asyncio.sleep(0)
                seen.append(row["content"])
                delivered.set()

            async with open_asyncio_manager(folder(tmp_path), deliver) as manager:
                await manager.enqueue(session_id="s", origin="o", content=str(number))
                await delivered.wait()
                manager.stop()
                time.sleep(0.05)  # noqa: ASYNC251 - trio cancels meanwhile, and the loop has not told it yet

    run(work)
    assert seen == [str(number) for number in range(3)]


def test_a_task_that_will_not_be_cancelled_is_left_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        let_go = asyncio.Event()

        async def deliver(row: InboundRow) -> None:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    caplog.clear()

        async with open_asyncio_manager(folder(tmp_path), deliver) as manager:
            await manager.enqueue(session_id="s", origin="o")
            while await manager.active() != ["s"]:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        let_go.set()
        await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING):
        run(work)
    assert "a function that was cancelled goes on" in caplog.text


def test_a_folder_that_is_open_already_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        async with open_asyncio_manager(folder(tmp_path), Delivering()) as manager:
            with pytest.raises(FolderLocked):
                async with open_asyncio_manager(folder(tmp_path), Delivering()):
                    pass
            assert len(names()) == 1
            assert await manager.enqueue(session_id="s", origin="o") is not None

    run(work)
    assert names() == []


class Blocked:
    """An inbox of which one call waits for ever, or the one beside it breaks."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self.waiting = threading.Event()
        self.ended = threading.Event()
        self.broken = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._inbox, name)

    async def skip(self, session_id: str) -> bool:
        self.waiting.set()
        try:
            await trio.sleep(WITHIN_S)
        finally:
            self.ended.set()
        return False

    async def claim(self, limit: int, *, lock_ms: int, wait_s: float) -> list[object]:
        while not self.broken:
            if not wait_s:
                return []
            await trio.sleep(0.01)
        raise RuntimeError("a fault of this code")


def blocked(path: Path) -> tuple[list[Blocked], object]:
    made: list[Blocked] = []

    @asynccontextmanager
    async def opening() -> AsyncIterator[Blocked]:
        async with open_inbox(path) as inbox:
            made.append(Blocked(inbox))
            yield made[0]

    return made, opening


def test_cancelling_a_caller_ends_what_only_waits(tmp_path: Path) -> None:
    made, opening = blocked(tmp_path)

    async def work() -> None:
        async with open_asyncio_manager(opening, Delivering()) as manager:  # type: ignore[arg-type]
            call = asyncio.create_task(manager.skip("s"))
            await until(made[0].waiting.is_set)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(made[0].ended.is_set)

    run(work)


def test_a_manager_that_ends_by_itself_is_closed_and_says_why_when_it_is_left(tmp_path: Path) -> None:
    made, opening = blocked(tmp_path)

    async def work() -> None:
        async with open_asyncio_manager(opening, Delivering()) as manager:  # type: ignore[arg-type]
            waits = asyncio.create_task(manager.skip("s"))
            await until(made[0].waiting.is_set)
            made[0].broken = True
            with pytest.raises(ManagerClosed):
                await waits
            await until(lambda: manager.closed)
            with pytest.raises(ManagerClosed, match="RuntimeError"):
                await manager.enqueue(session_id="s", origin="o")

    with pytest.raises(RuntimeError, match="a fault of this code"):
        run(work)
    assert names() == []


def test_a_host_that_is_cancelled_while_it_opens_or_runs_leaves_nothing(tmp_path: Path) -> None:
    @asynccontextmanager
    async def never() -> AsyncIterator[Inbox]:
        await trio.sleep(WITHIN_S)
        async with open_inbox(tmp_path) as inbox:
            yield inbox

    async def opens() -> None:
        async with open_asyncio_manager(never, Delivering()):
            pass

    async def runs() -> None:
        async with open_asyncio_manager(folder(tmp_path), Delivering()) as manager:
            await manager.enqueue(session_id="hangs", origin="o")
            await asyncio.Event().wait()

    async def work() -> None:
        for host in (opens, runs):
            task = asyncio.create_task(host())
            await until(lambda: len(names()) == 1)
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert names() == []

    run(work)


def test_a_loop_that_closes_under_its_manager_ends_it(tmp_path: Path) -> None:
    delivering = Delivering()
    loop = asyncio.new_event_loop()
    opening = open_asyncio_manager(folder(tmp_path), delivering)

    async def begin() -> None:
        manager = await opening.__aenter__()
        await manager.enqueue(session_id="hangs", origin="o", content="kept")
        await until(lambda: len(delivering.begun) == 1)

    loop.run_until_complete(begin())
    waiting = asyncio.all_tasks(loop)
    for task in waiting:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    seen: list[InboundRow] = []

    async def again() -> None:
        await until(lambda: names() == [])
        async with open_asyncio_manager(folder(tmp_path), seen.append):
            await until(lambda: len(seen) == 1)

    run(again)
    assert (seen[0]["content"], seen[0]["attempt_count"]) == ("kept", 0)
