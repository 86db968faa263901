"""A handler of each kind, opened as the daemon opens it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from edgequeues.daemon.budgets import Budgets, Worker
from edgequeues.daemon.contract import Handler, Result
from edgequeues.daemon.handlers.opening import open_handler
from edgequeues.daemon.handlers.spec import HandlerSpec
from edgequeues.workers.beside import beside
from tests.daemon.handlers.given import FakeContext, Lines, event, link
from tests.daemon.handlers.receiver import receiver

HERE = "tests.daemon.handlers.functions_for_tests"
CHILD = Path(__file__).parent / "child_for_tests.py"
NODE = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
FUNCTIONS = ["trio", "asyncio", "plain"]
COMMANDS = [
    pytest.param("lines", marks=pytest.mark.slow),
    pytest.param("node", marks=[pytest.mark.slow, NODE]),
]
KINDS: list[Any] = [*FUNCTIONS, *COMMANDS, "url"]

BUDGET_S = 60.0


def spec(kind: str, url: str, **more: Any) -> HandlerSpec:
    match kind:
        case "trio":
            return HandlerSpec(kind="python", target=f"{HERE}:on_trio", **more)
        case "asyncio":
            return HandlerSpec(kind="python", target=f"{HERE}:on_asyncio", loop="asyncio", **more)
        case "plain":
            return HandlerSpec(kind="python", target=f"{HERE}:plain", **more)
        case "lines":
            return HandlerSpec(kind="command", target=command(), **more)
        case "node":
            return HandlerSpec(kind="command", target=f"node '{CHILD.with_name('child.mjs')}'", **more)
    return HandlerSpec(kind="url", target=url, **more)


def command(*words: object) -> str:
    return " ".join(f"'{word}'" for word in (sys.executable, CHILD, *words))


class Opened:
    """A handler, with the last context that it was given."""

    def __init__(self, handler: Handler, log: Lines, budgets: Budgets) -> None:
        self.handler = handler
        self.budgets = budgets
        self.log = log
        self.ctx = FakeContext()

    async def handle(self, todo: str, text: str = "hello", *, attempt: int = 1) -> Result:
        self.ctx = FakeContext(attempt)
        with Worker(self.budgets, self.handler) as worker:
            return await worker.handle(event(todo, text), self.ctx)

    async def note(self, todo: str, text: str = "hello", *, attempt: int = 1) -> str | None:
        """What the only artifact says."""
        [artifact] = (await self.handle(todo, text, attempt=attempt)).artifacts
        return artifact.note


@asynccontextmanager
async def opened(kind: str, *, budget_s: float = BUDGET_S, at_once: int = 2) -> AsyncIterator[Opened]:
    with receiver() as (url, _):
        async with one(spec(kind, url, budget_s=budget_s, at_once=at_once)) as it:
            yield it


@asynccontextmanager
async def one(what: HandlerSpec, **more: Any) -> AsyncIterator[Opened]:
    log = Lines()
    budgets = Budgets(what.budget_s)
    async with open_handler(what, logger=log, link=link, **more) as handler, beside(budgets.watch):
        yield Opened(handler, log, budgets)
