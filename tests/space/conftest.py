"""Spaces for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .world import Space, SpaceFile


@pytest.fixture
def space() -> Iterator[Space]:
    made = Space()
    yield made
    made.db.close()


@pytest.fixture
def space_file(tmp_path: Path) -> Iterator[SpaceFile]:
    made = SpaceFile(tmp_path / "space.db")
    yield made
    made.close()
