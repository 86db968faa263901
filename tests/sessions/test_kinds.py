"""A manager works over an inbox on a server as over one in a folder of its process."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from edgequeues.sessions.errors import SessionClosed
from edgequeues.sessions.manager import open_manager

from .deliveries import Deliveries, enqueue
from .inboxes import KINDS, opened


@pytest.mark.parametrize("kind", KINDS)
async def test_order_failures_closes_and_the_end_are_the_same(tmp_path: Path, kind: str) -> None:
    async with opened(tmp_path, kind) as base:
        deliver = Deliveries(0.0, RuntimeError("no pane"), SessionClosed("s"))
        async with open_manager(base.make(), deliver) as manager:
            for content in "abc":
                await enqueue(manager, content)
            await trio.sleep(1)
            assert deliver.contents == ["a"]
            await trio.sleep(5)
            assert deliver.contents == ["a", "a", "b", "c"]
            assert deliver.done == ["b", "c"]
            deliver.lasts_s = 1_000.0
            await enqueue(manager, "closed", "t")
            await enqueue(manager, "held", "u")
            await enqueue(manager, "behind it", "u")
            await trio.sleep(1)
            assert manager.active() == ["t", "u"]
            assert await manager.expire_session("t") == 1
            assert deliver.cancelled == ["closed"]
        await base.restart()
        deliver = Deliveries()
        async with open_manager(base.make("another"), deliver):
            await trio.sleep(1)
        assert deliver.done == ["held", "behind it"]
        assert deliver.attempts == [0, 0]
