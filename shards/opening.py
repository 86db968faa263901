"""From a path to an open, current and migrated file: claim it, open it, catch up with the journal, migrate."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import apsw
import trio

from shards import files, identity, journal, migrate
from shards.clock import Clock
from shards.disk import Disk
from shards.errors import DiskFull, Fenced, Moved, ShardBroken, ShardBusy, ShardError, UnusableFile
from shards.journal import Effects, Journal, Record
from shards.limits import Limits
from shards.shard import Shard
from shards.sqlite import NOT_A_DATABASE, patiently
from shards.storage import Storage, open_storage

log = logging.getLogger("shards")


class Host(Protocol):
    """What opening needs of the namespace."""

    clock: Clock
    disk: Disk
    limits: Limits


class Opened(NamedTuple):
    """An open file, and how often it was found to be a copy."""

    storage: Storage
    generation: int


async def open_file(name: str, path: Path, kind: type[Shard], shard_journal: Journal, host: Host) -> Opened:
    """Open the file of a shard, up to but not including its first turn. `explain` words what it raises."""
    claim = await shard_journal.claim()
    storage = await patiently(lambda: host.disk.run(lambda: open_storage(path, host.disk, host.limits)))
    try:
        db = storage.db
        if shard_journal.records_effects:
            await _catch_up(db, kind, shard_journal, claim.tail, host)
        for number in migrate.pending(db, kind.migrations):
            sequence = await shard_journal.append(Effects("migration", str(number).encode()))
            step = partial(_migrate, db, kind, number, sequence, host)
            await patiently(lambda: host.disk.run(step))  # noqa: B023 (awaited)
        generation = await patiently(lambda: host.disk.run(lambda: _recognise(db, path)))
    except BaseException:
        with trio.CancelScope(shield=True):
            await host.disk.run(lambda: storage.close(tidy=False))
        raise
    return Opened(storage, generation)


async def _catch_up(
    db: apsw.Connection, kind: type[Shard], shard_journal: Journal, tail: int, host: Host
) -> None:
    """Apply the journal's records that this file lacks."""
    async for record in shard_journal.replay(journal.read_at(db)):
        assert record.sequence <= tail
        if record.kind == "image":
            journal.restore_image(db, await shard_journal.image(record))
        _apply(db, kind, record, host)


def _apply(db: apsw.Connection, kind: type[Shard], record: Record, host: Host) -> None:
    if record.kind == "migration":
        _migrate(db, kind, int(record.data), record.sequence, host)
        return
    with db:
        if record.kind == "effects":
            journal.replay_effects(db, record.data)
        journal.store_at(db, record.sequence)


def _migrate(db: apsw.Connection, kind: type[Shard], number: int, sequence: int, host: Host) -> None:
    with db:
        migrate.apply(db, kind.migrations, number, now_ms=host.clock.now_ms())
        if sequence:
            journal.store_at(db, sequence)


def _recognise(db: apsw.Connection, path: Path) -> int:
    with db:
        generation = identity.recognise(db, files.identity(path))
    return generation  # noqa: RET504 (a return inside would look to mypy as if it might be skipped)


def explain(name: str, path: Path, error: Exception) -> Callable[[], ShardError]:
    """Return a maker of the error that callers of a shard that could not be opened get."""
    detail = f"{path}: {error}"
    if isinstance(error, Fenced):
        return lambda: Moved(f"shard {name}")
    if isinstance(error, ShardError):
        return lambda: type(error)(error.detail)
    if isinstance(error, apsw.BusyError):
        return lambda: ShardBusy(detail)
    if isinstance(error, apsw.FullError):
        return lambda: DiskFull(detail)
    if isinstance(error, NOT_A_DATABASE):
        return lambda: UnusableFile(detail)
    log.error("shard %s could not be opened", name, exc_info=error)
    return lambda: ShardBroken(f"shard {name} could not be opened: {error}")
