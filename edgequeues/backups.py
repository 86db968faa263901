"""Backups of what a server holds: the files of spaces, taken and put back, and its control file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from pathlib import Path

from msgspec import Struct

from edgequeues import control
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidBackup, QueueNotFound
from edgequeues.core.who import Who
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from edgequeues.specs import Renewed, Specs
from shards.copying import Copy, insist
from shards.disk import Disk
from shards.errors import NotACopy
from shards.replacing import Placed


class Restored(Struct, frozen=True):
    """What became of a backup. specs: those of the space, which hold in what is there now, or why they do not."""

    placed: Placed
    specs: list[Renewed]


class Backups:
    """Takes and restores them. data: the data folder."""

    def __init__(self, router: Router, specs: Specs, data: Path, disk: Disk) -> None:
        self._router = router
        self._specs = specs
        self._data = data
        self._disk = disk

    async def take(self, of: Dxn, who: Who) -> Copy:
        """Copy the file of a space, or of its traces, and have that on record in it: `pieces` gives the bytes.

        Raises QueueNotFound, and what `Copies.take` raises.
        """
        found = await self._router.find_shard(of.shard)
        if found is None:
            raise QueueNotFound(f"space {of.space}")
        copy = await self._router.copies.take(found.name)
        await insist(lambda: found.call(by(who, SpaceShard.backed_up), copy.bytes, copy.sha256))
        return copy

    def pieces(self, copy: Copy) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a copy, then close it."""
        return self._router.copies.pieces(copy)

    async def restore(
        self,
        to: Dxn,
        pieces: AsyncIterator[bytes],
        *,
        sha256: str | None,
        replace: bool,
        who: Who,
        stranger: bool,
    ) -> Restored:
        """Put a copy in the place of a space, and have the space's specs hold in it.

        stranger: is it somebody nobody knows who asks? Raises InvalidBackup, and what `Router.make` and
        `Replacements.put` raise.
        """
        ref = await self._router.make(to, stranger=stranger)
        noted = by(who, SpaceShard.restored)
        try:
            placed = await self._router.replacements.put(
                ref.name, pieces, sha256=sha256, replace=replace, first=noted
            )
        except NotACopy as error:
            raise InvalidBackup(error.detail) from error
        return Restored(placed, await self._specs.renew(to.space, who) if to.tag == "data" else [])

    async def control(self) -> bytes:
        """The control file as it is now: tokens, of which it has no secrets, and specs. Raises ControlError."""
        return await self._disk.run(partial(control.image, self._data))
