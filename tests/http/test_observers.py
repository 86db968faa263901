"""Who watches the server is told of each request once, in words of which there are few."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgequeues.app import open_app
from edgequeues.http.observing import CLIENT_GONE, Served, Watchers
from shards.testing import InlineDisk, TrioClock

from .asgi import Client
from .fronted import FrontName, behind


@pytest.fixture
def seen() -> list[Served]:
    """What the observer was told."""
    return []


@pytest.fixture
async def client(
    tmp_path: Path, clock: TrioClock, front: FrontName, seen: list[Served]
) -> AsyncIterator[Client]:
    """A client of a server that is watched."""
    opened = open_app(
        tmp_path / "data",
        clock=clock,
        disk=InlineDisk(),
        randomness=random.Random(1),
        watchers=Watchers([seen.append]),
    )
    async with opened as app:
        yield Client(behind(front, app))


async def test_each_request_is_told_of_by_its_route(client: Client, seen: list[Served]) -> None:
    await client.append("dxn:queue:demo:log", {"n": 1})
    await client.ask("GET", "/v1/dxn:queue:demo:log")
    await client.ask("GET", "/v1/dxn:queue:demo:log:nothing")
    await client.ask("PROPFIND", "/v1/dxn:queue:demo:log")
    await client.ask("GET", "/healthz")
    await client.ask("GET", "/v1/nowhere")
    await client.ask("GET", "/")
    await client.ask("GET", "/nowhere")
    assert [one._replace(seconds=0) for one in seen] == [
        Served("native", "/v1/{dxn}", "POST", 200, 0, "loopback"),
        Served("native", "/v1/{dxn}", "GET", 200, 0, "loopback"),
        Served("native", "/v1/{dxn}", "GET", 404, 0, "loopback"),
        Served("native", "", "OTHER", 405, 0, "loopback"),
        Served("native", "/healthz", "GET", 200, 0, ""),
        Served("native", "", "GET", 404, 0, "loopback"),
        Served("pages", "", "GET", 200, 0, ""),
        Served("pages", "", "GET", 404, 0, ""),
    ]
    assert all(one.seconds > 0 for one in seen)


async def test_a_request_that_nobody_waits_for_is_told_of_too(client: Client, seen: list[Served]) -> None:
    async with client.open("POST", "/v1/dxn:queue:demo:log", headers=[(b"content-length", b"9")]) as exchange:
        exchange.hang_up()
        await exchange.ended.wait()
    assert [(one.route, one.status) for one in seen] == [("/v1/{dxn}", CLIENT_GONE)]


async def test_a_stream_is_told_of_when_it_ends(client: Client, seen: list[Served]) -> None:
    async with client.open("GET", "/v1/dxn:queue:demo:log/subscribe") as exchange:
        exchange.end(b"")
        await exchange.begun()
        assert not seen
        exchange.hang_up()
        await exchange.ended.wait()
    assert [(one.route, one.status) for one in seen] == [("/v1/{dxn}/subscribe", 200)]
