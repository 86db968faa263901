"""The composition root: the only module that constructs everything."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from edgequeues.http import native, nodes
from edgequeues.http.pages import make_pages
from edgequeues.http.server import Server
from edgequeues.http.waits import Waits
from edgequeues.router import SPACES_MAX, Router
from edgequeues.space.shard import SpaceShard
from shards.clock import Clock
from shards.disk import Disk
from shards.limits import Limits
from shards.namespace import open_namespace


@asynccontextmanager
async def open_app(
    data: Path,
    *,
    clock: Clock | None = None,
    disk: Disk | None = None,
    limits: Limits | None = None,
    randomness: random.Random | None = None,
    spaces_max: int = SPACES_MAX,
    allowed_hosts: Iterable[str] = (),
) -> AsyncIterator[Server]:
    """Open the data folder, made if absent, and yield the ASGI app over it; leaving drains and closes it.

    Defaults are the real clock, disk and randomness. Raises what `shards.namespace.open_namespace` raises.
    """
    async with open_namespace(
        SpaceShard, data, clock=clock, disk=disk, limits=limits, randomness=randomness
    ) as namespace:
        router = Router(namespace, spaces_max=spaces_max)
        waits = Waits()
        table = [*native.routes(router, waits), *nodes.routes(router, waits)]
        yield Server(table, make_pages(), waits, allowed_hosts=allowed_hosts)
