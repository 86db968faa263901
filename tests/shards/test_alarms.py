"""Each shard has one alarm. It runs when due, is retried when it raises, and only its shard can lose it."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path

import pytest
import trio

from shards.errors import ShardBroken
from shards.limits import Limits
from shards.namespace import Namespace, Ref
from shards.testing import InlineDisk, TrioClock, running

from .examples import Notes, Refused

HOUR_MS = 3_600_000


class Bell(Notes):
    """Writes down when its alarm ran; what else the alarm does is decided by the rows of `plan`, one a run."""

    migrations = (
        *Notes.migrations,
        "CREATE TABLE plan (id INTEGER PRIMARY KEY, what TEXT NOT NULL) STRICT;"
        "CREATE TABLE run (at_ms INTEGER NOT NULL) STRICT;",
    )
    attempts: list[tuple[str, int]]  # (shard, unix ms) of every run, those undone too; set by each test

    def opened(self) -> None:
        super().opened()
        self.ready = True

    def alarm(self) -> None:
        assert self.ready
        type(self).attempts.append((self.name, self.now_ms))
        self.db.execute("INSERT INTO run VALUES (?)", (self.now_ms,))
        row = self.db.execute("SELECT min(id), what FROM plan").fetchall()[0]
        steps = str(row[1] or "")
        if "raise" not in steps:
            self.db.execute("DELETE FROM plan WHERE id = ?", (row[0],))
        for step in steps.split():
            self.follow(step)

    def follow(self, step: str) -> None:
        if step == "raise":
            raise Refused
        if step == "wipe":
            self.delete_all()
        if step == "clear":
            self.set_alarm(None)
        if step.startswith("+"):
            self.set_alarm(self.now_ms + int(step))

    def set_in(self, delay_ms: int | None, *plan: str) -> None:
        self.set_alarm(None if delay_ms is None else self.now_ms + delay_ms)
        for what in plan:
            self.db.execute("INSERT INTO plan (what) VALUES (?)", (what,))

    def forget_plan(self) -> None:
        self.db.execute("DELETE FROM plan")

    def runs(self) -> list[int]:
        return [int(str(at_ms)) for (at_ms,) in self.db.execute("SELECT at_ms FROM run").fetchall()]


@pytest.fixture(autouse=True)
def attempts() -> list[tuple[str, int]]:
    Bell.attempts = []
    return Bell.attempts


def delays(start_ms: int) -> list[int]:
    """Attempts since `start_ms`, each as ms after the one before."""
    times = [start_ms, *(at_ms for _, at_ms in Bell.attempts)]
    return [later - earlier for earlier, later in pairwise(times)]


async def set_in(
    namespace: Namespace[Bell], delay_ms: int | None, *plan: str, name: str = "a"
) -> tuple[Ref[Bell], int]:
    """Set the alarm; return the shard and the time now."""
    ref = namespace.ref(name)
    await ref.call(Bell.set_in, delay_ms, *plan)
    return ref, namespace.clock.now_ms()


async def test_an_alarm_runs_when_due_and_once() -> None:
    async with running(Bell) as namespace:
        ref, start = await set_in(namespace, 5_000)
        await trio.sleep(4.999)
        assert await ref.call(Bell.runs) == []
        await trio.sleep(100)
        assert await ref.call(Bell.runs) == [start + 5_000]
        assert await ref.call(Bell.get_alarm) is None


async def test_an_alarm_of_the_past_runs_at_once() -> None:
    async with running(Bell) as namespace:
        ref, _ = await set_in(namespace, -HOUR_MS)
        await trio.sleep(0.01)
        assert len(await ref.call(Bell.runs)) == 1


async def test_each_shard_has_one_and_they_do_not_mix() -> None:
    async with running(Bell) as namespace:
        for number in range(20):
            await set_in(namespace, 1000 * number, name=f"n{number}")
        start = namespace.clock.now_ms()
        await trio.sleep(30)
        assert sorted(Bell.attempts) == sorted((f"n{n}", start + 1000 * n) for n in range(20))


@pytest.mark.parametrize(("first", "then"), [(10_000, 2_000), (2_000, 10_000), (2_000, 2_000)])
async def test_setting_it_again_replaces_it(first: int, then: int) -> None:
    async with running(Bell) as namespace:
        await set_in(namespace, first)
        ref, start = await set_in(namespace, then)
        await trio.sleep(60)
        assert await ref.call(Bell.runs) == [start + then]


async def test_a_cleared_alarm_does_not_run() -> None:
    async with running(Bell) as namespace:
        await set_in(namespace, 2_000)
        ref, _ = await set_in(namespace, None)
        await trio.sleep(60)
        assert await ref.call(Bell.runs) == []


async def test_a_handler_that_sets_it_anew_runs_again() -> None:
    async with running(Bell) as namespace:
        _, start = await set_in(namespace, 1_000, "+3000", "+500", "+0")
        await trio.sleep(60)
        assert delays(start) == [1_000, 3_000, 500, 0]


async def test_a_failing_alarm_is_undone_logged_and_retried_with_a_growing_delay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(Bell) as namespace:
        ref, start = await set_in(namespace, 1_000, "raise")
        await trio.sleep(2_000)
        expected = [1_000, *(2_000 * 2**n for n in range(8)), *[300_000] * 9]
        assert delays(start) == expected[: len(delays(start))]
        assert len(delays(start)) >= 11
        assert await ref.call(Bell.runs) == []
        failures = [record for record in caplog.records if "alarm of shard a failed" in record.message]
        assert len(failures) == len(Bell.attempts)
        await ref.call(Bell.forget_plan)
        await trio.sleep(301)
        assert len(await ref.call(Bell.runs)) == 1
    caplog.clear()


async def test_success_resets_the_delay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "shards")
    async with running(Bell) as namespace:
        ref, start = await set_in(namespace, 0, "raise")
        await trio.sleep(7)  # attempts at 0, 2, 6
        await ref.call(Bell.forget_plan)
        await trio.sleep(20)  # and at 14, which succeeds
        assert delays(start) == [0, 2_000, 4_000, 8_000]
        Bell.attempts.clear()
        _, start = await set_in(namespace, 0, "raise")
        await trio.sleep(3)
        assert delays(start) == [0, 2_000]


async def test_do_s01_alarm_and_call_see_a_shard_that_is_ready(caplog: pytest.LogCaptureFixture) -> None:
    """The shard is evicted between tries; `alarm` and `ready` would fail if `opened` had not run."""
    caplog.set_level(logging.CRITICAL, "shards")
    async with running(Bell) as namespace:
        ref, start = await set_in(namespace, 0, "raise")
        for _ in range(6):
            await trio.sleep(1)
            await namespace.evict("a")
            assert await ref.call(lambda shard: shard.ready)
        assert delays(start) == [0, 2_000, 4_000][: len(delays(start))]
        assert len(Bell.attempts) >= 2


async def test_do_s01_an_alarm_survives_an_opening_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Moody(Bell):
        broken = False

        def opened(self) -> None:
            if self.broken:
                raise Refused("not today")
            super().opened()

    async with running(Moody) as namespace:
        ref = namespace.ref("a")
        await ref.call(Moody.set_in, 5_000)
        await namespace.evict("a")
        Moody.broken = True
        await trio.sleep(60)
        with pytest.raises(ShardBroken, match="not today"):
            await ref.call(Moody.runs)
        assert Bell.attempts == Moody.attempts == []
        Moody.broken = False
        await trio.sleep(60)
        assert len(await ref.call(Moody.runs)) == 1


@pytest.mark.parametrize("evicted", [False, True])
async def test_do_s02_wiping_inside_the_handler_counts_as_done(evicted: bool) -> None:
    async with running(Bell) as namespace:
        await namespace.ref("a").call(Bell.add, "x")
        ref, _ = await set_in(namespace, 0, "wipe")
        await trio.sleep(1)
        if evicted:
            await namespace.evict("a")
        await trio.sleep(3600)
        assert len(Bell.attempts) == 1
        assert await ref.call(Bell.texts) == []
        assert await ref.call(Bell.runs) == []


async def test_do_s02_an_alarm_set_after_the_wipe_stands() -> None:
    async with running(Bell) as namespace:
        ref, start = await set_in(namespace, 0, "wipe +1000")
        await trio.sleep(60)
        assert delays(start) == [0, 1_000]
        assert await ref.call(Bell.runs) == [start + 1_000]


async def test_do_s02_a_wipe_that_then_raises_is_undone_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "shards")
    async with running(Bell) as namespace:
        await namespace.ref("a").call(Bell.add, "x")
        ref, start = await set_in(namespace, 0, "wipe raise")
        await trio.sleep(7)
        assert delays(start) == [0, 2_000, 4_000]
        assert await ref.call(Bell.texts) == ["x"]


async def test_do_s02_a_wipe_inside_an_open_transaction_follows_it() -> None:
    def wipe_and_think_again(shard: Bell) -> None:
        try:
            with shard.db:
                shard.delete_all()
                raise Refused
        except Refused:
            pass

    async with running(Bell) as namespace:
        ref, start = await set_in(namespace, 1_000)
        await ref.call(Bell.add, "x")
        await ref.call(wipe_and_think_again)
        assert await ref.call(Bell.texts) == ["x"]
        await trio.sleep(2)
        assert delays(start) == [1_000]


async def test_do_s03_alarms_and_their_failures_survive_eviction_and_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Three shards, one of them failing for the third time; after the restart nobody calls them."""
    caplog.set_level(logging.CRITICAL, "shards")
    clock = TrioClock()
    async with running(Bell, tmp_path, clock=clock) as namespace:
        await set_in(namespace, 60_000, name="late")
        await set_in(namespace, 30_000, name="soon")
        _, start = await set_in(namespace, 0, "raise", name="failing")
        await trio.sleep(7)  # attempts at 0, 2, 6
        for name in ("late", "soon", "failing"):
            await namespace.evict(name)
    async with running(Bell, tmp_path, clock=clock) as namespace:
        assert namespace.open_count == 0
        await trio.sleep(25)
    async with running(Bell, tmp_path, clock=clock) as namespace:
        await trio.sleep(40)
    seen = [(name, at_ms - start) for name, at_ms in Bell.attempts]
    failing = [("failing", at_ms) for at_ms in (0, 2_000, 6_000, 14_000, 30_000, 62_000)]
    assert sorted(seen) == sorted([*failing, ("soon", 30_000), ("late", 60_000)])


async def test_do_s03_an_alarm_that_came_due_while_nobody_ran_runs_at_the_start(tmp_path: Path) -> None:
    clock = TrioClock()
    async with running(Bell, tmp_path, clock=clock) as namespace:
        await set_in(namespace, 60_000)
    await trio.sleep(3600)
    async with running(Bell, tmp_path, clock=clock) as namespace:
        await trio.sleep(0.1)
        assert len(Bell.attempts) == 1
        assert namespace.open_count == 1


@pytest.mark.parametrize("plan", ["+3600000 raise", "clear raise", "raise"])
async def test_do_s04_a_handler_that_sets_or_clears_it_and_raises_is_retried_with_backoff(
    plan: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "shards")
    async with running(Bell) as namespace:
        _, start = await set_in(namespace, 0, plan)
        await trio.sleep(31)
        assert delays(start) == [0, 2_000, 4_000, 8_000, 16_000]


async def test_do_s04_a_time_set_by_a_call_between_tries_replaces_the_retry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "shards")
    async with running(Bell) as namespace:
        ref, start = await set_in(namespace, 0, "raise")
        await trio.sleep(3)  # attempts at 0 and 2
        await ref.call(Bell.forget_plan)
        await ref.call(Bell.set_in, HOUR_MS)
        await trio.sleep(2 * 3600)
        assert delays(start) == [0, 2_000, HOUR_MS + 1_000]


async def test_no_more_shards_are_woken_at_once_than_the_limit() -> None:
    async with running(Bell, limits=Limits(alarms_at_once=2)) as namespace:
        for number in range(10):
            await set_in(namespace, 5_000, name=f"n{number}")
            await namespace.evict(f"n{number}")
        await trio.sleep(6)
        assert len(Bell.attempts) == 10


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
async def test_a_wall_clock_stepped_while_running_delays_an_alarm_by_no_more_than_it_must(
    step_ms: int,
) -> None:
    """Forward: due within the minute in which the clock is looked at again. Back: when the clock says so."""
    clock = TrioClock()
    async with running(Bell, clock=clock) as namespace:
        ref, start = await set_in(namespace, 600_000)
        clock.skew_ms += step_ms
        began = trio.current_time()
        await trio.sleep(60 + 1)
        assert len(await ref.call(Bell.runs)) == (1 if step_ms > 0 else 0)
        await trio.sleep(3600 + 600)
        [ran] = await ref.call(Bell.runs)
        assert ran >= start + 600_000
        assert trio.current_time() > began


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
async def test_a_wall_clock_stepped_over_a_restart_loses_no_alarm(tmp_path: Path, step_ms: int) -> None:
    clock = TrioClock()
    async with running(Bell, tmp_path, clock=clock, disk=InlineDisk()) as namespace:
        await set_in(namespace, 600_000)
    clock.skew_ms += step_ms
    async with running(Bell, tmp_path, clock=clock) as namespace:
        await trio.sleep(1)
        assert len(Bell.attempts) == (1 if step_ms > 0 else 0)
        await trio.sleep(3600 + 600)
        assert len(Bell.attempts) == 1
