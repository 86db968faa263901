"""A server with settings of a test's choice, and the command line's connection to its control file."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from edgequeues.app import open_app
from edgequeues.control import Control
from edgequeues.core.grants import grant
from edgequeues.http.server import Server
from edgequeues.settings import Settings
from shards.testing import InlineDisk, TrioClock

from .asgi import Client, Exchange, Reply
from .fronted import FrontName, behind

Header = tuple[bytes, bytes]


def bearer(text: str) -> Header:
    """The header that carries a token."""
    return b"authorization", f"Bearer {text}".encode()


class World:
    """A data folder, its tokens and its server. control: another connection than the server's."""

    def __init__(self, folder: Path, control: Control, nursery: trio.Nursery, front: FrontName) -> None:
        self.front = front
        self.folder = folder
        self.control = control
        self.clock = TrioClock()
        self._nursery = nursery
        self._over = trio.Event()

    async def open(self, **settings: Any) -> Client:
        """Start the server."""
        return Client(behind(self.front, await self.server(**settings)))

    async def server(self, **settings: Any) -> Server:
        """Start the server, and give the app itself."""
        server: Server = await self._nursery.start(self._serve, Settings(**settings))
        return server

    async def _serve(self, settings: Settings, *, task_status: trio.TaskStatus[Server]) -> None:
        async with open_app(
            self.folder, settings, clock=self.clock, disk=InlineDisk(), randomness=random.Random(1)
        ) as server:
            task_status.started(server)
            await self._over.wait()

    def end(self) -> None:
        """Stop the server."""
        self._over.set()

    def token(
        self,
        *verbs: str,
        spaces: Sequence[str] = (),
        queues: Sequence[str] = (),
        name: str = "laptop",
        expires_in_ms: int | None = None,
    ) -> Header:
        """Make a token, as the command line does; return the header that carries it."""
        now_ms = self.clock.now_ms()
        expires = None if expires_in_ms is None else now_ms + expires_in_ms
        _, text = self.control.create(name, grant(verbs, spaces, queues), now_ms=now_ms, expires=expires)
        assert text is not None
        return bearer(text)

    def let_everybody(self, *verbs: str, spaces: Sequence[str] = (), queues: Sequence[str] = ()) -> None:
        """Grant something to those without a token."""
        granted = grant(verbs, spaces, queues)
        self.control.create("everybody", granted, now_ms=self.clock.now_ms(), anonymous=True)

    def revoke(self, name: str = "laptop") -> None:
        """Revoke a token."""
        self.control.revoke(name, now_ms=self.clock.now_ms())


@asynccontextmanager
async def worlds(folder: Path, front: FrontName) -> AsyncIterator[World]:
    """A world, whose server is closed at the end."""
    data = folder / "data"
    with Control.open(data) as control:
        async with trio.open_nursery() as nursery:
            world = World(data, control, nursery, front)
            yield world
            world.end()


async def heeded() -> None:
    """Wait as long as a change of the control file may go unnoticed."""
    await trio.sleep(1)


def denied(reply: Reply) -> str:
    """Take a 401 or 403 apart: its code."""
    assert reply.status in (401, 403)
    challenge = 'Bearer realm="edgequeues"' if reply.status == 401 else None
    assert reply.headers.get("www-authenticate") == challenge
    return reply.code


def challenged(reply: Reply) -> bool:
    """Does it ask for a token, in the native protocol's words?"""
    return reply.status == 401 and denied(reply) == "unauthenticated"


async def cut_short(exchange: Exchange) -> bytes:
    """Wait for the end of an answer, which must not be whole; return what still came."""
    with trio.fail_after(60):
        rest = await exchange.rest()
        await exchange.ended.wait()
    assert not exchange.whole
    return rest
