"""Blobs by way of the library obstore: its blocking calls, in worker threads, a few at once.

This module and those of the backends are loaded when the first blob is stored or read.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import obstore
import trio
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from edgequeues.core.errors import BlobConflict, BlobNotFound, BlobStoreDown
from shards.disk import Disk

PIECE_BYTES = 256 * 1024  # of what is read, and so of what one download holds in memory
AT_ONCE = 16

log = logging.getLogger("edgequeues.blobs")

T = TypeVar("T")


class Objects:
    """What backends have in common."""

    def __init__(self, store: ObjectStore, disk: Disk) -> None:
        self._store = store
        self._disk = disk
        self._room = trio.CapacityLimiter(AT_ONCE)

    async def read(self, path: str, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to `stop`, in pieces. Raises BlobNotFound, BlobStoreDown."""
        if start == stop:
            return
        try:
            pieces = await self._run(lambda: self._pieces(path, start, stop))
        except FileNotFoundError as error:
            raise BlobNotFound("the bytes of the blob are gone") from error
        while (piece := await self._run(lambda: next(pieces, None))) is not None:
            yield piece

    async def delete(self, path: str) -> None:
        """Have no bytes here any more, durably. Raises BlobStoreDown."""
        await self._run(lambda: self._delete(path))

    # -- for the backends: blocking ---------------------------------------------------------------------

    def _place(self, path: str) -> str:
        """Where a path is in obstore's words."""
        return path

    def _pieces(self, path: str, start: int, stop: int) -> Iterator[bytes]:
        found = obstore.get(self._store, self._place(path), options={"range": (start, stop)})
        return map(bytes, found.stream(min_chunk_size=PIECE_BYTES))

    def _compare(self, path: str, data: bytes) -> None:
        """Raises BlobConflict where other bytes than these are kept."""
        size = obstore.head(self._store, self._place(path))["size"]
        at = 0
        if size == len(data) and size:
            for piece in self._pieces(path, 0, size):
                if data[at : at + len(piece)] != piece:
                    break
                at += len(piece)
        if size != len(data) or at != size:
            raise BlobConflict("other bytes are kept under this key")

    def _delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            obstore.delete(self._store, self._place(path))

    async def _run(self, work: Callable[[], T]) -> T:
        """Run blocking work off the event loop. Raises BlobStoreDown, FileNotFoundError."""
        async with self._room:
            try:
                return await self._disk.run(work)
            except FileNotFoundError:
                raise
            except (BaseError, OSError) as error:
                log.warning("the object store: %s", str(error).partition("\n")[0])
                raise BlobStoreDown from error
