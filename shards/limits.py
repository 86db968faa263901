"""Every limit of the runtime, with its unit and its default."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of everything a namespace accepts, and when it tidies up."""

    mailbox_max: int = 1024  # unanswered calls a shard; more are refused with Overloaded
    batch_turns_max: int = 256  # turns one transaction holds at most
    batch_ms_max: float = 5.0  # a batch stops growing after this long, so that other shards get the loop
    open_max: int = 512  # open shards; above it the least recently used is closed
    idle_s: float = 60.0  # a shard unused for this long is closed
    wal_checkpoint_bytes: int = (
        8 * MIB
    )  # the -wal is copied into the database each time it has grown by this much
    wal_bytes_max: int = 64 * MIB  # above this the shard's turns wait until the -wal can start over
    reserve_bytes: int = 8 * MIB  # room kept for deletes and checkpoints on a full disk
    alarms_at_once: int = 8  # shards woken by their alarms at the same time
    cache_kib: int = 2048  # SQLite page cache a shard, at most
