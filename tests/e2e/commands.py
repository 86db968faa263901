"""Command lines under way, beside a test."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from .process import PROGRAM, environment


@asynccontextmanager
async def started(*args: str) -> AsyncIterator[trio.Process]:
    """A command line under way, with pipes to read; it is killed at the end if it has not ended by then."""
    process = await trio.lowlevel.open_process(
        [*PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None
    assert process.stderr is not None
    async with process.stdout, process.stderr:
        try:
            yield process
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def ended(process: trio.Process) -> tuple[int, bytes]:
    """Wait for the end; return the exit code and what was said on stderr."""
    assert process.stderr is not None
    said = b""
    with trio.fail_after(60):
        while piece := await process.stderr.receive_some():
            said += piece
        return await process.wait(), said


async def says(process: trio.Process, wanted: bytes) -> None:
    """Wait until it has said this on stderr; what it said so far is not told again."""
    assert process.stderr is not None
    said = b""
    with trio.fail_after(60):
        while wanted not in said:
            piece = await process.stderr.receive_some()
            assert piece, said
            said += piece


async def printed(process: trio.Process, count: int) -> list[str]:
    """Wait for so many lines."""
    assert process.stdout is not None
    text = b""
    with trio.fail_after(60):
        while text.count(b"\n") < count:
            text += await process.stdout.receive_some()
    return text.decode().splitlines()
