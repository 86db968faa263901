"""Queues: making them, their settings, the list, and the tag that tells whether anything changed."""

from __future__ import annotations

import pytest

from edgequeues.core.errors import ConfigConflict, InvalidRequest, NameTaken, QueueNotFound
from edgequeues.models import NewEntry, QueueConfig
from edgequeues.space.rows import QUEUES_CACHED
from edgequeues.space.shard import SpaceShard

from .world import OTHER, ULID, Space, SpaceFile, turn

FULL = QueueConfig(name="jobs", max_age_ms=5_000, max_entries=10, mutable=False)


# -- the whole configuration ------------------------------------------------------------------------------


def test_configure_makes_the_queue_with_its_settings(space: Space) -> None:
    info = space.call(SpaceShard.configure, "jobs", FULL)
    assert (info.config, info.entries, info.bytes, info.oldest) == (FULL, 0, 0, None)
    assert info.created == space.clock.now_ms()
    assert space.call(SpaceShard.stats, "jobs") == info


def test_configure_makes_a_queue_by_id_with_a_name(space: Space) -> None:
    info = space.call(SpaceShard.configure, ULID, FULL)
    assert (info.id, info.config.name) == (ULID, "jobs")
    assert space.call(SpaceShard.stats, "jobs").id == ULID


def test_configure_replaces_every_setting(space: Space) -> None:
    space.call(SpaceShard.configure, ULID, FULL)
    info = space.call(SpaceShard.configure, ULID, QueueConfig())
    assert info.config == QueueConfig()
    with pytest.raises(QueueNotFound):
        space.call(SpaceShard.stats, "jobs")


def test_a_queue_asked_by_its_name_keeps_it_where_none_is_given(space: Space) -> None:
    space.call(SpaceShard.configure, "jobs", QueueConfig())
    assert space.call(SpaceShard.configure, "jobs", QueueConfig(mutable=False)).config.name == "jobs"


def test_configure_keeps_the_entries(space: Space) -> None:
    space.fill("jobs", 3)
    info = space.call(SpaceShard.configure, "jobs", QueueConfig(max_entries=10))
    assert (info.entries, info.bytes) == (3, 3)
    assert len(space.data("jobs")) == 3


def test_a_queue_can_be_renamed_and_its_old_name_used_again(space: Space) -> None:
    space.fill("old", 2)
    space.call(SpaceShard.configure, "old", QueueConfig(name="new"))
    assert space.data("new") == ["0", "1"]
    assert space.read("old").queue_id is None
    space.put("old", "7")
    assert (space.data("old"), space.data("new")) == (["7"], ["0", "1"])


def test_a_queue_may_change_how_its_name_is_written(space: Space) -> None:
    space.fill("order_events", 1)
    assert (
        space.call(SpaceShard.reconfigure, "order_events", {"name": "OrderEvents"}).config.name
        == "OrderEvents"
    )
    assert space.data("OrderEvents") == ["0"]


def test_a_name_of_another_queue_is_taken(space: Space) -> None:
    space.put("jobs", "1")
    space.put(ULID, "1")
    for queue in (ULID, OTHER):
        with pytest.raises(NameTaken):
            turn(space, SpaceShard.configure, queue, QueueConfig(name="Jobs"))


def test_a_queue_is_not_made_under_another_name_than_it_is_asked_by(space: Space) -> None:
    with pytest.raises(InvalidRequest, match="name"):
        turn(space, SpaceShard.configure, "jobs", QueueConfig(name="other"))


@pytest.mark.parametrize("name", [OTHER, OTHER.lower(), "0" * 32])
def test_a_name_that_reads_as_an_id_is_refused(space: Space, name: str) -> None:
    with pytest.raises(InvalidRequest, match="name"):
        turn(space, SpaceShard.configure, ULID, QueueConfig(name=name))


def test_a_work_queue_is_born_with_a_consumer(space: Space) -> None:
    turn(space, SpaceShard.configure, "jobs", QueueConfig(kind="work"))
    assert [one.name for one in space.call(SpaceShard.consumers, "jobs")] == ["default"]


def test_the_kind_is_fixed(space: Space) -> None:
    space.put("jobs", "1")
    with pytest.raises(ConfigConflict, match="kind"):
        turn(space, SpaceShard.configure, "jobs", QueueConfig(kind="work"))
    with pytest.raises(ConfigConflict, match="kind"):
        turn(space, SpaceShard.reconfigure, "jobs", {"kind": "work"})


def test_the_same_configuration_again_changes_nothing(space: Space) -> None:
    space.call(SpaceShard.configure, "jobs", FULL)
    before = space.etag("jobs")
    space.call(SpaceShard.configure, "jobs", FULL)
    space.call(SpaceShard.reconfigure, "jobs", {})
    assert space.etag("jobs") == before


def test_a_queue_with_entries_may_become_immutable(space: Space) -> None:
    space.put("jobs", "1", "o")
    info = space.call(SpaceShard.reconfigure, "jobs", {"mutable": False})
    assert info.config.mutable is False
    assert space.call(SpaceShard.stats, "jobs").config.mutable is False


# -- some settings ----------------------------------------------------------------------------------------


def test_reconfigure_changes_only_what_is_named(space: Space) -> None:
    space.call(SpaceShard.configure, "jobs", FULL)
    info = space.call(SpaceShard.reconfigure, "jobs", {"max_entries": None, "mutable": True})
    assert info.config == QueueConfig(name="jobs", max_age_ms=5_000)


def test_reconfigure_can_take_the_name_away(space: Space) -> None:
    info = space.call(SpaceShard.configure, "jobs", FULL)
    space.call(SpaceShard.reconfigure, "jobs", {"name": None})
    assert space.call(SpaceShard.stats, info.id).config.name is None
    assert space.read("jobs").queue_id is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_age_ms", 0),
        ("max_age_ms", "5"),
        ("max_entries", -1),
        ("max_entries", 1.5),
        ("mutable", "yes"),
        ("mutable", None),
        ("name", "no spaces"),
        ("name", "0" * 32),
        ("kind", "heap"),
        ("colour", "red"),
    ],
)
def test_a_bad_setting_is_refused_by_name(space: Space, field: str, value: object) -> None:
    space.call(SpaceShard.configure, "jobs", FULL)
    with pytest.raises(InvalidRequest, match=field):
        turn(space, SpaceShard.reconfigure, "jobs", {"max_entries": 3, field: value})


def test_reconfigure_needs_the_queue(space: Space) -> None:
    for queue in ("jobs", ULID):
        with pytest.raises(QueueNotFound):
            space.call(SpaceShard.reconfigure, queue, {"mutable": True})


# -- stats and the list -----------------------------------------------------------------------------------


def test_stats_count_entries_and_bytes_in_utf8(space: Space) -> None:
    space.append("jobs", NewEntry('"a"', "a"), NewEntry('"ä😀"', "b"))
    info = space.call(SpaceShard.stats, "jobs")
    assert (info.entries, info.bytes) == (2, 3 + 8)
    space.put("jobs", '"ää"', "a")
    assert space.call(SpaceShard.stats, "jobs").bytes == 8 + 6
    space.call(SpaceShard.delete_ids, "jobs", ["b"])
    assert space.call(SpaceShard.stats, "jobs").bytes == 6


def test_stats_need_the_queue(space: Space) -> None:
    with pytest.raises(QueueNotFound, match="nowhere"):
        space.call(SpaceShard.stats, "nowhere")


def test_the_tail_stays_where_it_was_when_its_entry_goes(space: Space) -> None:
    cursor = space.fill("jobs", 3).cursor
    space.call(SpaceShard.delete_ids, "jobs", ["o2"])
    assert space.call(SpaceShard.stats, "jobs").cursor == cursor


def test_the_list_comes_in_id_order_page_by_page(space: Space) -> None:
    wanted = [f"01HZY3V000000000000000000{n}" for n in range(1, 8)]
    made = [queue + "0" * (26 - len(queue)) for queue in wanted]
    for queue in reversed(made):
        space.put(queue, "1")
    got: list[str] = []
    after: str | None = ""
    while after is not None:
        listed = space.call(SpaceShard.queues, after, 3)
        got += [info.id for info in listed.queues]
        after = listed.resume
    assert got == made
    assert space.call(SpaceShard.queues, "", 7).resume is None
    assert space.call(SpaceShard.queues, "", 10**9).queues[0] == space.call(SpaceShard.stats, made[0])


def test_an_empty_space_lists_nothing(space: Space) -> None:
    listed = space.call(SpaceShard.queues, "", 10)
    assert (listed.queues, listed.resume) == ([], None)


def test_more_queues_than_are_kept_in_memory_are_all_right(space: Space) -> None:
    names = [f"q{n}" for n in range(QUEUES_CACHED // 2 + 10)]  # each is kept by id and by name
    for _ in range(2):
        for name in names:
            space.put(name, "1")
    assert {space.count(name) for name in (names[0], names[-1])} == {2}
    rows = space.db.execute("SELECT DISTINCT entries FROM queues").fetchall()
    assert rows == [(2,)]


# -- the tag ----------------------------------------------------------------------------------------------


def test_the_tag_changes_with_everything_a_reader_could_notice(space: Space) -> None:
    tags = [space.etag("q")]
    for change in (
        lambda: space.put("q", "1", "a"),
        lambda: space.put("q", "2", "a"),
        lambda: space.append("q", NewEntry("1", "b", ttl_ms=10), NewEntry("1", "c", ttl_ms=20)),
        lambda: space.clock.advance(10),
        lambda: space.clock.advance(10),
        lambda: space.put("q", "3", "d"),
        lambda: space.call(SpaceShard.delete_ids, "q", ["a"]),
        lambda: space.configure("q", max_age_ms=100),
        lambda: space.clock.advance(100),
        lambda: space.put("q", "3", "e"),
        lambda: space.call(SpaceShard.delete_range, "q", None, None, None),
    ):
        change()
        tags.append(space.etag("q"))
    assert len(set(tags)) == len(tags)


def test_the_tag_stays_while_nothing_changes(space: Space) -> None:
    space.fill("q", 2)
    space.append("q", NewEntry("1", "b", ttl_ms=100))
    before = space.etag("q")
    space.fill("q", 2)
    space.put("elsewhere", "1")
    space.clock.advance(99)
    space.call(SpaceShard.delete_ids, "q", ["nowhere"])
    assert space.etag("q") == before


def test_queues_have_tags_of_their_own(space: Space) -> None:
    space.fill(ULID, 2)
    space.fill(OTHER, 2)
    assert len({space.etag(ULID), space.etag(OTHER), space.etag("nowhere")}) == 3


def test_the_tag_survives_reopening(space_file: SpaceFile) -> None:
    space_file.fill("q", 2)
    before = space_file.etag("q"), space_file.etag("nowhere")
    space_file.reopen()
    assert (space_file.etag("q"), space_file.etag("nowhere")) == before
