"""The schema of a space's file, in numbered steps. A released step is never edited; changes are new steps.

Every table has an INTEGER PRIMARY KEY or is WITHOUT ROWID, and there are no triggers and no state in pragmas, so
that a session's patchset of one copy replays on another.
"""

from __future__ import annotations

from edgequeues.space import (
    attempts,
    audit,
    blobs,
    consumers,
    deadletters,
    dedup,
    deliveries,
    endings,
    entities,
    kinship,
    log,
    queues,
    rates,
    results,
    schedules,
    store,
)

MIGRATIONS: tuple[str, ...] = (
    store.DDL + queues.DDL + log.DDL,
    store.STEP_2
    + queues.STEP_2
    + consumers.DDL
    + deliveries.DDL
    + attempts.DDL
    + deadletters.DDL
    + dedup.DDL,
    queues.STEP_3 + deadletters.STEP_3 + results.DDL,
    queues.STEP_4 + kinship.STEP_4 + entities.DDL + schedules.DDL + rates.DDL + audit.DDL,
    results.STEP_5 + blobs.DDL,
    queues.STEP_6 + dedup.STEP_6 + endings.DDL,
)
