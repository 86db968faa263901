"""The test kit of users: a real server on any loop or none, and a clock that has things come due."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio

from edgequeues.client import Client, ConfigChange, NewEntry, Refused, SyncClient
from edgequeues.testing import Grant, RunningServer, Settings, edgequeues_server, running, serving
from shards.errors import FolderLocked

Q = "dxn:queue:demo:jobs"
HOUR_MS = 3_600_000

__all__ = ["edgequeues_server"]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running() as server:
        yield server


def test_the_fixture_gives_a_server(edgequeues_server: RunningServer) -> None:
    with SyncClient(edgequeues_server.url) as client:
        assert client.health().ready


def test_a_delay_ends_when_the_clock_is_moved(server: RunningServer) -> None:
    with SyncClient(server.url) as client:
        client.push(f"{Q}-delay", [NewEntry({"n": 1}, delay_ms=HOUR_MS)])
        server.clock.advance(HOUR_MS - 60_000)
        assert client.pull(f"{Q}-delay").messages == []
        server.clock.advance(60_000)
        assert [one.data for one in client.pull(f"{Q}-delay").messages] == [{"n": 1}]


def test_a_lease_lapses_and_the_message_is_given_out_again(server: RunningServer) -> None:
    with SyncClient(server.url) as client:
        client.push(f"{Q}-lease", [{"n": 1}])
        assert client.pull(f"{Q}-lease", lease_ms=60_000).messages[0].attempts == 1
        assert client.pull(f"{Q}-lease").messages == []
        server.clock.advance(60_000)
        assert client.pull(f"{Q}-lease").messages[0].attempts == 2


def test_entries_expire(server: RunningServer) -> None:
    log = "dxn:queue:demo:log"
    with SyncClient(server.url) as client:
        client.append(log, [NewEntry({"n": 1}, ttl_ms=HOUR_MS), {"n": 2}])
        server.clock.advance(HOUR_MS)
        assert [entry.data for entry in client.iterate(log)] == [{"n": 2}]


def test_a_long_poll_is_answered_by_what_comes_due(server: RunningServer) -> None:
    queue, given = f"{Q}-poll", list[object]()
    with SyncClient(server.url) as client:
        client.push(queue, [NewEntry({"n": 1}, delay_ms=HOUR_MS)])

        def wait() -> None:
            given.extend(one.data for one in client.pull(queue, wait_s=30).messages)

        waiting = threading.Thread(target=wait)
        waiting.start()
        server.clock.advance(HOUR_MS)
        waiting.join(20)
    assert given == [{"n": 1}]


def test_dead_letters_are_made_by_the_time_the_move_is_over(server: RunningServer) -> None:
    """Nobody calls the queue meanwhile: the alarm of its space did it."""
    queue = f"{Q}-dead"
    with SyncClient(server.url) as client:
        client.make_queue(queue, rules={"attempts_max": 1})
        client.push(queue, [{"n": 1}])
        client.pull(queue, lease_ms=60_000)
        server.clock.advance(60_000)
        assert [one.data for one in client.iterate_dead_letters(f"{queue}-dlq")] == [{"n": 1}]


def test_the_clock_is_set_forward_and_back(server: RunningServer) -> None:
    was_ms = server.clock.now_ms()
    server.clock.set(was_ms + 24 * HOUR_MS)
    assert server.clock.now_ms() >= was_ms + 24 * HOUR_MS
    server.clock.set(was_ms)
    assert server.clock.now_ms() < was_ms + HOUR_MS
    with pytest.raises(ValueError, match="forward"):
        server.clock.advance(-1)


@pytest.mark.parametrize("run", [trio.run, lambda test: asyncio.run(test())], ids=["trio", "asyncio"])
def test_async_tests_have_the_same_server(run: Callable[[Callable[[], Awaitable[None]]], None]) -> None:
    async def test() -> None:
        async with serving() as server, Client(server.url) as client:
            await client.push(Q, [NewEntry({"n": 1}, delay_ms=HOUR_MS)])
            server.clock.advance(HOUR_MS)
            assert [one.data for one in (await client.pull(Q)).messages] == [{"n": 1}]

    run(test)


def test_a_given_folder_is_kept(tmp_path: Path) -> None:
    for number in range(2):
        with running(tmp_path / "data") as server, SyncClient(server.url) as client:
            client.append(Q, [number])
            assert [entry.data for entry in client.iterate(Q)] == list(range(number + 1))


def test_settings_and_tokens_count(tmp_path: Path) -> None:
    chosen = Settings(body_bytes_max=2_000)
    tokens = {"reader": Grant(frozenset({"read"})), "writer": Grant(frozenset({"append"}))}
    with running(tmp_path, settings=chosen, tokens=tokens) as server:
        with SyncClient(server.url) as nobody, pytest.raises(Refused) as refused:
            nobody.read(Q)
        assert refused.value.code == "unauthenticated"
        with (
            SyncClient(server.url, token=server.tokens["reader"]) as reader,
            pytest.raises(Refused) as refused,
        ):
            reader.append(Q, [1])
        assert refused.value.code == "forbidden"
        with SyncClient(server.url, token=server.tokens["writer"]) as writer:
            writer.append(Q, [1])
            with pytest.raises(Refused):
                writer.append(Q, ["x" * 4_000])


def test_a_folder_that_is_in_use_is_refused_before_the_block_begins(tmp_path: Path) -> None:
    with running(tmp_path), pytest.raises(FolderLocked), running(tmp_path):
        raise AssertionError("not reached")


def test_what_a_test_raises_comes_out_and_the_server_is_gone() -> None:
    urls: list[str] = []
    with pytest.raises(LookupError), running() as server:  # noqa: PT012 - where it is raised is the point
        urls.append(server.url)
        raise LookupError
    with SyncClient(urls[0]) as client, pytest.raises(Exception, match="no answer"):
        client.reconfigure(Q, ConfigChange(paused=True))
