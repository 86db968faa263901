"""A copy takes the place of a shard whole or not at all."""

from __future__ import annotations

import errno
import logging
import random
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import apsw
import pytest
import trio

from shards import copying, files, repair
from shards.copying import Copies
from shards.errors import DiskFull, NotACopy, Overloaded, ShardBusy, ShardClosed, ShardExists
from shards.replacing import Placed, Replacements
from shards.testing import FaultyDisk, running

from .examples import Notes, foreign, path_of
from .hands import Hand, copy_of, left_in, nothing, pieces, wrong


async def test_a_copy_becomes_a_shard_that_was_not_there() -> None:
    content = await copy_of("x", "y")
    async with running(Notes) as namespace:
        assert not await Hand(namespace).put(content, sha256=sha256(content).hexdigest(), replace=False)
        assert await namespace.ref("a").call(Notes.texts) == ["x", "y"]
        assert namespace.names() == ["a"]
        assert left_in(namespace) == []


async def test_a_shard_is_replaced_only_where_that_is_said() -> None:
    content = await copy_of("new")
    async with running(Notes) as namespace:
        ref, hand = namespace.ref("a"), Hand(namespace)
        await ref.call(Notes.add, "old")
        with pytest.raises(ShardExists):
            await hand.put(content, replace=False)
        assert await ref.call(Notes.texts) == ["old"]
        assert await hand.put(content)
        assert await ref.call(Notes.texts) == ["new"]
        assert left_in(namespace) == []


async def test_of_two_that_would_make_a_shard_one_does() -> None:
    content = await copy_of("x")
    outcomes: list[str] = []
    async with running(Notes) as namespace:

        async def put() -> None:
            try:
                await Hand(namespace).put(content, replace=False)
            except ShardExists:
                outcomes.append("exists")
            else:
                outcomes.append("done")

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(put)
    assert sorted(outcomes) == ["done", "exists", "exists"]


async def test_calls_wait_and_are_answered_by_the_new_file() -> None:
    """What was confirmed before goes with the old file; what is confirmed afterwards is in the new one."""
    content = await copy_of("new")
    async with running(Notes) as namespace:
        ref, hand = namespace.ref("a"), Hand(namespace)
        confirmed: list[str] = []

        async def write(writer: int) -> None:
            for number in range(200):
                await ref.call(Notes.add, f"{writer}-{number}")
                confirmed.append(f"{writer}-{number}")

        async with trio.open_nursery() as nursery:
            for writer in range(3):
                nursery.start_soon(write, writer)
            while len(confirmed) < 100:
                await trio.lowlevel.checkpoint()
            await hand.put(content)
        texts = await ref.call(Notes.texts)
        assert texts[0] == "new"
        assert 0 < len(texts) - 1 < 600
        for letter in "012":
            mine = [text for text in texts[1:] if text.startswith(letter)]
            assert mine == [f"{letter}-{number}" for number in range(200 - len(mine), 200)]


async def test_its_alarm_rings() -> None:
    rung: list[str] = []

    class Ringing(Notes):
        """Says so when its alarm rings."""

        def alarm(self) -> None:
            rung.append(self.name)

    async with running(Ringing) as namespace:
        await namespace.ref("b").call(lambda shard: shard.set_alarm(shard.now_ms + 5_000))
        content = await Hand(namespace).take("b")  # type: ignore[arg-type]
        await Hand(namespace).put(content, "a", replace=False)  # type: ignore[arg-type]
        assert rung == []
        await trio.sleep(6)
        assert sorted(rung) == ["a", "b"]


async def test_each_time_it_is_put_in_place_it_is_another_file() -> None:
    content = await copy_of("x")
    async with running(Notes) as namespace:
        assert await namespace.ref("a").call(Notes.file) == "0"
        await Hand(namespace).put(content)
        assert await namespace.ref("a").call(Notes.file) == "1"
        await Hand(namespace).put(await Hand(namespace).take())
        assert await namespace.ref("a").call(Notes.file) == "2"


async def test_a_damaged_shard_can_be_replaced(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "shards")
    content = await copy_of("new")
    async with running(Notes) as namespace:
        await namespace.ref("a").call(Notes.add, "old")
        await namespace.evict("a")
        path_of(namespace, "a").write_bytes(b"rubbish" * 1_000)
        repair.mark(path_of(namespace, "a"), namespace.disk, "the disk refused")
        assert await Hand(namespace).put(content)
        assert await namespace.ref("a").call(Notes.texts) == ["new"]


async def test_a_copy_takes_its_first_turn_before_it_is_there() -> None:
    content = await copy_of("x")

    def first(notes: Notes, placed: Placed) -> None:
        notes.add(f"{placed.bytes == len(content)} {placed.replaced}")

    async with running(Notes) as namespace:
        replacements = Hand(namespace).replacements
        for texts in (["x", "True False"], ["x", "True True"]):
            placed = await replacements.put("a", pieces(content), sha256=None, replace=True, first=first)
            assert await namespace.ref("a").call(Notes.texts) == texts
        assert placed.replaced

        def fail(notes: Notes, _: Placed) -> None:
            notes.add("undone")
            raise ValueError("no")

        with pytest.raises(NotACopy, match="it cannot be read as one of ours: no"):
            await replacements.put("a", pieces(content), sha256=None, replace=True, first=fail)
        assert await namespace.ref("a").call(Notes.texts) == ["x", "True True"]
        assert left_in(namespace) == []


async def test_a_shard_that_closes_is_waited_for_even_by_who_is_cancelled() -> None:
    """Else the next one would open a file that is still open."""
    async with running(Notes) as namespace:
        await namespace.ref("a").call(Notes.add, "old")
        actor = namespace._actors["a"]
        with trio.CancelScope() as scope:
            scope.cancel()
            async with namespace.closed("a"):
                await trio.lowlevel.checkpoint()
        assert actor.closed.is_set()
        assert await namespace.ref("a").call(Notes.texts) == ["old"]


def crash_there(folder: Path, beside: Path) -> None:
    """Leave what a crash leaves just before a file gets its place."""
    beside.write_bytes(b"new")
    (folder / copying.FOLDER).mkdir()
    (folder / copying.FOLDER / "1.db").write_bytes(b"new")


async def test_what_a_crash_has_left_beside_a_shard_goes_at_the_next_start(tmp_path: Path) -> None:
    async with running(Notes, tmp_path) as namespace:
        await namespace.ref("a").call(Notes.add, "old")
    beside = Path(f"{files.path_of(tmp_path, 'a')}{copying.BESIDE}")
    crash_there(tmp_path, beside)
    async with running(Notes, tmp_path) as namespace:
        await Copies(namespace).clear()
        assert beside not in set(path_of(namespace, "a").parent.iterdir())
        assert left_in(namespace) == []
        assert await namespace.ref("a").call(Notes.texts) == ["old"]


async def test_a_copy_of_an_older_version_is_brought_up_to_date() -> None:
    class Older(Notes):
        """Before the last step."""

        migrations: ClassVar[tuple[str, ...]] = tuple(Notes.migrations[:1])

    async with running(Older) as older:
        await older.ref("a").call(Notes.add, "x")
        content = await Hand(older).take()  # type: ignore[arg-type]
    async with running(Notes) as namespace:
        await Hand(namespace).put(content)
        assert await namespace.ref("a").call(Notes.pads) == []
        assert await namespace.ref("a").call(Notes.texts) == ["x"]


def run_out(*_: object) -> None:
    """What a write does where somebody else took the room meanwhile."""
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_nothing_is_changed_where_there_is_no_room_or_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    content = await copy_of("new")
    async with running(Notes) as namespace:
        await namespace.ref("a").call(Notes.add, "old")
        full = Copies(namespace, room_left_bytes=1 << 62)
        replacements = Replacements(namespace, full, wrong)
        with pytest.raises(DiskFull):
            await replacements.put("a", pieces(content), sha256=None, replace=True, first=nothing)
        monkeypatch.setattr(copying.Places, "require_room", run_out)
        with pytest.raises(DiskFull):
            await Hand(namespace).put(content, replace=True)
        monkeypatch.undo()
        hand = Hand(namespace)
        held = [await hand.copies.take("a") for _ in range(copying.COPIES_MAX)]
        with pytest.raises(Overloaded):
            await hand.put(content)
        held.clear()
        assert await namespace.ref("a").call(Notes.texts) == ["old"]
        assert left_in(namespace) == []


async def test_while_somebody_reads_the_file_it_stays() -> None:
    content = await copy_of("new")
    async with running(Notes) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "old")
        with foreign(path_of(namespace, "a")) as db:
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM note").fetchall()
            await ref.call(Notes.add, "older")
            with pytest.raises(ShardBusy):
                await Hand(namespace).put(content)
        assert await ref.call(Notes.texts) == ["old", "older"]
        assert await Hand(namespace).put(content)


async def test_an_upload_that_is_given_up_leaves_nothing() -> None:
    content = await copy_of("new")

    async def stalled() -> AsyncIterator[bytes]:
        yield content[:5_000]
        await trio.sleep_forever()

    async with running(Notes) as namespace:
        hand = Hand(namespace)
        await namespace.ref("a").call(Notes.add, "old")
        for _ in range(copying.COPIES_MAX + 1):
            with trio.move_on_after(1):
                await hand.replacements.put("a", stalled(), sha256=None, replace=True, first=nothing)
        assert left_in(namespace) == []
        assert await namespace.ref("a").call(Notes.texts) == ["old"]
    with pytest.raises(ShardClosed):
        await hand.put(content)


async def test_every_power_cut_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """Among what a cut may leave there must be neither a mixture of both nor, once it was confirmed, the old one."""
    content = await copy_of(*(f"new {number}" for number in range(20)))
    folder = tmp_path / "data"
    folder.mkdir()
    disk = FaultyDisk(folder)
    async with running(Notes, folder, disk=disk) as namespace:
        ref = namespace.ref("a")
        old = [f"old {number}" for number in range(20)]
        for text in old:
            await ref.call(Notes.add, text)
        begun = disk.now
        await Hand(namespace).put(content)
        disk.mark("placed")
        placed = disk.now
        new = await ref.call(Notes.texts)
        found = set()
        for at in range(begun, placed + 1):
            for seed in range(3):
                cut = tmp_path / f"cut-{at}-{seed}"
                cut.mkdir()
                disk.cut(at, random.Random(seed), cut)
                texts = texts_of(files.path_of(cut, "a"))
                assert texts in ([new] if "placed" in disk.marks_before(at) else [old, new]), (at, seed)
                found.add(texts == new)
    disk.close()
    assert found == {False, True}


def texts_of(path: Path) -> list[str]:
    """What a file holds, with what waits beside it."""
    assert repair.integrity(path, "") == []
    db = apsw.Connection(str(path))
    try:
        return [str(text) for (text,) in db.execute("SELECT text FROM note ORDER BY id").fetchall()]
    finally:
        db.close(True)
