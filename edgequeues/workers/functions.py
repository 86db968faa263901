"""Commands that are Python functions: each runs in a process of its own, with a deadline.

A function that hangs, or takes its process down, harms nobody else: the process is ended, and the next one starts.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import msgspec
import trio

from edgequeues.core.errors import CommandFailed, CommandRejected
from edgequeues.space.entities import Entity
from edgequeues.spec.calling import Effects
from edgequeues.workers import pipe
from edgequeues.workers.pipe import Did, Failed, Found, FromChild, Job, Look, Ready, ToChild

START_S = 10.0  # a process takes no longer than this to start, unless something is wrong
COMMAND = (sys.executable, "-m", "edgequeues.workers.child")

LookUp = Callable[[str, str], Awaitable[Entity | None]]

log = logging.getLogger("edgequeues.commands")


class _Gone(Exception):
    """The process has ended, or says what makes no sense."""


class Worker:
    """One process, which runs one function at a time."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> Worker:
        """Start a process. Raises CommandFailed."""
        with trio.CancelScope(shield=True):  # a process that nobody knows would run on
            process = await trio.lowlevel.open_process(
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        worker = cls(process)
        try:
            with trio.fail_after(START_S):
                ready = await worker._hear()
            assert isinstance(ready, Ready)
        except (trio.TooSlowError, _Gone) as error:
            await worker.end()
            raise CommandFailed(
                "the process for functions did not start; the server's log may say why"
            ) from error
        except BaseException:
            await worker.end()
            raise
        return worker

    async def run(self, job: Job, look: LookUp) -> Effects:
        """Run a function; return what it did. Raises CommandRejected, CommandFailed, and _Gone: end this then."""
        await self._say(job)
        while True:
            heard = await self._hear()
            if isinstance(heard, Look):
                found = await look(heard.entity_type, heard.entity_id)
                await self._say(Found(None if found is None else found[:5]))
            elif isinstance(heard, Did):
                return heard.effects
            elif isinstance(heard, Failed):
                raise (CommandRejected if heard.permanent else CommandFailed)(heard.error)

    async def end(self) -> str:
        """End the process, and what it has started; return how it ended."""
        with trio.CancelScope(shield=True):
            if self._process.returncode is None:  # else the number may be another process's by now
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            status = await self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                assert stream is not None
                await stream.aclose()
        return f"signal {-status}" if status < 0 else f"status {status}"

    async def died(self) -> str:
        """Wait for a process that has closed its ends, and see that it ends; return how it did."""
        with trio.move_on_after(1.0):
            await self._process.wait()
        return await self.end()

    async def _say(self, message: ToChild) -> None:
        assert self._process.stdin is not None
        try:
            await self._process.stdin.send_all(pipe.frame(message))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise _Gone from None

    async def _hear(self) -> FromChild:
        try:
            size = pipe.length(await self._exactly(pipe.LENGTH_BYTES))
            return pipe.told(await self._exactly(size))
        except (msgspec.DecodeError, ValueError) as error:
            raise _Gone(str(error)) from error

    async def _exactly(self, size: int) -> bytes:
        assert self._process.stdout is not None
        parts, left = [], size
        while left:
            part = await self._process.stdout.receive_some(left)
            if not part:
                raise _Gone
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


class Functions:
    """Processes for functions, at most `workers`; each is started when it is needed and kept for the next."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._room = trio.Semaphore(workers)
        self._idle: list[Worker] = []

    async def run(self, job: Job, look: LookUp, timeout_s: float) -> Effects:
        """Run a function that may take `timeout_s`. Raises CommandRejected, CommandFailed."""
        async with self._room:
            worker = self._idle.pop() if self._idle else await Worker.start()
            kept = False
            try:
                with trio.move_on_after(timeout_s) as deadline:
                    try:
                        effects = await worker.run(job, look)
                    except _Gone:
                        how = await worker.died()
                        raise CommandFailed(f"the process that ran {job.function} died ({how})") from None
                    except (CommandFailed, CommandRejected):
                        kept = True
                        raise
                    kept = True
                    return effects
                assert deadline.cancelled_caught
                took = f"{timeout_s * 1_000:.0f} ms"
                raise CommandFailed(f"{job.function} did not end within {took}, so its process was ended")
            finally:
                if kept:
                    self._idle.append(worker)
                else:
                    await worker.end()

    async def close(self) -> None:
        """End all processes that do nothing now; no function runs any more."""
        while self._idle:
            await self._idle.pop().end()


@asynccontextmanager
async def open_functions(workers: int) -> AsyncIterator[Functions]:
    """Processes that end with the block."""
    functions = Functions(workers)
    try:
        yield functions
    finally:
        await functions.close()
