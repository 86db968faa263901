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
from .senders import SAMPLE, SECRET, SENDERS, VARIABLE, Load, options

pytestmark = pytest.mark.slow

WEBHOOKS = 10_000
KILLS = 5
BY_FUNCTION = 1_000
MODULE = "tests.workers.functions_for_tests"
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


async def done(data: Path, count: int) -> None:
    """Wait until so many commands were carried out."""
    db = space_file(data)
    while db.execute("SELECT count(*) FROM entities").get < count:  # noqa: ASYNC110 - another process writes it
        await trio.sleep(0.005)
    db.close()


async def over_kills(
    data: Path, webhooks: int, kills: int, said: list[str], *, by_effects: bool = False
) -> tuple[Load, float]:
    """Send webhooks to a server that is killed meanwhile, until all are worked; what was sent, and the seconds.

    by_effects: killed when so many were worked, not when so many were taken.
    """
    port, began = "0", time.perf_counter()
    load: Load | None = None
    with trio.fail_after(GUARD_S):
        async with trio.open_nursery() as nursery:
            for kill in range(1, kills + 1):
                async with serving(data, *said, port=port) as server:
                    port = server.port
                    if load is None:
                        load = Load(range(webhooks), int(port), incident)
                        nursery.start_soon(load.run)
                    part = webhooks * kill // (kills + 1)
                    await (done(data, part) if by_effects else load.until(part))
                    await server.stop(signal.SIGKILL)
            assert load is not None
            async with serving(data, *said, port=port):
                await load.until(webhooks)
                await worked(data)
                took_s = time.perf_counter() - began
    assert load.broken >= (0 if by_effects else kills)
    return load, took_s


async def test_criterion_8_ten_thousand_webhooks_over_five_kills_open_an_incident_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    load, took_s = await over_kills(data, WEBHOOKS, KILLS, options())
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


async def test_a_thousand_functions_over_three_kills_have_their_effect_once_and_leave_no_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, spec = tmp_path / "data", tmp_path / "functions.spec"
    command = f'command Incident.CreateIncident {{ run: python "{MODULE}:open_incident"  timeout_ms: 1000 }}'
    spec.write_text(SAMPLE.read_text().rstrip().removesuffix("}") + command + "}")
    said = [*options(spec), "--commands-modules", MODULE]
    load, took_s = await over_kills(data, BY_FUNCTION, 3, said, by_effects=True)
    db = space_file(data)
    made: list[Any] = db.execute("SELECT version, attributes FROM entities").fetchall()
    receipts: list[Any] = db.execute("SELECT object_id, count(*) FROM command_receipts GROUP BY 1").fetchall()
    db.close()
    assert dict(receipts) == dict.fromkeys(load.answered.values(), 1)
    found = [json.loads(attributes) for version, attributes in made if version == 1]
    assert sorted(one["title"] for one in found) == sorted(f"disk {number}" for number in range(BY_FUNCTION))
    assert [one["times"] for one in found] == [1] * BY_FUNCTION
    processes = {one["process"] for one in found}
    assert len(processes) > 3  # those of one server are not those of the next
    with trio.fail_after(GUARD_S):
        while any(map(runs, processes)):  # noqa: ASYNC110 - they end by themselves
            await trio.sleep(0.02)
    with capsys.disabled():
        print(f"\n{BY_FUNCTION} functions, 3 kills: {BY_FUNCTION / took_s:,.0f}/s, lapsed leases included")


def runs(process: int) -> bool:
    """Is there still a process of this number that is one of ours?"""
    try:
        return b"edgequeues.workers.child" in Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
