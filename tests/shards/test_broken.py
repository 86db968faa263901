"""After the disk refused a flush nothing is confirmed, and the file is rewritten before it is opened again."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from shards import files, repair
from shards.disk import OsWal
from shards.errors import NeedsRepair, ShardBroken
from shards.namespace import Namespace
from shards.testing import FaultyDisk, InlineDisk, TrioClock, running

from .examples import Notes, path_of, wal_of


@pytest.fixture
def disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[FaultyDisk]:
    caplog.set_level(logging.CRITICAL, "shards")
    disk = FaultyDisk(tmp_path)
    yield disk
    disk.close()


async def break_it(namespace: Namespace[Notes], disk: FaultyDisk, text: str = "unknown") -> None:
    """Add a row whose flush fails."""
    disk.fail_sync(1, "*.db-wal")
    with pytest.raises(ShardBroken):
        await namespace.ref("a").call(Notes.add, text)


async def test_a_failed_flush_breaks_every_waiting_call(tmp_path: Path, disk: FaultyDisk) -> None:
    """Those in the batch, those that ran meanwhile, and those queued: none hears a result."""
    async with running(Notes, tmp_path, disk=disk) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "before")
        disk.flush_takes = 1
        outcomes: list[str] = []

        async def caller(delay_s: float) -> None:
            await trio.sleep(delay_s)
            try:
                await ref.call(Notes.add, "x")
            except ShardBroken:
                outcomes.append("broken")
            else:
                outcomes.append("ok")

        disk.fail_sync(1, "*.db-wal")
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(caller, number * 0.09)
        assert outcomes == ["broken"] * 10
        disk.flush_takes = 0


async def test_a_read_that_saw_the_lost_write_is_not_answered_either(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    async with running(Notes, tmp_path, disk=disk) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "before")
        disk.flush_takes = 1
        disk.fail_sync(1, "*.db-wal")
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                with pytest.raises(ShardBroken):
                    await ref.call(Notes.add, "lost")

            nursery.start_soon(write)
            await trio.sleep(0.1)
            with pytest.raises(ShardBroken):
                await ref.call(Notes.texts)
        disk.flush_takes = 0


async def test_events_of_a_broken_batch_are_not_emitted(tmp_path: Path, disk: FaultyDisk) -> None:
    async with running(Notes, tmp_path, disk=disk) as namespace:
        await namespace.ref("a").call(Notes.texts)
        with namespace.hub.watch("a", "added") as watch:
            await break_it(namespace, disk)
            with trio.move_on_after(10) as waiting:
                await watch.wait()
            assert waiting.cancelled_caught


async def test_who_was_called_in_by_a_broken_batch_is_told_nothing_of_it(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    async with running(Notes, tmp_path, disk=disk) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.texts)
        async with trio.open_nursery() as nursery:

            async def take() -> None:
                with namespace.hub.watch_in_line("a", "added", "line") as watch:
                    await watch.wait()
                    with pytest.raises(ShardBroken):
                        await ref.call(Notes.texts)

            nursery.start_soon(take)
            await trio.testing.wait_all_tasks_blocked()
            await break_it(namespace, disk)


async def test_it_leaves_a_marker_and_is_repaired_once_by_the_next_call(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    async with running(Notes, tmp_path, disk=disk) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "before")
        before = path_of(namespace, "a").stat().st_ino
        await break_it(namespace, disk)
        assert repair.needed(path_of(namespace, "a"))
        assert (await ref.call(Notes.texts))[0] == "before"
        assert not repair.needed(path_of(namespace, "a"))
        assert path_of(namespace, "a").stat().st_ino != before
        assert namespace.unready() == []


async def test_a_second_refusal_needs_an_operator_and_takes_the_node_out(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    async with running(Notes, tmp_path, disk=disk) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "before")
        await break_it(namespace, disk)
        await ref.call(Notes.add, "between")
        await break_it(namespace, disk)
        for _ in range(3):
            with pytest.raises(NeedsRepair, match="Run the repair"):
                await ref.call(Notes.texts)
        assert any("refused 2" in reason for reason in namespace.unready())
        await namespace.ref("other").call(Notes.add, "still works")


async def test_a_restart_repairs_a_marked_file_before_it_is_opened(tmp_path: Path, disk: FaultyDisk) -> None:
    async with running(Notes, tmp_path, disk=disk) as namespace:
        await namespace.ref("a").call(Notes.add, "before")
        path = path_of(namespace, "a")
        before = path.stat().st_ino
    repair.mark(path, disk, "as a process leaves it that ends before its repair")
    async with running(Notes, tmp_path, disk=disk) as namespace:
        assert (await namespace.ref("a").call(Notes.texts)) == ["before"]
    assert not repair.needed(path)
    assert path.stat().st_ino != before
    assert repair.integrity(path, disk.vfs) == []


async def test_a_repair_that_fails_leaves_the_marker_and_the_file(tmp_path: Path, disk: FaultyDisk) -> None:
    async with running(Notes, tmp_path, disk=disk) as namespace:
        await namespace.ref("a").call(Notes.add, "before")
        await break_it(namespace, disk)
        path = path_of(namespace, "a")
        disk.fail_sync(1, "*-fresh")
        with pytest.raises(NeedsRepair):
            await namespace.ref("a").call(Notes.texts)
    assert repair.needed(path)
    repair.repair(path, disk)
    assert not repair.needed(path)
    async with running(Notes, tmp_path, disk=disk) as namespace:
        assert (await namespace.ref("a").call(Notes.texts))[0] == "before"


async def test_an_alarm_set_by_a_broken_batch_does_not_ring_for_ever(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    async with running(Notes, tmp_path, disk=disk) as namespace:
        ref = namespace.ref("a")
        await ref.call(lambda shard: shard.set_alarm(shard.now_ms + 60_000))
        await break_it(namespace, disk)
        await trio.sleep(120)
        assert await ref.call(Notes.get_alarm) is None
        assert (await ref.call(Notes.texts)) in ([], ["unknown"])


async def test_a_repaired_file_is_no_copy_and_a_copied_one_is(tmp_path: Path, disk: FaultyDisk) -> None:
    clock = TrioClock()
    async with running(Notes, tmp_path, disk=disk, clock=clock) as namespace:
        await namespace.ref("a").call(Notes.add, "x")
        original = await namespace.ref("a").call(Notes.file)
        await break_it(namespace, disk)
        assert await namespace.ref("a").call(Notes.file) == original
        await namespace.evict("a")
        assert await namespace.ref("a").call(Notes.file) == original
        source = path_of(namespace, "a")
    other = tmp_path / "restored"
    target = files.path_of(other, "a")
    target.parent.mkdir(parents=True)
    shutil.copyfile(source, target)
    async with running(Notes, other, clock=clock) as namespace:
        copied = await namespace.ref("a").call(Notes.file)
        assert copied != original
        assert (await namespace.ref("a").call(Notes.texts))[0] == "x"
    async with running(Notes, other, clock=clock) as namespace:
        assert await namespace.ref("a").call(Notes.file) == copied
    async with running(Notes, tmp_path, disk=disk, clock=clock) as namespace:
        assert await namespace.ref("a").call(Notes.file) == original


class CheckedDisk(InlineDisk):
    """Inline, with the -wal descriptor of production."""

    def __init__(self) -> None:
        super().__init__(sync=True)


def lose(path: Path, how: str) -> None:
    """Delete a file, or put another one of the same content in its place."""
    content = path.read_bytes()
    path.unlink()
    if how == "replaced":
        path.write_bytes(content)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_wal_replaced_under_us_breaks_the_flush(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "shards")
    async with running(Notes, tmp_path, disk=CheckedDisk()) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "before")
        lose(wal_of(path_of(namespace, "a")), how)
        with pytest.raises(ShardBroken):
            await ref.call(Notes.add, "lost")
        assert repair.needed(path_of(namespace, "a"))


def test_a_wal_descriptor_notices_that_its_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a.db-wal").write_bytes(b"frames")
    wal = OsWal(tmp_path / "a.db")
    wal.sync()
    os.rename(tmp_path / "a.db-wal", tmp_path / "elsewhere")  # noqa: PTH104
    (tmp_path / "a.db-wal").write_bytes(b"frames")
    with pytest.raises(OSError, match="replaced"):
        wal.sync()
    wal.close()


@pytest.mark.parametrize("step", ["write", "sync"])
async def test_a_disk_that_refuses_the_repair_too_costs_the_shard_not_the_namespace(
    tmp_path: Path, step: str
) -> None:
    disk = FaultyDisk(tmp_path)
    async with running(Notes, tmp_path, disk=disk) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "x")
        await namespace.evict("a")
        repair.mark(files.path_of(namespace.folder, "a"), disk, "as a failed flush would")
        if step == "write":
            disk.fail_write(pattern="a.db-wal")  # of SQLite, at the very end of the repair
        else:
            disk.fail_sync(pattern="a.db-wal-fresh")
        with pytest.raises(NeedsRepair):
            await ref.call(Notes.texts)
        assert await namespace.ref("b").call(Notes.texts) == []
        assert repair.needed(files.path_of(namespace.folder, "a"))
