"""Turns that wait together share a commit, and no answer leaves before what it saw is on disk."""

from __future__ import annotations

import time
from math import inf

import apsw
import pytest
import trio

from shards import actor
from shards.actor import LARGE_TURN_S
from shards.errors import DiskFull, Overloaded
from shards.limits import Limits
from shards.testing import FaultyDisk, running

from .examples import Notes, SlowDisk, foreign, open_slowly, path_of


def count_commits(shard: Notes, commits: list[None]) -> None:
    """Add to the list at each commit that writes."""

    def committed() -> bool:
        commits.append(None)
        return False  # go on

    shard.db.set_commit_hook(committed)


async def test_64_callers_share_commits_and_flushes() -> None:
    disk, commits = SlowDisk(), list[None]()
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 0.01)
        await ref.call(count_commits, commits)
        flushes = disk.flushes

        async def caller() -> None:
            for _ in range(10):
                await ref.call(Notes.add, "x")

        async with trio.open_nursery() as nursery:
            for _ in range(64):
                nursery.start_soon(caller)
        assert len(await ref.call(Notes.texts)) == 640
        assert len(commits) <= 20
        assert disk.flushes - flushes <= 20


async def test_the_flushes_of_two_shards_overlap() -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        refs = [namespace.ref("a"), namespace.ref("b")]
        for ref in refs:
            await ref.call(Notes.texts)
        disk.takes_s, start = 1.0, trio.current_time()
        async with trio.open_nursery() as nursery:
            for ref in refs:
                nursery.start_soon(ref.call, Notes.add, "x")
        assert trio.current_time() - start == pytest.approx(1.0)
        disk.takes_s = 0.0


async def test_a_batch_holds_no_more_turns_than_its_limit() -> None:
    disk, commits = SlowDisk(), list[None]()
    async with running(Notes, disk=disk, limits=Limits(batch_turns_max=4, batch_ms_max=1000)) as namespace:
        ref = namespace.ref("a")
        await ref.call(count_commits, commits)
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(ref.call, Notes.add, "x")
        assert len(commits) == 1 + 2  # that of count_commits too


async def test_a_slow_batch_stops_growing_so_that_others_get_the_loop() -> None:
    commits = list[None]()
    async with running(Notes, limits=Limits(batch_ms_max=0)) as namespace:
        ref = namespace.ref("a")
        await ref.call(count_commits, commits)
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(ref.call, Notes.add, "x")
        assert len(commits) == 1 + 8


async def test_an_answer_that_saw_an_unflushed_write_waits_for_its_flush() -> None:
    """The write takes a flush of one second; a read sent while that is in flight is answered no sooner."""
    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 1.0)
        start = trio.current_time()

        async def read() -> None:
            await trio.sleep(0.25)
            assert await ref.call(Notes.texts) == ["x"]
            assert trio.current_time() - start == pytest.approx(1.0)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await ref.call(Notes.add, "x")
            assert trio.current_time() - start == pytest.approx(1.0)


async def test_a_read_is_answered_at_once_when_nothing_is_pending() -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 1.0)
        flushes, start = disk.flushes, trio.current_time()
        assert await ref.call(Notes.texts) == []
        assert trio.current_time() == start
        assert disk.flushes == flushes


async def test_what_comes_during_a_flush_is_committed_after_it_and_not_confirmed_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Together, however many there are: only the second flush could cover them, and one commit is enough."""
    monkeypatch.setattr(actor, "LARGE_TURN_S", inf)  # however slow this machine is just now
    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 1.0)
        flushes, start = disk.flushes, trio.current_time()
        seen: list[int] = []
        answered: dict[str, float] = {}

        async def write(text: str) -> None:
            await ref.call(Notes.add, text)
            answered[text] = trio.current_time() - start

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, "first")
            await trio.sleep(0.75)  # the first flush has done its work and is about to say so
            nursery.start_soon(write, "second")
            await trio.sleep(0.1)
            nursery.start_soon(write, "third")
            with foreign(path_of(namespace, "a")) as db:
                seen.append(db.execute("SELECT count(*) FROM note").get)
            assert answered == {}
        assert seen == [1]
        assert answered == {
            "first": pytest.approx(1.0),
            "second": pytest.approx(2.0),
            "third": pytest.approx(2.0),
        }
        assert disk.flushes - flushes == 2


async def test_large_turns_run_and_commit_during_a_flush() -> None:
    def add_slowly(shard: Notes) -> None:
        time.sleep(2 * LARGE_TURN_S)
        shard.add("x")

    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 1.0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.call, add_slowly)
            await trio.sleep(0.5)
            nursery.start_soon(ref.call, add_slowly)
            await trio.sleep(0.1)
            with foreign(path_of(namespace, "a")) as db:
                assert db.execute("SELECT count(*) FROM note").get == 2


async def test_a_full_mailbox_refuses_at_once_and_does_nothing() -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk, limits=Limits(mailbox_max=10)) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 1.0)
        refused, start = 0, trio.current_time()

        async def caller() -> None:
            nonlocal refused
            try:
                await ref.call(Notes.add, "x")
            except Overloaded:
                refused += 1
                assert trio.current_time() == start

        async with trio.open_nursery() as nursery:
            for _ in range(25):
                nursery.start_soon(caller)
        assert refused == 15
        assert len(await ref.call(Notes.texts)) == 10


async def test_answers_held_for_a_flush_count_as_unanswered() -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk, limits=Limits(mailbox_max=2)) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 1.0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.call, Notes.add, "1")
            nursery.start_soon(ref.call, Notes.add, "2")
            await trio.sleep(0.5)
            with pytest.raises(Overloaded):
                await ref.call(Notes.add, "3")


async def test_sq_s06_a_cancelled_callers_turn_commits_whole() -> None:
    """Each caller stops listening at another moment; its 100 rows are there, never a part of them."""

    def bulk(shard: Notes, text: str) -> None:
        for _ in range(100):
            shard.add(text)

    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        await open_slowly(ref, disk, 0.010)
        for number in range(50):
            with trio.move_on_after(number * 0.000_3):
                await ref.call(bulk, f"{number}")
            await ref.call(Notes.add, "next")
        texts = await ref.call(Notes.texts)
        counts = {number: texts.count(f"{number}") for number in range(50)}
        assert set(counts.values()) <= {0, 100}
        assert all(counts[number] == 100 for number in range(1, 50))


async def test_a_call_cancelled_before_it_is_made_runs_no_turn() -> None:
    async with running(Notes) as namespace:
        with trio.CancelScope() as scope:
            scope.cancel()
            await namespace.ref("a").call(Notes.add, "x")
        assert await namespace.ref("a").call(Notes.texts) == []


async def test_do_s07_100_concurrent_increments_are_distinct() -> None:
    def increment(shard: Notes) -> int:
        n = shard.counted()
        shard.add("x")
        return n + 1

    disk = SlowDisk(0.001)
    async with running(Notes, disk=disk) as namespace:
        ref = namespace.ref("a")
        values: list[int] = []

        async def caller(delay_s: float) -> None:
            await trio.sleep(delay_s)
            values.append(await ref.call(increment))

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(caller, number % 7 * 0.000_4)
        assert sorted(values) == list(range(1, 101))


async def test_do_s05_ok_is_never_sent_for_a_commit_that_failed(tmp_path: object) -> None:
    """The page limit is reached by COMMIT or before; the next call meets memory that agrees with the rows."""

    def confine(shard: Notes) -> None:
        shard.db.pragma("max_page_count", shard.db.pragma("page_count") + 2)

    def add_much(shard: Notes) -> str:
        for _ in range(200):
            shard.add("x" * 1000)
        return "OK"

    async with running(Notes) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "before")
        await ref.call(confine)
        with pytest.raises(DiskFull):
            await ref.call(add_much)
        assert await ref.call(Notes.in_memory_and_stored) == (1, 1)
        await ref.call(add_much)  # a fresh connection, without the page limit
        assert await ref.call(Notes.in_memory_and_stored) == (201, 201)


async def test_do_s05_a_write_error_breaks_the_shard_and_the_next_call_meets_storage(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("faulty")
    disk = FaultyDisk(folder)
    async with running(Notes, folder, disk=disk) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "before")
        disk.fail_write(1, "*-wal")
        with pytest.raises(Exception, match="outcome is unknown"):
            await ref.call(Notes.add, "lost")
        assert await ref.call(Notes.in_memory_and_stored) == (1, 1)
    disk.close()


async def test_a_cursor_left_half_read_breaks_its_batch_but_not_the_shard() -> None:
    def half_read(shard: Notes) -> str:
        shard.leak = shard.db.execute("INSERT INTO note (text) VALUES ('a'), ('b') RETURNING id")  # type: ignore[attr-defined]
        return "OK"

    async with running(Notes) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "before")
        with pytest.raises((apsw.Error, Exception)):
            await ref.call(half_read)
        await ref.call(Notes.add, "after")
        assert await ref.call(Notes.texts) == ["before", "after"]
