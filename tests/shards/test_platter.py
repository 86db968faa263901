"""What a simulated disk keeps, forgets and refuses, step by step and without SQLite where that is enough."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import apsw
import pytest
import trio

from shards.disk import Disk, ThreadDisk
from shards.testing import FaultyDisk, InlineDisk, Platter

OLD, NEW = b"o" * 10_000, b"n" * 10_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one durable file and a durable subfolder."""
    root = tmp_path / "disk"
    (root / "sub").mkdir(parents=True)
    (root / "a").write_bytes(OLD)
    return root


@pytest.fixture
def platter(root: Path) -> Platter:
    return Platter(root)


def file(platter: Platter, name: str = "a") -> int:
    inode = platter.inode(platter.root / name)
    assert inode is not None
    return inode


def sync(platter: Platter, inode: int) -> None:
    platter.end_sync(platter.begin_sync(inode))


def outcomes(platter: Platter, tmp_path: Path, since: int | None = None) -> Iterator[dict[str, bytes]]:
    """What many cuts leave: by name, a folder as its name with a slash. By default cuts that happen now."""
    now = len(platter.ops)
    for cut in platter.cuts(200, random.Random(1), tmp_path / "cut", since=now if since is None else since):
        found = sorted(cut.folder.rglob("*"))
        yield {
            f"{path.relative_to(cut.folder)}{'/' * path.is_dir()}": path.read_bytes()
            if path.is_file()
            else b""
            for path in found
        }


def names(platter: Platter, tmp_path: Path) -> set[tuple[str, ...]]:
    return {tuple(left) for left in outcomes(platter, tmp_path)}


# -- contents ---------------------------------------------------------------------------------------------


def test_what_was_there_at_first_is_durable(platter: Platter, tmp_path: Path) -> None:
    assert all(left == {"a": OLD, "sub/": b""} for left in outcomes(platter, tmp_path, since=0))


def test_an_unsynced_write_survives_whole_or_not_or_in_sectors(platter: Platter, tmp_path: Path) -> None:
    platter.write(file(platter), 0, NEW)
    left = {each["a"] for each in outcomes(platter, tmp_path)}
    assert {OLD, NEW} < left
    for content in left:
        assert len(content) == len(OLD)
        sectors = [content[at : at + 512] for at in range(0, len(content), 512)]
        assert all(len(set(sector)) == 1 for sector in sectors)


def test_unsynced_writes_survive_without_those_before_them(platter: Platter, tmp_path: Path) -> None:
    platter.write(file(platter), 0, b"1" * 512)
    platter.write(file(platter), 9_728, b"2" * 100)
    assert any(
        left["a"][:1] == b"o" and left["a"][9_728:9_729] == b"2" for left in outcomes(platter, tmp_path)
    )


def test_a_size_may_change_without_its_data(platter: Platter, tmp_path: Path) -> None:
    platter.write(file(platter), len(OLD), b"new")
    assert OLD + bytes(3) in {left["a"] for left in outcomes(platter, tmp_path)}


def test_an_unsynced_truncation_may_not_have_happened(platter: Platter, tmp_path: Path) -> None:
    platter.resize(file(platter), 0)
    assert {left["a"] for left in outcomes(platter, tmp_path)} == {OLD, b""}


def test_a_sync_covers_what_was_written_before_it_began(platter: Platter, tmp_path: Path) -> None:
    platter.write(file(platter), 0, NEW)
    begun = platter.begin_sync(file(platter))
    platter.write(file(platter), 0, b"late")
    assert OLD in {left["a"] for left in outcomes(platter, tmp_path)}  # it has not ended
    platter.end_sync(begun)
    assert {left["a"] for left in outcomes(platter, tmp_path)} == {NEW, b"late" + NEW[4:]}


def test_a_failed_sync_leaves_a_hole_that_no_later_sync_fills(platter: Platter, tmp_path: Path) -> None:
    platter.write(file(platter), 0, NEW[:600])
    platter.fail_sync(platter.begin_sync(file(platter)))
    platter.write(file(platter), 600, NEW[600:])
    sync(platter, file(platter))
    assert {left["a"][600:] for left in outcomes(platter, tmp_path)} == {NEW[600:]}
    assert OLD[:600] + NEW[600:] in {left["a"] for left in outcomes(platter, tmp_path)}
    platter.write(file(platter), 0, NEW)  # only writing it anew does
    sync(platter, file(platter))
    assert {left["a"] for left in outcomes(platter, tmp_path)} == {NEW}


@pytest.mark.parametrize(("survivors", "content"), [("none", OLD), ("all", NEW)])
def test_a_cut_can_keep_nothing_or_all(
    platter: Platter, tmp_path: Path, *, survivors: Literal["none", "all"], content: bytes
) -> None:
    platter.write(file(platter), 0, NEW)
    cut = tmp_path / "cut"
    cut.mkdir()
    platter.cut(len(platter.ops), random.Random(1), cut, survivors)
    assert (cut / "a").read_bytes() == content


def test_the_same_op_and_seed_make_the_same_cut(platter: Platter, tmp_path: Path) -> None:
    for at in range(0, 9_000, 900):
        platter.write(file(platter), at, NEW[at : at + 900])
    again = tmp_path / "again"
    for cut in platter.cuts(20, random.Random(1), tmp_path / "cut"):
        again.mkdir()
        platter.cut(cut.at, random.Random(cut.seed), again)
        assert (again / "a").read_bytes() == (cut.folder / "a").read_bytes()
        (again / "a").unlink()
        (again / "sub").rmdir()
        again.rmdir()


def test_marks_say_what_was_confirmed_before_a_cut(platter: Platter) -> None:
    platter.mark("first")
    between = len(platter.ops)
    platter.write(file(platter), 0, NEW)
    platter.mark("second")
    assert platter.marks_before(between) == ["first"]
    assert platter.marks_before(len(platter.ops)) == ["first", "second"]


def test_cuts_stay_between_the_ops_asked_for(platter: Platter, tmp_path: Path) -> None:
    for _ in range(20):
        sync(platter, file(platter))
    platter.fail_sync(platter.begin_sync(file(platter)))
    [failed] = platter.failed_syncs()
    cuts = platter.cuts(50, random.Random(1), tmp_path / "cut", since=failed - 2, until=failed + 1)
    assert {cut.at for cut in cuts} == {failed - 2, failed - 1, failed, failed + 1}


# -- names ------------------------------------------------------------------------------------------------


def test_a_synced_file_needs_its_folder_synced_too(platter: Platter, tmp_path: Path) -> None:
    inode = platter.create(platter.root / "b")
    platter.write(inode, 0, NEW)
    sync(platter, inode)
    assert names(platter, tmp_path) == {("a", "sub/"), ("a", "b", "sub/")}
    sync(platter, platter.folder(platter.root))
    assert {left["b"] for left in outcomes(platter, tmp_path)} == {NEW}


def test_a_name_can_outlive_the_content_of_its_file(platter: Platter, tmp_path: Path) -> None:
    platter.write(platter.create(platter.root / "b"), 0, NEW)
    sync(platter, platter.folder(platter.root))
    assert b"" in {left["b"] for left in outcomes(platter, tmp_path)}


def test_a_deleted_file_may_come_back_until_the_folder_is_synced(platter: Platter, tmp_path: Path) -> None:
    platter.unlink(platter.root / "a")
    assert names(platter, tmp_path) == {("sub/",), ("a", "sub/")}
    sync(platter, platter.folder(platter.root))
    assert names(platter, tmp_path) == {("sub/",)}


def test_a_rename_happens_or_not_but_never_by_half(platter: Platter, tmp_path: Path) -> None:
    platter.rename(platter.root / "a", platter.root / "b")
    assert names(platter, tmp_path) == {("a", "sub/"), ("b", "sub/")}


def test_a_new_folder_goes_with_all_in_it_until_its_parent_is_synced(root: Path, tmp_path: Path) -> None:
    disk = FaultyDisk(root)
    (root / "new").mkdir()
    disk.allocate(root / "new" / "b", 3)
    disk.sync_folder(root / "new")
    assert names(disk.platter, tmp_path) == {("a", "sub/"), ("a", "new/", "new/b", "sub/")}
    disk.sync_folder(root)
    assert names(disk.platter, tmp_path) == {("a", "new/", "new/b", "sub/")}


def test_syncing_a_folder_sees_what_was_made_and_deleted_without_the_disk(root: Path, tmp_path: Path) -> None:
    disk = FaultyDisk(root)
    (root / "sub" / "marker").write_bytes(b"reason")
    (root / "a").unlink()
    disk.sync_folder(root / "sub")
    disk.sync_folder(root)
    assert names(disk.platter, tmp_path) == {("sub/", "sub/marker")}
    assert {left["sub/marker"] for left in outcomes(disk.platter, tmp_path)} >= {b"", b"reason"}


# -- the port ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["thread", "inline", "faulty"])
def test_every_disk_does_the_same_to_files(root: Path, kind: str) -> None:
    disks: dict[str, Disk] = {"thread": ThreadDisk(), "inline": InlineDisk(), "faulty": FaultyDisk(root)}
    disk = disks[kind]
    disk.copy(root / "a", root / "b")
    disk.replace(root / "b", root / "c")
    disk.allocate(root / "d", 5_000)
    disk.allocate(root / "empty", 0)
    disk.remove(root / "a")
    disk.remove(root / "a")
    disk.sync_folder(root)
    found = {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}
    assert found == {"c": OLD, "d": bytes(5_000), "empty": b""}
    with pytest.raises(FileNotFoundError):
        disk.open_wal(root / "c")
    with pytest.raises(FileNotFoundError):
        disk.sync_folder(root / "nowhere")


def test_allocating_takes_the_room_at_once(tmp_path: Path) -> None:
    ThreadDisk().allocate(tmp_path / "reserve", 1 << 20)
    assert (tmp_path / "reserve").stat().st_blocks * 512 >= 1 << 20


def test_a_simulated_disk_counts_the_room(root: Path) -> None:
    disk = FaultyDisk(root)
    disk.fill(6_000)
    disk.allocate(root / "reserve", 5_000)
    assert disk.free_bytes == 1_000
    with pytest.raises(OSError, match="No space") as full:
        disk.allocate(root / "second", 1_001)
    assert full.value.errno == errno.ENOSPC
    assert not (root / "second").exists()
    with pytest.raises(OSError, match="No space"):
        disk.copy(root / "a", root / "b")
    disk.remove(root / "b")
    disk.remove(root / "reserve")
    assert disk.free_bytes == 6_000
    disk.remove(root / "a")
    assert disk.free_bytes == 6_000 + len(OLD)
    disk.free()
    disk.allocate(root / "second", 1 << 20)


async def test_an_inline_disk_takes_no_time_and_notices_a_replaced_wal(tmp_path: Path) -> None:
    disk, start = InlineDisk(), trio.current_time()
    (tmp_path / "a-wal").touch()
    wal = disk.open_wal(tmp_path / "a")
    await disk.run(wal.sync)
    assert trio.current_time() == start
    (tmp_path / "b").touch()
    disk.replace(tmp_path / "b", tmp_path / "a-wal")
    with pytest.raises(OSError, match="deleted or replaced"):
        wal.sync()
    wal.close()


async def test_work_under_way_is_finished_although_cancelled(root: Path) -> None:
    disk = FaultyDisk(root, flush_takes=2)
    done = []
    with trio.move_on_after(1.5):
        await disk.run(lambda: done.append(trio.current_time()))
    assert done
    assert trio.current_time() - done[0] == pytest.approx(1)
    with trio.move_on_after(0.5) as scope:
        await disk.run(lambda: done.append(0))
    assert scope.cancelled_caught
    assert len(done) == 1  # before it began, it can be called off


# -- faults that SQLite sees ------------------------------------------------------------------------------


@pytest.fixture
def database(root: Path) -> tuple[FaultyDisk, apsw.Connection]:
    disk = FaultyDisk(root)
    db = apsw.Connection(str(root / "a.db"), vfs=disk.vfs)
    db.pragma("journal_mode", "wal")
    db.execute("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(100000))").fetchall()
    return disk, db


def extended(error: apsw.Error) -> int:
    code: int = error.extendedresult  # type: ignore[attr-defined]  # apsw's stubs lack it
    return code


def test_a_write_fails_once_and_leaves_the_file_as_it_was(
    database: tuple[FaultyDisk, apsw.Connection],
) -> None:
    disk, db = database
    disk.fail_write(pattern="*-wal")
    with pytest.raises(apsw.IOError) as failed:
        db.execute("DELETE FROM t")
    assert extended(failed.value) == apsw.SQLITE_IOERR_WRITE
    assert db.execute("SELECT count(*) FROM t").get == 1
    db.execute("DELETE FROM t")


def test_a_sync_of_sqlite_s_own_fails_a_checkpoint(database: tuple[FaultyDisk, apsw.Connection]) -> None:
    disk, db = database
    disk.fail_sync(pattern="a.db")
    with pytest.raises(apsw.IOError) as failed:
        db.wal_checkpoint()
    assert extended(failed.value) == apsw.SQLITE_IOERR_FSYNC


def test_a_read_fails_once(root: Path, database: tuple[FaultyDisk, apsw.Connection]) -> None:
    disk, db = database
    db.close()
    fresh = apsw.Connection(str(root / "a.db"), vfs=disk.vfs)
    disk.fail_read(pattern="a.db")
    with pytest.raises(apsw.IOError):
        fresh.execute("SELECT count(*) FROM t").fetchall()
    assert fresh.execute("SELECT count(*) FROM t").get == 1
