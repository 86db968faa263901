"""Leaving the namespace answers what was taken, refuses what comes, and closes every file in order."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from shards.errors import FolderLocked, ShardClosed, UnsupportedSQLite
from shards.namespace import Ref
from shards.sqlite import check_version
from shards.testing import running

from .examples import Notes, Refused, SlowDisk, path_of, wal_bytes


async def test_what_was_queued_is_answered_and_there_after_a_restart(tmp_path: Path) -> None:
    disk = SlowDisk()
    answered: list[str] = []

    async def caller(ref: Ref[Notes], text: str) -> None:
        await ref.call(Notes.add, text)
        answered.append(text)

    async with trio.open_nursery() as outside, running(Notes, tmp_path, disk=disk) as namespace:
        for number in range(40):
            await namespace.ref(f"n{number % 4}").call(Notes.texts)
        disk.takes_s = 0.5
        for number in range(40):
            outside.start_soon(caller, namespace.ref(f"n{number % 4}"), f"{number}")
        await trio.sleep(0.01)
    assert len(answered) == 40
    async with running(Notes, tmp_path) as namespace:
        texts = [await namespace.ref(f"n{number}").call(Notes.texts) for number in range(4)]
    assert sorted(text for some in texts for text in some) == sorted(answered)


async def test_calls_made_while_closing_are_refused(tmp_path: Path) -> None:
    disk = SlowDisk()
    outcomes: list[str] = []

    async def caller(ref: Ref[Notes]) -> None:
        await trio.sleep(0.5)
        with pytest.raises(ShardClosed):
            await ref.call(Notes.add, "too late")
        outcomes.append("refused")

    async with trio.open_nursery() as outside:
        async with running(Notes, tmp_path, disk=disk) as namespace:
            ref = namespace.ref("a")
            await ref.call(Notes.add, "x")
            disk.takes_s = 5
            outside.start_soon(caller, ref)
        assert outcomes == ["refused"]
        assert namespace.unready() == ["shutting down"]
        with pytest.raises(ShardClosed):
            await ref.call(Notes.texts)


async def test_an_orderly_close_leaves_an_empty_wal(tmp_path: Path) -> None:
    async with running(Notes, tmp_path) as namespace:
        await namespace.ref("a").call(Notes.add, "x")
        path = path_of(namespace, "a")
        assert wal_bytes(path) > 0
    assert wal_bytes(path) == 0


async def test_cancelling_the_block_still_drains_and_closes_in_order(tmp_path: Path) -> None:
    """As a server does on SIGTERM: calls of other tasks that were taken are answered all the same."""
    disk = SlowDisk()
    answered: list[str] = []

    async def caller(ref: Ref[Notes], text: str) -> None:
        await ref.call(Notes.add, text)
        answered.append(text)

    async with trio.open_nursery() as outside:
        with trio.CancelScope() as scope:
            async with running(Notes, tmp_path, disk=disk) as namespace:
                await namespace.ref("a").call(Notes.texts)
                path = path_of(namespace, "a")
                disk.takes_s = 0.5
                for number in range(5):
                    outside.start_soon(caller, namespace.ref("a"), f"{number}")
                await trio.sleep(0.1)
                scope.cancel()
                await trio.sleep_forever()
    assert sorted(answered) == [f"{number}" for number in range(5)]
    assert wal_bytes(path) == 0
    async with running(Notes, tmp_path) as namespace:
        assert sorted(await namespace.ref("a").call(Notes.texts)) == sorted(answered)


async def test_a_block_cancelled_before_it_begins_ends(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        async with running(Notes, tmp_path):
            await trio.sleep_forever()
    assert scope.cancelled_caught


async def test_an_exception_of_the_block_leaves_it_as_it_is(tmp_path: Path) -> None:
    async def add_and_raise() -> None:
        async with running(Notes, tmp_path) as namespace:
            await namespace.ref("a").call(Notes.add, "x")
            raise Refused("why")

    with pytest.raises(Refused, match=r"^why$"):
        await add_and_raise()
    async with running(Notes, tmp_path) as namespace:
        assert await namespace.ref("a").call(Notes.texts) == ["x"]


async def test_a_folder_is_served_once_at_a_time(tmp_path: Path) -> None:
    async with running(Notes, tmp_path):
        with pytest.raises(FolderLocked, match=str(tmp_path)):
            async with running(Notes, tmp_path):
                pass
    async with running(Notes, tmp_path):
        pass


def test_a_sqlite_with_the_wal_reset_bug_is_refused() -> None:
    for version in ("3.51.2", "3.50.4", "3.52.0", "3.8.0"):
        with pytest.raises(UnsupportedSQLite, match="newer apsw"):
            check_version(version)
    for version in ("3.51.3", "3.52.1", "3.53.0", "4.0.0"):
        check_version(version)
    check_version()


async def test_an_alarm_that_comes_due_while_it_closes_opens_nothing(tmp_path: Path) -> None:
    """Nobody would wait for a shard that opens then, so it would keep the process for ever."""
    async with running(Notes, tmp_path) as namespace:
        await namespace.ref("a").call(Notes.add, "x")
        await namespace.evict("a")
        namespace._closing = True
        await namespace._wake("a")
        assert namespace.open_count == 0
