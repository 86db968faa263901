"""Fixtures of pytest. To be imported in a conftest.py; nothing else here needs pytest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgequeues.testing.server import RunningServer, running


@pytest.fixture
def edgequeues_server() -> Iterator[RunningServer]:
    """Give a test a server of its own, over an empty folder that is gone afterwards."""
    with running() as server:
        yield server
