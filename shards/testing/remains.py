"""What is left of files when the power fails: the ops that were done to them, and what of those a disk keeps.

A write is certain only when a sync of its file that began after it has ended; a name, when a sync of its
folder has. Until then each write, truncation and change of a name survives or not, whatever became of its
neighbours, and a write may survive in part. This promises less than the file systems we run on do, which
makes it the right thing to test against.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

ROOT = 0  # the inode of the simulated folder
SECTORS = (512, 4096)  # bytes a drive writes whole, never partly

Survivors = Literal["some", "none", "all"]


class Birth(NamedTuple):
    """An inode comes to be, empty."""

    inode: int
    folder: bool


class Write(NamedTuple):
    """Bytes are put at an offset; the file grows if it must."""

    inode: int
    offset: int
    data: bytes


class Resize(NamedTuple):
    """The file is cut off or extended with zeros."""

    inode: int
    size: int


class Entries(NamedTuple):
    """Names of one folder change together: a name gets an inode, or (None) goes."""

    inode: int
    changes: tuple[tuple[str, int | None], ...]


class SyncBegun(NamedTuple):
    """A sync of a file or folder starts; it covers all that was done to it before."""

    inode: int


class SyncEnded(NamedTuple):
    """The sync begun at that op number has succeeded."""

    begun: int


class SyncFailed(NamedTuple):
    """The sync begun at that op number has failed; what it covered is forgotten: no later sync writes it."""

    begun: int


class Mark(NamedTuple):
    """Something a test wants to find again, such as "row 17 was confirmed"."""

    value: object


Change = Write | Resize | Entries
Op = Birth | Change | SyncBegun | SyncEnded | SyncFailed | Mark


class Fate(Enum):
    """What has become of a change."""

    PENDING = "no sync has covered it yet"
    DURABLE = "certain, but an earlier lost change of the same file is not, so it must be replayed after that"
    LOST = "a failed sync covered it: it may be on the disk, but no later sync writes it"


class Luck:
    """The dice of one file in one cut: what survives of changes that no sync made certain."""

    def __init__(self, rng: random.Random, survivors: Survivors) -> None:
        self._rng = rng
        self._survivors = survivors
        if survivors == "some":  # extremes too: with even odds, "all but one" of many would never come up
            self._keep = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
            self._tear = rng.choice((0.0, 0.1, 0.5))
            self._sector = rng.choice(SECTORS)

    def keeps(self, fate: Fate) -> bool:
        """Does the change survive? A lost one never does where "all" do: there the hole is certain."""
        if fate is Fate.DURABLE or self._survivors != "some":
            return fate is Fate.DURABLE or (fate is Fate.PENDING and self._survivors == "all")
        return self._rng.random() < self._keep

    def grows(self) -> bool:
        """Has the file's size changed although the data did not arrive?"""
        return self._survivors == "some" and self._rng.random() < 0.1

    def pieces(self, write: Write, fate: Fate) -> Iterable[Write]:
        """Return what survives of a write, cut at sectors of the disk."""
        if self._survivors != "some" or fate is Fate.DURABLE or self._rng.random() >= self._tear:
            return (write,) if self.keeps(fate) else ()
        first, end = write.offset, write.offset + len(write.data)
        bounds = [first, *range(first - first % self._sector + self._sector, end, self._sector), end]
        return [
            Write(write.inode, start, write.data[start - first : stop - first])
            for start, stop in pairwise(bounds)
            if self._rng.random() < 0.5
        ]


C = TypeVar("C", bytearray, dict[str, int])


class Node(Generic[C]):
    """One inode: the content that is certain, and the changes that are not, oldest first."""

    def __init__(self, durable: C, play: Callable[[C, Change, Fate, Luck], None]) -> None:
        self._durable: C = durable
        self._play: Callable[[C, Change, Fate, Luck], None] = play
        self._changes: list[tuple[int, Change, Fate]] = []  # op number, change, fate

    def change(self, at: int, change: Change) -> None:
        """Add a change, not certain yet."""
        self._changes.append((at, change, Fate.PENDING))

    def settle(self, before: int, fate: Fate) -> None:
        """Decide the changes older than op `before` that are still pending."""
        self._changes = [
            (at, change, fate if at < before and then is Fate.PENDING else then)
            for at, change, then in self._changes
        ]
        certain = 0
        for _, change, then in self._changes:
            if then is not Fate.DURABLE:
                break
            self._play(self._durable, change, then, CERTAIN)
            certain += 1
        del self._changes[:certain]

    def survived(self, rng: random.Random, survivors: Survivors) -> C:
        """Return a content the disk may hold. Not to be changed."""
        if not self._changes:
            return self._durable
        luck, content = Luck(rng, survivors), self._durable.copy()
        for _, change, fate in self._changes:
            self._play(content, change, fate, luck)
        return content


def play_bytes(content: bytearray, change: Change, fate: Fate, luck: Luck) -> None:
    """Do to a file's bytes what survives of a change."""
    if isinstance(change, Write):
        for _, offset, data in luck.pieces(change, fate):
            _extend(content, offset)
            content[offset : offset + len(data)] = data
        if luck.grows():
            _extend(content, change.offset + len(change.data))
    elif isinstance(change, Resize) and luck.keeps(fate):
        _extend(content, change.size)
        del content[change.size :]


def _extend(content: bytearray, size: int) -> None:
    if len(content) < size:
        content.extend(bytes(size - len(content)))


def play_names(content: dict[str, int], change: Change, fate: Fate, luck: Luck) -> None:
    """Do to a folder's names what survives of a change."""
    if isinstance(change, Entries) and luck.keeps(fate):
        for name, inode in change.changes:
            if inode is None:
                content.pop(name, None)
            else:
                content[name] = inode


CERTAIN = Luck(random.Random(0), "all")


class Cursor:
    """The disk at one op number; walks forward through the log, so that cuts in rising order are cheap."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self._ops = ops
        self._files: dict[int, Node[bytearray]] = {}
        self._folders: dict[int, Node[dict[str, int]]] = {ROOT: Node({}, play_names)}
        self.at = 0

    def advance(self, to: int) -> None:
        """Take in all ops before number `to`."""
        for at in range(self.at, to):
            op = self._ops[at]
            match op:
                case Write() | Resize():
                    self._files[op.inode].change(at, op)
                case Entries():
                    self._folders[op.inode].change(at, op)
                case SyncEnded():
                    self._settle(op.begun, Fate.DURABLE)
                case SyncFailed():
                    self._settle(op.begun, Fate.LOST)
                case Birth(folder=True):
                    self._folders[op.inode] = Node({}, play_names)
                case Birth():
                    self._files[op.inode] = Node(bytearray(), play_bytes)
        self.at = to

    def _settle(self, begun: int, fate: Fate) -> None:
        sync = self._ops[begun]
        assert isinstance(sync, SyncBegun)
        if sync.inode in self._files:
            self._files[sync.inode].settle(begun, fate)
        else:
            self._folders[sync.inode].settle(begun, fate)

    def spill(self, rng: random.Random, survivors: Survivors, target: Path, inode: int = ROOT) -> None:
        """Write a folder as the disk may hold it into the existing folder `target`."""
        for name, child in self._folders[inode].survived(rng, survivors).items():
            path = target / name
            if child in self._files:
                path.write_bytes(self._files[child].survived(rng, survivors))
            else:
                path.mkdir()
                self.spill(rng, survivors, path, child)
