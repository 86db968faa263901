"""Schedules through the client, over HTTP, of a server whose time is virtual."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from edgequeues.client import Client, Refused, ScheduleChange, Unavailable
from edgequeues.spec import ir
from shards.testing.clock import EPOCH_MS

from .working import Way, serving

MINUTE_MS = 60_000
AT: ir.Fields = {"at": {"var": {"now": True}}}
JOBS = "dxn:queue:demo:jobs"


def shop(queue: ir.QueueSpec | None = None, /, **named: ir.ScheduleSpec) -> ir.Spec:
    return ir.Spec(0, "shop", {"jobs": queue or ir.QueueSpec()}, schedules=named)


TICK = ir.ScheduleSpec("*/5 * * * *", "jobs", message=AT)
FIRST_MS = EPOCH_MS - EPOCH_MS % (5 * MINUTE_MS) + 5 * MINUTE_MS


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Client, Way]]:
    async with serving(tmp_path) as found:
        yield found


Served = tuple[Client, Way]


async def test_a_schedule_is_listed_with_its_times_and_its_messages_come(served: Served) -> None:
    client, _ = served
    applied = await client.apply_spec("demo", "shop", ir.encode(shop(tick=TICK)))
    assert list(applied.schedules) == [ScheduleChange("tick", "made", FIRST_MS)]
    assert [list(one.schedules) for one in await client.specs("demo")] == [["tick"]]
    [before] = [one async for one in client.schedules("demo")]
    assert (before.name, before.app, before.queue, before.cron) == ("tick", "shop", "jobs", "*/5 * * * *")
    assert (before.timezone, before.missed, before.next, before.last) == ("UTC", "once", FIRST_MS, None)
    await trio.sleep(12 * 60)
    entries = (await client.read(JOBS)).entries
    times = range(FIRST_MS // 1_000, (EPOCH_MS + 12 * MINUTE_MS) // 1_000, 300)
    assert [entry.data for entry in entries] == [{"at": at} for at in times]
    [after] = [one async for one in client.schedules("demo")]
    assert (after.made, after.last_error) == (len(times), None)
    assert after.last is not None
    assert after.next == after.last + 5 * MINUTE_MS


async def test_many_schedules_are_all_listed_in_pages(served: Served) -> None:
    client, _ = served
    for app in ("a", "b"):
        named = {f"{app}{number:04}": ir.ScheduleSpec("0 0 1 1 *", f"{app}q") for number in range(700)}
        spec = ir.Spec(0, app, {f"{app}q": ir.QueueSpec()}, schedules=named)
        await client.apply_spec("demo", app, ir.encode(spec))
    names = [one.name async for one in client.schedules("demo")]
    assert names == [f"{app}{number:04}" for app in ("a", "b") for number in range(700)]


async def test_a_space_that_is_not_there_has_no_schedules(served: Served) -> None:
    client, _ = served
    assert [one async for one in client.schedules("nowhere")] == []


async def test_a_schedule_that_is_run_now_makes_its_message(served: Served) -> None:
    client, way = served
    await client.apply_spec("demo", "shop", ir.encode(shop(tick=TICK)))
    made = await client.run_schedule("demo", "tick")
    assert made.outcome == "new"
    [entry] = (await client.read(JOBS)).entries
    assert (entry.id, entry.data) == (made.id, {"at": EPOCH_MS // 1_000})
    assert way.paths.count("run") == 1


async def test_what_cannot_be_run_is_refused_with_the_reason(served: Served) -> None:
    client, _ = served
    full = ir.QueueSpec(retention=ir.Retention(max_age_seconds=None, max_depth=1))
    await client.apply_spec("demo", "shop", ir.encode(shop(full, tick=TICK)))
    for space, name in (("demo", "tock"), ("nowhere", "tick")):
        with pytest.raises(Refused) as refused:
            await client.run_schedule(space, name)
        assert refused.value.code == "schedule_not_found"
    await client.run_schedule("demo", "tick")
    with pytest.raises(Unavailable) as unavailable:
        await client.run_schedule("demo", "tick")
    assert "queue jobs holds 1 of at most 1" in str(unavailable.value)


async def test_a_spec_whose_schedule_never_comes_is_refused(served: Served) -> None:
    client, _ = served
    never = ir.ScheduleSpec("0 3 30 2 *", "jobs")
    with pytest.raises(Refused) as refused:
        await client.apply_spec("demo", "shop", ir.encode(shop(tick=never)))
    assert refused.value.code == "invalid_spec"
    assert "schedules.tick.cron: `0 3 30 2 *` never comes" in str(refused.value)


async def test_a_schedule_of_a_removed_spec_makes_nothing_more(served: Served) -> None:
    client, _ = served
    await client.apply_spec("demo", "shop", ir.encode(shop(tick=TICK)))
    await client.remove_spec("demo", "shop")
    await trio.sleep(3_600)
    assert [one async for one in client.schedules("demo")] == []
    assert (await client.read(JOBS)).entries == []
