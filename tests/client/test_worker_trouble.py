from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio

from edgequeues.client import Client, Message, NewEntry, Refused, Retry, Tally, Unreachable, Worker

from .script import problem, scripted
from .working import Log, Way, serving

Q = "dxn:queue:demo:jobs"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Client, Way]]:
    async with serving(tmp_path / "data") as both:
        yield both


async def test_what_was_handled_is_acked_even_if_the_worker_is_cancelled_meanwhile(
    served: tuple[Client, Way],
) -> None:
    client, way = served
    await client.push(Q, [1])

    async def handle(message: Message) -> None:
        way.closed = True

    with trio.move_on_after(5) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Worker(client, Q, handle).run)
            await trio.sleep(3)
            way.closed = False
            scope.cancel()
    assert (await client.peek(Q)).messages == []


async def test_it_outlasts_a_server_that_is_away_and_says_so_once(served: tuple[Client, Way]) -> None:
    client, way = served
    log = Log()
    await client.push(Q, [1])
    worker = Worker(client, Q, log, on_away=log.away.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        way.closed = True
        await trio.sleep(3_600)
        assert way.paths.count("pull") < 3_600
        way.closed = False
        await client.push(Q, [2])
        await trio.sleep(15)
        assert log.ended == [1, 2]
        worker.stop()
    [gone, back] = log.away
    assert isinstance(gone, Unreachable)
    assert back is None


async def test_an_ack_outlasts_a_server_that_is_away(served: tuple[Client, Way]) -> None:
    client, way = served
    log = Log()
    await client.push(Q, [1])

    async def handle(message: Message) -> None:
        way.closed = True

    worker = Worker(client, Q, handle, lease_ms=10_000, on_handled=log.told.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await trio.sleep(60)
        way.closed = False
        await trio.sleep(15)
        worker.stop()
    assert log.did == ["acked"]  # late, but nobody else was given the message


async def test_patience_can_be_bounded(served: tuple[Client, Way]) -> None:
    client, way = served
    way.closed = True
    with pytest.raises(Unreachable):
        await Worker(client, Q, Log(), retry=Retry(attempts_max=3)).run()


async def test_a_queue_that_is_not_there_ends_it(served: tuple[Client, Way]) -> None:
    client, _ = served
    with pytest.raises(Refused, match="queue_not_found"):
        await Worker(client, Q, Log()).run()


async def test_a_queue_that_is_removed_ends_it_and_its_handlers(served: tuple[Client, Way]) -> None:
    client, _ = served
    await client.push(Q, [1])
    log = Log(takes_s=1_000)

    async def remove() -> None:
        await log.something.wait()
        await client.remove(Q)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(remove)
        with pytest.raises(Refused, match="queue_not_found"):
            await Worker(client, Q, log).run()
    assert log.ended == []


async def test_a_handler_whose_message_was_deleted_is_ended(served: tuple[Client, Way]) -> None:
    client, _ = served
    await client.push(Q, [NewEntry(1, id="a"), 2])
    log = Log(takes_s=50)
    worker = Worker(client, Q, log, lease_ms=3_000, on_handled=log.told.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        await client.delete(Q, ids=["a"])
        await trio.sleep(60)
        worker.stop()
    assert log.ended == [2]
    assert [(one.did, one.error) for one in log.told] == [("lost", "its lease is finished"), ("acked", None)]


async def test_a_handler_whose_message_somebody_else_was_given_is_ended(served: tuple[Client, Way]) -> None:
    client, way = served
    await client.push(Q, [1])
    log = Log(takes_s=500)
    worker = Worker(client, Q, log, lease_ms=3_000, on_handled=log.told.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        way.closed = True
        await trio.sleep(20)
        assert (log.begun, log.did) == ([1], [])  # it may go on: perhaps nobody else wants it
        way.closed = False
        [other] = (await client.pull(Q, lease_ms=600_000, wait_s=1)).messages
        await trio.sleep(20)
        assert (log.ended, log.did) == ([], ["lost"])
        worker.stop()
    assert other.attempts == 2


async def test_a_handler_goes_on_when_its_lease_lapsed_but_nobody_else_was_given_the_message(
    served: tuple[Client, Way],
) -> None:
    client, way = served
    await client.push(Q, [1])
    log = Log(takes_s=60)
    worker = Worker(client, Q, log, lease_ms=3_000, on_handled=log.told.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        worker.stop(grace_s=100)  # or it would pull the message itself
        way.closed = True
        await trio.sleep(20)
        way.closed = False
    assert (log.ended, log.did) == ([1], ["acked"])


async def test_a_message_whose_lease_lapsed_while_it_waited_for_a_handler_is_not_begun(
    served: tuple[Client, Way],
) -> None:
    client, way = served
    await client.push(Q, [1, 2])
    log = Log(takes_s=30)
    worker = Worker(client, Q, log, batch=2, lease_ms=3_000, on_handled=log.told.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        way.closed = True
        await trio.sleep(10)
        way.closed = False
        await trio.sleep(5)
        assert [(one.did, one.message.data) for one in log.told] == [("lost", 2)]
        worker.stop()


async def test_a_message_that_lapsed_here_and_is_given_to_this_worker_again_is_not_begun_twice(
    served: tuple[Client, Way],
) -> None:
    client, way = served
    await client.push(Q, [1, 2])
    log = Log(takes_s=60)
    worker = Worker(client, Q, log, concurrency=4, lease_ms=3_000, on_handled=log.told.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await log.something.wait()
        way.closed = True
        await trio.sleep(20)
        way.closed = False
        await trio.sleep(100)
        worker.stop()
    assert (sorted(log.begun), sorted(log.ended), log.did) == ([1, 2], [1, 2], ["acked", "acked"])  # type: ignore[type-var]
    [consumer] = await client.consumers(Q)
    assert (consumer.total_attempts > 2, consumer.unfinished) == (True, 0)


async def test_an_ack_that_comes_too_late_is_said_again_with_the_lease_this_worker_was_given_since(
    served: tuple[Client, Way],
) -> None:
    client, way = served
    await client.push(Q, [1])
    log = Log()
    worker = Worker(client, Q, log, concurrency=2, lease_ms=3_000, on_handled=log.told.append)
    way.delays_s = {"ack": 10.0, "extend": 9.0}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await trio.sleep(60)
        worker.stop()
    assert way.paths.count("ack") == 2
    assert (log.begun, log.did) == ([1], ["acked"])


async def test_a_message_that_was_acked_is_not_lost_while_the_answer_is_on_its_way(
    served: tuple[Client, Way],
) -> None:
    client, way = served
    await client.push(Q, [1])
    log = Log()
    way.late_s = {"ack": 10.0}
    worker = Worker(client, Q, log, lease_ms=3_000, on_handled=log.told.append)
    assert await worker.run(until="once") == Tally(acked=1)
    assert way.paths.count("extend") > 1


async def test_a_server_that_asks_to_be_left_alone_is_for_as_long_as_it_says() -> None:
    nothing = httpx.Response(200, json={"messages": []})
    client, _ = scripted(problem(503, "overloaded", retry_after="300"), problem(500, "internal"), nothing)
    start_s = trio.current_time()
    assert await Worker(client, Q, Log()).run(until="empty") == Tally()
    assert 300 <= trio.current_time() - start_s < 302
