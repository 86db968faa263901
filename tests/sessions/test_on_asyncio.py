"""A manager of sessions under asyncio: calls, deliveries on the host's loop, cancellation and every kind of end."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

import pytest
import trio

from edgequeues.inbound import InboundRow
from edgequeues.sessions import open_asyncio_manager
from edgequeues.sessions.errors import SessionNotFound
from edgequeues.sessions.inbox import Inbox
from edgequeues.sessions.local import open_inbox
from edgequeues.sessions.manager import Deliver
from edgequeues.sessions.on_asyncio import ManagerClosed
from edgequeues.store.base import Refused
from shards.errors import FolderLocked

from .asyncio_host import WITHIN_S, Delivering, folder, run, until

REQUEST = ContextVar("REQUEST", default="none")


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "edgequeues sessions"]


def test_a_hundred_messages_at_once_are_delivered_in_order_on_the_hosts_loop(tmp_path: Path) -> None:
    seen: list[InboundRow] = []
    running, most, loops = 0, 0, set[asyncio.AbstractEventLoop]()

    async def deliver(row: InboundRow) -> None:
        nonlocal running, most
        loops.add(asyncio.get_running_loop())
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        seen.append(row)

    async def work() -> None:
        async with open_asyncio_manager(folder(tmp_path), deliver) as manager:
            sent = [manager.enqueue(session_id="s", origin="o", content=str(n)) for n in range(100)]
            positions = await asyncio.gather(*sent)
            await until(lambda: len(seen) == 100)
            assert [row["id"] for row in seen] == sorted(p for p in positions if p is not None)
            assert (most, loops) == (1, {asyncio.get_running_loop()})
            assert await manager.active() == []
        assert manager.closed

    run(work)
    assert len({row["content"] for row in seen}) == 100
    assert names() == []


def test_a_repeat_is_none_and_what_cannot_be_is_refused(tmp_path: Path) -> None:
    shown: list[tuple[str, str]] = []

    async def work() -> None:
        async def typing(session_id: str, origin: str) -> None:
            shown.append((session_id, origin))
            raise OSError("no sign today")

        def plain(session_id: str, origin: str) -> None:
            asyncio.get_running_loop()  # raises in a thread without one
            shown.append((session_id, "plain"))

        delivering = Delivering()
        async with open_asyncio_manager(folder(tmp_path), delivering) as manager:
            one = await manager.enqueue(session_id="s", origin="o", source_message_id="1", typing=typing)
            again = await manager.enqueue(session_id="s", origin="o", source_message_id="1", typing=typing)
            await manager.enqueue(session_id="s", origin="o", source_message_id="2", typing=plain)
            assert one is not None
            assert again is None
            await until(lambda: len(shown) == 2)
            with pytest.raises(Refused, match="origin"):
                await manager.enqueue(session_id="s", origin="")
            await until(lambda: len(delivering.done) == 2)

    run(work)
    assert sorted(shown) == [("s", "o"), ("s", "plain")]


def test_a_plain_function_runs_in_a_thread_and_both_kinds_have_the_hosts_context(tmp_path: Path) -> None:
    seen = dict[str, tuple[str, bool]]()

    async def work() -> None:
        host = threading.get_ident()

        def plain(row: InboundRow) -> None:
            seen["plain"] = REQUEST.get(), threading.get_ident() == host

        async def on_loop(row: InboundRow) -> None:
            seen["async"] = REQUEST.get(), threading.get_ident() == host
            REQUEST.set("changed")

        async def behind(row: InboundRow, name: str) -> None:
            seen[name] = REQUEST.get(), threading.get_ident() == host

        REQUEST.set("opened")
        functions: list[Deliver] = [plain, on_loop, lambda row: behind(row, "lambda")]
        for number, deliver in enumerate(functions):
            async with open_asyncio_manager(folder(tmp_path / str(number)), deliver) as manager:
                token = REQUEST.set("later")
                await manager.enqueue(session_id="s", origin="o")
                await until(lambda count=number + 1: len(seen) == count)  # type: ignore[misc]
                REQUEST.reset(token)

    run(work)
    assert seen == {"plain": ("opened", False), "async": ("opened", True), "lambda": ("opened", True)}


def test_what_a_function_raises_is_a_failure_or_a_rejection(tmp_path: Path) -> None:
    async def deliver(row: InboundRow) -> None:
        if row["session_id"] == "gone":
            raise SessionNotFound("gone")
        if row["session_id"] == "exits":
            raise SystemExit(2)
        raise asyncio.CancelledError

    async def work() -> None:
        async with open_asyncio_manager(folder(tmp_path), deliver) as manager:
            for session in ("gone", "exits", "cancelled"):
                await manager.enqueue(session_id=session, origin="o")

            async def heads() -> dict[str, int]:
                return {one.session_id: one.head.failures for one in (await manager.sessions()).sessions}

            while await heads() != {"exits": 1, "cancelled": 1}:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            assert await manager.retry_now("exits")
            assert await manager.skip("cancelled")
            assert not await manager.skip("nobody")

    run(work)


def test_a_session_that_expires_has_its_task_cancelled_and_waited_for(tmp_path: Path) -> None:
    delivering = Delivering()

    async def work() -> None:
        async with open_asyncio_manager(folder(tmp_path), delivering) as manager:
            for content in ("first", "second"):
                await manager.enqueue(session_id="hangs", origin="o", content=content)
            await until(lambda: len(delivering.begun) == 1)
            assert await manager.active() == ["hangs"]
            assert await manager.expire_session("hangs") == 2
            assert delivering.cancelled == ["first"]
            await manager.enqueue(session_id="s", origin="o", content="other")
            await until(lambda: delivering.done == ["other"])
            assert await manager.cleanup("2100-01-01T00:00:00Z") == 3

    run(work)


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


def test_a_caller_that_is_cancelled_stops_at_once_and_its_message_is_whole_or_not_there(
    tmp_path: Path,
) -> None:
    delivering = Delivering()

    async def work() -> None:
        async with open_asyncio_manager(folder(tmp_path), delivering) as manager:
            calls = [
                asyncio.create_task(
                    manager.enqueue(session_id="s", origin="o", content=str(n), source_message_id=str(n))
                )
                for n in range(40)
            ]
            await asyncio.sleep(0)
            for call in calls[::2]:
                call.cancel()
            given = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in given[::2])
            for number in range(40):
                again = await manager.enqueue(
                    session_id="s", origin="o", content=str(number), source_message_id=str(number)
                )
                assert number % 2 == 0 or again is None
            await until(lambda: len(delivering.done) == 40)
        assert sorted(delivering.done, key=int) == [str(number) for number in range(40)]

    run(work)


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


def test_other_loops_in_other_threads_may_call(tmp_path: Path) -> None:
    delivering = Delivering()

    async def work() -> None:
        async with open_asyncio_manager(folder(tmp_path), delivering) as manager:

            def elsewhere(number: int) -> int | None:
                return asyncio.run(manager.enqueue(session_id=f"s{number}", origin="o", content=str(number)))

            given = await asyncio.gather(*(asyncio.to_thread(elsewhere, number) for number in range(5)))
            assert len(set(given)) == 5
            await until(lambda: len(delivering.done) == 5)

    run(work)


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
