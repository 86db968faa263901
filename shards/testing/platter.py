"""The simulated disk: a log of everything done to the files of one folder, and power cuts through it."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from shards.testing.remains import (
    ROOT,
    Birth,
    Cursor,
    Entries,
    Mark,
    Op,
    Resize,
    Survivors,
    SyncBegun,
    SyncEnded,
    SyncFailed,
    Write,
)


class Cut(NamedTuple):
    """One cut; `Platter.cut(at, random.Random(seed), ...)` makes the same one again."""

    at: int
    seed: int
    folder: Path
    marks: list[object]  # made before it


class Platter:
    """The log of one folder and the names as they are now. Paths are resolved; others' are not ours."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.ops: list[Op] = []
        self._marks: list[int] = []  # op numbers
        self._inodes: dict[Path, int] = {self.root: ROOT}
        self._sizes: dict[int, int] = {}  # of files, in bytes; its length and the folders' number the inodes
        self._born = ROOT
        self._holding = False
        self._held: int | None = None  # the sync that ends when its work does something else, or ends
        self._cursor = Cursor(self.ops)
        self.look(self.root, deep=True)
        for inode in self._inodes.values():
            self.end_sync(self.begin_sync(inode))
        self.start = len(self.ops)  # cuts before this one would go through what was there at first

    def owns(self, path: Path) -> bool:
        """Is the path the simulated folder or below it?"""
        return path == self.root or self.root in path.parents

    # -- what is done to files --------------------------------------------------------------------------

    def record(self, op: Op) -> int:
        """Append an op, return its number."""
        if self._held is not None:
            held, self._held = self._held, None
            self.ops.append(SyncEnded(held))
        self.ops.append(op)
        return len(self.ops) - 1

    def inode(self, path: Path) -> int | None:
        """Return what the name stands for now."""
        return self._inodes.get(path)

    def size(self, inode: int) -> int:
        """Return the file's size in bytes."""
        return self._sizes[inode]

    def folder(self, path: Path) -> int:
        """Return the folder's inode; a folder not seen before is recorded as made now."""
        inode = self._inodes.get(path)
        return self._link(path, folder=True) if inode is None else inode

    def create(self, path: Path) -> int:
        """Make an empty file."""
        inode = self._link(path, folder=False)
        self._sizes[inode] = 0
        return inode

    def adopt(self, path: Path) -> int:
        """Take in a file that was not made through the simulated disk, as if it were written now."""
        inode, data = self.create(path), path.read_bytes()
        if data:
            self.write(inode, 0, data)
        return inode

    def look(self, folder: Path, *, deep: bool = False) -> None:
        """Record what was made and deleted in a folder without the simulated disk, as if it were done now."""
        known = {path for path in self._inodes if path.parent == folder and path != self.root}
        found = {path for path in folder.iterdir() if not path.name.endswith("-shm")}  # a cut forgets those
        for path in sorted(known - found):
            self.unlink(path)
        for path in sorted(found - known):
            self.folder(path) if path.is_dir() else self.adopt(path)
        for path in sorted(found) if deep else ():
            if path.is_dir():
                self.look(path, deep=True)

    def _link(self, path: Path, *, folder: bool) -> int:
        assert self.owns(path), f"{path} is outside {self.root}"
        parent = self.folder(path.parent)
        self._born += 1
        self.record(Birth(self._born, folder))
        self.record(Entries(parent, ((path.name, self._born),)))
        self._inodes[path] = self._born
        return self._born

    def write(self, inode: int, offset: int, data: bytes) -> None:
        """Put bytes into a file."""
        self.record(Write(inode, offset, data))
        self._sizes[inode] = max(self._sizes[inode], offset + len(data))

    def resize(self, inode: int, size: int) -> None:
        """Cut a file off, or extend it with zeros."""
        self.record(Resize(inode, size))
        self._sizes[inode] = size

    def unlink(self, path: Path) -> None:
        """Take a name away; open descriptors keep the inode."""
        del self._inodes[path]
        self.record(Entries(self.folder(path.parent), ((path.name, None),)))

    def link(self, source: Path, target: Path) -> None:
        """Give a file a further name, perhaps in another folder."""
        inode = self._inodes[target] = self._inodes[source]
        self.record(Entries(self.folder(target.parent), ((target.name, inode),)))

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name in the same folder, replacing what had that name, in one step."""
        assert source.parent == target.parent, "renames across folders are not simulated"
        inode = self._inodes[target] = self._inodes.pop(source)
        self.record(Entries(self.folder(source.parent), ((source.name, None), (target.name, inode))))

    # -- syncs ------------------------------------------------------------------------------------------

    def begin_sync(self, inode: int) -> int:
        """Start a sync; return its number."""
        return self.record(SyncBegun(inode))

    def end_sync(self, begun: int) -> None:
        """Make durable what the sync covers; while holding, once its work does something else or ends."""
        if self._holding:
            self._held = begun
        else:
            self.record(SyncEnded(begun))

    def settle(self) -> None:
        """End the sync in flight now: SQLite goes on from its own syncs as soon as they return.

        What it then knows is seen by its other connections at once, so such a sync must not seem to last longer.
        """
        if self._held is not None:
            held, self._held = self._held, None
            self.record(SyncEnded(held))

    def fail_sync(self, begun: int) -> None:
        """Forget what the sync covers."""
        self.record(SyncFailed(begun))

    def hold(self) -> None:
        """Work begins that takes time; nothing else may be recorded until `let_go`."""
        self._holding = True

    def let_go(self) -> int | None:
        """Others go on; return the sync that is still in flight, to be ended with `end_sync`."""
        self._holding = False
        held, self._held = self._held, None
        return held

    # -- marks and cuts ---------------------------------------------------------------------------------

    def mark(self, value: object) -> None:
        """Append a mark to the log. No step of the disk: a sync in flight stays in flight."""
        self._marks.append(len(self.ops))
        self.ops.append(Mark(value))

    def failed_syncs(self) -> list[int]:
        """Return the op numbers at which syncs failed: what went wrong after one shows in cuts close by."""
        return [at for at, op in enumerate(self.ops) if isinstance(op, SyncFailed)]

    def marks_before(self, at: int) -> list[object]:
        """Return what was marked before op `at`, oldest first."""
        marks = (self.ops[number] for number in self._marks[: bisect_left(self._marks, at)])
        return [mark.value for mark in marks if isinstance(mark, Mark)]

    def cut(self, at: int, rng: random.Random, target: Path, survivors: Survivors = "some") -> None:
        """Fill the empty folder `target` with what the disk may hold, power gone after the first `at` ops.

        survivors: what is left of changes that no sync made certain: any subset and torn, none, or all.
        Rising `at` are cheap; a lower one than last time walks the log from its start again.
        """
        assert self.start <= at <= len(self.ops), f"{at} is not between {self.start} and {len(self.ops)}"
        if at < self._cursor.at:
            self._cursor = Cursor(self.ops)
        self._cursor.advance(at)
        self._cursor.spill(rng, survivors, target)

    def cuts(
        self, count: int, rng: random.Random, target: Path, *, since: int = 0, until: int | None = None
    ) -> Iterator[Cut]:
        """Yield `count` random cuts from op `since` to `until`, rising, each in `target` emptied anew.

        By default anywhere from the start to now.
        """
        since, until = max(since, self.start), len(self.ops) if until is None else until
        for at in sorted(rng.randint(since, until) for _ in range(count)):
            seed = rng.getrandbits(32)
            _empty(target)
            self.cut(at, random.Random(seed), target)
            yield Cut(at, seed, target, self.marks_before(at))


def _empty(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.is_dir():
            _empty(path)
            path.rmdir()
        else:
            path.unlink()
