"""How many pulls there are at one time: while there is work, while there is none, and when it is to stop."""

from __future__ import annotations

import httpx
import trio

from .service import Service
from .working import drain, event, running


class Pulls(Service):
    """Knows how many pulls there are now, were at one time, and in all."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = self.begun = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        is_pull = request.url.path.endswith("/pull")
        self.now += is_pull
        self.begun += is_pull
        self.most = max(self.most, self.now)
        try:
            return await super().handle_async_request(request)
        finally:
            self.now -= is_pull


async def test_while_there_is_work_each_batch_is_followed_by_a_pull_of_its_own() -> None:
    service = Pulls()
    service.push(*[event(n) for n in range(1, 1_001)])
    service.call_s = 1.0
    began_s = trio.current_time()
    await drain(service, queue_max_batch=10)
    assert len(service.acked) == len(set(service.acked)) == 1_000
    assert service.most == 4
    assert trio.current_time() - began_s < 50  # one after the other, a hundred pulls alone take twice as long


async def test_while_there_is_none_one_pull_is_all_there_is() -> None:
    service = Pulls()
    service.push(*[event(n) for n in range(1, 41)])
    service.call_s = 1.0
    async with running(service, queue_max_batch=10):
        await trio.sleep(20)
        assert len(service.acked) == 40
        service.most = service.now
        await trio.sleep(100)
        assert service.most == 1


async def test_what_pulls_bring_when_it_is_to_stop_is_given_back() -> None:
    service = Pulls()
    service.ours = True
    service.push(*[event(n) for n in range(1, 101)])
    service.call_s = 1.0
    async with running(service, queue_max_batch=10) as one:
        await trio.sleep(3.5)
        pulls, handled = service.begun, len(one.handled.began)
        assert service.now >= 2
        one.batches.stop(grace_s=60)
    assert (service.begun, len(one.handled.began), len(service.acked)) == (pulls, handled, handled)
    assert [held for held in service.left if held.lease is not None] == []


async def test_a_pull_that_fails_after_a_batch_is_told_and_tried_again_with_patience() -> None:
    service, faults = Pulls(), iter([None] * 6 + [503] * 40)
    service.push(*[event(n) for n in range(1, 1_001)])
    service.call_s = 1.0
    service.failing = lambda path: next(faults, None) if path == "pull" else None
    async with running(service, queue_max_batch=10) as one:
        await trio.sleep(3_600)
        assert len(service.acked) == 1_000
        assert len([msg for _, msg, _ in one.lines.said if "nothing can be pulled" in msg]) == 1
