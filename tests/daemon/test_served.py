"""The daemon over the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trio

from edgequeues.daemon.contract import Context
from edgequeues.daemon.wire import Message
from edgequeues.events.event import SwitchboardEvent
from edgequeues.tracing import carrying

from .served import Served, serving
from .working import drain, event, running


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as one:
        yield one


async def fails(_: SwitchboardEvent, ctx: Context) -> None:
    raise ValueError("no such order")


async def test_events_are_handled_and_acked(served: Served) -> None:
    await served.inbox.push(*[event(n) for n in range(1, 101)])
    one = await drain(served.transport, **served.rules())
    assert sorted(one.handled.ended) == list(range(1, 101))
    assert (await served.inbox.count(), await served.errors()) == (0, [])


@pytest.mark.parametrize("amount", [1, 32, 1_000])
async def test_malformed_events_are_as_many_dead_letters_each_with_its_error(
    served: Served, amount: int
) -> None:
    for first in range(0, amount, 100):
        messages = [{"body": {"n": n}} for n in range(first, min(first + 100, amount))]
        await served.inbox.post("messages/batch", {"messages": messages})
    one = await drain(served.transport, **served.rules())
    errors = await served.errors()
    assert (len(errors), all(errors), one.handled.began) == (amount, True, [])
    assert await served.inbox.count() == 0


async def test_a_raising_handler_ends_in_the_dlq_after_its_last_attempt(served: Served) -> None:
    await served.inbox.push(event(1))
    async with running(served.transport, fails, **served.rules()) as one:
        await trio.sleep(9 * 31 + 30)
        assert one.handled.began == [1] * 10
    assert await served.errors() == ["CONSUMER_HANDLER_ERROR: ValueError: no such order"]
    assert await served.inbox.count() == 0


async def test_a_killed_daemon_s_messages_come_again_with_one_more_attempt(served: Served) -> None:
    """Nobody says anything of them: that is what a kill is."""
    await served.inbox.push(*[event(n) for n in range(1, 6)])
    assert len(await served.inbox.pull(visibility_timeout_ms=30_000)) == 5
    attempts: list[int] = []

    async def noted(_: SwitchboardEvent, ctx: Context) -> None:
        assert isinstance(ctx, int)
        attempts.append(ctx)

    async with running(served.transport, noted, **served.rules()) as one:
        await trio.sleep(29.5)
        assert one.handled.began == []
        await trio.sleep(2)
        assert sorted(one.handled.ended) == [1, 2, 3, 4, 5]
    assert attempts == [2] * 5


async def test_cd_s05_a_late_failure_of_a_loser_gives_nobody_the_message_of_the_winner(
    served: Served,
) -> None:
    """A's lease of a second is over when B takes the message; then A says that it failed, and C asks."""
    await served.inbox.push(event(1))
    [mine] = await served.inbox.pull(visibility_timeout_ms=1_000)
    await trio.sleep(1.5)
    [theirs] = await served.inbox.pull(visibility_timeout_ms=30_000)
    await trio.sleep(1.5)
    said = await served.inbox.say(retries=[{"lease_id": mine["lease_id"], "delay_seconds": 0}])
    assert mine["lease_id"] in said["warnings"]
    assert await served.inbox.pull() == []
    await served.inbox.say(acks=[theirs["lease_id"]])
    assert await served.inbox.count() == 0


async def test_a_long_batch_is_kept_and_what_is_left_at_a_stop_is_given_back(served: Served) -> None:
    await served.inbox.push(*[event(n) for n in range(1, 9)])

    async def long(_: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep(15)

    async with running(served.transport, long, **served.rules()) as one:
        await trio.sleep(80)
        assert one.handled.ended == [1, 2, 3, 4, 5]
    assert [message["attempts"] for message in await served.inbox.pull()] == [1, 1, 1]


async def test_cd_s04_an_ack_that_is_lost_leads_to_no_second_run(served: Served) -> None:
    """The server has the ack, the daemon never hears of it, says it again, and has it confirmed."""
    await served.inbox.push(event(1))
    lost = [True, True, True]

    class Losing(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            answer = await served.transport.handle_async_request(request)
            if request.url.path.endswith("/ack") and lost:
                lost.pop()
                raise httpx.ReadError("connection reset")
            return answer

    async with running(Losing(), **served.rules()) as one:
        await trio.sleep(60)
        assert one.handled.began == [1]
    assert (await served.inbox.count(), await served.errors(), lost) == (0, [], [])


async def test_what_is_around_an_attempt_sees_what_its_message_carries_and_how_it_ends(
    served: Served,
) -> None:
    seen: list[tuple[int, str | None, str]] = []

    @contextmanager
    def attempting(message: Message) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            seen.append((message.attempts, message.metadata.get("traceparent"), str(error)))
            raise

    with carrying({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}):
        await served.inbox.push(event(1))
    async with running(served.transport, fails, **served.rules(attempting=attempting)):
        await trio.sleep(10)
    assert seen == [(1, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "no such order")]
