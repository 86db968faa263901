"""A server is killed while it replays dead letters at a pace: a call made anew does the rest, once each, in order."""

from __future__ import annotations

import os
import random
import shutil
import signal
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from .process import command, serving

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("EDGEQUEUES_KILL_SEED", random.SystemRandom().randrange(1 << 32)))
TRIES_MAX = 100
LETTERS = 3_000
JOBS, DLQ = "/v1/dxn:queue:demo:jobs", "/v1/dxn:queue:demo:jobs-dlq"
ORDER = {"filter": {}, "per_second": 1}


async def asked(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = await client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


async def bury(client: httpx.AsyncClient) -> None:
    """Make dead letters whose data is their number."""
    for start in range(0, LETTERS, 1_000):
        entries = [{"data": n} for n in range(start, start + 1_000)]
        await asked(client, f"{JOBS}/push", {"entries": entries})
    while messages := (await asked(client, f"{JOBS}/pull", {"batch": 100}))["messages"]:
        retries = [{"lease": one["lease"], "permanent": True} for one in messages]
        await asked(client, f"{JOBS}/retry", {"retries": retries})


async def replayed(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """All messages, in the order of their positions."""
    found: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        page = (await client.get(f"{JOBS}/peek", params={"after": after, "limit": 1_000})).json()
        found += page["messages"]
        after = page["resume"]
    return found


async def count(client: httpx.AsyncClient) -> int:
    reply = await client.get(f"{JOBS}/stats")
    entries: int = reply.json()["entries"]
    return entries


async def broken_off(data: Path, before: int, delay_s: float) -> int:
    """Replay, and kill the server once more messages than before are seen; how many there are afterwards."""
    async with (
        serving(data) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as client,
        trio.open_nursery() as nursery,
    ):

        async def ask() -> None:
            with suppress(httpx.TransportError):
                await asked(client, f"{DLQ}/replay", ORDER)

        nursery.start_soon(ask)
        while await count(client) <= before:  # turns of ours come between those of the replay
            pass
        await trio.sleep(delay_s)
        await server.stop(signal.SIGKILL)
    async with serving(data) as server, httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        return len(await replayed(client))


async def killed_often(data: Path, chance: random.Random) -> list[int]:
    """Kill until at least half was replayed; how many messages there were after each kill."""
    counts = [0]
    while counts[-1] < LETTERS // 2:
        counts.append(await broken_off(data, counts[-1], chance.choice([0, 0, chance.uniform(0, 0.02)])))
    return counts


async def test_a_replay_that_was_killed_neither_loses_nor_doubles(tmp_path: Path) -> None:
    print(f"EDGEQUEUES_KILL_SEED={SEED}")
    chance, buried, data = random.Random(SEED), tmp_path / "buried", tmp_path / "data"
    async with serving(buried) as server, httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        await bury(client)
        assert await server.stop() == 0
    counts = [0]
    for _ in range(TRIES_MAX):  # a replay may be over before its kill comes, and is then done anew
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(buried, data)
        counts = await killed_often(data, chance)
        print(f"messages after each kill: {counts}")
        if 0 < counts[1] < LETTERS:
            break
    assert 0 < counts[1] < LETTERS, "no kill came in the middle"
    async with serving(data) as server, httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        answer = await asked(client, f"{DLQ}/replay", ORDER)
        assert answer["totals"]["replayed"] == LETTERS - counts[-1]
        messages = await replayed(client)
        assert await server.stop() == 0
    assert [one["data"] for one in messages] == list(range(LETTERS))
    dues = [one["due"] for one in messages if one["due"] is not None]
    assert len(dues) > LETTERS // 2
    assert {later - due for due, later in pairwise(dues)} == {1_000}
    checked = await command("check", str(data))
    assert checked.returncode == 0, checked.stdout
