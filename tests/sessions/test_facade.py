"""One manager for the process, by the names of seed 4."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgequeues.inbound import InboundRow
from edgequeues.sessions import (
    InboundQueueManager,
    ManagerClosed,
    get_inbound_queue_manager,
    init_inbound_queue_manager,
    reset_inbound_queue_manager,
)
from edgequeues.sessions.facade import AlreadyInitialized, NotInitialized

from .asyncio_host import Delivering, names, run, until


@pytest.fixture(autouse=True)
def no_manager_is_left() -> Iterator[None]:
    yield
    reset_inbound_queue_manager()
    assert names() == []


def test_it_is_initialised_once_unless_forced(tmp_path: Path) -> None:
    with pytest.raises(NotInitialized, match="init_inbound_queue_manager"):
        get_inbound_queue_manager()
    first = init_inbound_queue_manager(Delivering(), data=tmp_path)
    assert get_inbound_queue_manager() is first
    with pytest.raises(AlreadyInitialized, match="force"):
        init_inbound_queue_manager(Delivering(), data=tmp_path)
    second = init_inbound_queue_manager(Delivering(), data=tmp_path, force=True)
    assert get_inbound_queue_manager() is second is not first
    reset_inbound_queue_manager()
    with pytest.raises(RuntimeError):
        get_inbound_queue_manager()


def test_the_delivery_function_may_be_a_partial_of_an_async_one(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    polled: list[str] = []

    async def deliver_inbound(row: InboundRow, *, client: str, start_polling: list[str]) -> None:
        await asyncio.sleep(0)
        seen.append((client, row["content"]))
        start_polling.append(row["session_id"])

    async def work() -> None:
        deliver = functools.partial(deliver_inbound, client="adapters", start_polling=polled)
        manager = init_inbound_queue_manager(deliver, data=tmp_path)
        await manager.startup()
        await manager.startup()
        assert await manager.enqueue(session_id="s", origin="telegram", content="hello") is not None
        await until(lambda: polled == ["s"])
        await manager.shutdown()
        await manager.shutdown()

    run(work)
    assert seen == [("adapters", "hello")]


def test_messages_enqueued_before_the_start_open_it_once(tmp_path: Path) -> None:
    delivering = Delivering()

    async def work() -> None:
        manager = InboundQueueManager(delivering, data=str(tmp_path))
        sent = [manager.enqueue(session_id="s", origin="o", content=str(n)) for n in range(100)]
        assert len(set(await asyncio.gather(*sent))) == 100
        await until(lambda: len(delivering.done) == 100)
        await manager.shutdown()
        with pytest.raises(ManagerClosed, match="shut down"):
            await manager.enqueue(session_id="s", origin="o")

    run(work)
    assert [row["id"] for row in delivering.begun] == sorted(row["id"] for row in delivering.begun)


def test_what_was_not_delivered_is_after_the_next_start(tmp_path: Path) -> None:
    first = Delivering()

    async def work() -> None:
        manager = InboundQueueManager(first, data=tmp_path)
        for session, content in (("hangs", "a"), ("hangs", "b"), ("expired", "c")):
            await manager.enqueue(session_id=session, origin="o", content=content)
        await until(lambda: first.done == ["c"] and len(first.begun) == 2)
        await manager.shutdown()
        assert first.cancelled == ["a"]
        await manager.startup()
        await until(lambda: len(first.begun) == 3)
        assert await manager.expire_session("hangs") == 2
        assert await manager.cleanup("2100-01-01T00:00:00+01:00") == 3
        await manager.shutdown()

    run(work)
    assert [row["content"] for row in first.begun if row["session_id"] == "hangs"] == ["a", "a"]


def test_forcing_ends_the_old_one_before_the_new_one_opens_the_same_folder(tmp_path: Path) -> None:
    old, new = Delivering(), Delivering()

    async def work() -> None:
        replaced = init_inbound_queue_manager(old, data=tmp_path)
        await replaced.enqueue(session_id="hangs", origin="o", content="a")
        await until(lambda: len(old.begun) == 1)
        manager = init_inbound_queue_manager(new, data=tmp_path, force=True)
        with pytest.raises(ManagerClosed):
            await replaced.enqueue(session_id="s", origin="o")
        await manager.startup()
        assert old.cancelled == ["a"]
        await until(lambda: len(new.begun) == 1)
        assert (new.begun[0]["content"], new.begun[0]["attempt_count"]) == ("a", 0)

    run(work)


def test_one_that_is_replaced_while_it_opens_closes_again(tmp_path: Path) -> None:
    new = Delivering()

    async def work() -> None:
        replaced = init_inbound_queue_manager(Delivering(), data=tmp_path)
        opening = asyncio.create_task(replaced.enqueue(session_id="s", origin="o"))
        await asyncio.sleep(0)
        manager = init_inbound_queue_manager(new, data=tmp_path, force=True)
        await manager.enqueue(session_id="s", origin="o", content="b")
        with pytest.raises(ManagerClosed):
            await opening
        await until(lambda: new.done == ["b"])

    run(work)


def test_a_reset_stops_what_runs_and_the_next_one_waits_for_that(tmp_path: Path) -> None:
    async def work() -> None:
        manager = init_inbound_queue_manager(Delivering(), data=tmp_path)
        await manager.startup()
        reset_inbound_queue_manager()
        following = init_inbound_queue_manager(Delivering(), data=tmp_path)
        assert await following.enqueue(session_id="s", origin="o") is not None

    run(work)
    reset_inbound_queue_manager()

    async def another_loop() -> None:
        manager = init_inbound_queue_manager(Delivering(), data=tmp_path)
        await manager.startup()
        await manager.shutdown()

    run(another_loop)


def test_one_whose_loop_is_gone_starts_again_on_another(tmp_path: Path) -> None:
    delivering = Delivering()
    manager = init_inbound_queue_manager(delivering, data=tmp_path)
    run(manager.startup)

    async def work() -> None:
        with pytest.raises(ManagerClosed):
            await manager.enqueue(session_id="s", origin="o")
        await manager.startup()
        await manager.enqueue(session_id="s", origin="o", content="a")
        await until(lambda: delivering.done == ["a"])
        await manager.shutdown()

    run(work)


@pytest.mark.parametrize(
    ("text", "payload"), [('{"a": [1, null]}', '{"a":[1,null]}'), ('"text"', '"text"'), ("null", None)]
)
def test_a_payload_may_be_given_as_text(tmp_path: Path, text: str, payload: str | None) -> None:
    delivering = Delivering()

    async def work() -> None:
        manager = InboundQueueManager(delivering, data=tmp_path)
        with pytest.raises(ValueError, match="both"):
            await manager.enqueue(session_id="s", origin="o", payload={}, payload_json="{}")
        with pytest.raises(ValueError, match="payload_json is no JSON"):
            await manager.enqueue(session_id="s", origin="o", payload_json="{")
        await manager.enqueue(session_id="s", origin="o", payload_json=text)
        await until(lambda: len(delivering.done) == 1)
        await manager.shutdown()

    run(work)
    assert delivering.begun[0]["payload_json"] == payload
