"""Objects in a folder: there after a power cut, and nowhere but in the folder."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from edgequeues.blobs.about import check_key
from edgequeues.blobs.folder import MARK, STAGED, FolderBlobs, open_folder
from edgequeues.blobs.store import path_of
from edgequeues.core.errors import BlobConflict, BlobStoreDown, InvalidRequest
from shards.disk import ThreadDisk
from shards.testing import FaultyDisk

TEXT = "text/plain"
CUTS = 300
HOSTILE = (
    *("../../etc/passwd", "C:\\Windows\\x", "/abs", ".", "..", "", ".htaccess", "a\x00b", "CON", "a" * 300),
    *("😀😀", "\u202egpj.exe", "x/../../y", "%2e%2e/x", "~", "a@", "@", "a\\..\\b"),
)


class Said(NamedTuple):
    """What was told of an object."""

    path: str
    state: str


class FileSyncForgotten(FaultyDisk):
    """As a disk whose files nobody syncs."""

    def sync_file(self, path: Path) -> None:
        self.open(path.resolve())


class FolderSyncForgotten(FaultyDisk):
    """As a disk whose folders nobody syncs."""

    def sync_folder(self, folder: Path) -> None:
        if folder.name != "blobs" and folder.is_dir():
            self.platter.look(folder.resolve())


async def losses(folder: Path, disk: FaultyDisk, target: Path) -> list[str]:
    """Store and delete objects, cut the power at many moments; what was found untrue after one."""
    rng, said = random.Random(1), dict[str, bytes]()
    store = await open_folder(folder / "blobs", disk)
    for number in range(6):
        path, data = f"demo/of-files/{number % 2}/{number}", rng.randbytes(rng.randint(1, 9_000))
        await store.put(path, data, TEXT)
        said[path] = data
        disk.mark(Said(path, "there"))
        if number % 3 == 2:
            disk.mark(Said(path, "perhaps"))
            await store.delete(path)
            disk.mark(Said(path, "gone"))
    found = []
    for cut in disk.cuts(CUTS, rng, target):
        states = {mark.path: mark.state for mark in disk.marks_before(cut.at) if isinstance(mark, Said)}
        for path, data in said.items():
            file, state = cut.folder / "blobs" / (path + MARK), states.get(path, "perhaps")
            if file.exists() and file.read_bytes() != data:
                found.append(f"{path} is torn")
            if file.exists() != (state == "there") and state != "perhaps":
                found.append(f"{path} is not {state}")
    disk.close()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


async def test_what_was_stored_is_there_after_a_power_cut_and_what_was_deleted_is_not(
    folder: Path, tmp_path: Path
) -> None:
    assert await losses(folder, FaultyDisk(folder), tmp_path / "cut") == []


@pytest.mark.parametrize("made", [FileSyncForgotten, FolderSyncForgotten])
async def test_without_a_sync_the_search_above_finds_losses(
    folder: Path, tmp_path: Path, made: Callable[[Path], FaultyDisk]
) -> None:
    assert await losses(folder, made(folder), tmp_path / "cut")


async def test_an_object_whose_sync_fails_is_not_there(folder: Path) -> None:
    disk = FaultyDisk(folder)
    store = await open_folder(folder / "blobs", disk)
    disk.fail_sync(pattern="*")
    with pytest.raises(BlobStoreDown):
        await store.put("demo/of-files/a", b"hello", TEXT)
    assert files(folder / "blobs") == []
    assert await store.put("demo/of-files/a", b"hello", TEXT)
    disk.close()


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def opened(tmp_path: Path) -> FolderBlobs:
    return await open_folder(tmp_path / "blobs", ThreadDisk())


async def test_bl_s03_whatever_a_key_is_nothing_lies_outside_the_folder(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    taken = []
    for name in HOSTILE:
        key = f"email/2026/01/02/8f14e45f/att/1-{name}"
        for one in (name, key):
            try:
                path = path_of("demo", "of-files", check_key(one))
            except InvalidRequest:
                continue
            assert await store.put(path, b"hello", TEXT)
            taken.append(path)
    assert len(set(taken)) == len(taken) > len(HOSTILE)
    assert names(tmp_path) == ["blobs"]
    assert files(tmp_path / "blobs") == sorted(path + MARK for path in taken)
    assert all(len(part) <= 255 for path in taken for part in path.split("/"))


@pytest.mark.parametrize("where", ["demo", "demo/of-files", "demo/of-files/a@"])
async def test_bl_s03_a_symbolic_link_in_the_folder_leads_nowhere(tmp_path: Path, where: str) -> None:
    store, outside = await opened(tmp_path), tmp_path / "outside"
    (outside / "of-files").mkdir(parents=True)
    for file in (outside / "a@", outside / "of-files" / "a@"):
        file.write_bytes(b"secret")
    link = tmp_path / "blobs" / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside / "a@" if where.endswith("@") else outside)
    with pytest.raises(BlobStoreDown):
        await store.put("demo/of-files/a", b"secret", TEXT)
    with pytest.raises(BlobStoreDown):
        await store.put("demo/of-files/b", b"hello", TEXT) if "@" not in where else await store.delete(
            "demo/of-files/a"
        )
    with pytest.raises(BlobStoreDown):
        async for _ in store.read("demo/of-files/a", 0, 6):
            pass
    assert files(outside) == ["a@", "of-files/a@"]


async def test_bl_s03_nor_does_one_in_place_of_what_is_set_aside(tmp_path: Path) -> None:
    store, outside = await opened(tmp_path), tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "blobs" / STAGED).symlink_to(outside)
    for again in (store, await opened(tmp_path)):
        with pytest.raises(BlobStoreDown):
            await again.put("demo/of-files/a", b"secret", TEXT)
    assert files(outside) == []


async def test_what_a_crash_left_aside_is_removed_and_what_it_left_in_place_is_adopted(
    tmp_path: Path,
) -> None:
    store = await opened(tmp_path)
    await store.put("demo/of-files/a", b"hello", TEXT)  # and no row
    staged = tmp_path / "blobs" / STAGED / "7"
    staged.write_bytes(b"half")
    again = await opened(tmp_path)
    assert not staged.exists()
    assert not await again.put("demo/of-files/a", b"hello", TEXT)
    with pytest.raises(BlobConflict):
        await again.put("demo/of-files/a", b"other", TEXT)


async def test_folders_that_are_empty_are_tidied_away(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await store.put("demo/of-files/a/b/c", b"hello", TEXT)
    await store.delete("demo/of-files/a/b/c")
    assert names(tmp_path / "blobs") == [STAGED]
