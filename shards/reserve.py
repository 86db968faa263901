"""Room kept back for a full disk: a preallocated file that is given up so that deletes can still be written."""

from __future__ import annotations

import errno
from pathlib import Path

import trio

from shards.clock import Clock
from shards.disk import Disk
from shards.errors import DiskFull

RETRY_MS = 1_000  # how often a refused call may look whether there is room again


class Reserve:
    """The reserve file, and whether the disk counts as full."""

    def __init__(self, path: Path, size: int, disk: Disk, clock: Clock) -> None:
        self.full = False
        self._path = path
        self._size = size
        self._disk = disk
        self._clock = clock
        self._tried_ms = 0
        self._lock = trio.Lock()

    async def prepare(self) -> None:
        """Make the reserve at start; a disk that has no room for it counts as full."""
        self.full = not await self._make()

    async def give_up(self) -> None:
        """The disk is full: hand the reserved room to deletes and checkpoints."""
        if not self.full:
            self.full = True
            self._tried_ms = self._clock.now_ms()
            await self._disk.run(lambda: self._disk.remove(self._path))

    async def admit(self) -> None:
        """Let a call that needs room pass, or raise DiskFull. Looks for room at most once a second."""
        now_ms = self._clock.now_ms()
        if abs(now_ms - self._tried_ms) >= RETRY_MS and not self._lock.locked():
            self._tried_ms = now_ms
            async with self._lock:
                self.full = not await self._make()
        if self.full:
            raise DiskFull(str(self._path.parent))

    async def _make(self) -> bool:
        if self._path.exists() and self._path.stat().st_size == self._size:
            return True
        try:
            await self._disk.run(lambda: self._disk.allocate(self._path, self._size))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            await self._disk.run(lambda: self._disk.remove(self._path))
            return False
        return True
