"""Which front the servers of a test have: the lane, or each in turn where a module says BOTH_FRONTS = True."""

from __future__ import annotations

from typing import Literal, get_args

import pytest

Front = Literal["lane", "hypercorn"]
FRONTS: tuple[Front, ...] = get_args(Front)

chosen: Front = "lane"


@pytest.fixture(autouse=True)
def front(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Front:
    """Choose the front of all servers that this test starts."""
    wanted: Front = getattr(request, "param", "lane")
    monkeypatch.setattr(f"{__name__}.chosen", wanted)
    return wanted


def both_fronts(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module that says so at each front."""
    if getattr(metafunc.module, "BOTH_FRONTS", False):
        metafunc.parametrize("front", FRONTS, indirect=True)
