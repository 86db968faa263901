"""Deleting by object id and by cursors, and what the counters say afterwards."""

from __future__ import annotations

import pytest

from edgequeues.core import cursors
from edgequeues.core.errors import CursorStore, InvalidCursor
from edgequeues.models import ENTRIES_MAX, ENTRY_BYTES_MAX, Deleted, NewEntry
from edgequeues.space.shard import SpaceShard

from .world import OTHER, ULID, Space, numbers


def cursor(space: Space, position: int, queue: str = ULID) -> str:
    store_id: str = space.db.execute("SELECT store_id FROM store").get
    return cursors.encode(store_id, queue, position)


def remove(
    space: Space, *, after: int | None = None, before: int | None = None, through: int | None = None
) -> Deleted:
    """Delete a range of the queue by positions."""
    bounds = (None if place is None else cursor(space, place) for place in (after, before, through))
    return space.call(SpaceShard.delete_range, ULID, *bounds)


def test_delete_by_ids_counts_those_that_were_there(space: Space) -> None:
    space.fill(ULID, 5)
    assert space.call(SpaceShard.delete_ids, ULID, ["o1", "o3", "nowhere", "o1"]) == 2
    assert numbers(space.all(ULID)) == [0, 2, 4]
    assert space.call(SpaceShard.delete_ids, ULID, ["o1"]) == 0
    assert space.call(SpaceShard.delete_ids, "nowhere", ["o1"]) == 0
    info = space.call(SpaceShard.stats, ULID)
    assert (info.entries, info.bytes) == (3, 3)


def test_delete_by_ids_leaves_other_queues_alone(space: Space) -> None:
    space.fill(ULID, 2)
    space.fill(OTHER, 2)
    space.call(SpaceShard.delete_ids, ULID, ["o0", "o1"])
    assert numbers(space.all(OTHER)) == [0, 1]


def test_after_and_before_are_exclusive_and_through_is_inclusive(space: Space) -> None:
    space.fill(ULID, 9)  # positions 1 to 9
    assert remove(space, after=7).deleted == 2
    assert remove(space, before=3).deleted == 2
    assert remove(space, after=3, through=4).deleted == 1
    assert [entry.position for entry in space.all(ULID)] == [3, 5, 6, 7]
    assert remove(space, before=6, through=9).deleted == 2
    assert remove(space, before=9, through=6).deleted == 1
    assert [entry.position for entry in space.all(ULID)] == [7]


def test_what_was_read_is_removed_through_its_cursor(space: Space) -> None:
    space.fill(ULID, 5)
    page = space.read(ULID)
    space.fill(ULID, 1, 5)
    space.call(SpaceShard.delete_range, ULID, None, None, page.next_cursor)
    assert numbers(space.all(ULID)) == [5]


def test_without_bounds_everything_goes(space: Space) -> None:
    space.fill(ULID, 5)
    assert remove(space) == Deleted(5)
    assert remove(space) == Deleted(0)
    info = space.call(SpaceShard.stats, ULID)
    assert (info.entries, info.bytes, info.oldest, info.cursor) == (0, 0, None, cursor(space, 5))


def test_a_long_range_goes_in_steps_and_spares_what_comes_meanwhile(space: Space) -> None:
    for number in range(0, 2_500, 500):
        space.fill(ULID, 500, number)
    first = remove(space)
    assert (first.deleted, first.resume) == (ENTRIES_MAX, cursor(space, ENTRIES_MAX))
    assert first.through == cursor(space, 2_500)
    space.fill(ULID, 1, 2_500)
    second = space.call(SpaceShard.delete_range, ULID, first.resume, None, first.through)
    assert (second.deleted, second.through) == (ENTRIES_MAX, first.through)
    third = space.call(SpaceShard.delete_range, ULID, second.resume, None, second.through)
    assert third == Deleted(500)
    assert numbers(space.all(ULID)) == [2_500]


def test_exactly_one_step_does_not_go_on(space: Space) -> None:
    space.fill(ULID, ENTRIES_MAX)
    assert remove(space) == Deleted(ENTRIES_MAX)


def test_long_entries_go_in_steps_by_bytes(space: Space) -> None:
    long = '"' + "x" * ENTRY_BYTES_MAX + '"'
    for n in range(6):
        space.put(ULID, long, f"o{n}")
    first = remove(space)
    assert first.deleted < 6
    assert first.resume == cursor(space, first.deleted)
    assert (
        first.deleted + space.call(SpaceShard.delete_range, ULID, first.resume, None, first.through).deleted
        == 6
    )


def test_expired_entries_do_not_count_as_deleted(space: Space) -> None:
    space.append(ULID, NewEntry("1", "o1", ttl_ms=1), NewEntry("2", "o2"), NewEntry("3", "o3", ttl_ms=1))
    space.clock.advance(1)
    assert space.call(SpaceShard.delete_ids, ULID, ["o1"]) == 0
    assert remove(space).deleted == 1
    assert (space.rows(), space.count(ULID)) == (0, 0)


def test_expired_by_age_does_not_count_as_deleted(space: Space) -> None:
    space.configure(ULID, max_age_ms=10)
    space.fill(ULID, 2)
    space.clock.advance(10)
    space.fill(ULID, 1, 2)
    assert space.call(SpaceShard.delete_ids, ULID, ["o0", "o2"]) == 1
    assert remove(space).deleted == 0
    assert space.rows() == 0


def test_an_unknown_queue_has_nothing_to_delete(space: Space) -> None:
    assert space.call(SpaceShard.delete_range, "nowhere", None, None, None) == Deleted(0)


def test_cursors_of_another_queue_or_store_are_refused(space: Space) -> None:
    space.fill(ULID, 1)
    space.fill(OTHER, 1)
    foreign = cursors.encode(OTHER, ULID, 1)
    for place in range(3):
        bounds: list[str | None] = [None, None, None]
        bounds[place] = cursor(space, 1, OTHER)
        with pytest.raises(InvalidCursor):
            space.call(SpaceShard.delete_range, ULID, *bounds)
        bounds[place] = foreign
        with pytest.raises(CursorStore):
            space.call(SpaceShard.delete_range, ULID, *bounds)
        with pytest.raises(CursorStore):
            space.call(SpaceShard.delete_range, "nowhere", *bounds)
    assert space.count(ULID) == 1
