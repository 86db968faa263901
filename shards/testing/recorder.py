"""The record of a simulated disk: each step meets the armed faults and the room left, then is logged."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shards.testing.faults import Faults, os_error
from shards.testing.platter import Cut, Platter
from shards.testing.remains import Survivors


class Recorder(Faults):
    """Faults over a platter. Steps are counted as ops; `now` is their number so far."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.platter = Platter(folder)
        self.dead = False  # a killed process: what SQLite does has no effect

    # -- for tests --------------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """How many ops there were: the `at` of a cut that happens now."""
        return len(self.platter.ops)

    def mark(self, value: object) -> None:
        """Put a mark into the history, such as what has just been confirmed to a caller."""
        self.platter.mark(value)

    def marks_before(self, at: int) -> list[object]:
        """Return the marks before op `at`, oldest first."""
        return self.platter.marks_before(at)

    def cut(self, at: int, rng: random.Random, target: Path, survivors: Survivors = "some") -> None:
        """Fill the empty folder `target` as `Platter.cut` does."""
        self.platter.cut(at, rng, target, survivors)

    def cuts(
        self, count: int, rng: random.Random, target: Path, *, since: int = 0, until: int | None = None
    ) -> Iterator[Cut]:
        """Yield random cuts as `Platter.cuts` does."""
        return self.platter.cuts(count, rng, target, since=since, until=until)

    @contextmanager
    def killed(self) -> Iterator[None]:
        """Let what SQLite does have no effect: closing its connections inside is what SIGKILL would leave."""
        self.dead = True
        try:
            yield
        finally:
            self.dead = False

    # -- for the disk -----------------------------------------------------------------------------------

    def sync(self, inode: int, path: Path) -> None:
        """Record a sync. Raises OSError when it is to fail."""
        begun = self.platter.begin_sync(inode)
        if self.strikes("sync", path):
            self.platter.fail_sync(begun)
            raise os_error(errno.EIO, path)
        self.platter.end_sync(begun)

    def sync_folder(self, folder: Path) -> None:
        """Record a sync of the folder, and first what was made in it behind our back. Raises OSError."""
        folder = folder.resolve(strict=True)
        if self.platter.owns(folder):
            self.platter.look(folder)
            self.sync(self.platter.folder(folder), folder)

    def open(self, path: Path) -> int:
        """Return the inode of a file that is there, or is about to be made."""
        inode = self.platter.inode(path)
        if inode is not None:
            return inode
        return self.platter.adopt(path) if path.exists() else self.platter.create(path)

    def resize(self, inode: int, size: int) -> bool:
        """Record a file's new size; False, and nothing recorded, if there is no room."""
        growth = size - self.platter.size(inode)
        granted = self.take_room(growth)
        if granted < growth:
            self.take_room(-granted)
            return False
        self.platter.resize(inode, size)
        return True

    def fitting(self, inode: int, offset: int, length: int) -> int:
        """Use the room that a write needs; return how many of its bytes fit."""
        growth = max(0, offset + length - self.platter.size(inode))
        granted = self.take_room(growth)
        fits = length - (growth - granted)
        if fits <= 0:
            self.take_room(-granted)
        return max(0, fits)

    def unlink(self, path: Path) -> None:
        """Record that a name is gone, if it was known, and give its file's room back."""
        inode = self.platter.inode(path)
        if inode is not None:
            self.take_room(-self.platter.size(inode))
            self.platter.unlink(path)
