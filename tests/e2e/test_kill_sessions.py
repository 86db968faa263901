"""Workers that deliver messages of sessions are killed in the middle of deliveries, and so is the server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from edgequeues.client import Client, ConsumerRules, Inbound
from edgequeues.sessions.remote import open_inbox

from .process import Running, environment, serving
from .work_ledger import sound

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore:Async generator 'httpx:ResourceWarning"
    ),  # a body cut off while it is sent
]

ROOT = Path(__file__).parents[2]
SPACE = "chat"
INBOUND = f"dxn:queue:{SPACE}:inbound"
SESSIONS = tuple(f"s{number}" for number in range(5))
KILLS = 6
WITHIN_S = 60.0


class Worker:
    """A worker under way. lines: what it has said, but for the line that it is ready."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.reclaimed = -1
        self.lines: list[dict[str, Any]] = []
        self._rest = b""

    async def ready(self) -> None:
        word, number = (await self._line()).split()
        assert word == b"ready"
        self.reclaimed = int(number)

    async def said(self, count: int) -> None:
        """Wait until it has said so many lines."""
        while len(self.lines) < count and (line := await self._line()):
            self.lines.append(json.loads(line))

    async def kill(self) -> None:
        """Kill it, and hear what it had said before."""
        self.process.send_signal(signal.SIGKILL)
        while (line := await self._line()).endswith(b"}"):
            self.lines.append(json.loads(line))

    async def _line(self) -> bytes:
        assert self.process.stdout is not None
        with trio.fail_after(WITHIN_S):
            while b"\n" not in self._rest and (piece := await self.process.stdout.receive_some()):
                self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line


@asynccontextmanager
async def working(
    url: str, *, worker: str = "manager", lock_ms: int = 300_000, held_s: float = 0.02
) -> AsyncIterator[Worker]:
    args = [sys.executable, "-m", "tests.e2e.session_worker", url, SPACE, worker, str(lock_ms), str(held_s)]
    process = await trio.lowlevel.open_process(args, stdout=subprocess.PIPE, cwd=str(ROOT), env=environment())
    assert process.stdout is not None
    async with process.stdout:
        try:
            found = Worker(process)
            await found.ready()
            yield found
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def send_some(url: str, sender: int, count: int) -> None:
    """Send messages to all sessions as an adapter would, each once more: a repeat is none."""
    async with httpx.AsyncClient(base_url=url) as http:
        for number in range(count):
            for session in SESSIONS:
                source = f"{session}-{number}"
                message = {
                    "session_id": session,
                    "origin": f"sender-{sender}",
                    "content": f"{sender}:{number}",
                    "source_message_id": source,
                }
                replies = [await http.post(f"/v1/{INBOUND}/inbound", json=message) for _ in range(2)]
                assert [reply.status_code for reply in replies] == [202, 200]


async def acked(client: Client) -> int:
    [consumer] = await client.consumers(INBOUND)
    return consumer.total_acked


async def all_delivered(client: Client, count: int) -> None:
    with trio.fail_after(WITHIN_S):
        while await acked(client) < count:  # noqa: ASYNC110 (another process)
            await trio.sleep(0.05)


def in_order(told: list[dict[str, Any]], count: int) -> None:
    """Each session's messages began in the order of their positions, and all of all senders did."""
    begun = [line for line in told if line["did"] == "begin"]
    assert len({line["id"] for line in begun}) == count
    for session in SESSIONS:
        positions = [line["id"] for line in begun if line["session_id"] == session]
        assert positions == sorted(positions), "a later one began before an earlier one was marked"
        for sender in ("0", "1", "2"):
            of_sender = [line["content"] for line in begun if line["session_id"] == session]
            numbers = [int(one.split(":")[1]) for one in of_sender if one.startswith(f"{sender}:")]
            assert numbers == sorted(numbers)
    done = [line["id"] for line in told if line["did"] == "done"]
    assert len(done) == len(set(done)), "one was marked twice"


async def test_a_worker_that_is_killed_in_deliveries_loses_none_and_keeps_each_sessions_order(
    tmp_path: Path,
) -> None:
    """SI-S05: its next life reclaims what it held; locks of five minutes do not hold anything up."""
    data, each = tmp_path / "data", 12
    count = 3 * each * len(SESSIONS)
    told: list[dict[str, Any]] = []
    reclaimed: list[int] = []
    async with serving(data) as server, Client(server.url) as client:
        async with trio.open_nursery() as nursery:
            for sender in range(3):
                nursery.start_soon(send_some, server.url, sender, each)
            for kill in range(KILLS):
                async with working(server.url) as worker:
                    reclaimed.append(worker.reclaimed)
                    await worker.said(7 + 3 * kill)
                    await worker.kill()
                told += worker.lines
        async with working(server.url) as worker:
            reclaimed.append(worker.reclaimed)
            await all_delivered(client, count)
            await worker.kill()
        told += worker.lines
        assert (await client.sessions(INBOUND)).sessions == []
        assert await acked(client) == count
        [totals] = await client.consumers(INBOUND)
        assert totals.total_lapsed == sum(reclaimed) > 0
        assert totals.total_attempts == count + sum(reclaimed)
    in_order(told, count)
    sound(data)
    print(f"of {count} messages, in the hands of each killed worker: {reclaimed[1:]}")


async def test_a_lock_that_ends_gives_a_message_to_another_worker(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data) as server, Client(server.url) as client:
        for number in range(3):
            message = Inbound(session_id="s1", origin="o", content=str(number))
            await client.enqueue_inbound(INBOUND, message)
        async with working(server.url, worker="first", lock_ms=1_500, held_s=600) as first:
            await first.said(1)
            async with working(server.url, worker="second") as second:
                assert second.reclaimed == 0
                await first.kill()
                await all_delivered(client, 3)
                await second.kill()
    begun = [(line["content"], line["attempt_count"]) for line in first.lines + second.lines[::2]]
    assert begun == [("0", 0), ("0", 1), ("1", 0), ("2", 0)]
    sound(data)


async def test_a_server_that_is_killed_keeps_what_it_had_answered_and_who_holds_what(tmp_path: Path) -> None:
    """The worker outlives it: its mark counts afterwards, and no message is handed out beside it."""
    data = tmp_path / "data"
    async with serving(data) as server:
        await send_all(server, "one", "two")
        async with open_inbox(server.url, SPACE) as inbox:
            [held] = await inbox.claim(10, lock_ms=300_000, wait_s=5)
        await server.stop(signal.SIGKILL)
    sound(data)
    async with serving(data, port=server.port) as server, open_inbox(server.url, SPACE) as inbox:
        assert await inbox.enqueue(sent("one")) is None, "the repeat is known"
        assert await inbox.claim(10, lock_ms=300_000, wait_s=0.2) == []
        assert await inbox.delivered(held.lease) == "done"
        [following] = await inbox.claim(10, lock_ms=300_000, wait_s=5)
        assert (held.row["content"], following.row["content"]) == ("one", "two")


def sent(content: str) -> Inbound:
    return Inbound(session_id="s1", origin="o", content=content, source_message_id=content)


async def send_all(server: Running, *contents: str) -> None:
    async with Client(server.url) as client:
        for content in contents:
            assert (await client.enqueue_inbound(INBOUND, sent(content))).id is not None
        [consumer] = await client.consumers(INBOUND)
        assert isinstance(consumer.config, ConsumerRules)
        assert consumer.config.ordering == "per_key"
