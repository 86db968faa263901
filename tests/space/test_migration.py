"""A space of before queues could be worked: it opens with all it held, can be worked, and survives a cut."""

from __future__ import annotations

import random
import re
from hashlib import sha256
from pathlib import Path

import apsw
import pytest
import trio

from edgequeues.core import cursors
from edgequeues.models import ConsumerConfig, Entry, NewEntry, Pull, QueueConfig, RangeQuery
from edgequeues.models_letters import LetterFilter
from edgequeues.space import check
from edgequeues.space.schema import MIGRATIONS
from edgequeues.space.shard import SpaceShard
from shards import files, migrate
from shards.check import check as check_folder
from shards.clock import Clock
from shards.disk import Disk
from shards.errors import ShardError
from shards.namespace import Namespace, Ref
from shards.shard import Shard
from shards.testing import FaultyDisk, InlineDisk, TrioClock, running

from .world import OTHER, ULID

NAME, STORE = "demo", "01HZY3V0000000000000000009"
STEPS = (  # without comments and layout
    "70937e39e08c5353977ce5cd0f16e5a2ab068184beb179f058d2de4aa4baac0a",
    "817d8caa577db4ba3692d371c66e0526264fa4f778f70f176f069b2c0677a9d8",
    "a734ef97a11a003f962dbece2be6221dbd090a93e15c0e52a7635d37ceecc2e2",
    "701ad3184963de7126de0f1db959aaed5cf88d3ed6d5a2a8a4d3f780b5479e55",
    "6a76a84dae4705b6a018fce3d34122be52b3af3f424429c3aa1e50eae81ce658",
    "33366b7d982d414332aa45d35ccd9f6aa9be0a7c0b13e1fc7aa80b36bc2fa7f7",
)
MAX_AGE_MS = 60_000
CUTS = 60


class Earlier(Shard):
    """The schema of then, with rows as the verbs of then left them."""

    migrations = MIGRATIONS[:1]

    def fill(self) -> None:
        """A log of three entries, of which one was moved, and a queue whose one entry expires by age."""
        now = self.now_ms
        self.db.execute("INSERT INTO store VALUES (1, ?, ?, 6, 6, ?, ?)", (STORE, self.file_id, now, now))
        self.db.executemany(
            "INSERT INTO queues (queue_id, name, name_snake, kind, max_age_ms, mutable, created_ts,"
            " entries, bytes, changes, tail, aged_ts, sweep_ts) VALUES (?, ?, ?, 'log', ?, 1, ?, ?, ?, 5, ?, -1, ?)",
            [
                (ULID, "log", "log", None, now, 3, 13, 6, now + 9_000_000),
                (OTHER, None, None, MAX_AGE_MS, now, 1, 1, 4, now + MAX_AGE_MS),
            ],
        )
        self.db.executemany(
            "INSERT INTO queue_entries (id, version, object_id, queue_id, type_dxn, created_ts, updated_ts,"
            " expires_ts, ordering_key, headers, size, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (1, version(1), "one", ULID, "dxn:type:t", now, now, None, "k", '{"h":"1"}', 7, '{"n":1}'),
                (3, version(3), "moved", ULID, None, now, now, None, "k", None, 3, '"b"'),
                (4, version(4), "aged", OTHER, None, now, now, None, None, None, 1, "4"),
                (6, version(6), "last", ULID, None, now, now, now + 9_000_000, None, None, 3, '"c"'),
            ],
        )
        self.set_alarm(now + MAX_AGE_MS)


class EarlierWork(Shard):
    """The schema of before specs, with a dead letter."""

    migrations = MIGRATIONS[:2]

    def fill(self) -> None:
        """Two work queues; a message of the one is a dead letter in the other."""
        now = self.now_ms
        self.db.execute(
            "INSERT INTO store (id, store_id, file_id, lamport, position, clock_ms, created_ts, wall_ms)"
            " VALUES (1, ?, ?, 4, 4, ?, ?, ?)",
            (STORE, self.file_id, now, now, now),
        )
        self.db.executemany(
            "INSERT INTO queues (queue_id, name, name_snake, kind, mutable, created_ts, entries, bytes, changes,"
            " tail, aged_ts, on_ack) VALUES (?, ?, ?, 'work', 0, ?, ?, ?, 1, ?, -1, 'delete')",
            [(ULID, "jobs", "jobs", now, 0, 0, 2), (OTHER, "graves", "graves", now, 1, 3, 4)],
        )
        self.db.execute(
            "INSERT INTO queue_entries (id, version, object_id, queue_id, created_ts, updated_ts, size, data)"
            " VALUES (4, ?, 'dead', ?, ?, ?, 3, ?)",
            (version(4), OTHER, now, now, '"b"'),
        )
        self.db.execute(
            "INSERT INTO dead_letters (entry_id, queue_id, source_id, source_name, source_entry, object_id, consumer,"
            " reason, error, attempts, first_seen_ts, last_seen_ts, failed_ts, errors)"
            " VALUES (4, ?, ?, 'jobs', 2, 'it', 'default', 'exhausted', 'no', 5, ?, ?, ?, '[]')",
            (OTHER, ULID, now, now, now),
        )


def version(lamport: int) -> str:
    return f"{lamport:016x}@writer"


class World:
    """A folder that an earlier server has left, and a clock that goes on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = TrioClock()
        self.began = self.clock.now_ms()

    async def fill(self) -> None:
        async with running(Earlier, self.folder, disk=InlineDisk(), clock=self.clock) as namespace:
            await namespace.ref(NAME).call(Earlier.fill)

    def held(self) -> list[Entry]:
        """What the log held."""
        at, entry = self.began, Entry
        return [
            entry("one", 1, version(1), "dxn:type:t", at, at, None, "k", '{"h":"1"}', '{"n":1}'),
            entry("moved", 3, version(3), None, at, at, None, "k", None, '"b"'),
            entry("last", 6, version(6), None, at, at, at + 9_000_000, None, None, '"c"'),
        ]

    def problems(self) -> list[str]:
        found = check_folder(self.folder, MIGRATIONS, check.problems)
        return [problem for finding in found for problem in finding.problems]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


@pytest.mark.parametrize(("step", "digest"), list(enumerate(STEPS)))
def test_a_step_that_made_files_is_what_it_was(step: int, digest: str) -> None:
    """What is new is a new step."""
    bare = " ".join(re.sub(r"--.*", "", MIGRATIONS[step]).split())
    assert sha256(bare.encode()).hexdigest() == digest


async def test_dead_letters_are_kept_by_the_step_that_makes_their_table_anew(folder: Path) -> None:
    disk, clock = InlineDisk(), TrioClock()
    async with running(EarlierWork, folder, disk=disk, clock=clock) as namespace:
        await namespace.ref(NAME).call(EarlierWork.fill)
    async with running(SpaceShard, folder, disk=disk, clock=clock) as namespace:
        space = namespace.ref(NAME)
        [(entry, letter)] = await space.call(SpaceShard.dead_letters, "graves", 0, 10)
        assert (entry.id, entry.data, letter.last_error, letter.attempts) == ("dead", '"b"', "no", 5)
        found = await space.call(SpaceShard.preview, "graves", LetterFilter(reason=("exhausted",)), show=1)
        assert found.count == 1
        assert (await space.call(SpaceShard.replay, "graves", ["dead"]))[0].outcome == "replayed"
    assert [f.problems for f in check_folder(folder, MIGRATIONS, check.problems)] == [[]]


async def test_an_earlier_file_opens_with_all_it_held(folder: Path) -> None:
    world = World(folder)
    await world.fill()
    assert world.problems() == ["its schema lacks steps 2 to 6; serving it once adds them"]
    async with running(SpaceShard, folder, disk=InlineDisk(), clock=world.clock) as namespace:
        space = namespace.ref(NAME)
        page = await space.call(SpaceShard.read, "log", RangeQuery())
        assert page.entries == world.held()
        assert (page.store_id, page.queue_id) == (STORE, ULID)
        beyond = RangeQuery(after=cursors.encode(STORE, ULID, 1))  # a cursor of then
        assert (await space.call(SpaceShard.read, "log", beyond)).entries == world.held()[1:]
        log = await space.call(SpaceShard.stats, "log")
        assert (log.config, log.entries, log.bytes) == (QueueConfig(name="log"), 3, 13)
        aged = await space.call(SpaceShard.stats, OTHER)
        assert (aged.config, aged.entries) == (QueueConfig(max_age_ms=MAX_AGE_MS), 1)
    assert world.problems() == []


async def test_what_was_due_then_is_done_now(folder: Path) -> None:
    """The alarm of the earlier file rings, and sweeps what has expired."""
    world = World(folder)
    await world.fill()
    async with running(SpaceShard, folder, disk=InlineDisk(), clock=world.clock):
        await trio.sleep(MAX_AGE_MS / 1_000 + 2)
    rows = apsw.Connection(str(files.path_of(folder, NAME))).execute("SELECT object_id FROM queue_entries")
    assert {name for (name,) in rows.fetchall()} == {"one", "moved", "last"}


async def test_an_earlier_log_can_be_worked(folder: Path) -> None:
    world = World(folder)
    await world.fill()
    async with running(SpaceShard, folder, disk=InlineDisk(), clock=world.clock) as namespace:
        space = namespace.ref(NAME)
        await space.call(
            SpaceShard.consume, "log", "worker", ConsumerConfig(ordering="per_key"), start="beginning"
        )
        await trio.sleep(1)  # filled by the alarm
        one, last = (await space.call(SpaceShard.pull, "log", None, Pull(10, 60_000))).messages
        assert [one.entry, last.entry] == [world.held()[0], world.held()[2]]
    async with running(SpaceShard, folder, disk=InlineDisk(), clock=world.clock) as namespace:
        space = namespace.ref(NAME)
        assert await space.call(SpaceShard.ack, "log", [one.lease, last.lease]) == ["done", "done"]
        [moved] = (await space.call(SpaceShard.pull, "log", None, Pull(10))).messages
        assert moved.entry == world.held()[1]
        [made] = (await space.call(SpaceShard.push, "log", [NewEntry("5", key="k")])).results
        assert made.position > 6
        assert made.version > version(6)
        assert (await space.call(SpaceShard.push, "jobs", [NewEntry("1")])).results[0].outcome == "new"
    assert world.problems() == []


# -- cut short ----------------------------------------------------------------------------------------------


async def opened(namespace: Namespace[SpaceShard]) -> Ref[SpaceShard]:
    """The space, after a turn that changed something."""
    space = namespace.ref(NAME)
    await space.call(SpaceShard.push, "jobs", [NewEntry('"first"')])
    return space


async def work(folder: Path, clock: Clock, disk: Disk) -> list[Entry]:
    """Work a queue of the space; what its log holds."""
    async with running(SpaceShard, folder, disk=disk, clock=clock) as namespace:
        space = await opened(namespace)
        [message] = (await space.call(SpaceShard.pull, "jobs", None, Pull())).messages
        assert await space.call(SpaceShard.ack, "jobs", [message.lease]) == ["done"]
        return (await space.call(SpaceShard.read, "log", RangeQuery())).entries


async def test_an_opening_that_power_was_cut_in_can_be_repeated(folder: Path, tmp_path: Path) -> None:
    """Whatever is left is the earlier schema or the new one, and all rows with it."""
    world, rng, found = World(folder), random.Random(1), set()
    await world.fill()
    disk = FaultyDisk(folder)
    async with running(SpaceShard, folder, disk=disk, clock=world.clock) as namespace:
        await opened(namespace)
        done = disk.now
    for cut in disk.cuts(CUTS, rng, tmp_path / "cut", until=done):
        db = apsw.Connection(str(files.path_of(cut.folder, NAME)))
        found.add(migrate.version(db))
        db.close()
        left = await work(cut.folder, world.clock, InlineDisk())
        assert left == world.held(), f"cut {cut.at} with seed {cut.seed}"
    disk.close()
    last = len(MIGRATIONS)
    assert {1, last} <= found <= set(range(1, last + 1))


async def test_a_step_that_fails_half_way_leaves_the_earlier_schema(folder: Path) -> None:
    class Failing(SpaceShard):
        migrations = (
            MIGRATIONS[0],
            MIGRATIONS[1] + "CREATE TABLE deliveries (it INTEGER PRIMARY KEY) STRICT;",
            *MIGRATIONS[2:],
        )

    world = World(folder)
    await world.fill()
    async with running(Failing, folder, disk=InlineDisk(), clock=world.clock) as namespace:
        with pytest.raises(ShardError):
            await namespace.ref(NAME).call(Failing.stats, "log")
    db = apsw.Connection(str(files.path_of(folder, NAME)))
    assert migrate.version(db) == 1
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'consumers'").get == 0
    db.close()
    assert await work(folder, world.clock, InlineDisk()) == world.held()
    assert world.problems() == []
