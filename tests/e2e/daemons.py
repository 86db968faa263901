"""Consumer daemons in processes of their own, with handlers that leave traces in files."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import trio

from tests.daemon.working import event

from .process import PROGRAM, STOP_S, environment, first_line

QUEUES = "/client/v4/accounts/demo/queues"
PATIENCE_S = 60.0

# What it handles goes into `trace`, one line each: number and attempt. It is done as the test's file `plan` says.
HANDLER = """
import os, pathlib
import trio

TRACE, PLAN = pathlib.Path("trace"), pathlib.Path("plan")

async def handle(event, ctx):
    number = int(event.id.rpartition("-")[2])
    await plan(number)
    with TRACE.open("a") as trace:
        trace.write(f"{number} {ctx.attempt}\\n")
"""
SLEEPS = (
    HANDLER
    + """
async def plan(number):
    await trio.sleep(float(PLAN.read_text()))
"""
)
FAILS = (
    HANDLER
    + """
async def plan(number):
    with TRACE.open("a") as trace:
        trace.write(f"{number}\\n")
    raise ValueError("no such order")
"""
)
STEPS = (
    HANDLER
    + """
async def plan(number):
    while number > int(PLAN.read_text() or 0):
        await trio.sleep(0.01)
"""
)


class Inbox:
    """The queue of the daemons under test, over Cloudflare's API."""

    def __init__(self, http: httpx.AsyncClient, url: str, folder: Path) -> None:
        self._http = http
        self.url = url
        self.folder = folder

    async def ask(self, path: str, body: Any) -> Any:
        answer = await self._http.post(f"{self.url}{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    def show(self, token: str) -> None:
        """Have all requests of the test carry a token."""
        self._http.headers["authorization"] = f"Bearer {token}"

    async def push(self, *bodies: Any) -> None:
        for first in range(0, len(bodies), 100):
            messages = [{"body": one} for one in bodies[first : first + 100]]
            await self.ask("/messages/batch", {"messages": messages})

    async def push_events(self, count: int) -> None:
        """Events 1 to `count`."""
        await self.push(*[event(n) for n in range(1, count + 1)])

    async def backlog(self) -> int:
        """Messages that are not finished."""
        answer = await self._http.get(f"{self.url}/metrics")
        count: int = answer.json()["result"]["backlog_count"]
        return count

    async def ready(self) -> int:
        """Messages that could be pulled now, up to a hundred."""
        return len((await self.ask("/messages/peek", {"batch_size": 100}))["messages"])

    async def until_backlog(self, count: int) -> None:
        """Wait until so many are left."""
        with trio.fail_after(PATIENCE_S):
            while True:
                if await self.backlog() == count:
                    return
                await trio.sleep(0.02)

    async def until_taken(self) -> None:
        """Wait until nothing can be pulled any more."""
        with trio.fail_after(PATIENCE_S):
            while True:
                if not await self.ready():
                    return
                await trio.sleep(0.02)

    # -- the handler -------------------------------------------------------------------------------------

    def plan(self, text: str) -> None:
        """What the handler is to do."""
        (self.folder / "next").write_text(text)
        (self.folder / "next").rename(self.folder / "plan")

    def trace(self) -> list[tuple[int, ...]]:
        """What was handled: number and attempt."""
        path = self.folder / "trace"
        lines = path.read_text().splitlines() if path.exists() else []
        return [tuple(int(word) for word in line.split()) for line in lines]

    async def until_traced(self, count: int) -> None:
        """Wait until so many were handled."""
        with trio.fail_after(PATIENCE_S):
            while True:
                if len(self.trace()) >= count:
                    return
                await trio.sleep(0.02)


def _lay_out(folder: Path, handler: str) -> None:
    folder.mkdir()
    (folder / "shop.py").write_text(handler)


@asynccontextmanager
async def inbox(server: str, folder: Path, handler: str, **settings: Any) -> AsyncIterator[Inbox]:
    """Make the queue, its consumer and its queue of dead letters, and write down the handler."""
    _lay_out(folder, handler)
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        made = (await http.post(f"{server}{QUEUES}", json={"queue_name": "inbox"})).json()["result"]
        one = Inbox(http, f"{server}{QUEUES}/{made['queue_id']}", folder)
        one.plan("0")
        rules = {"max_retries": 9, **settings}
        await one.ask(
            "/consumers", {"type": "http_pull", "dead_letter_queue": "inbox-dlq", "settings": rules}
        )
        yield one


class Daemon:
    """A daemon that is ready."""

    def __init__(self, process: trio.Process, log: Path) -> None:
        self.process = process
        self.log = log  # its stderr

    async def stop(self, signum: int = signal.SIGTERM) -> int:
        """Send the signal, wait for the end, return the exit code."""
        self.process.send_signal(signum)
        with trio.fail_after(STOP_S):
            return await self.process.wait()


@asynccontextmanager
async def consuming(
    inbox: Inbox, *options: str, url: str = "", name: str = "inbox", **variables: str
) -> AsyncIterator[Daemon]:
    """Run a daemon; it is killed at the end if it has not ended by then.

    url: of the queue, if by another way. name: what it calls the queue.
    """
    log = inbox.folder / "daemon.log"
    path = os.pathsep.join(filter(None, (str(Path.cwd()), os.environ.get("PYTHONPATH"))))
    env = environment() | {"QUEUE_HTTP_ENDPOINT": url or inbox.url, "PYTHONPATH": path} | variables
    args = [*PROGRAM, "consume", *(options or ("--handler", "shop:handle"))]
    with log.open("ab") as stderr:
        process = await trio.lowlevel.open_process(
            args, stdout=subprocess.PIPE, stderr=stderr, env=env, cwd=inbox.folder
        )
    try:
        assert await first_line(process) == f"ready {name}", log.read_text()
        yield Daemon(process, log)
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            assert process.stdout is not None
            await process.stdout.aclose()
