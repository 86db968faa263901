"""Copies of the files of shards, taken while their turns go on.

A copy shows one instant, and nothing that could still be lost: whatever it holds was on disk when it was handed out.
It is made with SQLite's backup API on a read transaction of its own, in steps off the event loop, in a folder beside
the shards; once it is whole its name is removed, so that it goes with whoever holds it, be that by a crash.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import apsw
import trio

from shards import files, identity, migrate
from shards.errors import DiskFull, Overloaded, ShardBroken, UnusableFile
from shards.namespace import Namespace, Ref
from shards.shard import Context, Shard, reads
from shards.sqlite import NOT_A_DATABASE, connect, new_connection, patiently

S = TypeVar("S", bound=Shard)
T = TypeVar("T")

BESIDE = "-new"  # the end of a name that a file has beside the one whose place it is to take
FOLDER = "copies"  # no folder of shards has a name of this length
COPIES_MAX = 4  # at the same time, those that are read by slow clients among them
ROOM_LEFT_BYTES = 64 * 1024 * 1024  # of the disk: a copy that would leave less is not begun
STEP_PAGES = 1_024  # copied between two looks at whether the copy is still wanted
LOOK_AGAIN_S = 1.0  # the shard is called this often meanwhile, so that it is not closed as idle
LIVES = 3  # a shard that is closed while it is copied is copied again, so often
TRIES, TRY_AGAIN_S = 100, 0.1  # where the shard is too busy to be called
PIECE_BYTES = 256 * 1024


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call of a shard, again for ten seconds while it is too busy. Raises what the call raises."""
    for _ in range(TRIES):
        try:
            return await call()
        except Overloaded:
            await trio.sleep(TRY_AGAIN_S)
    return await call()


class Places:
    """How many copies there may be at the same time, and where they lie."""

    def __init__(self, folder: Path, room_left_bytes: int = ROOM_LEFT_BYTES) -> None:
        self.folder = folder
        self._room_left_bytes = room_left_bytes
        self._taken = 0
        self._numbers = itertools.count(1)

    def take(self) -> Path:
        """Return the path of a new file. Raises Overloaded where there are too many; else `give_back` is due."""
        if self._taken >= COPIES_MAX:
            raise Overloaded(f"{self._taken} copies are being made or read")
        self._taken += 1
        return self.folder / f"{next(self._numbers)}.db"

    def give_back(self) -> None:
        """One is not there any more."""
        self._taken -= 1

    def require_room(self, size: int) -> None:
        """Make the folder; raise DiskFull where `size` bytes more would leave too little room. Blocking."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        there = os.statvfs(self.folder)
        if there.f_bavail * there.f_frsize < size + self._room_left_bytes:
            raise DiskFull(f"a copy of {size} bytes would leave less than {self._room_left_bytes} free")

    def clear(self) -> None:
        """Remove what a crash has left. Blocking."""
        if self.folder.exists() and any(self.folder.iterdir()):
            for path in self.folder.parent.glob(f"??/*{files.SUFFIX}{BESIDE}"):
                path.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)


class Copy:
    """A copy of a shard's file: a whole SQLite database in one file, without a name. Read it, then close it.

    taken_ms: unix ms of the instant that it shows, or a moment before. sha256: in hex.
    """

    def __init__(self, fd: int, size: int, sha256: str, taken_ms: int, places: Places) -> None:
        self.bytes = size
        self.sha256 = sha256
        self.taken_ms = taken_ms
        self._fd = fd
        self._places: Places | None = places

    def read(self, start: int) -> bytes:
        """Return some bytes from `start` on, b"" at the end. Blocking."""
        assert self._places is not None
        return os.pread(self._fd, PIECE_BYTES, start)

    def close(self) -> None:
        """Give back its room on the disk, and its place."""
        if self._places is not None:
            self._places.give_back()
            self._places = None
            os.close(self._fd)

    def __del__(self) -> None:
        """An answer may be given up before anybody asked for its first piece."""
        self.close()


class Copies(Generic[S]):
    """Takes copies of the shards of a namespace. room_left_bytes: see ROOM_LEFT_BYTES."""

    def __init__(self, namespace: Namespace[S], *, room_left_bytes: int = ROOM_LEFT_BYTES) -> None:
        self._namespace = namespace
        self._disk = namespace.disk
        self.places = Places(namespace.folder / FOLDER, room_left_bytes)

    async def clear(self) -> None:
        """Remove what a crash has left: before the first copy."""
        await self._disk.run(self.places.clear)

    async def take(self, name: str) -> Copy:
        """Copy the file of shard `name`, which is made if it does not exist. Cancelling leaves nothing behind.

        The copy holds all that was confirmed before this was called. Raises Overloaded, DiskFull, UnusableFile, and
        what a call of the shard raises.
        """
        target = self.places.take()
        try:
            return await self._take(name, target)
        except BaseException as error:
            with trio.CancelScope(shield=True):
                await self._disk.run(partial(remove, target))
            self.places.give_back()
            if isinstance(error, apsw.FullError):
                raise DiskFull(f"while shard {name} was copied") from error
            if isinstance(error, NOT_A_DATABASE):
                raise UnusableFile(f"shard {name}: {error}") from error
            raise

    async def _take(self, name: str, target: Path) -> Copy:
        ref, path, run = (
            self._namespace.ref(name),
            files.path_of(self._namespace.folder, name),
            self._disk.run,
        )
        for _ in range(LIVES):
            life = await self._settled(ref)  # it is open now, and what was confirmed is in the file
            await run(lambda: self.places.require_room(_size(path)))
            taken_ms = self._namespace.clock.now_ms()
            await self._copy(ref, _Work(path, target, self._disk.vfs))
            if (
                await self._settled(ref) is life
            ):  # what the copy shows was committed before this: it is on disk
                fd, size, sha256 = await run(lambda: _finish(target, self._disk.vfs))
                return Copy(fd, size, sha256, taken_ms, self.places)
            # The shard was closed meanwhile; had a flush failed, the copy might show what is gone.
            await run(partial(remove, target))
        raise ShardBroken(f"shard {name} was opened anew each time it was copied")

    async def _copy(self, ref: Ref[S], work: _Work) -> None:
        run = self._disk.run
        try:
            await patiently(lambda: run(work.begin))
            look_s = trio.current_time()
            while not await run(work.step):
                if trio.current_time() >= look_s:
                    look_s = trio.current_time() + LOOK_AGAIN_S
                    await self._settled(ref, read_until_s=look_s + LOOK_AGAIN_S)
        finally:
            with trio.CancelScope(shield=True):
                await run(work.end)

    async def _settled(self, ref: Ref[S], *, read_until_s: float = 0.0) -> Context:
        """Return when all that is committed is on disk, and which life of the shard this is.

        Raises what a call raises, Overloaded after a while only.
        """
        return await insist(lambda: ref.call(_rest, read_until_s))

    async def pieces(self, copy: Copy) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a copy, then close it."""
        try:
            start = 0
            while piece := await self._disk.run(partial(copy.read, start)):
                yield piece
                start += len(piece)
        finally:
            copy.close()


class _Work:
    """One copy while it is made. Blocking."""

    def __init__(self, source: Path, target: Path, vfs: str) -> None:
        self._source, self._target, self._vfs = source, target, vfs
        self._open: list[apsw.Connection] = []
        self._backup: apsw.Backup

    def begin(self) -> None:
        """Open both files, and hold on to the source as it is now: commits from here on do not concern the copy."""
        self.end()  # of a try for which the file was busy
        reader = connect(self._source, self._vfs, cache_kib=64)
        self._open.append(reader)
        reader.execute("BEGIN")
        migrate.version(reader)
        writer = new_connection(str(self._target), self._vfs)
        self._open.append(writer)
        writer.pragma("journal_mode", "off")  # who crashes in here has no use for it
        writer.pragma("synchronous", "off")
        self._backup = writer.backup("main", reader, "main")

    def step(self) -> bool:
        """Copy some pages; return whether that were all."""
        self._backup.step(STEP_PAGES)
        return bool(self._backup.done)

    def end(self) -> None:
        """Close both files."""
        if len(self._open) == 2:
            self._backup.close(True)
        while self._open:
            self._open.pop().close(True)


@reads
def _rest(shard: Shard, read_until_s: float) -> Context:
    """A turn that touches no rows: it is answered when all commits before it are on disk."""
    shard._context.read_until_s = read_until_s
    return shard._context


def _size(path: Path) -> int:
    """Bytes of a file and of what waits beside it to be copied in."""
    wal = Path(f"{path}-wal")
    return path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)


def _finish(path: Path, vfs: str) -> tuple[int, int, str]:
    """Make one whole file of a copy that says that it is one, and take its name away.

    Return its descriptor, its size in bytes and its SHA-256.
    """
    db = new_connection(str(path), vfs)
    try:
        db.pragma("synchronous", "off")
        identity.disown(db)  # another file may get the inode of the one that was copied
        db.pragma("journal_mode", "delete")  # so that there is no second file beside it
    finally:
        db.close(True)
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(4 * PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
        path.unlink()
        return os.dup(file.fileno()), size, digest.hexdigest()


def remove(path: Path) -> None:
    """Remove a file and all that SQLite may have put beside it. Blocking."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
