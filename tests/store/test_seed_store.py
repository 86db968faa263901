"""The five calls as the requirements have them, on both stores; each test is named after its row."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from edgequeues.store import LeaseLost

from .subjects import KINDS, OPTIONS, Base


@pytest.fixture(params=KINDS)
async def base(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Base]:
    base = Base(tmp_path, KINDS[request.param])
    await base.start()
    try:
        yield base
    finally:
        await base.stop()


async def test_s2_47_enqueue_takes_a_message_and_a_key_that_makes_it_one(base: Base) -> None:
    store = base.make()
    first = await store.enqueue("WebhookIngress", {"payload": {"id": 7}}, "pagerduty-7")
    assert await store.enqueue("WebhookIngress", {"payload": {"id": 7}}, "pagerduty-7") == first
    assert await store.enqueue("WebhookIngress", {"payload": {"id": 7}}) != first


async def test_s2_48_dequeue_gives_the_next_message_or_none(base: Base) -> None:
    store = base.make()
    ids = [await store.enqueue("WebhookIngress", number) for number in (1, 2)]
    found = [await store.dequeue("WebhookIngress") for _ in range(3)]
    assert [one and (one.id, one.message, one.attempts) for one in found] == [
        (ids[0], 1, 1),
        (ids[1], 2, 1),
        None,
    ]


async def test_s2_49_ack_finishes_the_message_of_an_id(base: Base) -> None:
    store = base.make()
    message_id = await store.enqueue("WebhookIngress", 1)
    await store.dequeue("WebhookIngress")
    await store.ack(message_id)
    await trio.sleep(2 * OPTIONS.lease_ms / 1000)
    assert await store.dequeue("WebhookIngress") is None


async def test_s2_50_retry_has_the_message_of_an_id_handed_out_after_a_delay(base: Base) -> None:
    store = base.make()
    message_id = await store.enqueue("WebhookIngress", 1)
    await store.dequeue("WebhookIngress")
    await store.retry(message_id, 1_000)
    await trio.sleep(0.999)
    assert await store.dequeue("WebhookIngress") is None
    await trio.sleep(0.001)
    again = await store.dequeue("WebhookIngress")
    assert again is not None
    assert (again.id, again.attempts) == (message_id, 2)


async def test_s2_51_dead_letter_puts_the_message_of_an_id_away_with_its_error(base: Base) -> None:
    store = base.make()
    message_id = await store.enqueue("WebhookIngress", {"n": 1})
    await store.dequeue("WebhookIngress")
    await store.dead_letter(message_id, "guard rejected")
    assert await store.dequeue("WebhookIngress") is None
    [letter] = await store.dead_letters("WebhookIngress")
    assert (letter.message, letter.error, letter.attempts) == ({"n": 1}, "guard rejected", 1)


async def test_a_message_whose_lease_was_lost_is_not_finished_by_who_lost_it(base: Base) -> None:
    slow, quick = base.make(), base.make()
    message_id = await slow.enqueue("WebhookIngress", 1)
    await slow.dequeue("WebhookIngress")
    await trio.sleep(OPTIONS.lease_ms / 1000)
    assert await quick.dequeue("WebhookIngress") is not None
    with pytest.raises(LeaseLost, match="somebody else was handed it since"):
        await slow.ack(message_id)
    await quick.ack(message_id)
