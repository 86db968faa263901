"""Tasks that go on beside a block, and end with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def beside(*tasks: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Have tasks run for as long as the block lasts. What the block raises leaves it as it is, not in a group."""
    failed: Exception | None = None
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)
        try:
            yield
        except Exception as error:
            failed = error
        nursery.cancel_scope.cancel()
    if failed is not None:
        raise failed
