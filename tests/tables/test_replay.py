"""What random turns change, recorded as patchsets, gives the same rows when replayed on another file."""

from __future__ import annotations

from contextlib import suppress

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from edgequeues.core.errors import EdgeQueuesError
from edgequeues.models import NewEntry, QueueConfig
from edgequeues.space.shard import SpaceShard
from shards import journal
from shards.testing import Direct, FakeClock

QUEUES = st.sampled_from(["alpha", "beta"])
IDS = [f"01HZY3V000000000000000000{number}" for number in range(2)]  # of queues that pass names to each other
ENTRIES = st.builds(
    NewEntry,
    data=st.sampled_from(["1", "2", '{"a":"\\ud83d"}', '"x\\u0000y"', '"' + "z" * 5000 + '"']),
    object_id=st.one_of(st.none(), st.sampled_from([f"o{number}" for number in range(6)])),
    type=st.one_of(st.none(), st.just("dxn:type:t:0.1.0")),
    ttl_ms=st.one_of(st.none(), st.integers(1, 5_000)),
    if_version=st.one_of(st.none(), st.builds("{:016x}@a".format, st.integers(0, 50))),
)
CONFIGS = st.builds(
    QueueConfig,
    max_age_ms=st.one_of(st.none(), st.integers(1, 5_000)),
    max_entries=st.one_of(st.none(), st.integers(1, 4)),
    mutable=st.booleans(),
)
TURNS = st.one_of(
    st.tuples(st.just("append"), QUEUES, st.lists(ENTRIES, min_size=1, max_size=4)),
    st.tuples(st.just("delete"), QUEUES, st.lists(st.sampled_from([f"o{n}" for n in range(6)]), max_size=3)),
    st.tuples(st.just("clear"), QUEUES),
    st.tuples(st.just("configure"), QUEUES, CONFIGS),
    st.tuples(st.just("rename"), st.sampled_from(IDS), st.sampled_from([None, "x", "y", "z"])),
    st.tuples(st.just("alarm")),
    st.tuples(st.just("wait"), st.integers(-4_000, 4_000)),
)


def run(space: Direct[SpaceShard], turn: tuple[object, ...]) -> None:
    """Do one turn; one that is refused changes nothing."""
    clock = space.clock
    assert isinstance(clock, FakeClock)
    with suppress(EdgeQueuesError):
        match turn:
            case ("append", str(queue), list(entries)):
                space.call(SpaceShard.append, queue, entries)
            case ("delete", str(queue), list(ids)):
                space.call(SpaceShard.delete_ids, queue, ids)
            case ("clear", str(queue)):
                space.call(SpaceShard.delete_range, queue)
            case ("configure", str(queue), QueueConfig() as config):
                space.call(SpaceShard.configure, queue, config)
            case ("rename", str(queue), name):
                space.call(SpaceShard.configure, queue, QueueConfig(name=name))  # type: ignore[arg-type]
            case ("alarm",):
                space.run_alarm()
            case ("wait", int(by_ms)):
                clock.advance(by_ms)


def rows(db: apsw.Connection) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables but those that belong to one file only."""
    names = [
        str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    ]
    replicated = [name for name in names if name not in journal.LOCAL_TABLES]
    return {name: sorted(db.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr) for name in replicated}


@settings(max_examples=150, deadline=None)
@given(batches=st.lists(st.lists(TURNS, min_size=1, max_size=5), max_size=12))
def test_replaying_patchsets_gives_equal_rows(batches: list[list[tuple[object, ...]]]) -> None:
    """One patchset a batch of turns, as the runtime records them."""
    original = Direct(SpaceShard)
    copy = Direct(SpaceShard)
    with copy.db.backup("main", original.db, "main") as backup:  # the same store, still empty
        backup.step()
    for turns in batches:
        session = journal.start_recording(original.db)
        for turn in turns:
            run(original, turn)
        patchset = session.patchset()
        session.close()
        if patchset:
            journal.replay_effects(copy.db, patchset)
    assert rows(copy.db) == rows(original.db)
