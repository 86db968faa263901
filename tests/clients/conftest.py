"""One server a module, and each test on trio, on asyncio, and with the client that blocks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgequeues.testing import RunningServer, running

from .ways import WAYS, Run, Way
from .ways import run as run_on


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running() as server:
        yield server


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen


@pytest.fixture
def run(server: RunningServer, way: Way) -> Run:
    return lambda test: run_on(way, server.url, test)


@pytest.fixture
def space(way: Way, request: pytest.FixtureRequest) -> str:
    """A space for this test alone."""
    return f"s{abs(hash(request.node.nodeid)):x}"


@pytest.fixture
def q(space: str) -> str:
    return f"dxn:queue:{space}:q"
