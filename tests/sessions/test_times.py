"""Times of any form, clocks that change, and the removal of what is old."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
import trio

from edgequeues.core.times import unix_ms, utc
from edgequeues.inbound import KEPT_MS
from edgequeues.sessions.manager import Options, open_manager

from .conftest import Folder
from .deliveries import Deliveries, enqueue

BERLIN = ZoneInfo("Europe/Berlin")
# 02:30 comes twice that night, first at UTC+2.
DOUBLED_MS = unix_ms("2026-10-25T00:30:00Z")
HOUR_MS = 3_600_000


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def set_clock(folder: Folder, now_ms: int) -> None:
    folder.clock.skew_ms += now_ms - folder.clock.now_ms()


@pytest.mark.usefixtures("berlin")
async def test_si_s03_a_retry_comes_once_and_in_time_through_the_doubled_hour(folder: Folder) -> None:
    """SI-S03."""
    set_clock(folder, DOUBLED_MS + HOUR_MS // 2 - 320_000)
    deliver = Deliveries(0.0, *[RuntimeError("no pane")] * 8)
    async with open_manager(folder.make(), deliver, clock=folder.clock) as manager:
        await enqueue(manager, "a")
        await trio.sleep(1_200)
        assert deliver.done == ["a"]
    waits = [later - sooner for sooner, later in zip(deliver.times, deliver.times[1:], strict=False)]
    assert waits[-2:] == pytest.approx([300, 300], abs=0.01)


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
async def test_a_clock_that_is_set_neither_loses_nor_doubles_a_retry(folder: Folder, step_ms: int) -> None:
    """SI-S03: as where a system keeps local time."""
    set_clock(folder, DOUBLED_MS)
    deliver = Deliveries(0.0, *[RuntimeError("no pane")] * 7)
    async with open_manager(folder.make(), deliver, clock=folder.clock) as manager:
        await enqueue(manager, "a")
        await trio.sleep(400)
        assert len(deliver.begun) == 7
        folder.clock.skew_ms += step_ms
        await trio.sleep(320 if step_ms > 0 else 620)  # set back, the store's goes at half its pace
        assert deliver.done == ["a"]
        await trio.sleep(2 * HOUR_MS / 1_000)
    assert len(deliver.begun) == 8


@pytest.mark.usefixtures("berlin")
async def test_cleaning_up_in_the_doubled_hour_removes_what_is_older_and_no_more(folder: Folder) -> None:
    """SI-S03: 02:30 twice, and 02:30 that says neither is refused."""
    set_clock(folder, DOUBLED_MS)
    async with open_manager(folder.make(), Deliveries(), clock=folder.clock) as manager:
        await enqueue(manager, "first 02:30")
        await trio.sleep(HOUR_MS / 1_000)
        await enqueue(manager, "second 02:30")
        await trio.sleep(60)
        for naive in (datetime(2026, 10, 25, 2, 31), "2026-10-25T02:31:00", "2026-10-25"):
            with pytest.raises(ValueError, match="offset"):
                await manager.cleanup(naive)
        assert await manager.cleanup(datetime(2026, 10, 25, 2, 29, tzinfo=BERLIN)) == 0
        assert await manager.cleanup(datetime(2026, 10, 25, 2, 31, tzinfo=BERLIN)) == 1
        assert await manager.cleanup(datetime(2026, 10, 25, 2, 29, tzinfo=BERLIN, fold=1)) == 0
        assert await manager.cleanup("2026-10-25T02:31:00+01:00") == 1


@pytest.mark.parametrize("digits", [0, 1, 3, 6, 9])
@pytest.mark.parametrize("offset", ["Z", "+00:00", "+05:45", "-03:30"])
async def test_cleaning_up_takes_times_of_any_width_and_offset(
    folder: Folder, digits: int, offset: str
) -> None:
    """SI-S02: what is asked for is a moment, not a text."""
    zone = UTC if offset == "Z" else datetime.fromisoformat(f"2026-01-01T00:00:00{offset}").tzinfo

    def text(seconds: int) -> str:
        moment = datetime.fromisoformat(utc(base_ms)) + timedelta(seconds=seconds)
        fraction = "." + "9" * digits if digits else ""
        return moment.astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S") + fraction + offset

    async with open_manager(folder.make(), Deliveries(), clock=folder.clock) as manager:
        base_ms = folder.clock.now_ms() // 1_000 * 1_000 + 1_000
        set_clock(folder, base_ms)
        await enqueue(manager, "a")
        await trio.sleep(1)
        assert await manager.cleanup(text(-1)) == 0
        assert await manager.cleanup(text(1)) == 1


async def test_cleaning_up_takes_moments_in_other_forms_and_nothing_else(folder: Folder) -> None:
    async with open_manager(folder.make(), Deliveries(), clock=folder.clock) as manager:
        await enqueue(manager, "a")
        await trio.sleep(10)
        now_ms = folder.clock.now_ms()
        earlier = datetime.fromisoformat(utc(now_ms - 11_000)).astimezone(timezone(timedelta(hours=-11)))
        assert await manager.cleanup(earlier) == 0
        assert await manager.cleanup(-5) == 0
        assert await manager.cleanup(now_ms) == 1
        for wrong in ("yesterday", "", True, 1.5, None):
            with pytest.raises(ValueError, match="is no time"):
                await manager.cleanup(wrong)  # type: ignore[arg-type]


async def test_what_was_finished_is_removed_by_itself_after_72_hours(folder: Folder) -> None:
    deliver = Deliveries()
    async with open_manager(folder.make(), deliver, clock=folder.clock) as manager:
        await enqueue(manager, "a")
        await trio.sleep(KEPT_MS / 1_000 - 60)
        deliver.faults = [RuntimeError("no pane")] * 1_000_000
        await enqueue(manager, "unfinished", "t")
        await enqueue(manager, "to be closed", "u")
        await trio.sleep(10)
        await manager.expire_session("u")
        assert await folder.count() == 3
        await trio.sleep(HOUR_MS / 1_000 + 60)
        assert await folder.count() == 2
        await trio.sleep(KEPT_MS / 1_000)
        assert await folder.count() == 1
        [left] = (await manager.sessions()).sessions
        assert left.session_id == "t"


async def test_a_manager_may_have_it_removed_sooner_and_again_and_again(folder: Folder) -> None:
    options = Options(clean_every_s=60.0, keep_ms=30_000)
    async with open_manager(folder.make(), Deliveries(), options, clock=folder.clock) as manager:
        for _ in range(3):
            await enqueue(manager, "a")
            await trio.sleep(1)
            assert await folder.count() == 1
            await trio.sleep(120)
            assert await folder.count() == 0
