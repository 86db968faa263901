"""Appending: what becomes of each object, its version and its position."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from edgequeues.core import ids
from edgequeues.core.errors import DuplicateId, EntryExists, InvalidRequest, NameTaken, VersionAhead
from edgequeues.core.versions import AHEAD_MAX
from edgequeues.models import Entry, NewEntry
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import CHANGED

from .world import OTHER, ULID, Space, turn


def version(counter: int, actor: str) -> str:
    return f"{counter:016x}@{actor}"


def own_actor(space: Space) -> str:
    """The name under which this space writes."""
    return space.append("probe", NewEntry("0")).results[0].version.split("@")[1]


def test_new_objects_get_rising_positions_and_versions_in_the_order_sent(space: Space) -> None:
    answer = space.append("q", *[NewEntry(str(n), f"o{n}") for n in range(3)])
    assert [result.position for result in answer.results] == [1, 2, 3]
    assert [result.version.split("@")[0] for result in answer.results] == [f"{n:016x}" for n in (1, 2, 3)]
    assert {result.outcome for result in answer.results} == {"new"}
    assert [result.id for result in answer.results] == ["o0", "o1", "o2"]


def test_everything_an_entry_carries_is_stored(space: Space) -> None:
    space.append("q", NewEntry('{"n": 1}', "o", "dxn:type:T", 5_000, "k", '{"h":"v"}'))
    now_ms = space.clock.now_ms()
    [entry] = space.all("q")
    told = entry.version
    assert entry == Entry(
        "o", 1, told, "dxn:type:T", now_ms, now_ms, now_ms + 5_000, "k", '{"h":"v"}', '{"n": 1}'
    )


def test_an_object_without_id_gets_a_ulid_of_its_own(space: Space) -> None:
    answer = space.append("q", NewEntry("1"), NewEntry("1"))
    first, second = (result.id for result in answer.results)
    assert ids.is_ulid(first)
    assert ids.is_ulid(second)
    assert first != second
    assert space.call(SpaceShard.get, "q", first).position == 1


def test_identical_data_is_the_same_and_nothing_changes(space: Space) -> None:
    [first] = space.append("q", NewEntry('{"a":1}', "o", ttl_ms=9_000)).results
    before = space.read("q"), space.etag("q")
    space.clock.advance(10)
    again = space.append("q", NewEntry('{"a":1}', "o", "dxn:type:T", ttl_ms=1, key="k"))
    assert again.results[0].outcome == "same"
    assert (again.results[0].position, again.results[0].version) == (first.position, first.version)
    assert (space.read("q"), space.etag("q")) == before


def test_the_same_json_in_other_bytes_is_other_data(space: Space) -> None:
    space.put("q", '{"a":1}', "o")
    assert space.append("q", NewEntry('{"a": 1}', "o")).results[0].outcome == "moved"


def test_other_data_moves_the_object_to_the_tail_with_all_that_comes_with_it(space: Space) -> None:
    created_ms = space.clock.now_ms()
    space.append("q", NewEntry("1", "o", "dxn:type:Old", 5_000, "old", '{"h":"old"}'), NewEntry("2", "p"))
    space.clock.advance(100)
    [moved] = space.append("q", NewEntry("3", "o", "dxn:type:New", key="new")).results
    assert (moved.outcome, moved.position) == ("moved", 3)
    last = space.all("q")[-1]
    assert (last.id, last.data, last.type, last.key) == ("o", "3", "dxn:type:New", "new")
    assert (last.headers, last.expires) == (None, None)
    assert (last.created, last.updated) == (created_ms, created_ms + 100)
    assert space.data("q") == ["2", "3"]
    assert space.count("q") == 2


def test_a_moved_object_has_a_higher_version(space: Space) -> None:
    [first] = space.append("q", NewEntry("1", "o")).results
    [second] = space.append("q", NewEntry("2", "o")).results
    assert second.version > first.version


def test_new_same_and_moved_in_one_call_are_answered_in_the_order_sent(space: Space) -> None:
    space.append("q", NewEntry("1", "a"), NewEntry("1", "b"), NewEntry("1", "c"))
    answer = space.append("q", NewEntry("1", "n"), NewEntry("2", "b"), NewEntry("1", "a"), NewEntry("2", "m"))
    told = [(result.id, result.outcome, result.position) for result in answer.results]
    assert told == [("n", "new", 4), ("b", "moved", 5), ("a", "same", 1), ("m", "new", 6)]
    assert [entry.id for entry in space.all("q")] == ["a", "c", "n", "b", "m"]
    assert space.count("q") == 5


def test_the_answer_points_at_the_tail(space: Space) -> None:
    first = space.append("q", NewEntry("1", "a"))
    second = space.append("q", NewEntry("2", "b"))
    again = space.append("q", NewEntry("1", "a"))
    assert first.cursor != second.cursor
    assert again.cursor == second.cursor == space.read("q").next_cursor


def test_an_object_id_belongs_to_its_queue(space: Space) -> None:
    space.put("one", "1", "o")
    assert space.append("two", NewEntry("2", "o")).results[0].outcome == "new"
    assert space.data("one") == ["1"]


def test_positions_are_shared_by_the_queues_of_a_space(space: Space) -> None:
    assert [space.put("one", "1"), space.put("two", "1"), space.put("one", "2")] == [1, 2, 3]


def test_a_deleted_object_can_be_appended_anew(space: Space) -> None:
    [first] = space.append("q", NewEntry("1", "o")).results
    space.call(SpaceShard.delete_ids, "q", ["o"])
    space.clock.advance(5)
    [again] = space.append("q", NewEntry("1", "o")).results
    assert (again.outcome, again.position) == ("new", first.position + 1)
    assert again.version > first.version
    assert space.all("q")[0].created == space.clock.now_ms()


def test_the_expired_object_counts_as_absent(space: Space) -> None:
    space.append("q", NewEntry("1", "o", ttl_ms=10))
    space.clock.advance(10)
    [again] = space.append("q", NewEntry("1", "o")).results
    assert (again.outcome, again.position) == ("new", 2)
    assert space.all("q")[0].created == space.clock.now_ms()
    assert (space.count("q"), space.rows()) == (1, 1)


# -- versions ---------------------------------------------------------------------------------------------


def test_a_writer_that_gives_no_name_writes_as_the_store(space: Space) -> None:
    actor = own_actor(space)
    assert len(actor) == 8
    assert set(actor) <= set("0123456789abcdef")
    assert Space().append("q", NewEntry("0")).results[0].version == version(1, actor)  # same seed, same store


def test_a_writer_may_give_its_name(space: Space) -> None:
    answer = space.call(SpaceShard.append, "q", [NewEntry("1", "o")], "desk-2")
    assert answer.results[0].version == version(1, "desk-2")


def test_a_stated_version_above_the_stored_one_becomes_the_objects(space: Space) -> None:
    space.put("q", "1", "o")
    stated = version(40, "phone")
    [moved] = space.append("q", NewEntry("2", "o", if_version=stated)).results
    assert (moved.outcome, moved.version) == ("moved", stated)


def test_the_spaces_counter_follows_a_stated_version(space: Space) -> None:
    space.append("q", NewEntry("1", "o", if_version=version(40, "phone")))
    assert space.append("q", NewEntry("1")).results[0].version.startswith(f"{41:016x}@")


def test_a_stated_version_below_the_counter_leaves_it(space: Space) -> None:
    space.fill("q", 9)
    [new] = space.append("q", NewEntry("x", "late", if_version=version(2, "phone"))).results
    assert (new.outcome, new.version) == ("new", version(2, "phone"))
    assert space.append("q", NewEntry("1")).results[0].version.startswith(f"{10:016x}@")


@pytest.mark.parametrize("stated", [version(5, "b"), version(5, "a"), version(4, "z")])
def test_a_stated_version_not_above_the_stored_one_is_stale(space: Space, stated: str) -> None:
    space.append("q", NewEntry("1", "o", if_version=version(5, "b")))
    before = space.read("q"), space.etag("q")
    [stale] = space.append("q", NewEntry("2", "o", if_version=stated)).results
    assert (stale.outcome, stale.position, stale.version) == ("stale", 1, version(5, "b"))
    assert (space.read("q"), space.etag("q")) == before


def test_the_writers_name_decides_between_equal_counters(space: Space) -> None:
    space.append("q", NewEntry("1", "o", if_version=version(5, "a")))
    assert space.append("q", NewEntry("2", "o", if_version=version(5, "b"))).results[0].outcome == "moved"


def test_a_repeated_write_with_its_version_is_the_same_not_stale(space: Space) -> None:
    entry = NewEntry("1", "o", if_version=version(5, "a"))
    space.append("q", entry)
    assert space.append("q", entry).results[0].outcome == "same"


def test_a_version_far_ahead_of_the_counter_is_refused(space: Space) -> None:
    space.fill("q", 3)
    allowed, refused = version(3 + AHEAD_MAX, "a"), version(4 + AHEAD_MAX, "a")
    with pytest.raises(VersionAhead):
        turn(space, SpaceShard.append, "q", [NewEntry("2", "o", if_version=refused), NewEntry("1", "x")])
    assert space.append("q", NewEntry("2", "o", if_version=allowed)).results[0].version == allowed


def test_a_version_in_another_form_is_refused(space: Space) -> None:
    with pytest.raises(InvalidRequest, match="version"):
        space.append("q", NewEntry("2", "o", if_version="5@a"))


# -- all or nothing ---------------------------------------------------------------------------------------


def test_an_immutable_queue_refuses_other_data_and_the_whole_call(space: Space) -> None:
    space.configure("q", mutable=False)
    space.put("q", "1", "o")
    entries = [NewEntry("9", "before"), NewEntry("2", "o"), NewEntry("9", "behind")]
    with pytest.raises(EntryExists, match="object o"):
        turn(space, SpaceShard.append, "q", entries)
    assert space.put("q", "3", "p") == 2


def test_an_immutable_queue_takes_an_identical_resend(space: Space) -> None:
    space.configure("q", mutable=False)
    space.put("q", "1", "o")
    answer = space.append("q", NewEntry("1", "o"), NewEntry("2", "p"))
    assert [result.outcome for result in answer.results] == ["same", "new"]


def test_an_immutable_queue_takes_an_expired_object_again(space: Space) -> None:
    space.configure("q", mutable=False)
    space.append("q", NewEntry("1", "o", ttl_ms=1))
    space.clock.advance(1)
    assert space.append("q", NewEntry("2", "o")).results[0].outcome == "new"


def test_one_call_names_an_object_once(space: Space) -> None:
    with pytest.raises(DuplicateId, match="object o"):
        turn(space, SpaceShard.append, "q", [NewEntry("1", "o"), NewEntry("2", "p"), NewEntry("3", "o")])
    assert space.read("q").queue_id is None


def test_a_refused_first_append_leaves_no_queue(space: Space) -> None:
    with pytest.raises(VersionAhead):
        space.append("q", NewEntry("1", "o", if_version=version(AHEAD_MAX + 1, "a")))
    assert space.call(SpaceShard.queues, "", 10).queues == []


# -- the queue --------------------------------------------------------------------------------------------


def test_append_makes_a_log_queue_with_the_name_asked_for(space: Space) -> None:
    space.put("orders", "1")
    info = space.call(SpaceShard.stats, "orders")
    assert ids.is_ulid(info.id)
    assert (info.config.name, info.config.kind, info.config.mutable) == ("orders", "log", True)
    assert space.call(SpaceShard.stats, info.id) == info


def test_append_makes_a_log_queue_with_the_id_asked_for(space: Space) -> None:
    space.put(ULID, "1")
    info = space.call(SpaceShard.stats, ULID)
    assert (info.id, info.config.name) == (ULID, None)


def test_ids_are_compared_byte_for_byte(space: Space) -> None:
    space.put(ULID, "1")
    space.put(ULID.lower(), "2")
    assert (space.data(ULID), space.data(ULID.lower())) == (["1"], ["2"])


@pytest.mark.parametrize("name", ["order-events", "Order_Events", "orderEvents"])
def test_a_name_that_counts_as_the_same_is_taken(space: Space, name: str) -> None:
    space.put("order_events", "1")
    with pytest.raises(NameTaken):
        turn(space, SpaceShard.append, name, [NewEntry("1")])
    assert space.read(name).queue_id is None


def test_who_waits_for_the_queue_hears_of_it_by_id_and_by_name(space: Space) -> None:
    def heard() -> list[Hashable]:
        return [one for one in space.events if one != CHANGED]

    space.put("q", "1", "o")
    queue_id = space.call(SpaceShard.stats, "q").id
    assert heard() == [queue_id, "q"]
    space.put("q", "1", "o")  # nothing new
    assert heard() == [queue_id, "q"]
    space.put("q", "2", "o")
    space.put(OTHER, "2")
    assert heard() == [queue_id, "q", queue_id, "q", OTHER]


def test_an_append_of_nothing_changes_nothing(space: Space) -> None:
    cursor = space.fill("q", 2).cursor
    etag = space.etag("q")
    answer = space.append("q")
    assert (answer.results, answer.cursor, space.etag("q")) == ([], cursor, etag)
