"""How long a wait lasts, and what ends it."""

from __future__ import annotations

from functools import partial

import trio
import trio.testing

from edgequeues.http.waits import Waits


async def test_a_wait_is_over_after_its_time() -> None:
    assert not await Waits().at_most(3, trio.sleep_forever)
    assert await Waits().at_most(3, partial(trio.sleep, 2))


async def test_who_comes_after_the_time_does_not_wait() -> None:
    """What a handler did since may have taken longer than it was to wait: a turn behind many others."""
    before = trio.current_time()
    assert not await Waits().at_most(-0.5, trio.sleep_forever)
    assert trio.current_time() == before


async def test_no_wait_lasts_when_the_server_stops() -> None:
    waits, before = Waits(), trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits.pause, 1_000)
        await trio.testing.wait_all_tasks_blocked()
        waits.end()
    assert not await waits.at_most(1_000, trio.sleep_forever)
    assert trio.current_time() == before
