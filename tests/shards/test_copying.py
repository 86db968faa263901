"""A copy shows one instant of a shard, whole and on disk, and its shard goes on meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import apsw
import pytest
import trio

from shards import copying, files, repair
from shards.copying import Copies, Copy
from shards.errors import DiskFull, Overloaded, ShardBroken, UnusableFile
from shards.limits import Limits
from shards.namespace import Namespace
from shards.testing import FaultyDisk, InlineDisk, running

from .examples import Notes, SlowDisk, path_of, wal_bytes

T = TypeVar("T")
PAD = 16 * 1024


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few pages a step, so that much happens between the first and the last."""
    monkeypatch.setattr(copying, "STEP_PAGES", 8)


async def fetched(copies: Copies[Notes], name: str, target: Path) -> Copy:
    """Take a copy and write it to a file."""
    copy = await copies.take(name)
    content = b"".join([piece async for piece in copies.pieces(copy)])
    assert len(content) == copy.bytes
    target.write_bytes(content)  # noqa: ASYNC240
    return copy


async def restored(path: Path, folder: Path) -> list[str]:
    """The texts of a copy that is served as shard `a` of a folder of its own."""
    target = files.path_of(folder, "a")
    target.parent.mkdir(parents=True)
    path.rename(target)  # noqa: ASYNC240
    assert repair.integrity(target, "") == []
    async with running(Notes, folder) as namespace:
        return await namespace.ref("a").call(Notes.texts)


def left_in(namespace: Namespace[Notes]) -> list[str]:
    """Files of copies that are there."""
    return [path.name for path in (namespace.folder / copying.FOLDER).glob("*")]


async def test_a_copy_is_one_file_with_all_that_was_confirmed(tmp_path: Path) -> None:
    async with running(Notes) as namespace:
        copies = Copies(namespace)
        for number in range(100):
            await namespace.ref("a").call(Notes.add, f"{number}")
        await fetched(copies, "a", tmp_path / "copy.db")
        assert left_in(namespace) == []
    assert (tmp_path / "copy.db").read_bytes()[18:20] == b"\x01\x01"  # no -wal belongs to it
    assert await restored(tmp_path / "copy.db", tmp_path / "other") == [f"{number}" for number in range(100)]


async def test_a_copy_knows_that_it_is_one_whatever_file_it_is_in(tmp_path: Path) -> None:
    """A file that is put where the first one was may even get its inode."""
    async with running(Notes) as namespace:
        original = await namespace.ref("a").call(Notes.file)
        await fetched(Copies(namespace), "a", tmp_path / "copy.db")
        assert await namespace.ref("a").call(Notes.file) == original
        await namespace.evict("a")
        path = path_of(namespace, "a")
        path.write_bytes((tmp_path / "copy.db").read_bytes())  # the same inode
        assert await namespace.ref("a").call(Notes.file) != original


@pytest.mark.usefixtures("small_steps")
async def test_turns_go_on_and_the_copy_shows_one_instant(tmp_path: Path) -> None:
    async with running(Notes, disk=SlowDisk(0.01)) as namespace:
        ref, copies = namespace.ref("a"), Copies(namespace)
        for number in range(20):
            await ref.call(Notes.pad, PAD)
            await ref.call(Notes.add, f"{number}")
        confirmed = 20

        async def write() -> None:
            nonlocal confirmed
            while True:
                await ref.call(Notes.add, f"{confirmed}")
                confirmed += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await trio.sleep(1)
            before = confirmed
            await fetched(copies, "a", tmp_path / "copy.db")
            after = confirmed
            nursery.cancel_scope.cancel()
        assert after > before + 10
    texts = await restored(tmp_path / "copy.db", tmp_path / "other")
    assert texts == [f"{number}" for number in range(len(texts))]
    assert before <= len(texts) < after


@pytest.mark.usefixtures("small_steps")
async def test_a_shard_is_kept_open_and_its_turns_are_not_held_while_it_is_copied(tmp_path: Path) -> None:
    """Its -wal cannot start over meanwhile, so nobody waits for that; afterwards it does."""
    limits = Limits(idle_s=2, wal_checkpoint_bytes=4 * PAD, wal_bytes_max=8 * PAD)
    disk = SlowDisk()
    async with running(Notes, disk=disk, limits=limits) as namespace:
        ref, copies = namespace.ref("a"), Copies(namespace)
        for _ in range(40):
            await ref.call(Notes.pad, PAD)
        opened = await ref.call(id)
        disk.takes_s = 0.5
        slowest = 0.0

        async def write() -> None:
            nonlocal slowest
            while True:
                began_s = trio.current_time()
                await ref.call(Notes.pad, PAD)
                slowest = max(slowest, trio.current_time() - began_s)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await fetched(copies, "a", tmp_path / "copy.db")
            nursery.cancel_scope.cancel()
        assert slowest <= 1.0  # a flush, and what is left of the one before
        assert await ref.call(id) == opened
        disk.takes_s = 0
        assert wal_bytes(path_of(namespace, "a")) > limits.wal_bytes_max
        for _ in range(10):
            await ref.call(Notes.pad, PAD)
        longest = wal_bytes(path_of(namespace, "a"))
        for _ in range(100):
            await ref.call(Notes.pad, PAD)
        assert wal_bytes(path_of(namespace, "a")) == longest


@pytest.mark.usefixtures("small_steps")
async def test_a_copy_that_is_not_wanted_any_more_leaves_nothing(tmp_path: Path) -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        copies = Copies(namespace)
        for _ in range(20):
            await namespace.ref("a").call(Notes.pad, PAD)
        disk.takes_s = 0.5
        for wait_s in (0.2, 1.7, 3.2, 7.1):
            with trio.move_on_after(wait_s) as scope:
                await copies.take("a")
            assert scope.cancelled_caught
            assert left_in(namespace) == []
        disk.takes_s = 0
        for _ in range(copying.COPIES_MAX):  # none of their places is taken
            await fetched(copies, "a", tmp_path / "copy.db")


async def test_there_are_so_many_copies_at_once_and_no_more() -> None:
    async with running(Notes) as namespace:
        copies = Copies(namespace)
        held = [await copies.take("a") for _ in range(copying.COPIES_MAX)]
        with pytest.raises(Overloaded):
            await copies.take("a")
        held.pop()  # nobody asked for its first piece, nobody closed it
        held.append(await copies.take("a"))
        pieces = copies.pieces(held[0])
        assert (await anext(pieces)).startswith(b"SQLite format 3\x00")
        await pieces.aclose()
        (await copies.take("a")).close()


async def test_a_copy_for_which_there_is_no_room_is_not_begun() -> None:
    async with running(Notes) as namespace:
        with pytest.raises(DiskFull, match=r"a copy of \d+ bytes would leave less than"):
            await Copies(namespace, room_left_bytes=1 << 62).take("a")
        (await Copies(namespace).take("a")).close()


async def test_what_a_crash_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / copying.FOLDER).mkdir()
    (tmp_path / copying.FOLDER / "1.db").write_text("half")
    async with running(Notes, tmp_path) as namespace:
        await Copies(namespace).clear()
        assert not (tmp_path / copying.FOLDER).exists()
        assert namespace.names() == []


async def test_a_damaged_shard_is_not_copied() -> None:
    async with running(Notes) as namespace:
        for number in range(100):
            await namespace.ref("a").call(Notes.pad, PAD + number)
        await namespace.evict("a")
        path = path_of(namespace, "a")
        with path.open("r+b") as file:
            file.write(b"not a database")
        with pytest.raises(UnusableFile):
            await Copies(namespace).take("a")
        assert left_in(namespace) == []


class LateDisk(InlineDisk):
    """Does something of a test's before each piece of work."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] = lambda: None

    async def run(self, work: Callable[[], T]) -> T:
        """First the one, then the other."""
        self.before()
        return await super().run(work)


class LateFaultyDisk(FaultyDisk):
    """Has a task of a test's run before its next piece of work."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """First the one, then the other."""
        task, self.meanwhile = self.meanwhile, None
        if task is not None:
            await task()
        return await super().run(work)


async def test_a_disk_that_fills_up_meanwhile_ends_the_copy_and_nothing_else() -> None:
    disk = LateDisk()
    async with running(Notes, disk=disk) as namespace:
        copies = Copies(namespace)
        await namespace.ref("a").call(Notes.add, "x")

        def fill() -> None:
            raise apsw.FullError("database or disk is full")

        async def take_full_after(works: int) -> bool:
            def count() -> None:
                nonlocal works
                works -= 1
                if works == 0:
                    disk.before = lambda: None
                    fill()

            disk.before = count
            with suppress(DiskFull):
                (await copies.take("a")).close()
                return True
            assert left_in(namespace) == []
            return False

        assert not await take_full_after(2)
        assert not await take_full_after(3)
        disk.before = lambda: None
        (await copies.take("a")).close()
        assert not namespace.reserve.full


async def test_a_copy_of_what_the_disk_then_refused_to_keep_is_taken_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A commit can be read before its flush. If that fails it may be lost, so no copy is handed out that has it."""
    caplog.set_level(logging.CRITICAL, "shards")
    (tmp_path / "data").mkdir()
    disk = LateFaultyDisk(tmp_path / "data")
    async with running(Notes, tmp_path / "data", disk=disk) as namespace, trio.open_nursery() as nursery:
        ref, copies = namespace.ref("a"), Copies(namespace)
        await ref.call(Notes.add, "x")
        first = await copies.take("a")
        first.close()
        disk.flush_takes = 1

        async def lose() -> None:
            with pytest.raises(ShardBroken):
                await ref.call(Notes.add, "perhaps")

        async def commit() -> None:
            disk.fail_sync(1, "*.db-wal")
            nursery.start_soon(lose)
            await trio.sleep(0.1)

        disk.meanwhile = commit
        again = await fetched(copies, "a", tmp_path / "copy.db")
        assert again.taken_ms > first.taken_ms + 500  # after the shard was repaired
        there = await ref.call(Notes.texts)
    disk.close()
    assert await restored(tmp_path / "copy.db", tmp_path / "other") == there


async def test_a_call_of_a_busy_shard_is_made_again_for_a_while() -> None:
    began_s = trio.current_time()
    answers = iter([Overloaded("a"), Overloaded("a"), "done"])

    async def call() -> object:
        answer = next(answers)
        if isinstance(answer, Overloaded):
            raise answer
        return answer

    assert await copying.insist(call) == "done"
    answers = iter([Overloaded("a")] * 1_000)
    with pytest.raises(Overloaded):
        await copying.insist(call)
    assert 10 <= trio.current_time() - began_s < 11
