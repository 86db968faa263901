"""Bodies that are read as a whole: how slowly they may come, and how many there may be at once."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest
import trio

from edgequeues.http.problems import RequestTimeout
from edgequeues.http.routes import BODY_BYTES_PER_S, BODY_GRACE_S, Budget, Request
from shards.errors import Overloaded

LIMIT = 16 * 1024 * 1024


def dripping(size: int, every_s: float, times: int, budget: Budget | None = None) -> Request:
    """A request whose body comes in so many pieces."""
    left = iter(range(times))

    async def receive() -> MutableMapping[str, Any]:
        await trio.sleep(every_s)
        more = next(left, None) is not None
        return {"type": "http.request", "body": b"x" * size if more else b"", "more_body": more}

    return Request("POST", {}, {}, {}, receive, budget)


async def test_a_body_that_drips_is_refused_though_it_never_pauses() -> None:
    began = trio.current_time()
    with pytest.raises(RequestTimeout, match="bytes a second"):
        await dripping(1, 5, 1_000).body(LIMIT)
    assert trio.current_time() - began == pytest.approx(BODY_GRACE_S, abs=0.1)


async def test_a_large_body_at_the_least_rate_is_taken() -> None:
    slow = dripping(BODY_BYTES_PER_S, 1, 300)
    assert len(await slow.body(LIMIT)) == 300 * BODY_BYTES_PER_S


async def test_a_streamed_body_may_drip_for_ever() -> None:
    one = dripping(1, 50, 1_000)
    assert [await one.piece() for _ in range(1_000)] == [b"x"] * 1_000


async def test_bodies_share_a_budget_and_give_back_what_they_took() -> None:
    budget = Budget(100)
    first, second, third = (dripping(30, 0, 2, budget) for _ in range(3))
    assert len(await first.body(LIMIT)) == 60
    with pytest.raises(Overloaded):
        await second.body(LIMIT)
    second.release()
    assert budget.left == 40
    first.release()
    first.release()
    assert budget.left == 100
    assert len(await third.body(LIMIT)) == 60
