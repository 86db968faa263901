"""Copies of shards' files put in the place of shards, while all others are served.

What is sent is looked at before it counts: it must be a whole and sound file with our tables and no others, and rows
as they must be. It is brought to the newest schema, made durable, and only then gets its name, in one rename; a
crash leaves the old file or the new one. The shard's calls wait meanwhile, and are answered by the new one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import apsw
import trio

from shards import files, identity, migrate, repair
from shards.copying import BESIDE, Copies, remove
from shards.disk import Disk
from shards.errors import (
    DiskFull,
    NotACopy,
    SchemaTooNew,
    ShardBusy,
    ShardExists,
    UnusableFile,
)
from shards.namespace import Namespace
from shards.shard import Context, Shard
from shards.sqlite import NOT_A_DATABASE, connect, new_connection, patiently

S = TypeVar("S", bound=Shard)
Invariants = Callable[[apsw.Connection], list[str]]

MAGIC = b"SQLite format 3\x00"
HEAD_BYTES = 100  # https://sqlite.org/fileformat2.html: what a file begins with
WRITTEN_BYTES = 4 * 1024 * 1024  # written at once
STATISTICS = (  # what ANALYZE makes, if somebody runs it
    "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
)
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type <> 'view' AND sql IS NOT ? AND sql IS NOT ?"
VERSIONS = "SELECT type, sql FROM sqlite_schema WHERE name = 'shard_schema'"
OF_THE_DISK = (apsw.IOError, apsw.FullError, apsw.CantOpenError, apsw.NoMemError, apsw.BusyError, OSError)


class Placed(NamedTuple):
    """What was put in place. replaced: was there another one before?"""

    bytes: int
    sha256: str
    replaced: bool


class Replacements(Generic[S]):
    """Puts copies in the place of shards. invariants: returns what is wrong with the rows of a file.

    For namespaces without a journal of their own, which would bring back what was replaced.
    """

    def __init__(self, namespace: Namespace[S], copies: Copies[S], invariants: Invariants) -> None:
        self._namespace = namespace
        self._disk = namespace.disk
        self._places = copies.places
        self._invariants = invariants

    async def put(
        self,
        name: str,
        pieces: AsyncIterator[bytes],
        *,
        sha256: str | None,
        replace: bool,
        first: Callable[[S, Placed], object],
    ) -> Placed:
        """Make a copy the shard `name`. Cancelling leaves all as it was, or the copy in its place.

        sha256: in hex, of all `pieces`, where it is known. first: a turn of the shard before all others, done in the
        file before that is put in place; off the event loop. Raises ShardExists unless `replace`, NotACopy, DiskFull,
        Overloaded, ShardBusy while somebody else reads the file, ShardClosed: then nothing is changed.
        """
        self._namespace.require_open(files.check_name(name))
        path = files.path_of(self._namespace.folder, name)
        if not replace and await self._disk.run(path.exists):
            raise ShardExists(f"shard {name}")
        staged = self._places.take()
        try:
            size, digest = await self._receive(staged, pieces)
            if sha256 not in (None, digest):
                raise NotACopy(f"{size} bytes came whose SHA-256 is {digest}, not {sha256}")
            await self._disk.run(lambda: self._prepare(staged))
            with trio.CancelScope(shield=True):
                placed = await self._place(name, path, staged, Placed(size, digest, replace), first)
        except apsw.FullError as error:
            raise DiskFull(f"while shard {name} was put in place") from error
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise DiskFull(f"while shard {name} was put in place") from error
        except apsw.BusyError as error:
            raise ShardBusy(f"{path}: it is being read") from error
        finally:
            with trio.CancelScope(shield=True):
                await self._disk.run(partial(remove, staged))
            self._places.give_back()
        return placed

    # -- what is sent -----------------------------------------------------------------------------------

    async def _receive(self, staged: Path, pieces: AsyncIterator[bytes]) -> tuple[int, str]:
        """Write all that comes to a file; return its size in bytes and its SHA-256."""
        digest, held, size = hashlib.sha256(), bytearray(), 0

        def write() -> None:
            self._places.require_room(len(held))
            with open(staged, "ab", opener=_private) as file:
                file.write(held)
            digest.update(held)

        async for piece in pieces:
            held += piece
            if len(held) >= WRITTEN_BYTES:
                await self._disk.run(write)
                size += len(held)
                held.clear()
        await self._disk.run(write)
        return size + len(held), digest.hexdigest()

    def _prepare(self, staged: Path) -> None:
        """Look at what was sent, and bring it to the newest schema. Blocking. Raises NotACopy.

        Its schema is compared before anything in it is run: a trigger, or a check that goes on for hours.
        """
        _require_whole(staged)
        steps = self._namespace.kind.migrations
        with self._opened(staged) as db:
            problems = _foreign(db, steps) or repair.faults(db)
            if not problems:
                todo = migrate.pending(db, steps)
                with db:
                    for number in todo:
                        migrate.apply(db, steps, number, now_ms=self._namespace.clock.now_ms())
                problems = self._invariants(db)
        if problems:
            raise NotACopy(problems[0])

    @contextmanager
    def _opened(self, staged: Path) -> Iterator[apsw.Connection]:
        """What was sent, open. Whatever cannot be done with it is a fault of it, but for what the disk refuses."""
        try:
            db = new_connection(str(staged), self._disk.vfs)
            try:
                db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
                db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
                db.pragma("journal_mode", "delete")  # so that there is no second file beside it
                yield db
            finally:
                db.close(True)
        except (NotACopy, *OF_THE_DISK):
            raise
        except (SchemaTooNew, UnusableFile) as error:
            _, _, told = error.detail.partition(staged.name)  # without the folder it lies in
            raise NotACopy(f"it{told}") from error
        except Exception as error:
            raise NotACopy(f"it cannot be read as one of ours: {error}") from error

    # -- its place --------------------------------------------------------------------------------------

    async def _place(
        self, name: str, path: Path, staged: Path, placed: Placed, first: Callable[[S, Placed], object]
    ) -> Placed:
        """Close the shard, give the file its name, have its alarm looked at."""
        namespace, run = self._namespace, self._disk.run
        async with namespace.closed(name):
            there = await run(path.exists)
            if there and not placed.replaced:
                raise ShardExists(f"shard {name}")
            placed = placed._replace(replaced=there)
            due_ms = namespace.clock.now_ms()
            await run(lambda: self._begin(name, staged, due_ms, lambda shard: first(shard, placed)))
            await namespace.alarm_ensure(name, due_ms)  # as the index must not be later than the new file
            await patiently(lambda: run(lambda: _swap(staged, path, self._disk)))
            namespace.alarm_note(name, due_ms, settled=False)
        return placed

    def _begin(self, name: str, staged: Path, now_ms: int, first: Callable[[S], object]) -> None:
        """Have the shard take its first turn in what was sent, and mark that as a copy. Blocking. Raises NotACopy."""
        with self._opened(staged) as db, db:
            shard = self._namespace.kind(Context(db, name, random.SystemRandom(), now_ms=now_ms))
            shard.opened()
            first(shard)
            shard.write_back()
            shard.get_alarm()
            identity.disown(db)
        self._disk.sync_file(staged)


def _require_whole(path: Path) -> None:
    """Raises NotACopy for a file without its end: of a page that is cut, SQLite notices only once it reads that."""
    with path.open("rb") as file:
        head, size = file.read(HEAD_BYTES), path.stat().st_size
    if not head.startswith(MAGIC) or len(head) < HEAD_BYTES:
        raise NotACopy("it is no SQLite database")
    page_bytes = int.from_bytes(head[16:18], "big")
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    if not page_bytes or size % page_bytes:
        raise NotACopy(f"it has {size} bytes, which are no whole pages of {page_bytes}: its end is missing")


def _foreign(db: apsw.Connection, steps: Sequence[str]) -> list[str]:
    """What the file has that no shard of its schema has, or lacks. Raises NotACopy, SchemaTooNew, UnusableFile.

    A trigger or another table under a name of ours would have statements do what their authors did not write, even
    the one that asks which schema it is. Other views may be any: nothing reads them.
    """
    ours = apsw.Connection(":memory:")
    try:
        migrate.apply(ours, steps, 0, now_ms=0)
        if (versions := db.execute(VERSIONS).fetchall()) and versions != ours.execute(VERSIONS).fetchall():
            return ["of its schema, this is not as it must be: shard_schema"]
        todo = migrate.pending(db, steps).start
        if todo == 0:
            raise NotACopy("it is empty")
        for number in range(1, todo):
            migrate.apply(ours, steps, number, now_ms=0)
        wanted, there = (set(one.execute(SCHEMA, STATISTICS).fetchall()) for one in (ours, db))
    finally:
        ours.close(True)
    odd = sorted(f"{kind} {name}" for kind, name, _, _ in wanted ^ there)
    return [f"of its schema, this is not as it must be: {', '.join(odd[:5])[:500]}"] if odd else []


def _swap(source: Path, target: Path, disk: Disk) -> None:
    """Give `source` the name `target`, whose connections are closed. Blocking. Raises apsw.BusyError."""
    if target.exists():
        _empty_wal(target, disk)
    else:
        target.parent.mkdir(exist_ok=True)
        disk.sync_folder(target.parent.parent)
    # What waits beside the old file must be gone for good before the new one has its name, into which it would go.
    for suffix in ("-wal", "-shm", "-journal"):
        disk.remove(Path(f"{target}{suffix}"))
    beside = Path(f"{target}{BESIDE}")
    disk.remove(beside)  # of a crash
    disk.link(source, beside)
    disk.sync_folder(target.parent)
    disk.replace(beside, target)
    disk.remove(repair.marker(target))
    disk.sync_folder(target.parent)


def _empty_wal(path: Path, disk: Disk) -> None:
    """Have all that was committed in the file itself, unless that is damaged: a crash may come before the swap."""
    if repair.needed(path):
        return
    try:
        db = connect(path, disk.vfs, cache_kib=64)
    except UnusableFile:
        return
    try:
        migrate.version(db)  # without a read the checkpoint does nothing
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (UnusableFile, *NOT_A_DATABASE):
        return
    finally:
        db.close(True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
