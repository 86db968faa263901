"""A hand that takes copies of shards and puts them in place, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import apsw
import trio

from shards import copying
from shards.copying import Copies
from shards.namespace import Namespace
from shards.replacing import Placed, Replacements
from shards.testing import running

from .examples import Notes, foreign, path_of


def wrong(db: apsw.Connection) -> list[str]:
    """The invariant of Notes here: no text is `wrong`."""
    return ["a text is wrong"] if db.execute("SELECT 1 FROM note WHERE text = 'wrong'").get else []


def nothing(_: Notes, __: Placed) -> None:
    """A first turn that does nothing."""


class Hand:
    """Takes copies of a namespace's shards, and puts them in place."""

    def __init__(self, namespace: Namespace[Notes]) -> None:
        self.copies = Copies(namespace)
        self.replacements = Replacements(namespace, self.copies, wrong)

    async def take(self, name: str = "a") -> bytes:
        return b"".join([piece async for piece in self.copies.pieces(await self.copies.take(name))])

    async def put(
        self, content: bytes, name: str = "a", *, sha256: str | None = None, replace: bool = True
    ) -> bool:
        placed = await self.replacements.put(
            name, pieces(content), sha256=sha256, replace=replace, first=nothing
        )
        assert placed.bytes == len(content)
        return placed.replaced


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    """The content in pieces."""
    for start in range(0, len(content), 5_000):
        await trio.lowlevel.checkpoint()
        yield content[start : start + 5_000]


async def copy_of(*texts: str, also: Callable[[apsw.Connection], object] | None = None) -> bytes:
    """A copy of a shard with these texts; `also`: what is done to its file."""
    async with running(Notes) as namespace:
        for text in texts:
            await namespace.ref("any").call(Notes.add, text)
        content = await Hand(namespace).take("any")
        if also is None:
            return content
        await namespace.evict("any")
        path = path_of(namespace, "any")
        with foreign(path) as db:
            also(db)
            db.pragma("journal_mode", "delete")
        return path.read_bytes()


def left_in(namespace: Namespace[Notes]) -> list[str]:
    return [path.name for path in (namespace.folder / copying.FOLDER).glob("*")]
