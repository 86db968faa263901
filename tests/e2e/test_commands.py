"""Command lines in processes of their own, against a real server: pipes, signals, restarts."""

from __future__ import annotations

import json
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from edgequeues.client import Client

from .commands import ended, printed, started
from .process import command, lines, serving

pytestmark = pytest.mark.slow

Q = "dxn:queue:demo:log"
J = "dxn:queue:demo:jobs"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def test_entries_go_in_through_a_pipe_and_come_out_of_one(data: Path) -> None:
    async with serving(data) as server:
        appended = await command("append", Q, stdin=b'1\n{ "two": 2 }\n', url=server.url)
        assert [json.loads(line)["outcome"] for line in lines(appended.stdout)] == ["new", "new"]
        read = await command("read", Q, "--data", url=server.url)
        assert (read.returncode, read.stdout, read.stderr) == (0, b'1\n{ "two": 2 }\n', b"")


async def test_messages_go_in_through_a_pipe_and_come_out_acked(data: Path) -> None:
    async with serving(data) as server:
        pushed = await command("push", J, stdin=b'1\n{ "two": 2 }\n', url=server.url)
        assert [json.loads(line)["outcome"] for line in lines(pushed.stdout)] == ["new", "new"]
        pulled = await command("pull", J, "--batch", "10", "--ack", "--data", url=server.url)
        assert (pulled.returncode, pulled.stdout, pulled.stderr) == (0, b'1\n{ "two": 2 }\n', b"")
        assert (await command("peek", J, url=server.url)).stdout == b""


async def test_a_reader_that_goes_away_is_no_error_message(data: Path) -> None:
    async with serving(data) as server:
        async with Client(server.url) as client:
            [_] = [c async for c in client.append_stream(Q, ("x" * 1000 for _ in range(5_000)))]
        async with started("read", Q, "--server", server.url) as process:
            assert process.stdout is not None
            assert await process.stdout.receive_some(10)
            await process.stdout.aclose()
            assert await ended(process) == (141, b"")


async def test_tail_prints_entries_as_they_come_and_an_interrupt_ends_it_quietly(data: Path) -> None:
    async with serving(data) as server, Client(server.url) as client:
        await client.append(Q, [1, 2])
        async with started("tail", Q, "--data", "--all", "--server", server.url) as process:
            assert await printed(process, 2) == ["1", "2"]
            await client.append(Q, [3])
            assert await printed(process, 1) == ["3"]
            process.send_signal(signal.SIGINT)
            code, said = await ended(process)
            assert (code, said.strip()) == (130, b"")


async def test_tail_outlasts_a_killed_server_without_a_gap_or_a_repeat(data: Path) -> None:
    async with AsyncExitStack() as stack:
        async with serving(data) as server, Client(server.url) as client:
            await client.append(Q, [1])
            tail = started("tail", Q, "--data", "--all", "--server", server.url)
            process = await stack.enter_async_context(tail)
            assert await printed(process, 1) == ["1"]
            await server.stop(signal.SIGKILL)
        async with serving(data, port=server.port) as again, Client(again.url) as client:
            await client.append(Q, [2, 3])
            assert await printed(process, 2) == ["2", "3"]


async def test_a_folder_is_checked_only_while_nobody_serves_it(data: Path) -> None:
    async with serving(data) as server, Client(server.url) as client:
        await client.append(Q, [1])
        served = await command("check", str(data))
        assert served.returncode == 1
        assert b"already serves this folder" in served.stderr
        await server.stop(signal.SIGKILL)
    checked = await command("check", str(data))
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["problems"] == []
