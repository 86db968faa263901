"""A folder that managers of sessions work on, in virtual time."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from edgequeues.models import NewEntry
from edgequeues.router import Router
from edgequeues.sessions.local import LocalInbox
from edgequeues.space.shard import SpaceShard
from shards.files import path_of
from shards.namespace import Ref
from shards.testing import TrioClock, running

from .inboxes import QUEUE, SPACE, Base, Make


class Folder(Base):
    """A data folder that is open in this process."""

    def __init__(self, path: Path, nursery: trio.Nursery) -> None:
        super().__init__(path, self._open, nursery)
        self.path = path
        self._space: Ref[SpaceShard]

    @property
    def clock(self) -> TrioClock:
        return self._clock

    @asynccontextmanager
    async def _open(self, path: Path, clock: TrioClock) -> AsyncIterator[Make]:
        async with running(SpaceShard, path, clock=clock) as namespace:
            router, self._space = Router(namespace), namespace.ref(SPACE)
            yield lambda worker="manager", queue=QUEUE: LocalInbox(router, SPACE, queue, worker=worker)

    async def push(self, data: str, *, key: str) -> None:
        """Push what need not be a message for a session."""
        await self._space.call(SpaceShard.push, QUEUE, [NewEntry(data, key=key)])

    async def count(self) -> int:
        """Messages in the queue, finished ones too."""
        return (await self._space.call(SpaceShard.stats, QUEUE)).entries

    async def table(self, columns: str) -> list[tuple[object, ...]]:
        """Rows of the view `inbound_queue`, in order; the folder is closed for that, and opened again."""
        await self.stop()
        db = sqlite3.connect(path_of(self.path, SPACE))
        try:
            return db.execute(f"SELECT {columns} FROM inbound_queue ORDER BY id").fetchall()
        finally:
            db.close()
            await self.start()


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Folder]:
    async with trio.open_nursery() as nursery:
        folder = Folder(tmp_path, nursery)
        await folder.start()
        yield folder
        await folder.stop()
