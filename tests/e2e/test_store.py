"""A store over HTTP, against a real server: on trio and on asyncio, and over a kill."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

from edgequeues.store import Options, QueueStore, open_remote
from edgequeues.store.conformance import CHECKS, Result, Subject, run
from tests.e2e.process import Running, serving

LEASE_MS = 900  # three of them fit into what a check may take
NOT_RUN = {"key_is_known_for_24_hours", "dead_letter_keeps_the_error", "restarts_lose_nothing"}
RESTARTS = [check for check in CHECKS if check.name == "restarts_lose_nothing"]


def subject(url: str, lease_ms: int, *, restart: Callable[[], Awaitable[None]] | None = None) -> Subject:
    @asynccontextmanager
    async def opened() -> AsyncIterator[QueueStore]:
        async with open_remote(url, "demo", Options(lease_ms=lease_ms)) as store:
            yield store

    return Subject(opened, lease_ms, "e2e", time_max_ms=lease_ms + 3_000, restart=restart)


def wrong(results: list[Result]) -> list[Result]:
    """What is not as it should be."""
    return [one for one in results if one.outcome != ("not run" if one.check.name in NOT_RUN else "holds")]


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:Async generator 'httpx:ResourceWarning"
)  # of a body it was not to send any more
@pytest.mark.parametrize("loop", ["trio", "asyncio"])
async def test_a_store_over_http_does_what_the_interface_says(loop: str, tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        checked = subject(server.url, LEASE_MS)
        if loop == "trio":
            results = await run(checked)
        else:
            results = await trio.to_thread.run_sync(lambda: asyncio.run(run(checked)))
    assert len(results) == len(CHECKS)
    assert wrong(results) == []


@pytest.mark.slow
async def test_a_kill_loses_nothing_that_a_store_confirmed(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server: Running = await stack.enter_async_context(serving(tmp_path / "data"))

        async def restart() -> None:
            await server.stop(signal.SIGKILL)
            await stack.enter_async_context(serving(tmp_path / "data", port=server.port))

        [result] = await run(subject(server.url, 10_000, restart=restart), RESTARTS)
    assert (result.outcome, result.detail) == ("holds", "")
