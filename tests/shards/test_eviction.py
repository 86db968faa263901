"""Shards are opened on demand and closed when idle or in the way; callers notice neither."""

from __future__ import annotations

import pytest
import trio
import trio.lowlevel

from shards.limits import Limits
from shards.testing import running

from .examples import Notes, SlowDisk


async def test_an_idle_shard_is_closed_and_opens_again_with_all_there() -> None:
    async with running(Notes, limits=Limits(idle_s=60)) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "x")
        await trio.sleep(59)
        assert namespace.open_count == 1
        await trio.sleep(17)
        assert namespace.open_count == 0
        assert await ref.call(Notes.texts) == ["x"]


async def test_a_shard_in_use_is_not_closed_as_idle() -> None:
    async with running(Notes, limits=Limits(idle_s=60)) as namespace:
        opened = await namespace.ref("a").call(id)
        for _ in range(10):
            await trio.sleep(50)
            assert await namespace.ref("a").call(id) == opened


async def test_a_shard_that_waits_for_a_flush_is_not_idle() -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk, limits=Limits(idle_s=4)) as namespace:
        ref = namespace.ref("a")
        opened = await ref.call(id)
        disk.takes_s = 100.5  # the timer looks at full seconds
        await ref.call(Notes.add, "x")
        disk.takes_s = 0
        assert await ref.call(id) == opened


async def test_the_least_recently_used_shard_makes_room() -> None:
    async with running(Notes, limits=Limits(open_max=3)) as namespace:
        opened = {name: await namespace.ref(name).call(id) for name in "abc"}
        await namespace.ref("a").call(Notes.texts)
        await namespace.ref("d").call(Notes.texts)
        assert namespace.open_count == 3
        kept = {name for name in "ac" if await namespace.ref(name).call(id) == opened[name]}
        assert kept == {"a", "c"}


@pytest.mark.parametrize("takes_s", [0.0, 0.01])
async def test_more_shards_are_called_at_once_than_may_be_open(takes_s: float) -> None:
    """All are opening when the others come, so none is idle, and still nobody waits for the idle close."""
    async with running(Notes, disk=SlowDisk(takes_s), limits=Limits(open_max=3)) as namespace:
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(namespace.ref(f"n{number}").call, Notes.add, "x")
        assert trio.current_time() - start < 10
        assert namespace.open_count <= 3


@pytest.mark.parametrize("open_max", [1, 2, 5])
async def test_more_busy_shards_than_slots_lose_nothing_and_keep_each_callers_order(open_max: int) -> None:
    async with running(Notes, disk=SlowDisk(0.001), limits=Limits(open_max=open_max)) as namespace:
        names = [f"n{number}" for number in range(8)]

        async def caller(name: str, writer: int) -> None:
            for number in range(12):
                await namespace.ref(name).call(Notes.add, f"{writer}-{number:03}")

        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            for name in names:
                for writer in range(3):
                    nursery.start_soon(caller, name, writer)
        assert trio.current_time() - start < 30
        for name in names:
            texts = await namespace.ref(name).call(Notes.texts)
            assert sorted(texts) == sorted(f"{w}-{n:03}" for w in range(3) for n in range(12))
            for writer in range(3):
                mine = [text for text in texts if text.startswith(f"{writer}-")]
                assert mine == sorted(mine)


async def test_no_more_shards_are_open_than_the_limit() -> None:
    """Counted from inside: a shard says so when it opens, and the namespace's count is checked on the way."""
    most = 0

    async with running(Notes, disk=SlowDisk(0.002), limits=Limits(open_max=4)) as namespace:

        async def caller(name: str) -> None:
            nonlocal most
            for _ in range(5):
                await namespace.ref(name).call(Notes.add, "x")
                most = max(most, sum(actor.state == "running" for actor in namespace._actors.values()))

        async with trio.open_nursery() as nursery:
            for number in range(16):
                nursery.start_soon(caller, f"n{number}")
        assert most <= 4


async def test_evicting_under_load_loses_nothing_and_keeps_order() -> None:
    disk = SlowDisk(0.002)
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        done = trio.Event()

        async def write() -> None:
            for number in range(100):
                await ref.call(Notes.add, f"{number:03}")
            done.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            while not done.is_set():
                await trio.sleep(0.003)
                await namespace.evict("a")
        assert await ref.call(Notes.texts) == [f"{number:03}" for number in range(100)]


async def test_turns_queued_at_an_eviction_are_answered_by_the_shard_that_had_them() -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        opened = await ref.call(id)
        disk.takes_s = 1
        answers: list[int] = []

        def add(shard: Notes) -> int:
            shard.add("x")
            return id(shard)

        async def caller() -> None:
            answers.append(await ref.call(add))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(caller)
            await trio.lowlevel.checkpoint()
            nursery.start_soon(namespace.evict, "a")
        assert answers == [opened] * 5
        assert namespace.open_count == 0


async def test_evicting_a_shard_that_is_not_open_does_nothing() -> None:
    async with running(Notes) as namespace:
        await namespace.evict("a")
        assert await namespace.find("a") is None


async def test_finding_makes_no_file_and_a_call_does() -> None:
    async with running(Notes) as namespace:
        assert await namespace.find("a") is None
        await namespace.ref("a").call(Notes.texts)
        await namespace.evict("a")
        assert await namespace.find("a") is not None
        assert namespace.names() == ["a"]
