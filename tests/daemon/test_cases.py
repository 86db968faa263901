"""Faults that other projects had, as the case book lists them. Those of killed processes are in tests/e2e."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx
import pytest
import trio

from edgequeues.daemon.contract import Context
from edgequeues.events.event import SwitchboardEvent

from .service import Service
from .working import Handled, daemon, drain, event, number, running


def service_with(amount: int, **how: Any) -> Service:
    service = Service(**how)
    service.push(*[event(n) for n in range(1, amount + 1)])
    return service


@pytest.mark.parametrize(("grace_s", "late"), [(5, "acked"), (1, "released")])
async def test_cd_s02_what_is_finished_is_acked_when_it_stops_and_the_rest_is_given_back(
    grace_s: float, late: str
) -> None:
    """Eight in their handlers: three are done when the signal comes, five need two seconds more."""
    service = service_with(8)
    service.call_s = 0.5

    async def handle(one: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep(0.5 if number(one) <= 3 else 2.5)

    async with daemon(service, handle, max_batch_concurrency=8) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.batches.run)
        await trio.sleep(1.01)  # the pull took half a second, and three handlers as long
        assert sorted(one.handled.ended) == [1, 2, 3]
        one.batches.stop(grace_s=grace_s)
    assert {int(id, 16) for id in service.acked} == ({*range(1, 9)} if late == "acked" else {1, 2, 3})
    retries = [retry for body in service.asked("ack") for retry in body["retries"]]
    assert [retry["delay_seconds"] for retry in retries] == ([] if late == "acked" else [0] * 5)
    assert one.lines.outcomes().count("released") == len(retries)


async def test_cd_s02_a_crash_beside_it_does_not_keep_the_acks_from_being_said() -> None:
    """The closing work runs in a scope of its own: what was cancelled outside does not reach it."""
    service = service_with(2)
    service.call_s = 0.5

    async def handle(one: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep(0.1 if number(one) == 1 else 60)

    async with daemon(service, handle) as one:
        with trio.move_on_after(0.7):
            await one.batches.run()
    assert [int(id, 16) for id in service.acked] == [1]
    assert [retry["delay_seconds"] for body in service.asked("ack") for retry in body["retries"]] == [0]


async def test_cd_s03_a_daemon_that_is_to_stop_begins_no_pull_and_gives_back_what_one_under_way_brings() -> (
    None
):
    service = service_with(5)
    service.call_s = 1.0
    async with daemon(service) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.batches.run)
        await trio.sleep(0.5)
        one.batches.stop()
    assert (one.handled.began, service.acked, len(service.asked("pull"))) == ([], [], 1)
    assert all(held.lease is None for held in service.left)
    assert len(service.left) == 5


async def test_cd_s03_restarts_leave_no_message_without_an_owner() -> None:
    service = service_with(1_000)

    async def a_second(_: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep(1)

    for _ in range(20):
        async with daemon(service, a_second) as one, trio.open_nursery() as nursery:
            nursery.start_soon(one.batches.run)
            await trio.sleep(3)
            one.batches.stop(grace_s=0.5)
        assert [held.id for held in service.left if held.lease is not None] == []
    assert service.acked


async def test_cd_s04_a_duplicate_of_a_success_is_acked_and_not_handled() -> None:
    """The ack is lost three times, and the message comes again."""
    service = service_with(1)
    service.extends = False
    lost = count()

    def failing(path: str) -> Exception | None:
        return httpx.ReadError("connection reset") if path == "ack" and next(lost) < 3 else None

    service.failing = failing
    service.stored[next(iter(service.stored))].attempts = 8  # the next but one would be the last
    async with running(service, queue_max_attempts=10) as one:
        await trio.sleep(1)
        assert one.handled.began == [1]
    assert len(service.acked) == 1

    service.push(event(1))  # the same event in a message of its own
    again = service_with(1)
    again.push(event(1))
    one = await drain(again)
    assert (one.handled.began, one.lines.outcomes()) == ([1], ["handled", "duplicate"])
    assert again.left == []


async def test_cd_s04_a_forgotten_event_is_handled_again() -> None:
    """A memory for two, and three in rotation."""
    service = Service()
    service.push(*[event(n) for n in (1, 2, 3, 1, 3, 3)])
    one = await drain(service, dedup_size=2)
    assert one.handled.began == [1, 2, 3, 1]
    assert service.left == []


async def test_cd_s04_a_failed_event_is_not_remembered() -> None:
    service = service_with(1)
    tries = count(1)

    async def twice(_: SwitchboardEvent, ctx: Context) -> None:
        if next(tries) == 1:
            raise ValueError("not yet")

    async with running(service, twice, on_error="1") as one:
        await trio.sleep(3)
        assert (one.handled.began, one.handled.ended) == ([1, 1], [1])


async def test_of_two_messages_with_one_event_the_second_waits_for_the_first() -> None:
    service = Service()
    service.push(event(1), event(1), event(1))
    handled = Handled()

    async def slow(_: SwitchboardEvent, ctx: Context) -> None:
        handled.running += 1
        await trio.sleep(2)

    one = await drain(service, slow, max_batch_concurrency=3)
    assert (one.handled.most, one.handled.ended, len(service.acked)) == (1, [1], 3)


@pytest.mark.parametrize("succeeds", [False, True])
async def test_cd_s05_a_slow_loser_takes_nothing_from_the_winner(succeeds: bool) -> None:
    """A's lease lapses, B takes over; A's failure changes nothing, A's success may remove the message."""
    service = service_with(1, extends=False)

    async def slow(_: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep(3)
        if not succeeds:
            raise ValueError("too slow anyway")

    rules = {"processing_budget_seconds": 5, "visibility_margin_seconds": 1, "on_error": "0"}
    async with running(service, slow, **rules) as a:
        await trio.sleep(1)
        [held] = service.left
        held.ends_s = trio.current_time()  # the service's clock runs ahead of ours
        async with running(service, slow, **rules) as b:
            await trio.sleep(1)
            assert b.handled.began == [1]
            await trio.sleep(1.5)  # A is done, B is not
            assert b.handled.running == 1
            warned = [
                fields["err"] for level, _, fields in a.lines.said if level == "warning" and "err" in fields
            ]
            if succeeds:
                assert service.left == []
            else:
                assert "the lease is not the newest" in warned
                assert held.lease is not None
                assert held.ready_s == 0
                assert a.handled.began == [1]  # nobody is handed the message while B has it
                service.failing = lambda path: 503 if path == "pull" else None
            await trio.sleep(2)
            assert b.handled.running == 0


BAD = {
    "not base64 and not JSON": ("plain", "@@@"),
    "not JSON": ("json", b"\x00\x01\xff"),
    "an empty body": ("json", b""),
    "another shape": ("json", ["an", "array"]),
    "no id": ("json", {name: value for name, value in event(4).items() if name != "id"}),
    "no date": ("json", event(4, receivedAt="yesterday")),
    "half a surrogate pair": ("plain", '{"id":"\ud800"}'),
    "nested too deep": ("json", b"[" * 100_000),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("broken_log", [False, True])
async def test_cd_s07_a_bad_payload_is_a_dead_letter_and_the_others_are_handled(
    case: str, ours: bool, broken_log: bool
) -> None:
    service = Service(ours=ours)
    kind, body = BAD[case]
    service.push(*[event(n) for n in (1, 2, 3)])
    service.push(body, kind=kind)
    service.push(*[event(n) for n in (5, 6, 7, 8, 9, 10)])
    one = await drain(service, dead=True, broken_log=broken_log)
    assert sorted(one.handled.ended) == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    errors = list(service.dead.values()) if ours else [letter["lastError"] for letter in service.pushed]
    assert len(errors) == 1
    assert errors[0]
    assert service.left == []


@pytest.mark.parametrize("amount", [1, 32, 1_000])
@pytest.mark.parametrize("ours", [True, False])
async def test_malformed_events_are_as_many_dead_letters(amount: int, ours: bool) -> None:
    service = Service(ours=ours)
    service.push(*[{"n": n} for n in range(amount)])
    one = await drain(service, dead=True)
    errors = list(service.dead.values()) if ours else [letter["lastError"] for letter in service.pushed]
    assert (len(errors), all(errors), one.handled.began) == (amount, True, [])
