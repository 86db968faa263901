"""Faults others reported of ordered queues and of SQLite used as one, each tried on the space."""

from __future__ import annotations

import random

import pytest

from edgequeues.core.errors import VersionAhead
from edgequeues.models import NewEntry, RangeQuery
from edgequeues.space.shard import SpaceShard
from edgequeues.space.timed import SWEEP_PAUSE_MS

from .world import Space, SpaceFile, numbers

HOUR_MS = 3_600_000


def test_oq_s01_a_reader_by_cursor_sees_every_object_exactly_once(space: Space) -> None:
    """Fifty writers append in any order, some fail half-way, one moves objects; a tail reader misses nothing."""
    chance = random.Random(1)
    todo = [(writer, n) for writer in range(50) for n in range(20)]
    chance.shuffle(todo)
    seen: list[str] = []
    cursor: str | None = None

    def follow() -> None:
        nonlocal cursor
        page = space.read("q", RangeQuery(after=cursor))
        seen.extend(entry.id for entry in page.entries)
        cursor = page.next_cursor

    for writer, n in todo:
        if chance.random() < 0.2:
            ahead = NewEntry("1", "x", if_version=f"{1 << 40:016x}@a")
            with pytest.raises(VersionAhead):
                space.append("q", NewEntry("1", f"w{writer}-{n}"), ahead)
        if chance.random() < 0.5:
            follow()
        space.put("q", "1", f"w{writer}-{n}")
    follow()
    assert sorted(seen) == sorted(f"w{writer}-{n}" for writer, n in todo)


def test_oq_s02_positions_are_never_used_twice(space_file: SpaceFile) -> None:
    space = space_file
    end = space.fill("q", 3).cursor
    space.call(SpaceShard.delete_ids, "q", ["o2"])
    space.put("q", "3", "o3")
    page = space.read("q", RangeQuery(after=end))
    assert [(entry.id, entry.position) for entry in page.entries] == [("o3", 4)]
    assert space.call(SpaceShard.delete_range, "q", None, None, None).deleted == 3
    space.reopen()
    space.db.execute("VACUUM")
    space.reopen()
    space.put("q", "4", "o4")
    assert [(entry.id, entry.position) for entry in space.read("q", RangeQuery(after=end)).entries] == [
        ("o4", 5)
    ]


def test_oq_s03_entries_of_one_millisecond_are_all_read_once(space: Space) -> None:
    """The clock stands still; between the read of a page and the next one more is appended."""
    space.fill("q", 201)
    got: list[int] = []
    cursor: str | None = None
    for page_number in range(4):
        page = space.read("q", RangeQuery(after=cursor, limit=100))
        if page_number == 0:
            space.fill("q", 1, 201)
        got += numbers(page.entries)
        cursor = page.next_cursor
    assert got == list(range(202))
    assert space.read("q", RangeQuery(after=cursor, limit=100)).next_cursor == cursor


def test_oq_s04_no_clock_decides_which_version_wins(space: Space) -> None:
    """One writer's clock is two hours ahead, but versions count writes."""
    space.clock.advance(2 * HOUR_MS)
    [by_b] = space.call(SpaceShard.append, "q", [NewEntry('"b"', "o", if_version=f"{5:016x}@b")], "b").results
    space.clock.advance(-2 * HOUR_MS)
    [by_a] = space.call(SpaceShard.append, "q", [NewEntry('"a"', "o")], "a").results
    assert (by_b.version, by_a.version) == (f"{5:016x}@b", f"{6:016x}@a")
    space.clock.advance(2 * HOUR_MS)
    [again] = space.append("q", NewEntry('"b"', "o", if_version=f"{5:016x}@b")).results
    assert (again.outcome, again.version) == ("stale", by_a.version)
    assert space.data("q") == ['"a"']


def test_oq_s05_the_expired_is_nowhere_before_any_sweep(space: Space) -> None:
    space.configure("q", max_entries=1)
    space.append("q", NewEntry("1", "o", ttl_ms=1_000))
    space.clock.advance(2_000)
    info = space.call(SpaceShard.stats, "q")
    assert (info.entries, info.bytes, info.oldest) == (0, 0, None)
    assert space.read("q").entries == []
    assert space.read("q", RangeQuery(ids=("o",))).entries == []
    assert space.call(SpaceShard.queues, "", 9).queues == [info]
    assert space.rows() == 1
    space.put("q", "2", "p")
    assert space.data("q") == ["2"]


def test_oq_s06_numbers_come_back_digit_for_digit(space: Space) -> None:
    data = (
        '{"id": 731094455820113921, "neg": -9223372036854775808,'
        ' "big": 123456789012345678901234567890, "f": 1.0, "e": 1E+2}'
    )
    space.put("q", data, "o")
    assert space.call(SpaceShard.get, "q", "o").data == data
    assert space.data("q") == [data]


def test_oq_s07_half_a_surrogate_pair_comes_back_as_the_same_escape(space: Space) -> None:
    texts = ['{"t":"whole"}', '{"t":"cut \\ud83d here"}', '{"\\udc00":1}']
    answer = space.append("q", *[NewEntry(text) for text in texts])
    assert {result.outcome for result in answer.results} == {"new"}
    assert space.data("q") == texts
    assert space.call(SpaceShard.stats, "q").bytes == sum(len(text) for text in texts)


def test_oq_s08_nul_is_stored_whole_and_compared_whole(space: Space) -> None:
    escaped, raw = '{"a":"x\\u0000y","b":1}', '"x\0y"'
    space.append("q", NewEntry(escaped, "o", "T", headers='{"h":"\\u0000v"}'), NewEntry(raw, "r", "T"))
    first, second = space.all("q", RangeQuery(type="T"))
    assert (first.data, first.headers, second.data) == (escaped, '{"h":"\\u0000v"}', raw)
    assert space.put("q", raw, "r") == 2  # the same
    assert space.append("q", NewEntry('"x\0z"', "r")).results[0].outcome == "moved"
    assert space.all("q")[-1].data == '"x\0z"'


def test_sq_s04_sweeping_keeps_the_file_from_growing(space_file: SpaceFile) -> None:
    """A thousand live entries at most, by three kinds of retention; the file's size levels off."""
    space = space_file
    space.configure("aged", max_age_ms=5_000)
    space.configure("counted", max_entries=500)
    sizes = []
    for second in range(60):
        for queue, ttl_ms in (("aged", None), ("counted", None), ("own", 5_000)):
            space.append(queue, *[NewEntry(f'"{"x" * 200}"', ttl_ms=ttl_ms) for _ in range(100)])
        space.clock.advance(SWEEP_PAUSE_MS)
        while space.alarm_due():
            space.run_alarm()
        if second >= 10:
            sizes.append(space.path.stat().st_size)
    assert space.rows() <= 2_000
    assert max(sizes) <= sizes[0] * 1.25
