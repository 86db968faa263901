"""Async tests run in virtual time, except those that run real processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TypeVar

import pytest
import trio
from hypothesis import HealthCheck, settings
from trio.abc import Clock, Instrument
from trio.testing import MockClock

# How long an example takes says something of the machine alone.
settings.register_profile("untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

T = TypeVar("T")

REAL_TIME = {
    Path(__file__).parent / name
    for name in (
        "blobs",
        "conformance",
        "e2e",
        "workers",
        "daemon/handlers",
        "daemon/test_connections.py",
        "daemon/test_smtp.py",
        "daemon/test_download_sockets.py",
        "sessions/test_threads.py",
        "sessions/test_tmux.py",
    )
}


def virtual(
    test: Callable[[], Awaitable[T]], *, clock: Clock | None = None, instruments: Sequence[Instrument] = ()
) -> T:
    """Run one test; whenever every task sleeps, the clock jumps to the next deadline.

    pytest-trio finds a clock only among the test's own arguments, so one that a fixture asked for would be real.
    """
    clock = clock or MockClock(autojump_threshold=0)
    return trio.run(test, clock=clock, instruments=instruments)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Choose the clock before pytest-trio marks what is left with its own: the first mark counts."""
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        function = item.obj
        if hasattr(function, "hypothesis"):
            function = function.hypothesis.inner_test
        if not iscoroutinefunction(function):
            continue
        run = virtual if REAL_TIME.isdisjoint([item.path, *item.path.parents]) else trio.run
        item.add_marker(pytest.mark.trio(run=run), append=False)
