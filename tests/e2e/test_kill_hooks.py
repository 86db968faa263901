"""A server is killed while webhooks come in: what was answered 202 is there, and there once."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.client import Client

from .process import serving
from .senders import SECRET, SENDERS, VARIABLE, Load, event, options, sending, unworked

pytestmark = pytest.mark.slow

QUEUE = "dxn:queue:IncidentManagement:WebhookIngress"
WEBHOOKS = 10_000
GUARD_S = 120.0  # against hanging only
KILLS = int(os.environ.get("EDGEQUEUES_KILL_ROUNDS", "10"))
SEED = int(os.environ.get("EDGEQUEUES_KILL_SEED", random.SystemRandom().randrange(1 << 32)))


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


async def queued(url: str) -> dict[str, str]:
    """The ids of the messages there are, by the id of the event; each event is there once."""
    found: dict[str, str] = {}
    async with Client(url) as client:
        async for entry in client.iterate(QUEUE):
            data: Any = entry.data
            event_id = data["payload"]["event"]["id"]
            assert event_id not in found
            found[event_id] = entry.id
    return found


async def test_ten_thousand_signed_webhooks_over_a_kill_are_each_queued_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty senders; the server is killed in the middle and started again on the same port."""
    began = time.perf_counter()
    async with serving(tmp_path / "data", *options(unworked(tmp_path))) as server:
        load = Load(range(WEBHOOKS), int(server.port))
        with trio.fail_after(GUARD_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(load.run)
                await load.until(WEBHOOKS // 2)
                await server.stop(signal.SIGKILL)
                at_the_kill = len(load.answered)
                async with serving(
                    tmp_path / "data", *options(unworked(tmp_path)), port=server.port
                ) as again:
                    await load.until(WEBHOOKS)
                    took_s = time.perf_counter() - began
                    found = await queued(again.url)
    assert 0 < at_the_kill < WEBHOOKS
    assert load.broken > 0
    assert set(load.statuses) == {202}
    assert found == {f"e{number}": message for number, message in load.answered.items()}
    with capsys.disabled():
        print(
            f"\n{WEBHOOKS} webhooks, {SENDERS} senders, one kill: {WEBHOOKS / took_s:,.0f}/s, restart included"
        )


async def test_wh_s12_no_202_leaves_before_the_message_is_on_disk(tmp_path: Path) -> None:
    """Killed at random moments, again and again: every answered message is there."""
    chance = random.Random(SEED)
    answered: dict[int, str] = {}
    for round_ in range(KILLS):
        async with serving(tmp_path / "data", *options(unworked(tmp_path))) as server:
            first = round_ * 1_000
            load = Load(range(first, first + 1_000), int(server.port))
            with trio.move_on_after(GUARD_S) as guard:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(load.run)
                    await load.until(chance.randrange(1, 200))
                    await server.stop(signal.SIGKILL)
                    nursery.cancel_scope.cancel()
            assert not guard.cancelled_caught, f"seed {SEED}"
            answered |= load.answered
    async with serving(tmp_path / "data", *options(unworked(tmp_path))) as server:
        found = await queued(server.url)
    assert {f"e{number}": message for number, message in answered.items()}.items() <= found.items(), (
        f"seed {SEED}"
    )


async def test_s2_6_a_message_is_there_after_a_kill_right_behind_its_202(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", *options(unworked(tmp_path))) as server, sending(server) as one:
        answer = await one.send(event(1))
        await server.stop(signal.SIGKILL)
    assert answer.status == 202
    async with serving(tmp_path / "data", *options(unworked(tmp_path))) as server, sending(server) as one:
        assert await queued(server.url) == {"e1": answer.json()["message_id"]}
        again = await one.send(event(1))
        assert (again.status, again.json()["duplicate"]) == (202, True)
