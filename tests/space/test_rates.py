"""The pace of a queue whose messages the space works: never faster, never stuck, and waiting uses up no attempt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgequeues.models import NewEntry
from edgequeues.space.shard import SpaceShard
from edgequeues.spec import ir

from .jobs import Dead, Jobs
from .specs import Shop, field, spec
from .world import Space, SpaceFile

CREATE = {
    "to": "command",
    "entity_type": "Done",
    "command": "CreateDone",
    "input_map": {"entity_id": field("id")},
}
KEY = {"key": field("k")}


class Paced:
    """A queue `jobs` that is worked here at a pace. Times are ms since this was made."""

    def __init__(self, space: Space, rate: Mapping[str, Any], **more: Any) -> None:
        self.space = space
        self.shop = Shop(space)
        self.jobs = Jobs(space)
        self.began_ms = space.clock.now_ms()
        self.count = 0
        self.pace(rate, **more)

    def pace(self, rate: Mapping[str, Any] | None, **more: Any) -> None:
        rated = {} if rate is None else {"rate_limit": rate}
        self.shop.apply(jobs={"map_to": CREATE, **rated, **more})

    def push(self, *keys: str | None, **options: object) -> None:
        """A message for each key, named by the key and its number."""
        entries = []
        for key in keys:
            self.count += 1
            entries.append(
                NewEntry(json.dumps({"id": f"{key}{self.count}", "k": key}), **options)  # type: ignore[arg-type]
            )
        for first in range(0, len(entries), 500):
            self.space.call(SpaceShard.push, "jobs", entries[first : first + 500])

    def run(self, until_ms: int) -> None:
        """Ring each alarm when it is due."""
        alarms = 0
        while (due := self.space.shard.get_alarm()) is not None and due - self.began_ms <= until_ms:
            self.space.clock.advance(max(due - self.space.clock.now_ms(), 0))
            self.space.run_alarm()
            alarms += 1
            assert alarms < 20_000, "the alarm goes off again and again"
        self.jobs.at(until_ms)

    @property
    def done(self) -> list[tuple[int, str]]:
        """When each message was worked, in that order."""
        rows = self.space.db.execute(
            "SELECT executed_ts, entity_id FROM command_receipts ORDER BY receipt_id"
        )
        return [(int(str(at)) - self.began_ms, str(name)) for at, name in rows.fetchall()]

    @property
    def times(self) -> list[int]:
        return [at for at, _ in self.done]


def test_messages_are_worked_at_the_pace_and_not_faster(space: Space) -> None:
    paced = Paced(space, {"per_second": 2, "burst": 1})
    paced.push(*["a"] * 5)
    paced.run(10_000)
    assert paced.times == [0, 500, 1_000, 1_500, 2_000]


def test_a_burst_goes_at_once_and_comes_again_after_a_pause(space: Space) -> None:
    paced = Paced(space, {"per_second": 2, "burst": 3})
    paced.push(*["a"] * 5)
    paced.run(10_000)
    assert paced.times == [0, 0, 0, 500, 1_000]
    paced.push(*["a"] * 4)
    paced.run(20_000)
    assert paced.times[5:] == [10_000, 10_000, 10_000, 10_500]


def test_without_a_burst_a_tenth_of_a_second_goes_at_once(space: Space) -> None:
    paced = Paced(space, {"per_second": 100})
    paced.push(*["a"] * 30)
    paced.run(10_000)
    assert paced.times == [0] * 10 + [10 * number for number in range(1, 21)]


def test_a_pace_of_more_than_one_a_millisecond_is_kept(space: Space) -> None:
    paced = Paced(space, {"per_second": 10_000, "burst": 1})
    paced.push(*["a"] * 50)
    paced.run(10_000)
    assert len(paced.times) == 50
    assert all(paced.times.count(at) <= 11 for at in paced.times)


def test_each_value_of_the_key_has_a_pace_of_its_own(space: Space) -> None:
    paced = Paced(space, {"per_second": 1, "burst": 1, **KEY})
    paced.push("a", "a", "a", "b", "c", "b")
    paced.run(10_000)
    assert paced.done == [
        (0, "a1"), (0, "b4"), (0, "c5"), (1_000, "a2"), (1_000, "b6"), (2_000, "a3"),
    ]  # fmt: skip


def test_a_long_line_of_one_key_holds_no_other_up(space: Space) -> None:
    paced = Paced(space, {"per_second": 1, "burst": 1, **KEY})
    paced.push(*["a"] * 2_000)
    paced.run(3_500)
    paced.push("b", priority=0)
    paced.run(4_500)
    assert [one for one in paced.done if one[1].startswith("b")] == [(3_500, "b2001")]
    assert [name for _, name in paced.done if name.startswith("a")] == [
        f"a{number}" for number in range(1, 6)
    ]


def test_a_message_that_is_put_off_uses_up_no_attempt(space: Space) -> None:
    paced = Paced(space, {"per_second": 1, "burst": 1, **KEY}, delivery={"max_attempts": 1})
    paced.push("a", "a", "a")
    paced.run(100)
    states = paced.jobs.states
    assert states == {"scheduled": 2}
    paced.run(5_000)
    assert len(paced.done) == 3
    assert Dead(space, "jobs-dlq").letters() == []


def test_messages_are_put_off_one_behind_the_other_and_not_looked_at_between(space: Space) -> None:
    paced = Paced(space, {"per_second": 1, "burst": 1, **KEY})
    paced.push(*["a"] * 20)
    paced.run(100)
    dues = space.db.execute("SELECT due_ts FROM deliveries ORDER BY due_ts").fetchall()
    assert [int(str(due)) - paced.began_ms for (due,) in dues] == [1_000 * number for number in range(1, 20)]


def test_another_queue_goes_on(space: Space) -> None:
    Shop(space)
    slow = {"map_to": CREATE, "rate_limit": {"per_second": 0.1, "burst": 1}}
    paced = Paced(space, {"per_second": 1})
    paced.shop.apply(jobs=slow, others={"map_to": CREATE})
    paced.push("a", "a")
    entries = [NewEntry(json.dumps({"id": f"o{number}"})) for number in range(5)]
    space.call(SpaceShard.push, "others", entries)
    paced.run(5_000)
    assert sorted(name for _, name in paced.done) == ["a1", "o0", "o1", "o2", "o3", "o4"]
    paced.run(10_000)
    assert paced.done[-1] == (10_000, "a2")


def test_messages_of_one_line_stay_in_order_at_their_pace(space: Space) -> None:
    paced = Paced(space, {"per_second": 1, "burst": 1, **KEY}, ordering="per_key", ordering_key=field("k"))
    paced.push("a", "b", "a", "b")
    paced.run(10_000)
    assert paced.done == [(0, "a1"), (0, "b2"), (1_000, "a3"), (1_000, "b4")]


@pytest.mark.parametrize("key", [{}, KEY])
def test_a_restart_forgets_nothing_of_the_pace(space_file: SpaceFile, key: dict[str, Any]) -> None:
    paced = Paced(space_file, {"per_second": 1, "burst": 2, **key})
    paced.push(*["a"] * 4)
    paced.run(100)
    space_file.reopen()
    paced.run(10_000)
    assert paced.times == [0, 0, 1_000, 2_000]


@pytest.mark.parametrize("key", [{}, KEY])
def test_what_expires_while_it_waits_keeps_nobody_busy(space: Space, key: dict[str, Any]) -> None:
    paced = Paced(space, {"per_second": 0.01, "burst": 1, **key})
    paced.push(*["a"] * 30, ttl_ms=5_000)
    paced.run(50_000)
    assert paced.times == [0]
    assert space.count("jobs") == 0


def test_a_failure_is_tried_again_at_the_pace(space: Space) -> None:
    paced = Paced(
        space, {"per_second": 1, "burst": 1, **KEY}, delivery={"initial_backoff_ms": 10, "max_attempts": 3}
    )
    update = CREATE | {"command": "UpdateDone"}
    paced.shop.apply(
        jobs={
            "map_to": update,
            "rate_limit": {"per_second": 1, "burst": 1, **KEY},
            "delivery": {"initial_backoff_ms": 10, "max_attempts": 3},
        }
    )
    paced.push("a")
    paced.run(1_900)
    assert Dead(space, "jobs-dlq").letters() == []  # the third attempt is not due yet
    assert paced.jobs.info.total_attempts == 2
    paced.run(2_000)
    assert len(Dead(space, "jobs-dlq").letters()) == 1


def test_another_pace_counts_from_now_and_the_same_one_goes_on(space: Space) -> None:
    paced = Paced(space, {"per_second": 0.01, "burst": 1})
    paced.push(*["a"] * 3)
    paced.run(1_000)
    paced.pace({"per_second": 0.01, "burst": 1})
    paced.run(2_000)
    assert paced.times == [0]
    paced.pace({"per_second": 1, "burst": 1})
    paced.run(5_000)
    assert paced.times == [0, 2_000, 3_000]
    paced.push("a", "a")
    paced.pace(None)
    paced.run(5_000)
    assert paced.times[3:] == [5_000, 5_000]


def test_another_pace_counts_within_a_minute_for_what_was_put_off(space: Space) -> None:
    paced = Paced(space, {"per_second": 0.01, "burst": 1, **KEY})
    paced.push(*["a"] * 5)
    paced.run(1_000)
    paced.pace({"per_second": 100, "burst": 5, **KEY})
    paced.run(61_000)
    assert len(paced.done) == 5


def test_keys_that_say_nothing_any_more_are_forgotten(space: Space) -> None:
    paced = Paced(space, {"per_second": 0.02, "burst": 1, **KEY})
    paced.push(*[f"k{number}" for number in range(50)])
    paced.run(40_000)
    assert space.db.execute("SELECT count(*) FROM rates").get == 50
    paced.run(200_000)
    assert space.db.execute("SELECT count(*) FROM rates").get == 0


def test_messages_without_a_key_share_a_pace_and_long_keys_are_told_apart(space: Space) -> None:
    paced = Paced(space, {"per_second": 1, "burst": 1, **KEY})
    paced.push(None, None, "x" * 200 + "1", "x" * 200 + "2")
    paced.run(500)
    assert len(paced.done) == 3
    keys = space.db.execute("SELECT length(key) FROM rates ORDER BY 1").fetchall()
    assert keys == [(0,), (64,), (64,)]


def test_messages_that_others_pull_have_no_pace(space: Space) -> None:
    space.call(SpaceShard.apply, spec("shop", jobs={"rate_limit": {"per_second": 0.1, "burst": 1}}))
    jobs = Jobs(space)
    jobs.push("1", "2", "3")
    assert len(jobs.pull(5)) == 3


@pytest.mark.parametrize("key", [{}, KEY])
def test_commands_that_run_outside_are_handed_out_at_the_pace(space: Space, key: dict[str, Any]) -> None:
    rate = {"per_second": 1, "burst": 2, **key}
    text = {
        "version": 0,
        "app": "shop",
        "queues": {"jobs": {"map_to": CREATE | {"command": "Ship"}, "rate_limit": rate}},
        "commands": {"Done.Ship": {"python": "shop:ship"}},
    }
    space.call(SpaceShard.apply, ir.decode(json.dumps(text).encode()))
    jobs = Jobs(space)
    jobs.push(*['{"id":"i","k":"a"}'] * 4)
    taken = []
    for ms in (0, 999, 1_000, 1_999, 2_000):
        jobs.at(ms)
        jobs.ring()
        handed = space.call(SpaceShard.take_calls, "python", 10)
        assert not handed.more  # or it would be asked for again and again
        taken.append(len(handed.tasks))
    assert taken == [2, 0, 1, 0, 1]


def worst(times: Sequence[int], step_ms: float, burst: int) -> bool:
    """Was there ever a stretch of time in which more went than the pace allows?"""
    return any(
        last - first + 1 > burst + (times[last] - times[first]) / step_ms + 1e-9
        for first in range(len(times))
        for last in range(first, len(times))
    )


@settings(max_examples=40)
@given(
    st.sampled_from([0.5, 2, 7, 40]),
    st.integers(1, 4),
    st.booleans(),
    st.lists(
        st.tuples(st.integers(0, 1_500), st.lists(st.sampled_from("abc"), min_size=1, max_size=6)), max_size=5
    ),
)
@example(per_second=7, burst=1, keyed=False, pushes=[(0, ["a"] * 3), (0, ["a"] * 6)])
@example(per_second=7, burst=1, keyed=True, pushes=[(0, ["a"] * 2), (0, ["a"] * 6)])
@example(per_second=7, burst=1, keyed=True, pushes=[(0, ["a"] * 4), (0, ["a"] * 5), (0, ["a"] * 6)])
def test_no_stretch_of_time_has_more_than_the_pace_and_all_are_worked_as_soon_as_that_allows(
    per_second: float, burst: int, keyed: bool, pushes: list[tuple[int, list[str]]]
) -> None:
    space = Space()
    paced = Paced(space, {"per_second": per_second, "burst": burst, **(KEY if keyed else {})})
    at, came = 0, list[tuple[int, str]]()
    for pause_ms, keys in pushes:
        at += pause_ms
        paced.run(at)
        paced.push(*keys)
        came += [(at, key if keyed else "") for key in keys]
    paced.run(at + 120_000)
    assert len(paced.done) == len(came)
    for key in {key for _, key in came}:
        times = [when for when, name in paced.done if not keyed or name.startswith(key)]
        assert not worst(times, 1_000 / per_second, burst)
        expected, arrival = list[float](), 0.0
        for when in [when for when, one in came if one == key]:
            goes = max(when, arrival - (burst - 1) * 1_000 / per_second)
            expected.append(goes)
            arrival = max(arrival, goes) + 1_000 / per_second
        late = [found - wanted for found, wanted in zip(times, expected, strict=True)]
        # Alarms go by whole ms, so each message may be up to one later, and those behind it with it.
        assert all(-1.01 <= one <= 1.01 * number for number, one in enumerate(late, 1))
    space.db.close()
