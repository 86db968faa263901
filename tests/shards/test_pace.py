"""A flush runs on the event loop only where one shard is alone at work and the disk has been quick for a while."""

from __future__ import annotations

import threading

import trio

from shards.disk import ThreadDisk
from shards.pace import IN_A_ROW, QUICK_S, Pace


def paced(*flushes: tuple[str, float]) -> Pace:
    pace = Pace()
    for name, took_s in flushes:
        pace.note(name, took_s)
    return pace


QUICK = [("a", QUICK_S)] * (IN_A_ROW + 1)  # the first one only tells whose they are


def test_one_shard_with_a_quick_disk_is_quick_after_a_while() -> None:
    assert not paced(*QUICK[:-1]).is_quick("a")
    assert paced(*QUICK).is_quick("a")


def test_one_slow_flush_sends_the_next_ones_to_a_thread() -> None:
    slow = paced(*QUICK, ("a", QUICK_S * 1.01))
    assert not slow.is_quick("a")
    for _ in range(IN_A_ROW):
        assert not slow.is_quick("a")
        slow.note("a", 0)
    assert slow.is_quick("a")


def test_another_shard_at_work_sends_both_to_threads() -> None:
    pace = paced(*QUICK, ("b", 0))
    assert not pace.is_quick("a")
    assert not pace.is_quick("b")
    assert not paced(*QUICK, *[("a", 0.0), ("b", 0.0)] * IN_A_ROW).is_quick("a")


async def flushed_in(disk: ThreadDisk, name: str, *, count: int = 1) -> list[bool]:
    """Flush so often; was each on the thread of the event loop?"""
    found: list[bool] = []
    loop = threading.get_ident()
    for _ in range(count):
        await disk.flush(name, lambda: found.append(threading.get_ident() == loop))
    return found


def test_the_disk_flushes_where_the_pace_says() -> None:
    async def run() -> None:
        disk = ThreadDisk()
        assert not any(await flushed_in(disk, "a", count=IN_A_ROW // 2))
        for name, took_s in QUICK:
            disk._pace.note(name, took_s)
        assert await flushed_in(disk, "b") == [False]
        for name, took_s in QUICK:
            disk._pace.note(name, took_s)
        assert await flushed_in(disk, "a") == [True]

    trio.run(run)
