"""Faults others reported of queues that are pulled, each tried over HTTP, where the wire or the server matters."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.app import open_app
from shards.limits import Limits
from shards.testing import FaultyDisk, InlineDisk, TrioClock

from .asgi import Client
from .fronted import FrontName, behind, only
from .work_queue import JOBS, pull, push, said
from .world import World

OTHER = "/v1/dxn:queue:demo:other"
DLQ = "/v1/dxn:queue:demo:jobs-dlq"
KIB = 1024


@asynccontextmanager
async def served(folder: Path, clock: TrioClock, front: FrontName) -> AsyncIterator[Client]:
    """The server over a folder that another one may have served before."""
    async with open_app(folder, clock=clock, disk=InlineDisk(), randomness=random.Random(1)) as server:
        yield Client(behind(front, server))


async def make(client: Client, **rules: Any) -> None:
    """The queue, with a consumer of these rules."""
    assert (await client.put(f"{JOBS}/config", {"kind": "work"})).status == 200
    assert (await client.delete(f"{JOBS}/consumers/default")).status == 200
    reply = await client.put(f"{JOBS}/consumers/default", rules)
    assert reply.status == 200, reply.body


async def letters(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get(f"{DLQ}/dead")).json()["letters"]
    return found


# -- the words of a request ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lease_ms", [0, -1, 43_200_001, 1.5, "6000", True, 1e30])
async def test_pl_s02_a_lease_is_whole_ms_in_range_or_nothing_is_leased(
    client: Client, lease_ms: Any
) -> None:
    await push(client, {"data": 1})
    reply = await client.post(f"{JOBS}/pull", {"lease_ms": lease_ms})
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert "lease_ms" in reply.json()["detail"]
    [message] = await pull(client, lease_ms=43_200_000)
    assert message["attempts"] == 1


@pytest.mark.parametrize(
    ("verb", "body", "word"),
    [
        ("pull", {"lease": 6}, "lease"),
        ("pull", {"lease_s": 6}, "lease_s"),
        ("pull", {"visibility_timeout_ms": 6_000}, "visibility_timeout_ms"),
        ("retry", {"retries": [{"lease": "x", "delay_seconds": 6}]}, "delay_seconds"),
        ("push", {"entries": [{"data": 1, "delay_seconds": 6}]}, "delay_seconds"),
    ],
)
async def test_pl_s02_a_duration_in_another_unit_or_of_another_name_is_refused(
    client: Client, verb: str, body: dict[str, Any], word: str
) -> None:
    """Every name says its unit, so a wrong one is no guess: nothing is leased, failed or pushed."""
    await push(client, {"data": 1})
    reply = await client.post(f"{JOBS}/{verb}", body)
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert word in reply.json()["detail"]
    assert [(one["data"], one["attempts"]) for one in await pull(client, batch=10)] == [(1, 1)]


async def test_pl_s06_each_lease_of_a_call_has_an_outcome_of_its_own(client: Client) -> None:
    """One is good, one is no lease, one was acked before, one is another queue's; a good one always counts."""
    await push(client, {"data": "good"}, {"data": "acked"}, {"data": "failed"})
    good, acked, failed = (one["lease"] for one in await pull(client, batch=3))
    await said(client, "ack", {"leases": [acked]})
    await client.post(f"{OTHER}/push", {"entries": [{"data": "theirs"}]})
    theirs = (await client.post(f"{OTHER}/pull", {})).json()["messages"][0]["lease"]
    leases = ["unknown text", good, acked, theirs]
    reply = await client.post(f"{JOBS}/ack", {"leases": leases})
    outcomes = ["unknown", "done", "finished", "unknown"]
    assert reply.status == 200
    assert reply.json()["results"] == [
        {"lease": lease, "outcome": outcome} for lease, outcome in zip(leases, outcomes, strict=True)
    ]
    retries = [{"lease": one} for one in ("unknown text", failed, acked, theirs)]
    assert await said(client, "retry", {"retries": retries}) == outcomes
    assert (await client.post(f"{OTHER}/ack", {"leases": [theirs]})).json()["results"][0]["outcome"] == "done"
    await trio.sleep(1)
    assert [one["data"] for one in await pull(client, batch=10)] == ["failed"]


async def test_pl_s13_each_refusal_has_a_status_and_a_code_of_its_own(world: World) -> None:
    """A limit names itself and what was given."""
    client = await world.open(body_bytes_max=5_000_000)
    world.let_everybody("push", "pull", "create", "configure", spaces=["demo"])
    await make(client)
    await client.patch(f"{JOBS}/config", {"depth_max": 1})
    await push(client, {"data": 1})
    full = {"entries": [{"data": 2}]}
    seen = {}
    for what, target, body, headers in (
        ("body too large", "push", {"entries": [{"data": "x" * 5_000_000}]}, []),
        ("entry too large", "push", {"entries": [{"data": "x" * (4 * 1024 * 1024)}]}, []),
        ("too many entries", "push", {"entries": [{"data": 1}] * 1_001}, []),
        ("too many leases", "ack", {"leases": ["x"] * 1_001}, []),
        ("full", "push", full, []),
        ("bad token", "push", full, [(b"authorization", b"Bearer nonsense")]),
    ):
        reply = await client.post(f"{JOBS}/{target}", body, *headers)
        seen[what] = (reply.status, reply.code, reply.json()["retryable"], reply.json()["detail"])
    for what, target, sent in (
        ("bad json", JOBS, b'{"entries": ['),
        ("unknown queue", "/v1/dxn:queue:demo:nothing", b"{}"),
        ("not allowed", "/v1/dxn:queue:secret:jobs", b"{}"),
    ):
        reply = await client.ask("POST", f"{target}/pull", sent)
        seen[what] = (reply.status, reply.code, reply.json()["retryable"], reply.json()["detail"])
    assert {what: found[:3] for what, found in seen.items()} == {
        "body too large": (413, "too_large", False),
        "entry too large": (413, "too_large", False),
        "too many entries": (413, "too_large", False),
        "too many leases": (413, "too_large", False),
        "full": (503, "queue_full", True),
        "bad token": (401, "unauthenticated", False),
        "bad json": (400, "invalid_json", False),
        "unknown queue": (404, "queue_not_found", False),
        "not allowed": (401, "unauthenticated", False),
    }
    for what, limit, actual in (
        ("body too large", "5000000", "5000027"),
        ("entry too large", "4194304", "4194306"),
        ("too many entries", "1000", "1001"),
        ("too many leases", "1000", "1001"),
        ("full", "1", "1"),
    ):
        assert {limit, actual} <= set(re.findall(r"\d+", seen[what][3])), seen[what]


@pytest.mark.parametrize(
    "sent",
    [
        b'{"entries":[{"data":"\xff\xfe\x00a"}]}',
        b'{"entries":[{"data":{"a":]}',
        b'{"entries":[{"data":{"a":1}},{"data":}]}',
        b'{"entries":[{"data":NaN}]}',
    ],
)
async def test_dl_s05_what_cannot_be_read_is_refused_when_it_is_pushed(client: Client, sent: bytes) -> None:
    """So no consumer ever meets it: nothing of the call is stored."""
    await push(client, {"data": 1})
    reply = await client.ask("POST", f"{JOBS}/push", sent)
    assert (reply.status, reply.code) == (400, "invalid_json")
    assert [one["data"] for one in await pull(client, batch=10)] == [1]


# -- many at once -------------------------------------------------------------------------------------------


@only("app", why="over a socket fewer pushes fit beside a purge")
async def test_pl_s08_pushes_beside_a_purge_are_cut_at_one_position(client: Client) -> None:
    """What was confirmed after that is there, all of it; what came before is gone, all of it."""
    for _ in range(5):
        await push(client, *[{"data": "old"}] * 1_000)
    confirmed: list[int] = []
    purged = trio.Event()
    during = 0

    async def purge() -> None:
        reply = await client.post(f"{JOBS}/purge", {})
        assert reply.json()["deleted"] >= 5_000
        purged.set()

    async def produce() -> None:
        nonlocal during
        for _ in range(20):
            confirmed.extend(one["position"] for one in await push(client, *[{"data": "new"}] * 10))
            during += not purged.is_set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(purge)
        for _ in range(5):
            nursery.start_soon(produce)
    left: list[int] = []
    while page := (await client.get(f"{JOBS}/peek?limit=1000&after={max(left, default=0)}")).json()[
        "messages"
    ]:
        left += [one["position"] for one in page]
    assert left == sorted(one for one in confirmed if one >= left[0])
    assert during > 5
    assert len(left) >= 1_000 - 50


async def test_ob_s02_pullers_at_once_never_hold_one_key_together(client: Client) -> None:
    """Eight wait in long polls, three messages a time; a tenth fails. Each key is handled in order, by one a time."""
    await make(client, ordering="per_key", backoff={"initial_ms": 300}, attempts_max=None)
    for n in range(20):
        await push(client, *({"data": n, "key": key} for key in "abcde"))
    chance = random.Random(5)
    busy: set[str] = set()
    handled: dict[str, list[int]] = {key: [] for key in "abcde"}
    workers = set()

    async def work(number: int, scope: trio.CancelScope) -> None:
        while True:
            for message in await pull(client, "?wait=60", batch=3):
                key, lease = message["key"], message["lease"]
                assert key not in busy, "two have it"
                busy.add(key)
                await trio.sleep(chance.random())
                busy.remove(key)
                if chance.random() < 0.1:
                    assert await said(client, "retry", {"retries": [{"lease": lease}]}) == ["done"]
                    continue
                handled[key].append(message["data"])
                workers.add(number)
                assert await said(client, "ack", {"leases": [lease]}) == ["done"]
            if sum(len(numbers) for numbers in handled.values()) == 100:
                scope.cancel()

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(work, number, nursery.cancel_scope)
    assert handled == {key: list(range(20)) for key in "abcde"}
    assert len(workers) > 1


async def test_dl_s06_two_operators_who_replay_at_once_make_one_message(client: Client) -> None:
    await push(client, {"data": 1})
    [message] = await pull(client)
    await said(client, "retry", {"retries": [{"lease": message["lease"], "permanent": True}]})
    [letter] = await letters(client)
    results: list[dict[str, Any]] = []

    async def replay() -> None:
        results.extend((await client.post(f"{DLQ}/replay", {"ids": [letter["id"]]})).json()["results"])

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(replay)
    assert sorted(one["outcome"] for one in results) == ["already"] * 4 + ["replayed"]
    [new] = await pull(client, batch=10)
    assert {one["message"] for one in results} == {new["id"]}


async def numbers_in(client: Client, queue: str) -> list[int]:
    """What is still to be done there, by the number in its data."""
    found: list[dict[str, Any]] = []
    after = 0
    while page := (await client.get(f"{queue}/peek?limit=1000&after={after}")).json()["messages"]:
        found, after = found + page, page[-1]["position"]
    return [one["data"]["n"] for one in found]


@pytest.mark.parametrize("room", [0, 150 * KIB, 300 * KIB])
@pytest.mark.parametrize("how", ["ids", "filter"])
async def test_dl_s01_a_replay_that_meets_a_full_disk_leaves_each_message_in_one_place(
    tmp_path: Path, clock: TrioClock, how: str, room: int, front: FrontName
) -> None:
    """However much room is left when it begins. With more room again the same call moves the rest."""
    disk = FaultyDisk(tmp_path)
    limits = Limits(reserve_bytes=1024 * KIB, wal_checkpoint_bytes=512 * KIB, wal_bytes_max=2048 * KIB)
    async with open_app(tmp_path, clock=clock, disk=disk, limits=limits) as server:
        client = Client(behind(front, server))
        await push(client, *({"data": {"n": n, "pad": "x" * 4_000}} for n in range(730)))
        while messages := await pull(client, batch=100):
            await said(
                client, "retry", {"retries": [{"lease": one["lease"], "permanent": True} for one in messages]}
            )
        listed = (await client.get(f"{DLQ}/peek?limit=1000")).json()["messages"]
        order: dict[str, Any] = {"filter": {}}
        if how == "ids":
            order = {"ids": [one["id"] for one in listed]}
        disk.fill(room)
        reply = await client.post(f"{DLQ}/replay", order)
        assert (reply.status, reply.code) == (503, "disk_full")
        moved, left = await numbers_in(client, JOBS), await numbers_in(client, DLQ)
        assert moved == list(range(len(moved)))
        assert left == list(range(len(moved), 730))
        disk.free()
        await trio.sleep(1.1)  # room is looked for once a second
        assert (await client.post(f"{DLQ}/replay", order)).status == 200
        assert (await numbers_in(client, JOBS), await numbers_in(client, DLQ)) == (list(range(730)), [])
    disk.close()


# -- restarts and deaths ------------------------------------------------------------------------------------


async def test_pl_s04_the_server_wakes_for_a_retry_of_the_one_before(
    tmp_path: Path, clock: TrioClock, front: FrontName
) -> None:
    """Nobody asks the new one for anything but to wait: the space is opened when its alarm is due."""
    folder, start = tmp_path / "data", trio.current_time()
    seen = []
    async with served(folder, clock, front) as client:
        await make(client, attempts_max=4)
        await push(client, {"data": 1})
        [message] = await pull(client)
        await said(client, "retry", {"retries": [{"lease": message["lease"], "delay_ms": 120_000}]})
    for attempt in (2, 3, 4):
        await trio.sleep(60)
        async with served(folder, clock, front) as client:
            assert await pull(client, "?wait=59") == []
            [message] = await pull(client, "?wait=60")
            seen.append(round(trio.current_time() - start))
            assert message["attempts"] == attempt
            retry = {"lease": message["lease"], "delay_ms": 120_000}
            assert await said(client, "retry", {"retries": [retry]}) == ["done"]
    assert seen == [120, 240, 360]
    async with served(folder, clock, front) as client:
        assert await pull(client, "?wait=60") == []
        [letter] = await letters(client)
        assert letter["letter"]["attempts"] == 4


async def test_pl_s04_a_space_that_was_closed_meanwhile_wakes_for_who_waits(
    tmp_path: Path, clock: TrioClock, front: FrontName
) -> None:
    """Only one space is kept open, and others are asked for all the time but at the end."""
    limits = Limits(open_max=1)
    async with open_app(tmp_path, clock=clock, disk=InlineDisk(), limits=limits) as server:
        client, start = Client(behind(front, server)), trio.current_time()
        await push(client, {"data": 1, "delay_ms": 40_000})
        given: list[dict[str, Any]] = []

        async def wait() -> None:
            given.extend(await pull(client, "?wait=60"))
            assert trio.current_time() - start == pytest.approx(40, abs=0.05)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            for number in range(30):
                await trio.sleep(1)
                await client.append(f"dxn:queue:beside{number % 3}:log", number)
        assert [(one["data"], one["attempts"]) for one in given] == [(1, 1)]


async def test_a_consumer_killed_in_a_batch_gives_back_what_it_had_not_acked(client: Client) -> None:
    """When its lease time is over, in the old order, and each attempt counts; what it had acked stays done."""
    await push(client, *({"data": n} for n in range(10)))
    async with client.open("POST", f"{JOBS}/pull", headers=[]) as exchange:
        exchange.end(json.dumps({"batch": 10, "lease_ms": 30_000}).encode())
        batch = json.loads(await exchange.rest())["messages"]
    assert await said(client, "ack", {"leases": [one["lease"] for one in batch[:4]]}) == ["done"] * 4
    await trio.sleep(29)
    assert await pull(client, batch=10) == []
    await trio.sleep(1)
    again = await pull(client, batch=10)
    assert [(one["data"], one["attempts"]) for one in again] == [(n, 2) for n in range(4, 10)]
    assert await said(client, "ack", {"leases": [batch[9]["lease"]]}) == ["stale"]
