"""What both stores have beyond the interface, and what their errors say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio

from edgequeues.store import (
    LeaseLost,
    LocalStore,
    Options,
    QueueNotFound,
    Refused,
    RemoteStore,
    StoreFailed,
    TooManyHeld,
    Unavailable,
    open_local,
)
from shards.errors import FolderLocked
from shards.testing import InlineDisk, TrioClock
from tests.client.script import problem, scripted

from .subjects import KINDS, OPTIONS, Base, Ours


@pytest.fixture(params=KINDS)
async def base(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Base]:
    base = Base(tmp_path, KINDS[request.param])
    await base.start()
    try:
        yield base
    finally:
        await base.stop()


async def held(store: Ours, queue: str = "jobs") -> str:
    found = await store.dequeue(queue)
    assert found is not None
    return found.id


async def test_a_dequeue_waits_for_a_message_as_long_as_it_was_told_to(base: Base) -> None:
    store = base.make(Options(wait_ms=5_000))
    await store.enqueue("jobs", 0)
    await store.ack(await held(store))
    began = trio.current_time()
    assert await store.dequeue("jobs") is None
    assert trio.current_time() - began == pytest.approx(5, abs=0.01)

    async def later() -> None:
        await trio.sleep(2)
        await base.make().enqueue("jobs", 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later)
        began = trio.current_time()
        await held(store)
        assert trio.current_time() - began == pytest.approx(2, abs=0.01)


async def test_a_dequeue_that_waits_is_woken_when_a_delay_is_over(base: Base) -> None:
    store = base.make(Options(wait_ms=5_000))
    await store.enqueue("jobs", 0)
    began = trio.current_time()
    await store.retry(await held(store), 3_000)
    await held(store)
    assert trio.current_time() - began == pytest.approx(3, abs=0.01)


async def test_no_more_messages_are_handed_out_than_leases_are_kept_until_some_lapse(base: Base) -> None:
    store = base.make(Options(lease_ms=10_000, held_max=2))
    for number in range(4):
        await store.enqueue("jobs", number)
    first = await held(store)
    await held(store)
    with pytest.raises(TooManyHeld, match=r"2 messages are handed out and not answered\. .* `held_max`"):
        await store.dequeue("jobs")
    await store.ack(first)
    await held(store)
    await trio.sleep(10.001)
    await held(store)


async def test_many_that_dequeue_at_once_are_not_handed_more_than_may_be_held(base: Base) -> None:
    store = base.make(Options(held_max=3))
    for number in range(8):
        await store.enqueue("jobs", number)
    told: list[str] = []

    async def one() -> None:
        try:
            await held(store)
            told.append("given")
        except TooManyHeld:
            told.append("told")

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(one)
    assert sorted(told) == ["given"] * 3 + ["told"] * 5


async def test_an_extended_lease_begins_anew(base: Base) -> None:
    store, other = base.make(), base.make()
    await store.enqueue("jobs", 0)
    message_id = await held(store)
    await trio.sleep(0.75 * OPTIONS.lease_ms / 1000)
    await store.extend(message_id)
    await trio.sleep(0.75 * OPTIONS.lease_ms / 1000)
    assert await other.dequeue("jobs") is None
    await trio.sleep(0.5 * OPTIONS.lease_ms / 1000)
    with pytest.raises(LeaseLost, match="its lease has lapsed"):
        await store.extend(message_id)


async def test_a_late_ack_counts_while_nobody_else_was_handed_the_message(base: Base) -> None:
    store = base.make()
    await store.enqueue("jobs", 0)
    message_id = await held(store)
    await trio.sleep(2 * OPTIONS.lease_ms / 1000)
    await store.ack(message_id)
    assert await store.dequeue("jobs") is None


async def test_the_last_attempt_that_fails_makes_a_dead_letter(base: Base) -> None:
    store = base.make()
    made = await store.enqueue("jobs", {"n": 1})
    for _ in range(5):
        await store.retry(await held(store), 0)
    assert await store.dequeue("jobs") is None
    [letter] = await store.dead_letters("jobs")
    assert (letter.message, letter.attempts, letter.error) == ({"n": 1}, 5, "failed without saying why")
    assert letter.id.startswith("jobs-dlq:")
    assert letter.id != made


async def test_dead_letters_come_oldest_first_up_to_a_limit(base: Base) -> None:
    store = base.make()
    assert await store.dead_letters("jobs") == []
    for number in range(3):
        await store.enqueue("jobs", number)
        await store.dead_letter(await held(store), f"error {number}")
    assert [one.error for one in await store.dead_letters("jobs", 2)] == ["error 0", "error 1"]
    for limit in (0, 1_001):
        with pytest.raises(ValueError, match="limit is"):
            await store.dead_letters("jobs", limit)


async def test_of_a_long_error_the_beginning_is_kept_and_half_a_pair_is_no_trouble(base: Base) -> None:
    store = base.make()
    for error in ("x" * 5_000, "half \ud800"):
        await store.enqueue("jobs", 0)
        await store.dead_letter(await held(store), error)
    errors = [one.error for one in await store.dead_letters("jobs")]
    assert errors == ["x" * 4_095 + "…", "half \\ud800"]


async def test_half_a_surrogate_pair_in_a_message_is_kept(base: Base) -> None:
    store = base.make()
    await store.enqueue("jobs", {"text": "\ud800"})
    found = await store.dequeue("jobs")
    assert found is not None
    assert found.message == {"text": "\ud800"}


@pytest.mark.parametrize("queue", ["", "a:b", "a/b", "ü", "x" * 129, "dxn:queue:demo:jobs"])
async def test_a_name_that_no_queue_can_have_is_a_value_error(base: Base, queue: str) -> None:
    store = base.make()
    with pytest.raises(ValueError):
        await store.enqueue(queue, 1)
    with pytest.raises(ValueError):
        await store.dequeue(queue)


@pytest.mark.parametrize("key", ["", "x" * 257, "line\nbreak"])
async def test_a_key_that_cannot_be_is_a_value_error(base: Base, key: str) -> None:
    with pytest.raises(ValueError):
        await base.make().enqueue("jobs", 1, key)


async def test_what_is_refused_has_the_code_of_the_protocol(base: Base) -> None:
    store = base.make()
    await store.enqueue("jobs", 1, "k")
    with pytest.raises(Refused) as mismatch:
        await store.enqueue("jobs", 2, "k")
    assert mismatch.value.code == "idempotency_mismatch"
    deep: object = 0
    for _ in range(65):
        deep = [deep]
    with pytest.raises(Refused) as nested:
        await store.enqueue("jobs", deep)
    assert nested.value.code == "invalid_json"
    with pytest.raises(Refused) as large:
        await store.enqueue("jobs", "x" * (4 * 1024 * 1024))
    assert large.value.code == "too_large"


@pytest.mark.parametrize("options", [{"lease_ms": 0}, {"wait_ms": 60_001}, {"held_max": 0}, {"worker": ""}])
def test_options_out_of_bounds_are_a_value_error(options: dict[str, int]) -> None:
    [name] = options
    with pytest.raises(ValueError, match=name):
        Options(**options)  # type: ignore[arg-type]


async def test_a_folder_is_open_once(tmp_path: Path) -> None:
    async with open_local(tmp_path, "demo", clock=TrioClock(), disk=InlineDisk()):
        with pytest.raises(FolderLocked):
            async with open_local(tmp_path, "demo"):
                raise AssertionError("it was opened twice")


async def test_a_store_over_a_folder_that_was_closed_is_unavailable(tmp_path: Path) -> None:
    async with open_local(tmp_path, "demo", clock=TrioClock(), disk=InlineDisk()) as store:
        await store.enqueue("jobs", 1)
    with pytest.raises(Unavailable) as closed:
        await store.enqueue("jobs", 2)
    assert (closed.value.code, closed.value.maybe_done) == ("shutting_down", False)


async def test_a_space_that_cannot_be_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        async with open_local(tmp_path, "no space"):
            raise AssertionError("it was opened")
    with pytest.raises(ValueError):
        RemoteStore(scripted()[0], "no space")


@pytest.mark.parametrize(
    ("answer", "kind", "code", "maybe_done"),
    [
        (problem(503, "outcome_unknown"), Unavailable, "outcome_unknown", True),
        (problem(503, "overloaded"), Unavailable, "overloaded", False),
        (httpx.ReadError("broken"), Unavailable, "unreachable", True),
        (problem(401, "unauthenticated"), Refused, "unauthenticated", None),
        (problem(500, "internal"), StoreFailed, None, None),
        (httpx.Response(200, text="<html>"), StoreFailed, None, None),
        (problem(404, "queue_not_found"), QueueNotFound, None, None),
    ],
)
async def test_what_goes_wrong_on_the_way_is_told_as_a_store_tells_it(
    answer: httpx.Response | Exception, kind: type[Exception], code: str | None, maybe_done: bool | None
) -> None:
    client, _ = scripted(answer)
    async with client:
        with pytest.raises(kind) as raised:
            await RemoteStore(client, "demo").dequeue("jobs")
    assert getattr(raised.value, "code", None) == code
    assert getattr(raised.value, "maybe_done", None) is maybe_done


def test_a_store_over_http_runs_on_asyncio() -> None:
    message = {"lease": "L1", "attempts": 1, "until": 9, "id": "a", "position": 3, "version": "v"}
    facts = {"type": None, "created": 7, "updated": 7, "priority": 4, "data": {"n": 1}}
    pulled = {"messages": [{**message, **facts}], "paused": False, "backlog": 1}
    done = {"results": [{"lease": "L1", "outcome": "done"}]}
    client, script = scripted(httpx.Response(200, json=pulled), httpx.Response(200, json=done))

    async def work() -> None:
        async with client:
            store = RemoteStore(client, "demo")
            found = await store.dequeue("jobs")
            assert found is not None
            assert (found.id, found.message, found.enqueued) == ("jobs:a", {"n": 1}, 7)
            await store.ack(found.id)

    asyncio.run(work())
    assert [one.url.path.rpartition("/")[2] for one in script.requests] == ["pull", "ack"]


async def test_another_store_of_a_folder_has_leases_of_its_own(tmp_path: Path) -> None:
    async with open_local(tmp_path, "demo", clock=TrioClock(), disk=InlineDisk()) as store:
        assert isinstance(store.another(), LocalStore)
        assert store.another().options == store.options
        assert store.another(OPTIONS).options == OPTIONS
