from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio

from edgequeues.client import (
    Client,
    ConfigChange,
    GiveUp,
    Handled,
    Message,
    Tally,
    TryAgain,
    Worker,
)

from .script import scripted
from .working import Log, Way, serving

Q = "dxn:queue:demo:jobs"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Client, Way]]:
    async with serving(tmp_path / "data") as both:
        yield both


async def states(client: Client) -> list[tuple[str, int]]:
    return [(one.state, one.attempts) for one in (await client.peek(Q)).messages]


async def test_every_message_is_handled_once_in_order_and_acked(served: tuple[Client, Way]) -> None:
    client, _ = served
    await client.push(Q, [*range(5)])
    log = Log()
    tally = await Worker(client, Q, log, on_handled=log.told.append).run(until="empty")
    assert log.ended == [*range(5)]
    assert tally == Tally(acked=5)
    assert log.did == ["acked"] * 5
    assert await states(client) == []


@pytest.mark.parametrize("batch", [None, 10])
async def test_no_more_handlers_run_at_once_than_were_asked_for(
    batch: int | None, served: tuple[Client, Way]
) -> None:
    client, _ = served
    await client.push(Q, [*range(10)])
    log = Log(takes_s=5)
    start_s = trio.current_time()
    await Worker(client, Q, log, concurrency=4, batch=batch).run(until="empty")
    assert (log.at_once, len(log.ended)) == (4, 10)
    assert trio.current_time() - start_s == pytest.approx(15, abs=0.1)


async def test_what_a_handler_raises_decides(served: tuple[Client, Way]) -> None:
    client, _ = served
    raised = {
        "again": TryAgain("not now", delay_ms=60_000),
        "never": GiveUp("no good"),
        "bug": KeyError("x"),
    }

    async def handle(message: Message) -> None:
        raise raised[str(message.data)]

    told: list[Handled] = []
    await client.push(Q, ["again", "never", "bug"])
    tally = await Worker(client, Q, handle, on_handled=told.append).run(until="empty")
    assert tally == Tally(retried=2, given_up=1)
    assert [(one.did, one.error) for one in told] == [
        ("retried", "not now"),
        ("given_up", "no good"),
        ("retried", "KeyError: 'x'"),
    ]
    messages = (await client.peek(Q)).messages
    assert [(one.state, one.last_error) for one in messages] == [
        ("backoff", "not now"),
        ("backoff", "KeyError: 'x'"),
    ]
    [letter] = (await client.dead_letters(f"{Q}-dlq")).letters
    assert (letter.reason, letter.last_error) == ("permanent", "no good")


async def test_what_a_handler_raises_inside_a_nursery_of_its_own_decides_too(
    served: tuple[Client, Way],
) -> None:
    client, _ = served

    async def give_up() -> None:
        raise GiveUp("no good")

    async def handle(message: Message) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(give_up)

    told: list[Handled] = []
    await client.push(Q, [1])
    await Worker(client, Q, handle, on_handled=told.append).run(until="once")
    assert [(one.did, one.error) for one in told] == [("given_up", "no good")]


async def test_an_error_of_any_length_is_cut_to_what_the_server_takes(served: tuple[Client, Way]) -> None:
    client, _ = served

    async def handle(message: Message) -> None:
        raise TryAgain("é" * 10_000)

    await client.push(Q, [1])
    assert await Worker(client, Q, handle).run(until="once") == Tally(retried=1)
    [message] = (await client.peek(Q)).messages
    assert message.last_error == "é" * 4_096


async def test_an_error_that_has_no_utf8_is_sent_escaped(served: tuple[Client, Way]) -> None:
    """As the name of a file may have none, which is then in the text of the error."""
    client, _ = served
    await client.push(Q, [1])

    async def handle(message: Message) -> None:
        raise FileNotFoundError("no such file: '\udcff'")

    await Worker(client, Q, handle).run(until="once")
    [message] = (await client.peek(Q)).messages
    assert message.last_error == "FileNotFoundError: no such file: '\\udcff'"


async def test_a_handler_that_takes_too_long_is_ended_and_tried_again(served: tuple[Client, Way]) -> None:
    client, _ = served
    log = Log(takes_s=100)
    await client.push(Q, [1])
    worker = Worker(client, Q, log, timeout_s=10, on_handled=log.told.append)
    assert await worker.run(until="once") == Tally(retried=1)
    assert (log.ended, log.told[0].error) == ([], "not done within 10 s")


async def test_a_lease_is_extended_as_long_as_its_handler_runs_or_it_waits_for_one(
    served: tuple[Client, Way],
) -> None:
    client, _ = served
    await client.push(Q, [1, 2, 3])
    log = Log(takes_s=100)
    tally = await Worker(client, Q, log, batch=3, lease_ms=1_000).run(until="once")
    assert tally == Tally(acked=3)
    [consumer] = await client.consumers(Q)
    assert (consumer.total_attempts, consumer.total_lapsed) == (3, 0)


async def test_it_waits_for_messages_without_asking_all_the_time(served: tuple[Client, Way]) -> None:
    client, way = served
    await client.push(Q, [0])
    log = Log()
    worker = Worker(client, Q, log, wait_s=30)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await trio.sleep(300)
        assert way.paths.count("pull") <= 12
        await client.push(Q, [1])
        await trio.sleep(0.1)
        assert log.ended == [0, 1]
        worker.stop()


async def test_long_polls_that_are_cut_short_are_not_a_busy_loop(served: tuple[Client, Way]) -> None:
    client, way = served
    await client.push(Q, [0])
    await client.purge(Q)
    worker = Worker(client, Q, Log(), wait_s=0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await trio.sleep(30)
        worker.stop()
    assert way.paths.count("pull") <= 31


async def test_stop_gives_back_what_has_not_begun_and_waits_for_what_runs(served: tuple[Client, Way]) -> None:
    client, _ = served
    await client.push(Q, [1, 2, 3])
    log = Log(takes_s=10)
    worker = Worker(client, Q, log, batch=3, on_handled=log.told.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        await trio.sleep(1)
        worker.stop()
        await trio.sleep(1)
        assert await states(client) == [("leased", 1), ("ready", 0), ("ready", 0)]
    assert (log.begun, log.ended) == ([1], [1])
    assert log.did == ["released", "released", "acked"]
    assert worker.tally == Tally(acked=1, released=2)


async def test_stop_ends_a_long_poll_at_once(served: tuple[Client, Way]) -> None:
    client, _ = served
    await client.push(Q, [1])
    log = Log()
    worker = Worker(client, Q, log, wait_s=60)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        await trio.sleep(5)
        start_s = trio.current_time()
        worker.stop()
    assert trio.current_time() - start_s < 1


async def test_when_the_grace_is_over_what_still_runs_is_ended_and_given_back(
    served: tuple[Client, Way],
) -> None:
    client, _ = served
    await client.push(Q, [1])
    log = Log(takes_s=1_000)
    worker = Worker(client, Q, log, grace_s=20)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        start_s = trio.current_time()
        worker.stop()
    assert trio.current_time() - start_s == pytest.approx(20, abs=0.1)
    assert await states(client) == [("ready", 0)]
    assert (log.ended, worker.tally) == ([], Tally(released=1))


async def test_a_second_stop_may_shorten_the_grace(served: tuple[Client, Way]) -> None:
    client, _ = served
    await client.push(Q, [1])
    log = Log(takes_s=1_000)
    worker = Worker(client, Q, log, grace_s=500)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        start_s = trio.current_time()
        worker.stop()
        await trio.sleep(1)
        worker.stop(grace_s=0)
        worker.stop()
    assert trio.current_time() - start_s < 2


async def test_cancelling_gives_everything_back(served: tuple[Client, Way]) -> None:
    client, _ = served
    await client.push(Q, [1, 2])
    log = Log(takes_s=1_000)
    with trio.move_on_after(5):
        await Worker(client, Q, log, batch=2).run()
    assert await states(client) == [("ready", 0), ("ready", 0)]


async def test_a_paused_queue_is_waited_for(served: tuple[Client, Way]) -> None:
    client, way = served
    await client.push(Q, [1])
    await client.reconfigure(Q, ConfigChange(paused=True))
    log = Log()
    worker = Worker(client, Q, log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await trio.sleep(100)
        assert (log.begun, way.paths.count("pull") < 10) == ([], True)
        await client.reconfigure(Q, ConfigChange(paused=False))
        await trio.sleep(0.1)
        assert log.ended == [1]
        worker.stop()


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"batch": 0}, {"lease_ms": 999}])
async def test_numbers_that_cannot_be_are_refused(wrong: dict[str, int], served: tuple[Client, Way]) -> None:
    with pytest.raises(ValueError, match="at least"):
        Worker(served[0], Q, Log(), **wrong)  # type: ignore[arg-type]


def test_it_runs_on_asyncio_too() -> None:
    message = {
        "lease": "L",
        "attempts": 1,
        "until": 9,
        "id": "a",
        "position": 1,
        "version": "v",
        "created": 1,
        "updated": 1,
        "priority": 4,
        "data": 1,
    }
    seen = []

    async def handle(message: Message) -> None:
        await asyncio.sleep(0)
        seen.append(message.data)

    async def work() -> Tally:
        client, _ = scripted(
            httpx.Response(200, json={"messages": [message]}),
            httpx.Response(200, json={"results": [{"lease": "L", "outcome": "done"}]}),
            httpx.Response(200, json={"messages": []}),
        )
        return await Worker(client, Q, handle).run(until="empty")

    assert asyncio.run(work()) == Tally(acked=1)
    assert seen == [1]
