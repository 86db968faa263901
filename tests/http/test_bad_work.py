"""What cannot be asked of a work queue: no such thing, no lease any more, out of bounds, or no room on the disk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.app import open_app
from shards.limits import Limits
from shards.testing import FaultyDisk, TrioClock

from .asgi import Client
from .fronted import FrontName, behind
from .work_queue import JOBS, pull, push, said

DLQ = "/v1/dxn:queue:demo:jobs-dlq"
OTHER = "/v1/dxn:queue:demo:other"
YEAR_MS = 365 * 86_400_000
VERBS = ("ack", "retry", "release", "extend")


def body(verb: str, *leases: str) -> dict[str, Any]:
    """What each of the verbs about leases is sent."""
    if verb == "retry":
        return {"retries": [{"lease": lease} for lease in leases]}
    return {"leases": list(leases)} | ({"lease_ms": 1_000} if verb == "extend" else {})


# -- there is no such thing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "what", "sent"),
    [
        ("POST", "pull", {}),
        ("POST", "pull?wait=5", {}),
        *(("POST", verb, body(verb, "x")) for verb in VERBS),
        ("GET", "consumers", None),
        ("PUT", "consumers/mine", {}),
        ("DELETE", "consumers/default", None),
        ("GET", "peek", None),
        ("GET", "explain?id=a", None),
        ("GET", "lines", None),
        ("POST", "skip", {"id": "a"}),
        ("GET", "dead", None),
        ("POST", "replay", {"ids": ["a"]}),
        ("POST", "purge", {}),
    ],
)
@pytest.mark.parametrize("space", ["demo", "nowhere"])
async def test_a_queue_that_is_not_there_is_404_at_once_and_is_not_made(
    client: Client, tmp_path: Path, space: str, method: str, what: str, sent: Any
) -> None:
    await push(client, {"data": 1})
    start = trio.current_time()
    queue = f"/v1/dxn:queue:{space}:nothing"
    reply = await (
        client.post(f"{queue}/{what}", sent) if method == "POST" else ask(client, method, queue, what)
    )
    assert (reply.status, reply.code) == (404, "queue_not_found")
    assert trio.current_time() == start
    listed = (await client.get("/v1/spaces/demo/queues")).json()["queues"]
    assert [one["config"]["name"] for one in listed] == ["jobs"]
    assert list((tmp_path / "data").rglob("*nowhere*")) == []


async def ask(client: Client, method: str, queue: str, what: str) -> Any:
    return await client.ask(method, f"{queue}/{what}", b"{}" if method == "PUT" else None)


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("POST", "pull?consumer=nobody"),
        ("GET", "peek?consumer=nobody"),
        ("GET", "lines?consumer=nobody"),
        ("DELETE", "consumers/nobody"),
    ],
)
async def test_a_consumer_that_is_not_there_is_404(client: Client, method: str, what: str) -> None:
    await push(client, {"data": 1})
    reply = await client.ask(method, f"{JOBS}/{what}", b"{}" if method == "POST" else None)
    assert (reply.status, reply.code) == (404, "consumer_not_found")
    assert "nobody" in reply.json()["detail"]


@pytest.mark.parametrize("verb", ["skip", "hurry"])
async def test_an_operators_verb_names_what_it_does_not_find(client: Client, verb: str) -> None:
    await push(client, {"data": 1, "id": "a"})
    reply = await client.post(f"{JOBS}/{verb}", {"id": "a", "consumer": "nobody"})
    assert (reply.status, reply.code) == (404, "consumer_not_found")
    reply = await client.post(f"{JOBS}/{verb}", {"id": "b"})
    assert (reply.status, reply.code) == (404, "entry_not_found")


@pytest.mark.parametrize(
    "sent",
    [
        *(b"null", b"[]", b"1", b'"x"', b"\xff", b"{", b'{"a":1,"a":1}', b"[" * 100 + b"]" * 100),
        b'{"entries":null,"leases":null,"retries":null,"ids":null,"id":null}',
        b'{"entries":[[]],"leases":[[]],"retries":[[]],"ids":[[]],"id":[]}',
        b'{"entries":[{"data":1,"key":"\\ud800"}],"leases":["\\ud800"],"worker":"\\ud800","id":"\\ud800"}',
        b'{"batch":1' + b"0" * 400 + b',"lease_ms":1e400}',
    ],
)
async def test_what_is_no_request_is_400_and_changes_nothing(client: Client, sent: bytes) -> None:
    await push(client, {"data": 1})
    for verb in ("push", "pull", *VERBS, "skip", "hurry", "replay", "purge"):
        reply = await client.ask("POST", f"{JOBS}/{verb}", sent)
        assert (verb, reply.status) == (verb, 400)
        assert reply.code in ("invalid_json", "invalid_request", "invalid_id")
    assert [(one["data"], one["attempts"]) for one in await pull(client, batch=10)] == [(1, 1)]


# -- no lease, or none any more -----------------------------------------------------------------------------


async def leased(client: Client) -> str:
    """The lease of a message for a minute, in a queue whose messages may be replaced."""
    await client.put(f"{JOBS}/config", {"kind": "work", "mutable": True})
    await push(client, {"id": "a", "data": 1})
    [message] = await pull(client, lease_ms=60_000)
    return str(message["lease"])


async def end(client: Client, lease: str, how: str) -> None:
    """End a lease."""
    if how in ("ack", "retry", "release"):
        assert await said(client, how, body(how, lease)) == ["done"]
    elif how == "dead":
        assert await said(client, "retry", {"retries": [{"lease": lease, "permanent": True}]}) == ["done"]
    elif how in ("lapse", "given to another", "skipped"):
        await trio.sleep(60)
        if how == "given to another":
            assert len(await pull(client)) == 1
        if how == "skipped":
            assert (await client.post(f"{JOBS}/skip", {"id": "a"})).status == 200
    elif how == "replaced":
        assert (await push(client, {"id": "a", "data": 2}))[0]["outcome"] == "moved"
    elif how == "deleted":
        assert (await client.delete(f"{JOBS}:a")).status == 200
    elif how == "purged":
        assert (await client.post(f"{JOBS}/purge", {})).json()["deleted"] == 1
    elif how == "consumer removed":
        assert (await client.delete(f"{JOBS}/consumers/default")).status == 200
    else:
        assert how == "queue removed"
        assert (await client.delete(f"{JOBS}/config")).status == 200
        await push(client, {"id": "a", "data": "in a new queue of that name"})


ENDED = {
    "ack": ["finished"] * 4,
    "retry": ["stale"] * 4,
    "release": ["stale"] * 4,
    "dead": ["finished"] * 4,
    "lapse": ["done", "lapsed", "lapsed", "lapsed"],
    "given to another": ["stale"] * 4,
    "skipped": ["finished"] * 4,
    "replaced": ["superseded"] * 4,
    "deleted": ["finished"] * 4,
    "purged": ["finished"] * 4,
    "consumer removed": ["finished"] * 4,
    "queue removed": ["finished"] * 4,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("how", ENDED)
async def test_a_lease_that_ended_is_told_apart_and_changes_nothing(
    client: Client, how: str, verb: str
) -> None:
    """But for the late ack of a message that nobody else was given."""
    lease = await leased(client)
    await end(client, lease, how)
    before = (await client.get(f"{JOBS}/consumers")).json(), (await client.get(f"{JOBS}/peek")).body
    outcome = ENDED[how][VERBS.index(verb)]
    assert await said(client, verb, body(verb, lease)) == [outcome]
    if outcome != "done":
        after = (await client.get(f"{JOBS}/consumers")).json(), (await client.get(f"{JOBS}/peek")).body
        assert after == before


@pytest.mark.parametrize("verb", VERBS)
async def test_a_lease_named_twice_in_a_call_is_answered_once(client: Client, verb: str) -> None:
    lease = await leased(client)
    first, again = await said(client, verb, body(verb, lease, lease))
    assert (first, again) == ("done", {"ack": "finished", "extend": "done"}.get(verb, "stale"))


@pytest.mark.parametrize("verb", VERBS)
async def test_a_lease_of_another_queue_or_space_or_of_nobody_is_unknown(client: Client, verb: str) -> None:
    """Two good ones with their halves exchanged are none, either."""
    lease = await leased(client)
    await push(client, {"data": 2})
    [second] = await pull(client)
    wrong = ["", "x", lease[:-1], lease + "=", lease.swapcase(), lease[::-1], "ü" * 44, "A" * 44]
    wrong.append(lease[:22] + second["lease"][22:])
    for queue in (OTHER, "/v1/dxn:queue:elsewhere:jobs"):
        await client.post(f"{queue}/push", {"entries": [{"data": 1}]})
        wrong.append((await client.post(f"{queue}/pull", {})).json()["messages"][0]["lease"])
    assert await said(client, verb, body(verb, *wrong)) == ["unknown"] * len(wrong)
    [info] = (await client.get(f"{JOBS}/consumers")).json()["consumers"]
    assert (info["leased"], info["total_acked"], info["total_retried"]) == (2, 0, 0)
    [theirs] = (await client.get(f"{OTHER}/consumers")).json()["consumers"]
    assert theirs["leased"] == 1


# -- out of bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("delay_ms", value) for value in (-1, YEAR_MS + 1, 1.5, "1000", True, None)),
        *(("due", value) for value in (-1, 253_402_300_800_000, "2026-01-01T00:00:00Z")),
        ("ttl_ms", 0),
        ("priority", -1),
    ],
)
async def test_a_time_that_cannot_be_is_refused_and_nothing_is_pushed(
    client: Client, field: str, value: Any
) -> None:
    await push(client, {"data": 1})
    reply = await client.post(f"{JOBS}/push", {"entries": [{"data": 2}, {"data": 3, field: value}]})
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert f"entries[1].{field}" in reply.json()["detail"]
    assert [one["data"] for one in await pull(client, batch=10)] == [1]


@pytest.mark.parametrize("delay_ms", [-1, YEAR_MS + 1, 1.5, "1000", True])
async def test_a_delay_that_cannot_be_fails_no_attempt(client: Client, delay_ms: Any) -> None:
    """Nor that of a good one in the same call."""
    lease = await leased(client)
    retries = [{"lease": lease}, {"lease": lease, "delay_ms": delay_ms}]
    reply = await client.post(f"{JOBS}/retry", {"retries": retries})
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert "delay_ms" in reply.json()["detail"]
    assert await said(client, "ack", {"leases": [lease]}) == ["done"]


@pytest.mark.parametrize(
    ("what", "setting"),
    [
        *(("config", {"kind": "work", "delay_ms": value}) for value in (-1, YEAR_MS + 1)),
        ("config", {"kind": "work", "depth_max": 0}),
        *(("consumers/default", {"lease_ms": value}) for value in (0, -1, 43_200_001)),
        *(("consumers/default", {"lapse_delay_ms": value}) for value in (-1, YEAR_MS + 1)),
        *(("consumers/default", {"attempts_max": value}) for value in (0, -1, 1_000_001)),
        *(("consumers/default", {"backoff": {"list_ms": value}}) for value in ([-1], [1] * 65)),
        ("consumers/default", {"backoff": {"jitter": 1.1}}),
    ],
)
async def test_a_setting_out_of_bounds_is_refused_and_the_old_one_stays(
    client: Client, what: str, setting: dict[str, Any]
) -> None:
    await push(client, {"data": 1})
    target = f"{JOBS}/{what}"
    before = (await client.get(f"{JOBS}/stats")).json()
    reply = await client.put(target, setting)
    assert (reply.status, reply.code) == (400, "invalid_request")
    field = next(name for name in reversed(setting))
    assert field in reply.json()["detail"]
    assert (await client.get(f"{JOBS}/stats")).json() == before


async def test_zero_is_told_apart_from_nothing(client: Client) -> None:
    """A delay of 0 is one; of a retry, null is as good as nothing: the back-off."""
    await client.put(f"{JOBS}/config", {"kind": "work", "delay_ms": 60_000})
    await push(client, {"data": "later"}, {"data": "now", "delay_ms": 0})
    [message] = await pull(client, batch=10)
    assert message["data"] == "now"
    for delay, waits in (({"delay_ms": 0}, False), ({"delay_ms": None}, True), ({}, True)):
        assert await said(client, "retry", {"retries": [{"lease": message["lease"]} | delay]}) == ["done"]
        if waits:
            assert await pull(client) == []
            await trio.sleep(5)
        [message] = await pull(client)


@pytest.mark.parametrize("verb", VERBS)
async def test_more_leases_than_a_call_may_name_are_413_and_none_is_answered(
    client: Client, verb: str
) -> None:
    lease = await leased(client)
    reply = await client.post(f"{JOBS}/{verb}", body(verb, lease, *["x"] * 1_000))
    assert (reply.status, reply.code) == (413, "too_large")
    assert "1001, at most 1000" in reply.json()["detail"]
    assert await said(client, "ack", {"leases": [lease]}) == ["done"]


# -- a queue that goes --------------------------------------------------------------------------------------


async def test_a_queue_removed_with_messages_in_flight_takes_them_along(client: Client) -> None:
    """Who holds one is told so, who waits for one goes away empty, and its dead letters stay."""
    await push(client, {"data": 1}, {"data": 2}, {"data": 3, "delay_ms": 10_000})
    first, second = await pull(client, batch=10)
    await said(client, "retry", {"retries": [{"lease": second["lease"], "permanent": True}]})
    given: list[Any] = []

    async def wait() -> None:
        given.append(await client.post(f"{JOBS}/pull?wait=30", {}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(1)
        assert (await client.delete(f"{JOBS}/config")).status == 200
    assert given[0].status in (200, 404)
    assert given[0].json().get("messages", []) == []
    reply = await client.post(f"{JOBS}/ack", {"leases": [first["lease"]]})
    assert (reply.status, reply.code) == (404, "queue_not_found")
    [letter] = (await client.get(f"{DLQ}/dead")).json()["letters"]
    assert letter["letter"]["originalMessage"] == 2
    [result] = (await client.post(f"{DLQ}/replay", {"ids": [letter["id"]]})).json()["results"]
    assert result["outcome"] == "no_queue"


# -- no room on the disk ------------------------------------------------------------------------------------

KIB = 1024
LIMITS = Limits(reserve_bytes=1024 * KIB, wal_checkpoint_bytes=1024 * KIB, wal_bytes_max=2048 * KIB)


@asynccontextmanager
async def small(folder: Path, clock: TrioClock, front: FrontName) -> AsyncIterator[tuple[Client, FaultyDisk]]:
    """A server on a disk that a test fills up."""
    disk = FaultyDisk(folder)
    async with open_app(folder, clock=clock, disk=disk, limits=LIMITS) as server:
        yield Client(behind(front, server)), disk
    disk.close()


@pytest.mark.parametrize("room", [0, 40 * KIB, 200 * KIB])
async def test_a_pull_on_a_full_disk_fails_and_leaves_the_messages_while_acks_go_on(
    tmp_path: Path, clock: TrioClock, room: int, front: FrontName
) -> None:
    """However much room is left when it begins. With room again, all that was not acked is handed out."""
    async with small(tmp_path, clock, front) as (client, disk):
        await push(client, *({"data": n} for n in range(500)))
        held = {one["data"]: one["lease"] for one in await pull(client, batch=20)}
        disk.fill(room)
        while (reply := await client.post(f"{JOBS}/pull", {"batch": 5})).status == 200:
            held |= {one["data"]: one["lease"] for one in reply.json()["messages"]}
            assert reply.json()["messages"], "the disk was never full"
        assert (reply.status, reply.code, reply.json()["retryable"]) == (503, "disk_full", True)
        assert (await client.post(f"{JOBS}/pull?wait=5", {})).code == "disk_full"
        states = (await client.get(f"{JOBS}/stats")).json()["consumers"][0]
        assert (states["leased"], states["ready"]) == (len(held), 500 - len(held))
        assert await said(client, "ack", {"leases": list(held.values())}) == ["done"] * len(held)
        disk.free()
        await trio.sleep(1.1)  # room is looked for once a second
        left: list[int] = []
        while messages := await pull(client, batch=100):
            left += [one["data"] for one in messages]
            assert {one["attempts"] for one in messages} == {1}
        assert left == [n for n in range(500) if n not in held]


async def test_on_a_full_disk_what_comes_due_is_seen_to_and_what_fails_is_buried(
    tmp_path: Path, clock: TrioClock, front: FrontName
) -> None:
    """A retry, a lapse and a last attempt are no growth that could be refused: the reserve is for them."""
    async with small(tmp_path, clock, front) as (client, disk):
        await push(client, {"data": 0}, {"data": 1}, {"data": 2}, {"data": 3, "delay_ms": 2_000})
        await client.put(f"{JOBS}/consumers/default", {"attempts_max": 1})
        failed, released, lapsed = await pull(client, batch=3, lease_ms=3_000)
        disk.fill(0)
        while (await client.post(f"{OTHER}/push", {"entries": [{"data": "x" * 10_000}]})).status == 200:
            pass
        assert await said(client, "retry", {"retries": [{"lease": failed["lease"]}]}) == ["done"]
        assert await said(client, "release", {"leases": [released["lease"]]}) == ["done"]
        await trio.sleep(3)
        states = (await client.get(f"{JOBS}/stats")).json()["consumers"][0]
        assert (states["ready"], states["leased"], states["total_exhausted"]) == (2, 0, 2)
        letters = (await client.get(f"{DLQ}/dead")).json()["letters"]
        assert [one["letter"]["originalMessage"] for one in letters] == [0, lapsed["data"]]
