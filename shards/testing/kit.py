"""A namespace for a test: a folder of its own, no threads, virtual time, and chance that repeats."""

from __future__ import annotations

import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import trio
from trio.testing import MockClock

from shards.clock import Clock
from shards.disk import Disk
from shards.journal import Journal
from shards.limits import Limits
from shards.namespace import Namespace, open_namespace
from shards.shard import Shard
from shards.testing.clock import TrioClock
from shards.testing.disk import InlineDisk

S = TypeVar("S", bound=Shard)
T = TypeVar("T")


@asynccontextmanager
async def running(
    kind: type[S],
    folder: Path | None = None,
    *,
    disk: Disk | None = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
    journal: Callable[[str], Journal] | None = None,
    seed: int = 0,
) -> AsyncIterator[Namespace[S]]:
    """Serve shards of `kind` until the block ends, in `folder`, or in a temporary one that is deleted then.

    disk: real files without threads (`InlineDisk`). clock: follows trio's, so `trio.sleep` under a MockClock moves
    it (`TrioClock`). Give both if the same test opens the folder twice. seed: what the shards' `random` starts from.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shards-")))
        async with open_namespace(
            kind,
            folder,
            clock=clock or TrioClock(),
            disk=disk or InlineDisk(),
            limits=limits,
            journal=journal,
            randomness=random.Random(seed),
        ) as namespace:
            yield namespace


def run_virtual(main: Callable[[], Awaitable[T]]) -> T:
    """Run `main` with trio, but skip the waiting: when every task sleeps, the clock jumps to the next deadline."""
    return trio.run(main, clock=MockClock(autojump_threshold=0))
