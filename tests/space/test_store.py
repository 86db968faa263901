"""The store's identity, what is kept over reopening, and what a failed turn leaves behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from edgequeues.core.errors import CursorStore, EntryExists, InvalidCursor
from edgequeues.models import NewEntry, RangeQuery
from edgequeues.space.shard import SpaceShard

from .world import Space, SpaceFile, dump, numbers


def store_id(space: Space) -> str:
    told: str = space.db.execute("SELECT store_id FROM store").get
    return told


def test_reopening_the_same_file_keeps_cursors_and_counters(space_file: SpaceFile) -> None:
    cursor = space_file.fill("q", 3).cursor
    identity = store_id(space_file)
    space_file.reopen()
    assert store_id(space_file) == identity
    assert space_file.fill("q", 1, 3).results[0].position == 4
    assert numbers(space_file.read("q", RangeQuery(after=cursor)).entries) == [3]
    assert space_file.count("q") == 4


def test_a_copied_file_refuses_the_cursors_of_the_original(space_file: SpaceFile, tmp_path: Path) -> None:
    cursor = space_file.fill("q", 3).cursor
    etag = space_file.etag("q")
    space_file.close()
    shutil.copy(space_file.path, tmp_path / "copy.db")
    copy = SpaceFile(tmp_path / "copy.db", file_id="another file")
    with pytest.raises(CursorStore):
        copy.read("q", RangeQuery(after=cursor))
    assert copy.etag("q") != etag
    assert numbers(copy.all("q")) == [0, 1, 2]
    identity = store_id(copy)
    copy.reopen()
    assert store_id(copy) == identity
    copy.close()
    space_file.open()
    assert space_file.read("q", RangeQuery(after=cursor)).entries == []


def test_positions_and_versions_of_a_copy_go_on_from_the_originals(space_file: SpaceFile) -> None:
    last = space_file.fill("q", 3).results[-1]
    space_file.file_id = "another file"
    space_file.reopen()
    [result] = space_file.fill("q", 1, 3).results
    assert (result.position, result.version[:16]) == (4, f"{4:016x}")
    assert result.version.split("@")[1] != last.version.split("@")[1]  # another store, another writer


def test_a_store_that_had_no_file_keeps_its_identity_in_its_first(tmp_path: Path) -> None:
    space = SpaceFile(tmp_path / "space.db", file_id="")
    cursor = space.fill("q", 3).cursor
    space.file_id = "the file"
    space.reopen()
    assert space.read("q", RangeQuery(after=cursor)).entries == []
    space.file_id = ""  # not told this time
    space.reopen()
    assert space.read("q", RangeQuery(after=cursor)).entries == []
    space.close()


def test_a_failed_turn_leaves_nothing_in_memory(space: Space) -> None:
    space.configure("q", mutable=False, max_entries=5)
    space.fill("q", 5)
    before = dump(space.db)
    for _ in range(3):
        with pytest.raises(EntryExists):
            space.append("q", NewEntry("1", "fresh", ttl_ms=5), NewEntry("x", "o1"))
        with pytest.raises(EntryExists):
            space.append("q", NewEntry("1", "fresh", if_version=f"{99:016x}@a"), NewEntry("x", "o1"))
    assert dump(space.db) == before
    [result] = space.append("q", NewEntry("1", "fresh")).results
    assert (result.position, result.version[:16]) == (6, f"{6:016x}")


def test_deleting_everything_starts_another_store(space: Space) -> None:
    cursor = space.append("q", NewEntry("1", ttl_ms=10)).cursor
    queue_id = space.call(SpaceShard.stats, "q").id
    identity = store_id(space)
    space.call(SpaceShard.delete_all)
    assert store_id(space) != identity
    assert space.shard.get_alarm() is None
    space.put(queue_id, "2")
    assert space.data(queue_id) == ["2"]
    with pytest.raises((CursorStore, InvalidCursor)):
        space.read(queue_id, RangeQuery(after=cursor))
