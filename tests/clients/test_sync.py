"""The client that blocks: the same verbs with the same types, over one pool for many threads."""

from __future__ import annotations

import inspect
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import assert_type

import httpx
import pytest

from edgequeues.client import (
    AppendAnswer,
    BlockingTransport,
    Client,
    Entry,
    NewEntry,
    Pulled,
    Retry,
    SyncClient,
    Unavailable,
)
from edgequeues.client.blocking import finish
from edgequeues.testing import running

Q = "dxn:queue:demo:q"
EMPTY: dict[str, object] = {"entries": [], "nextCursor": None, "prevCursor": None}


def blocking(
    *answers: httpx.Response | Exception, retry: Retry | None = None
) -> tuple[SyncClient, list[float]]:
    steps, pauses = iter(answers), list[float]()

    def answer(request: httpx.Request) -> httpx.Response:
        request.read()
        step = next(steps)
        if isinstance(step, Exception):
            raise step
        return step

    transport = BlockingTransport(
        "http://server:1", retry=retry, transport=httpx.MockTransport(answer), sleep=pauses.append
    )
    return SyncClient("http://server:1", transport=transport), pauses


def test_every_verb_is_there_with_the_same_parameters() -> None:
    verbs = {name for name, verb in inspect.getmembers(Client, inspect.isroutine) if not name.startswith("_")}
    for name in verbs:
        blocks, waits = getattr(SyncClient, name), getattr(Client, name)
        assert inspect.signature(blocks).parameters == inspect.signature(waits).parameters, name
        assert not inspect.iscoroutinefunction(blocks), name
        assert blocks.__doc__, name


def test_the_types_are_those_of_the_verbs() -> None:
    def checked_by_mypy_alone(client: SyncClient) -> None:
        assert_type(client.push(Q, [1]), AppendAnswer)
        assert_type(client.pull(Q, batch=1, wait_s=1.0), Pulled)
        assert_type(client.iterate(Q), Generator[Entry, None, None])
        client.pull(Q, bacth=1)  # type: ignore[call-arg]
        client.push([1], Q)  # type: ignore[arg-type]

    assert callable(checked_by_mypy_alone)


def test_a_call_is_repeated_after_the_pause_the_server_asks_for() -> None:
    busy = httpx.Response(503, json={"code": "overloaded", "detail": "d"}, headers={"retry-after": "7"})
    client, pauses = blocking(busy, httpx.ReadError("reset"), httpx.Response(200, json=EMPTY))
    assert client.read(Q).entries == []
    assert pauses[0] == 7.0
    assert len(pauses) == 2


def test_repeats_end() -> None:
    busy = [httpx.Response(503, json={"code": "overloaded", "detail": "d"}) for _ in range(3)]
    client, pauses = blocking(*busy, retry=Retry(attempts_max=3))
    with pytest.raises(Unavailable):
        client.read(Q)
    assert len(pauses) == 2


def test_an_async_iterable_is_told_to_be_out_of_place() -> None:
    async def source() -> object:
        import trio

        await trio.sleep(1)
        return 1

    with pytest.raises(RuntimeError):
        finish(source())


def test_threads_share_a_client() -> None:
    with running() as server, SyncClient(server.url) as client:

        def work(number: int) -> int:
            client.append(Q, [NewEntry({"n": number}, id=f"e{number}")])
            assert client.get(Q, f"e{number}").data == {"n": number}
            return number

        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(work, range(200))) == list(range(200))
        assert client.stats(Q).entries == 200
