"""Functions of a host on asyncio, and waiting there. In real time: nothing is said of how long anything takes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from edgequeues.inbound import InboundRow
from edgequeues.sessions.local import open_inbox
from edgequeues.sessions.thread import OpenInbox

WITHIN_S = 30.0  # against hanging

T = TypeVar("T")


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a test on asyncio."""

    async def bounded() -> T:
        async with asyncio.timeout(WITHIN_S):
            return await work()

    return asyncio.run(bounded())


def folder(path: Path) -> OpenInbox:
    return lambda: open_inbox(path)


def names() -> list[str]:
    """Of the threads that managers have."""
    return [thread.name for thread in threading.enumerate() if thread.name == "edgequeues sessions"]


async def until(reached: Callable[[], bool]) -> None:
    while not reached():  # noqa: ASYNC110 - what is waited for is in another thread
        await asyncio.sleep(0.005)


class Delivering:
    """An async delivery function; sessions whose name starts with `hangs` hang until they are cancelled."""

    def __init__(self) -> None:
        self.begun: list[InboundRow] = []
        self.done: list[str] = []
        self.cancelled: list[str] = []

    async def __call__(self, row: InboundRow) -> None:
        self.begun.append(row)
        try:
            if row["session_id"].startswith("hangs"):
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.cancelled.append(row["content"])
            raise
        self.done.append(row["content"])
