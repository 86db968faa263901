"""A server is killed while webhooks come in and are worked: each has its effect exactly once."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio

from .process import serving
from .senders import SECRET, SENDERS, VARIABLE, Load, options

pytestmark = pytest.mark.slow

WEBHOOKS = 10_000
KILLS = 5
GUARD_S = 240.0  # against hanging only


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


def incident(number: int) -> bytes:
    found = {"title": f"disk {number}", "urgency": "high" if number % 2 else "low", "id": f"P{number}"}
    return json.dumps({"event": {"id": f"e{number}"}, "incident": found}).encode()


def space_file(data: Path) -> apsw.Connection:
    [path] = data.glob("*/*.db")
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)


async def worked(data: Path) -> None:
    """Wait until no message is left."""
    db = space_file(data)
    while db.execute("SELECT count(*) FROM queue_entries").get:  # noqa: ASYNC110 - another process writes it
        await trio.sleep(0.02)
    db.close()


async def test_ten_thousand_webhooks_over_five_kills_open_an_incident_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, port, began = tmp_path / "data", "0", time.perf_counter()
    load: Load | None = None
    with trio.fail_after(GUARD_S):
        async with trio.open_nursery() as nursery:
            for kill in range(1, KILLS + 1):
                async with serving(data, *options(), port=port) as server:
                    port = server.port
                    if load is None:
                        load = Load(range(WEBHOOKS), int(port), incident)
                        nursery.start_soon(load.run)
                    await load.until(WEBHOOKS * kill // (KILLS + 1))
                    await server.stop(signal.SIGKILL)
            assert load is not None
            async with serving(data, *options(), port=port):
                await load.until(WEBHOOKS)
                await worked(data)
                took_s = time.perf_counter() - began
    assert load.broken >= KILLS
    db = space_file(data)
    made: list[Any] = db.execute("SELECT entity_id, version, attributes FROM entities").fetchall()
    receipts: list[Any] = db.execute("SELECT entity_id, count(*) FROM command_receipts GROUP BY 1").fetchall()
    letters = db.execute("SELECT count(*) FROM dead_letters").get
    db.close()
    assert letters == 0
    assert dict(receipts) == dict.fromkeys(load.answered.values(), 1)
    assert {one: version for one, version, _ in made} == dict.fromkeys(load.answered.values(), 1)
    titles = sorted(json.loads(attributes)["title"] for _, _, attributes in made)
    assert titles == sorted(f"disk {number}" for number in range(WEBHOOKS))
    with capsys.disabled():
        print(
            f"\n{WEBHOOKS} webhooks worked, {SENDERS} senders, {KILLS} kills: {WEBHOOKS / took_s:,.0f}/s,"
            " restarts included"
        )
