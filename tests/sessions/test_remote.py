"""An inbox on a server, where the wire matters: what is no message, answers that are lost, a server that says no."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest
import trio

from edgequeues.client import Client, Inbound, NewEntry
from edgequeues.inbound import InboundRow
from edgequeues.sessions.inbox import Inbox
from edgequeues.sessions.remote import RemoteInbox, open_inbox
from edgequeues.store import Refused, StoreFailed, Unavailable
from tests.client.script import problem, scripted
from tests.client.working import Way, serving

SPACE = "chat"
Q = f"dxn:queue:{SPACE}:inbound"
MESSAGE = Inbound(session_id="s1", origin="telegram")
LOCK_MS = 300_000

Served = tuple[Client, Way]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as found:
        yield found


def _is_an_inbox(inbox: RemoteInbox) -> Inbox:
    return inbox


async def rows(inbox: RemoteInbox, wait_s: float = 0) -> list[InboundRow]:
    return [one.row for one in await inbox.claim(100, lock_ms=LOCK_MS, wait_s=wait_s)]


@pytest.mark.parametrize("data", [b"17", b'{"text":"hello"}', b'{"session_id":"","origin":"o"}'])
async def test_what_is_no_message_is_rejected_and_holds_nobody_up(served: Served, data: bytes) -> None:
    client, _ = served
    inbox = RemoteInbox(client, SPACE)
    await inbox.enqueue(Inbound(session_id="s2", origin="telegram", content="first"))
    await client.push(Q, [NewEntry(data, key="s1", plain=True)])
    await inbox.enqueue(Inbound(session_id="s1", origin="telegram", content="second"))
    assert [row["content"] for row in await rows(inbox)] == ["first"]
    assert [row["content"] for row in await rows(inbox)] == ["second"]


async def test_where_nothing_else_is_there_a_claim_goes_on_waiting(served: Served) -> None:
    client, _ = served
    inbox = RemoteInbox(client, SPACE)
    await inbox.enqueue(MESSAGE)
    assert await inbox.close("s1") == 1
    await client.push(Q, [NewEntry(b"17", key="s1", plain=True)])

    async def later() -> None:
        await trio.sleep(9)
        await inbox.enqueue(MESSAGE)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later)
        began = trio.current_time()
        assert len(await rows(inbox, wait_s=60)) == 1
        assert trio.current_time() - began == pytest.approx(9, abs=0.1)


async def test_a_claim_whose_time_is_nearly_over_asks_in_words_the_server_reads(served: Served) -> None:
    """A wait of a ten-millionth of a second would be written with an exponent."""
    client, _ = served
    inbox = RemoteInbox(client, SPACE)
    await inbox.enqueue(MESSAGE)
    await inbox.close("s1")
    for wait_s in (1e-7, 60.0000001, 0.0015):
        assert await rows(inbox, wait_s=wait_s) == []


async def test_before_there_is_a_queue_the_server_is_asked_once_a_second(served: Served) -> None:
    client, way = served
    assert await rows(RemoteInbox(client, SPACE), wait_s=10) == []
    assert way.paths.count("pull") in (10, 11)


async def test_what_was_handed_out_in_an_answer_that_was_lost_comes_again_when_its_lock_ends(
    served: Served,
) -> None:
    client, way = served
    inbox = RemoteInbox(client, SPACE)
    await inbox.enqueue(MESSAGE)
    way.late_s["pull"] = 10.0
    with trio.move_on_after(5) as scope:
        await rows(inbox)
    assert scope.cancelled_caught
    assert await rows(inbox) == []
    began = trio.current_time()
    [row] = await rows(inbox, wait_s=2 * LOCK_MS / 1000)
    assert trio.current_time() - began == pytest.approx(LOCK_MS / 1000 - 5, abs=0.1)
    assert row["attempt_count"] == 1


async def test_a_server_that_cannot_be_reached_is_unavailable_and_what_was_done_is_said() -> None:
    lost = httpx.ReadError("lost")
    client, _ = scripted(lost, lost, *[httpx.ConnectError("nobody")] * 4, problem(503, "queue_full"))
    inbox = RemoteInbox(client, SPACE)
    for maybe_done, code in (
        (True, "unreachable"),
        (True, "unreachable"),
        (False, "unreachable"),
        (False, "queue_full"),
    ):
        with pytest.raises(Unavailable) as unavailable:
            await inbox.enqueue(MESSAGE)
        assert (unavailable.value.maybe_done, unavailable.value.code) == (maybe_done, code)


async def test_what_the_server_will_not_do_is_refused_and_what_it_cannot_is_its_failure() -> None:
    client, _ = scripted(
        problem(409, "config_conflict"),
        problem(403, "forbidden"),
        problem(500, "internal"),
        problem(404, "queue_not_found"),
    )
    inbox = RemoteInbox(client, SPACE)
    with pytest.raises(Refused, match="config_conflict"):
        await inbox.enqueue(MESSAGE)
    with pytest.raises(Refused, match="forbidden"):
        await inbox.reclaim()
    with pytest.raises(StoreFailed):
        await inbox.cleanup(0)
    assert await inbox.close("s1") == 0


@pytest.mark.parametrize(
    ("space", "queue", "worker"),
    [
        ("not a space", "inbound", "w"),
        (SPACE, "not a queue", "w"),
        (SPACE, "inbound", ""),
        (SPACE, "inbound", "w" * 257),
    ],
)
async def test_a_name_that_cannot_be_is_a_mistake_before_anything_is_asked(
    space: str, queue: str, worker: str
) -> None:
    with pytest.raises(ValueError, match=r"."):
        async with open_inbox("http://127.0.0.1:1", space, queue, worker=worker):
            raise AssertionError("it cannot be")


def test_it_works_on_asyncio_too() -> None:
    async def work() -> int | None:
        client, _ = scripted(
            problem(404, "queue_not_found"),
            httpx.Response(202, json={"id": "a", "position": 2, "duplicate": False}),
        )
        inbox = RemoteInbox(client, SPACE)
        assert await inbox.claim(1, lock_ms=LOCK_MS, wait_s=0) == []
        return await _is_an_inbox(inbox).enqueue(MESSAGE)

    assert anyio.run(work, backend="asyncio") == 2
