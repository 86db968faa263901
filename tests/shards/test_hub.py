"""Watchers are woken by what was written, once it is on disk, and never miss it."""

from __future__ import annotations

import random
from contextlib import ExitStack

import pytest
import trio
import trio.testing

from shards.hub import Hub
from shards.limits import Limits
from shards.testing import running

from .examples import Notes, Refused, SlowDisk, open_slowly


async def test_a_watcher_is_woken_when_the_write_is_on_disk_and_not_before() -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 1.0)
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            with namespace.hub.watch("a", "added") as watch:
                nursery.start_soon(ref.call, Notes.add, "x")
                await watch.wait()
                assert trio.current_time() - start == 1.0
                assert await ref.call(Notes.texts) == ["x"]


async def test_only_watchers_of_that_shard_and_event_are_woken() -> None:
    async with running(Notes) as namespace:
        with (
            namespace.hub.watch("a", "added") as right,
            namespace.hub.watch("b", "added") as other_shard,
            namespace.hub.watch("a", "removed") as other_event,
        ):
            await namespace.ref("a").call(Notes.add, "x")
            await right.wait()
            for wrong in (other_shard, other_event):
                with trio.move_on_after(1) as waiting:
                    await wrong.wait()
                assert waiting.cancelled_caught


async def test_what_came_before_the_wait_ends_it_at_once_and_only_once() -> None:
    async with running(Notes) as namespace:
        with namespace.hub.watch("a", "added") as watch:
            for _ in range(3):
                await namespace.ref("a").call(Notes.add, "x")
            await watch.wait()
            with trio.move_on_after(1) as waiting:
                await watch.wait()
            assert waiting.cancelled_caught


def test_in_a_line_an_event_wakes_the_one_that_came_first_and_is_not_awake() -> None:
    hub = Hub()
    with (
        hub.watch_in_line("a", "added", "line") as first,
        hub.watch_in_line("a", "added", "line") as second,
        hub.watch_in_line("a", "added", "another line") as other,
        hub.watch("a", "added") as alone,
    ):
        hub.emit("a", ["added"])
        assert (first.notified, second.notified, other.notified, alone.notified) == (True, False, True, True)
        hub.emit("a", ["added"])
        assert second.notified


def test_one_that_leaves_a_line_wakes_two_others() -> None:
    hub = Hub()
    with ExitStack() as stack:
        waiters = [stack.enter_context(hub.watch_in_line("a", "added", "line")) for _ in range(3)]
        woken = []
        for _ in range(2):
            with pytest.raises(TimeoutError), hub.watch_in_line("a", "added", "line"):
                raise TimeoutError
            woken.append([one.notified for one in waiters])
    assert woken == [[True, True, False], [True, True, True]]


def test_only_those_in_line_are_called_in_as_many_as_there_are_events() -> None:
    hub = Hub()
    with (
        hub.watch_in_line("a", "added", "line") as first,
        hub.watch_in_line("a", "added", "line") as second,
        hub.watch_in_line("a", "added", "line") as third,
        hub.watch("a", "added") as alone,
    ):
        assert not hub.call_in("a", ["removed"])
        assert hub.call_in("a", ["added", "added"])
        assert [one.notified for one in (first, second, third, alone)] == [True, True, False, False]
        assert hub.call_in("a", ["added"])
        assert not hub.call_in("a", ["added"])


async def test_who_stands_in_line_has_its_turn_in_the_commit_that_calls_it_in() -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 1.0)
        start, flushes = trio.current_time(), disk.flushes

        async def take() -> None:
            with namespace.hub.watch_in_line("a", "added", "line") as watch:
                await watch.wait()
                await ref.call(Notes.remove, "x")
                assert trio.current_time() - start == 1.0

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            await trio.testing.wait_all_tasks_blocked()
            await ref.call(Notes.add, "x")
            assert trio.current_time() - start == 1.0
        assert disk.flushes == flushes + 1
        assert await ref.call(Notes.texts) == []


async def test_what_a_turn_emitted_that_was_undone_calls_nobody_in() -> None:
    async with running(Notes) as namespace:
        with namespace.hub.watch_in_line("a", "undone", "line") as watch:
            with pytest.raises(Refused):
                await namespace.ref("a").call(Notes.add_then_raise, "x")
            assert not watch.notified


async def test_a_reader_that_watches_before_it_reads_misses_nothing() -> None:
    """Writers, readers and evictions in random order; each reader sees every row, none sleeps over the last."""
    rng = random.Random(3)
    disk = SlowDisk(0.002)
    async with running(Notes, disk=disk, limits=Limits(open_max=1)) as namespace:
        ref = namespace.ref("a")

        async def read() -> None:
            seen = 0
            with namespace.hub.watch("a", "added") as watch:
                while seen < 200:
                    texts = await ref.call(Notes.texts)
                    if len(texts) == seen:
                        await watch.wait()
                    seen = len(texts)

        async def write() -> None:
            for _ in range(50):
                await trio.sleep(rng.random() * 0.02)
                await ref.call(Notes.add, "x")

        async def disturb() -> None:
            while True:
                await trio.sleep(rng.random() * 0.05)
                await namespace.evict("a")
                await namespace.ref("b").call(Notes.texts)

        with trio.fail_after(3600):
            async with trio.open_nursery() as disturbing:
                disturbing.start_soon(disturb)
                async with trio.open_nursery() as nursery:
                    for _ in range(4):
                        nursery.start_soon(read)
                        nursery.start_soon(write)
                disturbing.cancel_scope.cancel()


async def test_a_watch_survives_the_eviction_of_its_shard() -> None:
    async with running(Notes) as namespace:
        ref = namespace.ref("a")
        with namespace.hub.watch("a", "added") as watch:
            await ref.call(Notes.texts)
            await namespace.evict("a")
            await ref.call(Notes.add, "x")
            with trio.fail_after(1):
                await watch.wait()


async def test_a_watch_that_ended_leaves_nothing_behind() -> None:
    hub = Hub()
    for _ in range(3):
        with hub.watch("a", 1), hub.watch("a", 1), hub.watch("b", 2):
            assert len(hub._watches) == 2
    assert hub._watches == {}
