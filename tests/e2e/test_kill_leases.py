"""A server is killed while a message is leased, and while a queue is purged."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from edgequeues.client import Client, NewEntry, QueueConfig, Retry, Unreachable
from edgequeues.client.messages import ConsumerRules

from .process import serving
from .work_ledger import KEYS, LINED, LOOSE, make_queues, name_of, sound, stored

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore:Async generator 'httpx:ResourceWarning"
    ),  # a body cut off while it is sent
]


async def test_a_lease_outlives_the_server(tmp_path: Path) -> None:
    """Who was given a message before can still ack it; who does not gets it again, counted, after the lease."""
    data = tmp_path / "data"
    async with serving(data) as server, Client(server.url) as client:
        await client.push(LOOSE, ["held", "done"])
        held, done = (await client.pull(LOOSE, batch=2, lease_ms=3_000)).messages
        await server.stop(signal.SIGKILL)
    sound(data)
    async with serving(data) as server, Client(server.url) as client:
        assert [one.outcome for one in await client.ack(LOOSE, [done.lease])] == ["done"]
        [again] = (await client.pull(LOOSE, lease_ms=60_000, wait_s=20)).messages
        assert (again.id, again.attempts) == (held.id, 2)
        assert again.until - 60_000 >= held.until
        outcomes = [one.outcome for one in await client.ack(LOOSE, [held.lease, again.lease, again.lease])]
        assert outcomes == ["stale", "done", "finished"]
        [totals] = await client.consumers(LOOSE)
        assert (totals.unfinished, totals.total_attempts, totals.total_acked) == (0, 3, 2)


async def test_the_last_lease_ends_in_a_dead_letter_though_the_server_was_killed(tmp_path: Path) -> None:
    """Nobody asks for the queue again: the alarm alone sees to it."""
    data, graves = tmp_path / "data", "dxn:queue:farm:graves"
    async with serving(data) as server, Client(server.url) as client:
        for queue in (LOOSE, graves):
            await client.configure(queue, QueueConfig(kind="work", mutable=False, on_ack="delete"))
        await client.put_consumer(LOOSE, "default", ConsumerRules(attempts_max=1, dead_letters="graves"))
        await client.push(LOOSE, [{"label": "last"}])
        [message] = (await client.pull(LOOSE, lease_ms=1_000, worker="w")).messages
        await server.stop(signal.SIGKILL)
    async with serving(data) as server, Client(server.url) as client:
        [dead] = (await client.pull(graves, wait_s=20)).messages
        assert dead.raw == message.raw
        [letter] = [one async for one in client.iterate_dead_letters(graves)]
        assert (letter.original_id, letter.reason, letter.attempts) == (message.id, "exhausted", 1)
        assert [(one.worker, one.ending) for one in letter.errors] == [("w", "lapsed")]
        assert await stored(client, LOOSE) == {}


async def test_a_purge_that_is_cut_short_leaves_the_end_of_the_queue_to_be_worked(tmp_path: Path) -> None:
    """It goes on from the front, some in each turn, and the keys of what is left have their first message."""
    data, many, left = tmp_path / "data", 5_000, []
    for number in range(2):
        async with serving(data) as server, Client(server.url, retry=Retry(attempts_max=1)) as client:
            if not number:
                await make_queues(server.url)
            pushed = [NewEntry({"label": f"{number}-{n}"}, key=KEYS[n % 3]) for n in range(many)]
            assert len([answer async for answer in client.push_all(LINED, pushed)]) == many / 1_000
            async with trio.open_nursery() as nursery:
                nursery.start_soon(purge, client)
                while (await client.stats(LINED)).entries == many:
                    pass  # as soon as some of it is done
                await server.stop(signal.SIGKILL)
        sound(data)
        async with serving(data) as server, Client(server.url) as client:
            labels = list(await stored(client, LINED))
            left.append(len(labels))
            assert labels == [name_of(entry.data) for entry in pushed[many - len(labels) :]]
            given = (await client.pull(LINED, batch=10)).messages
            assert sorted(name_of(one.data) for one in given) == sorted(labels[:3])
            assert await client.purge(LINED) == len(labels)
            if given:
                answers = await client.ack(LINED, [one.lease for one in given])
                assert {one.outcome for one in answers} == {"finished"}
            assert await stored(client, LINED) == {}
        sound(data)
    print(f"of {many} messages that were purged, left by each kill: {left}")


async def purge(client: Client) -> None:
    with suppress(Unreachable):
        await client.purge(LINED)
