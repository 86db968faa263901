"""A manager of sessions under asyncio: calls, and deliveries on the host's loop."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from pathlib import Path

import pytest

from edgequeues.inbound import InboundRow
from edgequeues.sessions import open_asyncio_manager
from edgequeues.sessions.errors import SessionNotFound
from edgequeues.sessions.manager import Deliver
from edgequeues.store.base import Refused

from .asyncio_host import Delivering, folder, names, run, until

REQUEST = ContextVar("REQUEST", default="none")


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
