"""A real server in a process of its own, and command lines beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from . import fronts

PROGRAM = (sys.executable, "-m", "edgequeues.cli.main")
START_S = 30.0
STOP_S = 40.0  # less than the longest grace that a test gives


def environment() -> dict[str, str]:
    """This process's own, without what would change a command line."""
    return {name: value for name, value in os.environ.items() if not name.startswith("EDGEQUEUES_")}


@dataclass
class Running:
    """A server that accepts requests."""

    process: trio.Process
    url: str
    log: Path  # its stderr

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]

    async def stop(self, signum: int = signal.SIGTERM) -> int:
        """Send the signal, wait for the end, return the exit code."""
        self.process.send_signal(signum)
        with trio.fail_after(STOP_S):
            return await self.process.wait()


async def spawn(log: Path, data: Path, *options: str) -> trio.Process:
    """Start a server and do not wait for anything."""
    with log.open("ab") as stderr:
        return await trio.lowlevel.open_process(
            [*PROGRAM, "serve", "--data", str(data), "--front", fronts.chosen, *options],
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment(),
        )


async def first_line(process: trio.Process) -> str:
    """Return what the process prints first; "" if it ends without."""
    assert process.stdout is not None
    line = b""
    with trio.fail_after(START_S):
        while not line.endswith(b"\n") and (piece := await process.stdout.receive_some()):
            line += piece
    return line.decode().removesuffix("\n")


@asynccontextmanager
async def serving(data: Path, *options: str, port: str = "0") -> AsyncIterator[Running]:
    """Run a server over the folder; it is killed at the end if it has not ended by then."""
    log = data.with_name(data.name + ".log")
    process = await spawn(log, data, "--port", port, *options)
    try:
        word, _, url = (await first_line(process)).partition(" ")
        assert word == "ready", log.read_text()
        yield Running(process, url, log)
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            assert process.stdout is not None
            await process.stdout.aclose()


async def command(*args: str, stdin: bytes = b"", url: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run a command line to its end; `url` is where its server is."""
    where = {"EDGEQUEUES_SERVER": url} if url else {}
    with trio.fail_after(START_S):
        return await trio.run_process(
            [*PROGRAM, *args],
            stdin=stdin,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={**environment(), **where},
        )


def lines(output: bytes) -> Sequence[str]:
    return output.decode().splitlines()
