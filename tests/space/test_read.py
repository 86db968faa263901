"""Range reads: bounds, filters, pages and the cursors that join them."""

from __future__ import annotations

import pytest

from edgequeues.core import cursors
from edgequeues.core.errors import CursorStore, EntryNotFound, InvalidCursor, QueueNotFound
from edgequeues.models import ENTRIES_MAX, ENTRY_BYTES_MAX, NewEntry, RangeQuery
from edgequeues.space import pages
from edgequeues.space.shard import SpaceShard

from .world import OTHER, ULID, Space, numbers


def at(space: Space, queue: str, position: int) -> str:
    """A cursor as answers give it."""
    page = space.read(queue)
    assert page.store_id is not None
    assert page.queue_id is not None
    return cursors.encode(page.store_id, page.queue_id, position)


def test_a_range_is_read_in_insertion_order_or_newest_first(space: Space) -> None:
    space.fill("q", 5)
    assert numbers(space.read("q").entries) == [0, 1, 2, 3, 4]
    assert numbers(space.read("q", RangeQuery(reverse=True)).entries) == [4, 3, 2, 1, 0]


def test_the_cursors_of_a_page_are_those_of_its_highest_and_lowest_entry(space: Space) -> None:
    space.fill("q", 5)
    for reverse in (False, True):
        page = space.read("q", RangeQuery(after=at(space, "q", 1), limit=3, reverse=reverse))
        low, high = (3, 5) if reverse else (2, 4)
        assert (page.prev_cursor, page.next_cursor) == (at(space, "q", low), at(space, "q", high))


def test_bounds_are_exclusive(space: Space) -> None:
    space.fill("q", 6)
    ask = RangeQuery(after=at(space, "q", 2), before=at(space, "q", 5))
    assert [entry.position for entry in space.read("q", ask).entries] == [3, 4]


def test_an_empty_page_gives_back_the_cursors_it_was_asked_with(space: Space) -> None:
    space.fill("q", 2)
    end = at(space, "q", 2)
    page = space.read("q", RangeQuery(after=end))
    assert (page.entries, page.next_cursor, page.prev_cursor, page.resume) == ([], end, None, None)
    page = space.read("q", RangeQuery(before=at(space, "q", 1), reverse=True))
    assert (page.entries, page.next_cursor, page.prev_cursor) == ([], None, at(space, "q", 1))


def test_an_unknown_queue_reads_as_empty(space: Space) -> None:
    for queue in ("nowhere", ULID):
        page = space.read(queue)
        assert (page.entries, page.next_cursor, page.prev_cursor, page.resume) == ([], None, None, None)
        assert (page.store_id, page.queue_id) == (None, None)


def test_a_page_says_what_its_cursors_belong_to(space: Space) -> None:
    space.fill(ULID, 1)
    page = space.read(ULID)
    assert page.queue_id == ULID
    assert page.next_cursor is not None
    assert page.store_id is not None
    assert cursors.decode(page.store_id, ULID, page.next_cursor) == 1


def test_a_limit_that_is_met_ends_the_range(space: Space) -> None:
    space.fill("q", 5)
    assert space.read("q", RangeQuery(limit=3)).resume is None
    assert space.read("q", RangeQuery(limit=5)).resume is None
    assert space.read("q", RangeQuery(limit=9)).resume is None


@pytest.mark.parametrize("reverse", [False, True])
def test_a_range_longer_than_a_page_goes_on_where_the_page_ended(space: Space, reverse: bool) -> None:
    for first in range(0, 2_500, 500):
        space.fill("q", 500, first)
    told = list(space.pages("q", RangeQuery(reverse=reverse)))
    assert [len(page.entries) for page in told] == [ENTRIES_MAX, ENTRIES_MAX, 500]
    got = numbers([entry for page in told for entry in page.entries])
    assert got == (list(range(2_500))[::-1] if reverse else list(range(2_500)))


def test_a_limit_above_a_page_is_met_by_several(space: Space) -> None:
    for first in range(0, 2_500, 500):
        space.fill("q", 500, first)
    told = list(space.pages("q", RangeQuery(limit=1_700)))
    assert [len(page.entries) for page in told] == [ENTRIES_MAX, 700]


def test_a_range_of_exactly_one_page_does_not_go_on(space: Space) -> None:
    space.fill("q", ENTRIES_MAX)
    page = space.read("q")
    assert (len(page.entries), page.resume) == (ENTRIES_MAX, None)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_page_stops_growing_at_so_many_bytes(space: Space, reverse: bool) -> None:
    long = '"' + "x" * (ENTRY_BYTES_MAX // 2) + '"'
    for n in range(5):
        space.put("q", long, f"o{n}")
    told = [len(page.entries) for page in space.pages("q", RangeQuery(reverse=reverse))]
    assert told == [2, 2, 1]
    ask = RangeQuery(ids=("o0", "o1", "o2", "o3"), reverse=reverse)
    assert [len(page.entries) for page in space.pages("q", ask)] == [2, 2]


def test_the_type_filter_gives_that_type_only(space: Space) -> None:
    space.append("q", *[NewEntry(str(n), type=("A", "B", None)[n % 3]) for n in range(9)])
    assert numbers(space.all("q", RangeQuery(type="B"))) == [1, 4, 7]
    assert numbers(space.all("q", RangeQuery(type="A", reverse=True, limit=2))) == [6, 3]
    assert numbers(space.all("q", RangeQuery(type="C"))) == []


def test_time_bounds_are_inclusive_and_mean_the_first_append(space: Space) -> None:
    start_ms = space.clock.now_ms()
    for n in range(5):
        space.put("q", str(n), f"o{n}")
        space.clock.advance(10)
    space.put("q", "11", "o1")  # moved to the tail, first appended at +10
    assert numbers(space.all("q", RangeQuery(since_ms=start_ms + 20))) == [2, 3, 4]
    assert numbers(space.all("q", RangeQuery(until_ms=start_ms + 20))) == [0, 2, 11]
    assert numbers(space.all("q", RangeQuery(since_ms=start_ms + 10, until_ms=start_ms + 29))) == [2, 11]
    assert numbers(space.all("q", RangeQuery(since_ms=start_ms + 11, until_ms=start_ms + 19))) == []
    assert numbers(space.all("q", RangeQuery(since_ms=0, until_ms=start_ms - 1))) == []


def test_ids_pick_entries_in_position_order_within_the_other_bounds(space: Space) -> None:
    space.fill("q", 9)
    asked = ("o7", "o1", "nowhere", "o4", "o1")
    assert numbers(space.all("q", RangeQuery(ids=asked))) == [1, 4, 7]
    assert numbers(space.all("q", RangeQuery(ids=asked, reverse=True))) == [7, 4, 1]
    assert numbers(space.all("q", RangeQuery(ids=asked, limit=2))) == [1, 4]
    assert numbers(space.all("q", RangeQuery(ids=asked, after=at(space, "q", 2)))) == [4, 7]
    assert numbers(space.all("q", RangeQuery(ids=asked, before=at(space, "q", 8)))) == [1, 4]
    assert numbers(space.all("q", RangeQuery(ids=asked, type="T"))) == []
    assert numbers(space.all("q", RangeQuery(ids=asked, until_ms=space.clock.now_ms() - 1))) == []


def test_ids_pick_from_their_own_queue(space: Space) -> None:
    space.fill("one", 2)
    space.put("two", "7", "o0")
    assert numbers(space.all("two", RangeQuery(ids=("o0", "o1")))) == [7]


def test_a_filtered_read_examines_a_bounded_number_of_rows(space: Space) -> None:
    rows = pages.WINDOW_ROWS * 2 + 10
    for first in range(0, rows, 1_000):
        space.fill("q", min(1_000, rows - first), first)
    now_ms = space.clock.now_ms()
    ask = RangeQuery(until_ms=now_ms - 1)
    told = list(space.pages("q", ask))
    assert [len(page.entries) for page in told] == [0, 0, 0]
    assert [page.resume is None for page in told] == [False, False, True]
    backwards = list(space.pages("q", RangeQuery(until_ms=now_ms - 1, reverse=True, type=None)))
    assert [len(page.entries) for page in backwards] == [0, 0, 0]


def test_a_limit_is_met_over_several_windows(space: Space) -> None:
    start_ms = space.clock.now_ms()
    space.put("q", "-1", "first")
    for first in range(0, pages.WINDOW_ROWS, 1_000):
        space.fill("q", 1_000, first)
    space.clock.advance(5)
    space.fill("q", 2, pages.WINDOW_ROWS)
    space.put("q", "-2", "first")
    wanted = [pages.WINDOW_ROWS, pages.WINDOW_ROWS + 1]
    assert numbers(space.all("q", RangeQuery(since_ms=start_ms + 1, limit=2))) == wanted
    assert numbers(space.all("q", RangeQuery(since_ms=start_ms + 1, limit=2, reverse=True))) == wanted[::-1]
    assert numbers(space.all("q", RangeQuery(until_ms=start_ms, reverse=True, limit=1))) == [-2]


# -- cursors ----------------------------------------------------------------------------------------------


def test_a_cursor_outlives_the_entry_it_points_at(space: Space) -> None:
    space.fill("q", 5)
    cursor = at(space, "q", 3)
    space.call(SpaceShard.delete_ids, "q", ["o2", "o3"])
    assert [entry.position for entry in space.read("q", RangeQuery(after=cursor)).entries] == [5]


def test_a_cursor_of_another_queue_is_refused(space: Space) -> None:
    space.fill("one", 2)
    space.fill("two", 2)
    for ask in (RangeQuery(after=at(space, "one", 1)), RangeQuery(before=at(space, "one", 1))):
        with pytest.raises(InvalidCursor):
            space.read("two", ask)
        with pytest.raises(InvalidCursor):
            space.read("nowhere", ask)


def test_a_damaged_cursor_is_refused(space: Space) -> None:
    space.fill("q", 2)
    for queue in ("q", "nowhere"):
        with pytest.raises(InvalidCursor):
            space.read(queue, RangeQuery(after="x"))


def test_a_cursor_of_another_store_is_refused(space: Space) -> None:
    space.fill(ULID, 2)
    foreign = cursors.encode(OTHER, ULID, 1)
    for ask in (RangeQuery(after=foreign), RangeQuery(before=foreign)):
        with pytest.raises(CursorStore):
            space.read(ULID, ask)
        with pytest.raises(CursorStore):
            space.read(OTHER, ask)


# -- one object -------------------------------------------------------------------------------------------


def test_get_gives_one_object(space: Space) -> None:
    space.fill("q", 3)
    assert space.call(SpaceShard.get, "q", "o1") == space.all("q")[1]


def test_get_tells_an_unknown_queue_from_an_unknown_object(space: Space) -> None:
    space.fill("q", 1)
    with pytest.raises(QueueNotFound, match="nowhere"):
        space.call(SpaceShard.get, "nowhere", "o0")
    with pytest.raises(EntryNotFound, match="o9"):
        space.call(SpaceShard.get, "q", "o9")
