"""A program with a manager of sessions is killed in the middle of deliveries, or asked to end, over and over."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from .process import environment
from .work_ledger import sound

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SESSIONS = ("s0", "s1", "s2", "s3")
LIVES = 7
EACH = 6  # messages a life for each session
WITHIN_S = 60.0  # against hanging; nothing is said of how long anything takes

Line = dict[str, Any]


class Life:
    """A program under way. told: what it has said so far."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.told: list[Line] = []
        self._rest = b""

    def did(self, what: str) -> list[Line]:
        return [line for line in self.told if line["did"] == what]

    async def send(self, session: str, source: str) -> None:
        line = json.dumps({"session_id": session, "content": source, "source_message_id": source})
        assert self.process.stdin is not None
        await self.process.stdin.send_all(line.encode() + b"\n")

    async def until(self, what: str, count: int) -> None:
        """Wait until it has said so, so many times; or for its last word."""
        with trio.fail_after(WITHIN_S):
            while len(self.did(what)) < count and await self._hear():
                pass
        assert len(self.did(what)) >= count

    async def end(self, signum: int) -> None:
        """Send it the signal, and hear all it has still to say."""
        self.process.send_signal(signum)
        with trio.fail_after(WITHIN_S):
            while await self._hear():
                pass
            await self.process.wait()

    async def _hear(self) -> bool:
        assert self.process.stdout is not None
        piece = await self.process.stdout.receive_some()
        *lines, self._rest = (self._rest + piece).split(b"\n")
        self.told += [json.loads(line) for line in lines]
        return bool(piece)


@asynccontextmanager
async def living(data: Path, lasts_s: float) -> AsyncIterator[Life]:
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "tests.e2e.session_manager", str(data), str(lasts_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=str(ROOT),
        env=environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with process.stdin, process.stdout:
        try:
            life = Life(process)
            await life.until("open", 1)
            yield life
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


def begun_before_the_end_of_another(lives: list[list[Line]]) -> list[Line]:
    """Deliveries that began while the one before in their session had neither ended nor been cut off."""
    found = []
    for told in lives:
        running: dict[str, int] = {}
        for line in told:
            if line["did"] == "begin":
                if line["session"] in running:
                    found.append(line)
                running[line["session"]] = line["id"]
            elif line["did"] == "end":
                del running[line["session"]]
    return found


async def test_nothing_is_lost_nor_out_of_order_when_it_is_killed_in_deliveries(tmp_path: Path) -> None:
    """SI-S05: and of each session at most the message that was cut off is delivered twice."""
    data, lives = tmp_path / "data", list[list[Line]]()
    sent: list[tuple[str, str]] = []
    known: set[str] = set()
    for number in range(LIVES):
        async with living(data, 0.03) as life:
            sent += [(session, f"{session}/{number}.{nth}") for nth in range(EACH) for session in SESSIONS]
            for session, source in sent:
                if source not in known:
                    await life.send(session, source)
            await life.until("end", 5 + 3 * number)
            await life.end(signal.SIGKILL)
        known |= {line["source"] for line in life.did("in")}
        lives.append(life.told)
    async with living(data, 0.0) as life:
        for session, source in sent:
            await life.send(session, source)
        await life.until("in", len(sent))
        ended = sum(len([line for line in told if line["did"] == "end"]) for told in lives)
        await life.until("end", len(sent) - ended)
        await trio.sleep(0.5)  # for what must not come
        await life.end(signal.SIGTERM)
    lives.append(life.told)
    sound(data)

    begun = [line for told in lives for line in told if line["did"] == "begin"]
    ends = Counter(line["source"] for told in lives for line in told if line["did"] == "end")
    assert set(ends) == {source for _, source in sent}
    assert begun_before_the_end_of_another(lives) == []
    for session in SESSIONS:
        positions = [line["id"] for line in begun if line["session"] == session]
        assert positions == sorted(positions), "a later one began before an earlier one was marked"
    again = Counter(line["id"] for line in begun)
    cut_off = sum(count - 1 for count in again.values())
    assert 0 < cut_off <= LIVES * len(SESSIONS)
    assert all(line["failures"] <= LIVES for line in begun)
    for told in lives:
        once = Counter(line["id"] for line in told if line["did"] == "begin")
        assert set(once.values()) <= {1}, "delivered twice in one life"
    print(f"of {len(sent)} messages, {cut_off} deliveries were cut off in {LIVES} kills")


async def test_it_gives_back_what_it_holds_when_it_is_asked_to_end(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with living(data, 600.0) as life:
        for number in range(3):
            for session in SESSIONS:
                await life.send(session, f"{session}/{number}")
        await life.until("begin", len(SESSIONS))
        await life.until("in", 3 * len(SESSIONS))
        await life.end(signal.SIGTERM)
        assert life.process.returncode == 0
        assert len(life.did("left")) == 1
        assert life.did("end") == []
    sound(data)
    async with living(data, 0.0) as life:
        await life.until("end", 3 * len(SESSIONS))
        await life.end(signal.SIGTERM)
    assert {line["failures"] for line in life.did("begin")} == {0}
    for session in SESSIONS:
        told = [line["source"] for line in life.did("begin") if line["session"] == session]
        assert told == [f"{session}/{number}" for number in range(3)]
