"""Leases of what is held are extended, wherever the service can do that."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from edgequeues.daemon.contract import Context
from edgequeues.events.event import SwitchboardEvent

from .service import Service
from .working import event, running


async def nineteen(_: SwitchboardEvent, ctx: Context) -> None:
    await trio.sleep(19)


def service_with(amount: int, **how: Any) -> Service:
    service = Service(**how)
    service.push(*[event(n) for n in range(1, amount + 1)])
    return service


@pytest.mark.parametrize("renames", [False, True])
async def test_messages_that_wait_for_a_long_batch_are_not_handed_out_again(renames: bool) -> None:
    service = service_with(10, renames=renames)
    async with running(service, nineteen, queue_max_concurrent_batches=2) as one:
        await trio.sleep(200)
        assert one.handled.ended == list(range(1, 11))
    assert [held.attempts for held in service.stored.values()] == [1] * 10
    assert [int(id, 16) for id in service.acked] == list(range(1, 11))


@pytest.mark.parametrize("renames", [False, True])
async def test_a_failure_after_an_extension_is_said_of_the_newest_lease(renames: bool) -> None:
    service = service_with(1, renames=renames)

    async def fails(_: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep(19)
        raise ValueError("in the end")

    async with running(service, fails, on_error="3600"):
        await trio.sleep(20)
        assert service.left[0].lease is None


async def test_quick_handlers_extend_nothing() -> None:
    service = service_with(100)
    async with running(service):
        await trio.sleep(60)
    assert service.asked("extend") == []


async def test_a_service_that_extends_nothing_is_asked_once_and_that_is_told() -> None:
    service = service_with(10, extends=False)
    async with running(service, nineteen, queue_max_concurrent_batches=1) as one:
        await trio.sleep(300)
        told = [msg for _, msg, _ in one.lines.said if "extends no leases" in msg]
        assert (len(service.asked("extend")), len(told)) == (1, 1)
        assert one.handled.ended[:2] == [1, 2]


async def test_a_message_whose_lease_ended_before_its_turn_is_left() -> None:
    service = service_with(3, extends=False)
    async with running(service, nineteen, queue_max_concurrent_batches=1) as one:
        await trio.sleep(50)
        assert one.handled.began == [1, 2, 3]
        assert [held.attempts for held in service.stored.values()] == [1, 1, 2]
        assert len([msg for _, msg, _ in one.lines.said if "before the message had its turn" in msg]) == 1


async def test_an_extension_that_fails_is_tried_again_soon() -> None:
    service = service_with(2)
    service.failing = lambda path: 503 if path == "extend" and trio.current_time() < start_s + 15 else None
    start_s = trio.current_time()
    async with running(service, nineteen, queue_max_concurrent_batches=1) as one:
        await trio.sleep(60)
        assert one.handled.ended == [1, 2]
    assert [held.attempts for held in service.stored.values()] == [1, 1]
