"""What random turns change, recorded as patchsets, gives the same rows when replayed on another file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from edgequeues.core.backoff import Backoff
from edgequeues.core.errors import EdgeQueuesError
from edgequeues.inbound import Inbound
from edgequeues.models import ConsumerConfig, NewEntry, Pull, QueueConfig, Retry
from edgequeues.models_letters import LetterFilter
from edgequeues.space import check
from edgequeues.space.dead_verbs import ReplayAsk
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.values import Arriving
from shards import journal
from shards.testing import Direct, FakeClock
from tests.space.specs import spec

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


JOBS = st.sampled_from(["jobs", "jobs", "lined", "lined", "alpha", "typed"])
WORKED = st.sampled_from(
    [
        "jobs",
        "jobs",
        "lined",
        "lined",
        "alpha",
        "jobs-dlq",
        "lined-dlq",
        "graves",
        "typed",
        "typed-dlq",
        "chats",
    ]
)
CONSUMERS = st.sampled_from(["default", "other"])
OBJECTS = [f"o{number}" for number in range(4)]
NUMBERS = st.integers(0, 99)  # of a lease among those given
MESSAGES = st.builds(
    NewEntry,
    data=st.sampled_from(["1", "[2]", '{"id":3}']),
    object_id=st.sampled_from([None, None, *OBJECTS]),
    ttl_ms=st.sampled_from([None, None, None, 1_000]),
    key=st.one_of(st.none(), st.sampled_from("ab")),
    priority=st.sampled_from([4, 4, 4, 9]),
    delay_ms=st.sampled_from([None, None, None, 700]),
    idempotency_key=st.sampled_from([None, None, None, "x", "y"]),
)
RULES = st.builds(
    ConsumerConfig,
    ordering=st.sampled_from(["unordered", "fifo", "per_key"]),
    attempts_max=st.sampled_from([1, 2, None]),
    backoff=st.builds(Backoff, initial_ms=st.sampled_from([0, 500]), jitter=st.sampled_from([0.0, 0.5])),
    lapse_delay_ms=st.sampled_from([0, 300]),
    starvation_after_ms=st.sampled_from([None, 200]),
    dead_letters=st.sampled_from([None, None, "", "graves"]),
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "on_ack": st.sampled_from(["keep", "delete"]),
        "retain_acked_ms": st.sampled_from([0, 1_000]),
        "delay_ms": st.sampled_from([0, 200]),
        "depth_max": st.sampled_from([None, 3]),
        "paused": st.booleans(),
        "mutable": st.booleans(),
        "max_age_ms": st.sampled_from([None, 3_000]),
        "max_entries": st.sampled_from([None, 3]),
    },
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        name: st.fixed_dictionaries(
            {},
            optional={
                "message_type": st.sampled_from([{"id": {"type": "int"}}, {"id": {"optional": True}}]),
                "on_invalid": st.sampled_from(["reject", "dead_letter"]),
                "ordering": st.sampled_from(["unordered", "fifo"]),
                "filter": st.just({"var": {"input": {"field": "id"}}}),
                "idempotency_key": st.just({"var": {"input": {"field": "id"}}}),
                "retention": st.sampled_from([{}, {"max_age_seconds": 2}, {"max_depth": 2}]),
            },
        )
        for name in ("typed", "jobs")
    },
)
ARRIVING = st.builds(
    Arriving,
    st.builds(NewEntry, data=st.sampled_from(['{"id":1}', '{"id":2}', '{"id":"x"}', "[2]"])),
    st.lists(st.sampled_from(["k", "l", "m"]), max_size=2, unique=True).map(tuple),
    st.sampled_from([None, None, None, "not what it says"]),
)
GOVERNED = st.one_of(
    st.tuples(st.just("apply"), SPECS),
    st.tuples(
        st.just("ingest"),
        st.sampled_from(["typed", "typed", "jobs"]),
        st.lists(ARRIVING, min_size=1, max_size=3),
    ),
)
PUSHES = st.tuples(st.just("push"), JOBS, st.lists(MESSAGES, min_size=1, max_size=4))
PULLS = st.tuples(st.just("pull"), WORKED, st.just(None), st.integers(1, 4), st.integers(1, 900))
ANSWERS = st.one_of(
    st.tuples(st.just("ack"), st.lists(NUMBERS, min_size=1, max_size=3)),
    st.tuples(st.just("retry"), NUMBERS, st.one_of(st.none(), st.integers(0, 500)), st.booleans()),
    st.tuples(st.just("release"), NUMBERS),
    st.tuples(st.just("extend"), NUMBERS, st.integers(1, 2_000)),
)
RARER = st.one_of(
    st.tuples(st.just("pull"), WORKED, CONSUMERS, st.integers(1, 4), st.integers(1, 900)),
    st.tuples(st.just("skip"), WORKED, CONSUMERS, st.sampled_from(OBJECTS)),
    st.tuples(st.just("consume"), WORKED, CONSUMERS, RULES, st.sampled_from(["new", "beginning"])),
    st.tuples(st.just("dismiss"), WORKED, CONSUMERS),
    st.tuples(st.just("settings"), WORKED, SETTINGS),
    st.tuples(st.just("purge"), WORKED),
    st.tuples(st.just("remove"), WORKED),
    TURNS,
)
GRAVES = st.sampled_from(["jobs-dlq", "graves", "typed-dlq"])
REPLAYS = st.one_of(
    st.tuples(st.just("replay"), GRAVES, st.one_of(st.none(), st.just(2.0))),
    st.tuples(st.just("replay_some"), GRAVES, st.integers(1, 3), st.one_of(st.none(), st.just(2.0))),
    st.tuples(st.just("purge_letters"), GRAVES, st.booleans()),
)
SESSIONS = st.sampled_from("ab")
INBOUND = st.builds(
    Inbound,
    session_id=SESSIONS,
    origin=st.just("telegram"),
    content=st.sampled_from(["", "hi"]),
    source_message_id=st.sampled_from([None, None, "17", "18"]),
)
CHATS = st.one_of(
    st.tuples(st.just("receive"), st.just("chats"), st.lists(INBOUND, min_size=1, max_size=3)),
    st.tuples(st.just("pull"), st.just("chats"), st.just(None), st.integers(1, 4), st.integers(1, 900)),
    st.tuples(st.sampled_from(["close_session", "skip_head", "hurry_head"]), st.just("chats"), SESSIONS),
    st.tuples(st.just("reclaim"), st.just("chats"), st.sampled_from(["w", "v"])),
    st.tuples(st.just("clean"), st.just("chats"), st.integers(0, 3_000)),
)
WAITS = st.one_of(st.tuples(st.just("alarm")), st.tuples(st.just("wait"), st.integers(-1_000, 2_000)))
WORK_TURNS = st.sampled_from(
    [PUSHES, PUSHES, PULLS, PULLS, ANSWERS, ANSWERS, WAITS, REPLAYS, RARER, GOVERNED, CHATS, CHATS]
).flatmap(
    lambda turns: turns  # not `one_of`, which would give every verb the same chance
)


class Turns:
    """Turns on a space; it knows the leases that were given, and the queues they are of."""

    def __init__(self, space: Direct[SpaceShard]) -> None:
        self.space = space
        self.leases: list[tuple[str, str]] = []

    def begin(self) -> None:
        """Make the queues to start with."""
        impatient = ConsumerConfig(attempts_max=2, backoff=Backoff(initial_ms=100))
        for name in ("graves", "jobs", "lined"):
            self.space.call(
                SpaceShard.configure, name, QueueConfig(kind="work", on_ack="delete", mutable=False)
            )
        self.space.call(SpaceShard.consume, "jobs", "default", impatient)
        self.space.call(SpaceShard.dismiss, "lined", "default")
        rules = ConsumerConfig(ordering="per_key", attempts_max=2, dead_letters="graves")
        self.space.call(SpaceShard.consume, "lined", "default", rules)

    def run(self, turn: tuple[object, ...]) -> None:
        """Do one turn; one that is refused changes nothing."""
        with suppress(EdgeQueuesError):
            if turn[0] in ("ack", "retry", "release", "extend"):
                self.answer(turn)
            elif turn[0] in ("append", "delete", "clear", "configure", "rename", "alarm", "wait"):
                run(self.space, turn)
            elif turn[0] == "apply":
                self.space.call(SpaceShard.apply, spec("shop", **turn[1]))  # type: ignore[arg-type]
            elif turn[0] == "ingest":
                self.space.call(SpaceShard.ingest, *turn[1:])  # type: ignore[arg-type]
            elif turn[0] == "clean":
                self.space.call(SpaceShard.clean, turn[1], self.space.clock.now_ms() - turn[2])  # type: ignore[arg-type, operator]
            elif turn[0] in ("receive", "close_session", "skip_head", "hurry_head", "reclaim"):
                self.space.call(getattr(SpaceShard, turn[0]), *turn[1:])
            else:
                self.work(turn)

    def answer(self, turn: tuple[object, ...]) -> None:
        """Say what became of leases."""
        if not self.leases:
            return
        match turn:
            case ("ack", list(numbers)):
                queue, _ = self.lease(numbers[0])
                leases = [self.lease(number)[1] for number in numbers]
                self.space.call(SpaceShard.ack, queue, leases, results={leases[0]: '{"done":true}'})
            case ("retry", int(number), None | int() as delay_ms, bool(permanent)):
                queue, lease = self.lease(number)
                self.space.call(SpaceShard.retry, queue, [Retry(lease, delay_ms, "no", permanent)])
            case ("release", int(number)):
                queue, lease = self.lease(number)
                self.space.call(SpaceShard.release, queue, [lease])
            case ("extend", int(number), int(lease_ms)):
                queue, lease = self.lease(number)
                self.space.call(SpaceShard.extend, queue, [lease], lease_ms)
            case _:
                raise AssertionError(turn)

    def lease(self, number: int) -> tuple[str, str]:
        """One of the newest, with its queue."""
        return self.leases[-1 - number % min(len(self.leases), 8)]

    def work(self, turn: tuple[object, ...]) -> None:
        """All other verbs of work."""
        call = self.space.call
        match turn:
            case ("push", str(queue), list(entries)):
                call(SpaceShard.push, queue, entries)
            case ("pull", str(queue), None | str() as consumer, int(batch), int(lease_ms)):
                given = call(SpaceShard.pull, queue, consumer, Pull(batch, lease_ms, "w"))
                self.leases += [(queue, one.lease) for one in given.messages]
            case ("skip", str(queue), str(name), str(object_id)):
                call(SpaceShard.skip, queue, name, object_id)
            case ("consume", str(queue), str(name), ConsumerConfig() as rules, "new" | "beginning" as start):
                call(SpaceShard.consume, queue, name, rules, start)
            case ("dismiss", str(queue), str(name)):
                call(SpaceShard.dismiss, queue, name)
            case ("settings", str(queue), dict(changes)):
                call(SpaceShard.reconfigure, queue, changes)
            case ("replay", str(queue), None | float() as per_second):
                dead = call(SpaceShard.dead_letters, queue, 0, 10)
                call(SpaceShard.replay, queue, [entry.id for entry, _ in dead], per_second)
            case ("replay_some", str(queue), int(limit), None | float() as per_second):
                call(SpaceShard.replay_some, queue, ReplayAsk(LetterFilter(), limit, per_second))
            case ("purge_letters", str(queue), bool(replayed)):
                call(SpaceShard.purge_letters, queue, LetterFilter(replayed=replayed))
            case ("purge", str(queue)):
                call(SpaceShard.purge, queue)
            case ("remove", str(queue)):
                call(SpaceShard.remove, queue)
            case _:
                raise AssertionError(turn)


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


def drain(space: Direct[SpaceShard]) -> None:
    """Ack whatever any consumer has to do; what waits for something gets it in time."""
    for info in space.call(SpaceShard.queues, "", 100).queues:
        space.call(SpaceShard.reconfigure, info.id, {"paused": False})
        for consumer in space.call(SpaceShard.consumers, info.id):
            for step in range(100):
                run(space, ("wait", 100 * step * step))
                run(space, ("alarm",))
                pulled = space.call(SpaceShard.pull, info.id, consumer.name, Pull(100))
                if pulled.messages:
                    space.call(SpaceShard.ack, info.id, [one.lease for one in pulled.messages])
                elif not pulled.backlog:
                    break
            else:
                raise AssertionError(f"{consumer.name} of {info.config.name} is stuck: {pulled}")


def rows(db: apsw.Connection) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables but those that belong to one file only."""
    names = [
        str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    ]
    replicated = [name for name in names if name not in journal.LOCAL_TABLES]
    return {name: sorted(db.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr) for name in replicated}


def copied(original: apsw.Connection) -> Direct[SpaceShard]:
    """Another file of the same store."""
    copy = Direct(SpaceShard)
    with copy.db.backup("main", original, "main") as backup:
        backup.step()
    return copy


@contextmanager
def recorded(original: Direct[SpaceShard], copy: Direct[SpaceShard]) -> Iterator[None]:
    """Replay on the copy what is changed within, as the runtime does with a batch."""
    session = journal.start_recording(original.db)
    yield
    patchset = session.patchset()
    session.close()
    if patchset:
        journal.replay_effects(copy.db, patchset)


@settings(max_examples=150, deadline=None)
@given(batches=st.lists(st.lists(TURNS, min_size=1, max_size=5), max_size=12))
def test_replaying_patchsets_gives_equal_rows(batches: list[list[tuple[object, ...]]]) -> None:
    """One patchset a batch of turns."""
    original = Direct(SpaceShard)
    copy = copied(original.db)
    for turns in batches:
        with recorded(original, copy):
            for turn in turns:
                run(original, turn)
    assert rows(copy.db) == rows(original.db)


@settings(max_examples=100, deadline=None)
@given(batches=st.lists(st.lists(WORK_TURNS, min_size=4, max_size=8), min_size=6, max_size=10))
def test_work_replays_and_has_no_problems(batches: list[list[tuple[object, ...]]]) -> None:
    """One patchset a batch of turns; `check` reads what they left, and all of it can be finished."""
    original = Direct(SpaceShard)
    copy = copied(original.db)
    turns = Turns(original)
    with recorded(original, copy):
        turns.begin()
    for batch in batches:
        with recorded(original, copy):
            for turn in batch:
                turns.run(turn)
    assert rows(copy.db) == rows(original.db)
    assert check.problems(original.db) == []
    drain(original)
    assert check.problems(original.db) == []
