"""Every limit of the runtime, with its unit and its default."""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace

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


FILES_A_SHARD = 6  # database and -wal on two connections, our own -wal descriptor, -shm


def fit_files(limits: Limits, others: int) -> Limits:
    """Raise this process's limit on open files to what `limits` and `others` (sockets and such) need.

    Returns limits with `open_max` lowered to what the system allows, at least 1.
    """
    wanted = limits.open_max * FILES_A_SHARD + others
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return limits
    return replace(limits, open_max=max(1, (soft - others) // FILES_A_SHARD))
