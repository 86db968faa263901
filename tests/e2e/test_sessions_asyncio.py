"""Hosts on asyncio: one is interrupted in a delivery, as by Ctrl-C, and loses nothing; one has a server."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from edgequeues.inbound import InboundRow
from edgequeues.sessions import open_asyncio_manager, open_remote_inbox

from .process import environment, serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "sessions" / "asyncio_host.py"
WITHIN_S = 60.0
SESSIONS = ("one", "two")
EACH = 6


class Host:
    """The example under way. told: what sessions were told, in order. taken: messages that are on disk."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.told: list[tuple[str, str]] = []
        self.taken = 0
        self.left = False
        self._rest = b""

    async def say(self, *lines: str) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all("".join(f"{line}\n" for line in lines).encode())

    async def until(self, *, told: int = 0, taken: int = 0) -> None:
        while len(self.told) < told or self.taken < taken:
            assert await self._hear(), "it ended"

    async def interrupt(self) -> int:
        """Ctrl-C; return its exit status."""
        self.process.send_signal(signal.SIGINT)
        while await self._hear():
            pass
        return await self.process.wait()

    async def _hear(self) -> bool:
        assert self.process.stdout is not None
        with trio.fail_after(WITHIN_S):
            while b"\n" not in self._rest:
                piece = await self.process.stdout.receive_some()
                if not piece:
                    return False
                self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        text = line.decode()
        if text.startswith("taken in: "):
            self.taken += 1
        elif text == "left":
            self.left = True
        else:
            session, _, content = text.partition(" is told: ")
            self.told.append((session, content))
        return True


@asynccontextmanager
async def hosting(data: Path) -> AsyncIterator[Host]:
    process = await trio.lowlevel.open_process(
        [sys.executable, str(EXAMPLE), str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**environment(), "PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with process.stdin, process.stdout:
        try:
            yield Host(process)
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def test_a_host_that_is_interrupted_delivers_the_rest_in_order_when_it_is_back(tmp_path: Path) -> None:
    sent = [(session, str(number)) for number in range(EACH) for session in SESSIONS]
    async with hosting(tmp_path) as host:
        await host.say(*(" ".join(one) for one in sent))
        await host.until(taken=len(sent), told=3)
        assert await host.interrupt() == 0
        assert host.left
        assert len(host.told) < len(sent)
    async with hosting(tmp_path) as again:
        await again.until(told=len(sent) - len(host.told))
        assert await again.interrupt() == 0
    told = host.told + again.told
    for session in SESSIONS:
        assert [content for name, content in told if name == session] == [str(n) for n in range(EACH)]


async def test_the_inbox_of_a_host_may_be_on_a_server(tmp_path: Path) -> None:
    async def work(url: str) -> list[str]:
        told, all_told = list[str](), asyncio.Event()

        async def deliver(row: InboundRow) -> None:
            told.append(row["content"])
            if len(told) == EACH:
                all_told.set()

        async with (
            asyncio.timeout(WITHIN_S),
            open_asyncio_manager(lambda: open_remote_inbox(url, "chat"), deliver) as manager,
        ):
            for number in range(EACH):
                for repeat in (False, True):
                    position = await manager.enqueue(
                        session_id="s", origin="o", content=str(number), source_message_id=str(number)
                    )
                    assert (position is None) is repeat
            await all_told.wait()
        return told

    async with serving(tmp_path / "data") as server:
        told = await trio.to_thread.run_sync(lambda: asyncio.run(work(server.url)))
    assert told == [str(number) for number in range(EACH)]
