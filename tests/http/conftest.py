"""A server over a fresh folder, in virtual time, and a client that calls it in-process."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from edgequeues.app import open_app
from edgequeues.control import Control
from edgequeues.http.server import Server
from shards.testing import InlineDisk, TrioClock

from .asgi import Client
from .fronted import FRONTS, FrontName, behind
from .world import World, worlds


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Control]:
    """A file of tokens without any."""
    with Control.open(tmp_path) as control:
        yield control


@pytest.fixture
async def clock() -> TrioClock:
    return TrioClock()


@pytest.fixture
async def server(tmp_path: Path, clock: TrioClock) -> AsyncIterator[Server]:
    async with open_app(
        tmp_path / "data", clock=clock, disk=InlineDisk(), randomness=random.Random(1)
    ) as app:
        yield app


@pytest.fixture(params=FRONTS)
def front(request: pytest.FixtureRequest) -> FrontName:
    """What is in the way of a test's requests: each front in turn, unless the test says `only`."""
    name: FrontName = request.param
    return name


@pytest.fixture
async def client(server: Server, front: FrontName) -> Client:
    return Client(behind(front, server))


@pytest.fixture
async def world(tmp_path: Path, front: FrontName) -> AsyncIterator[World]:
    async with worlds(tmp_path, front) as world:
        yield world
