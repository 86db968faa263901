"""One space: all its verbs, and its life. What is stored where is the table modules' business."""

from __future__ import annotations

from edgequeues.core import leases
from edgequeues.models import LEASE_MS_MAX
from edgequeues.space import (
    attempts,
    audit,
    consumers,
    dedup,
    deliveries,
    entities,
    queues,
    rates,
    results,
    retention,
    store,
)
from edgequeues.space.backup_verbs import BackupVerbs
from edgequeues.space.blob_verbs import BlobVerbs
from edgequeues.space.calling_verbs import CallingVerbs
from edgequeues.space.entity_verbs import EntityVerbs
from edgequeues.space.hook_verbs import HookVerbs
from edgequeues.space.log_verbs import LogVerbs
from edgequeues.space.measuring import Measuring
from edgequeues.space.overview import Overview
from edgequeues.space.search_verbs import SearchVerbs
from edgequeues.space.session_verbs import SessionVerbs
from edgequeues.space.spec_verbs import SpecVerbs
from edgequeues.space.timed import UNREAD
from edgequeues.space.workbench import Workbench

FILLED_TOGETHER = 10  # consumers that share the entries one turn gives to new ones
TIDY_PAUSE_MS = 60_000
TIDY_ROWS = 1_000  # of what is only remembered for a while, removed in one turn


class SpaceShard(
    LogVerbs,
    CallingVerbs,
    HookVerbs,
    SessionVerbs,
    Workbench,
    SpecVerbs,
    EntityVerbs,
    BlobVerbs,
    BackupVerbs,
    Overview,
    Measuring,
    SearchVerbs,
):
    """The queues of one space."""

    # -- life -------------------------------------------------------------------------------------------

    def opened(self) -> None:
        """Make the store's row on the first opening. A file that was copied or restored becomes another store."""
        row = store.load(self.db)
        if row is None:
            store.create(self.db, self._new_id(), self.file_id, self.now_ms)
        elif self.file_id and self.file_id != row.file_id:
            # Whatever cursors there are may point at positions that the other copy gave to other entries.
            store.identify(self.db, self._new_id() if row.file_id else row.store_id, self.file_id)
        self.forget()
        if self._home().lease_key is None:
            store.set_key(self.db, self.random.randbytes(leases.KEY_BYTES))
            self.forget()

    def forget(self) -> None:
        """Read all rows afresh from now on."""
        super().forget()
        self._alarm_ms = UNREAD

    def delete_all(self) -> None:
        """Delete every queue and go on as another store, since positions start again."""
        super().delete_all()
        store.create(self.db, self._new_id(), self.file_id, self.now_ms)
        self.forget()

    def alarm(self) -> None:
        """Do what is due, a bounded part of it; set the alarm to when there is more."""
        self._alarm_ms = self.now_ms  # so that it counts as due until all is looked at
        at = self._time()
        self._pass()
        more = self._settle()
        self._alarm_ms = None
        more = self._fill() or more
        self._run_schedules()
        more = self._run() or more
        due, swept = queues.overdue(self.db, at, retention.SWEEP_QUEUES), 0
        for row in due:
            queue = self._require(row.queue_id)
            rows_max, bytes_max = retention.SWEEP_ROWS // len(due), retention.SWEEP_BYTES // len(due)
            removed = retention.sweep(self.db, queue, at, rows_max=rows_max, bytes_max=bytes_max)
            if removed:
                self._count(queue)
            swept += removed
        self._tidy(at)
        self._sweep_blobs(at)
        next_ms = queues.soonest(self.db)
        if next_ms is not None:
            # What has expired but could not go is leased: look again, but not at once.
            self._sweep_by(next_ms, urgent=next_ms <= at and swept > 0)
        due_ms = deliveries.soonest(self.db)
        if due_ms is not None or more:
            self._alarm_in(0 if due_ms is None or more else due_ms - at)

    def _fill(self) -> bool:
        """Give new consumers some of the entries that were there before them; return whether there are more."""
        self.write_back()
        found = consumers.filling(self.db, FILLED_TOGETHER)
        for consumer_id in found:
            row = self._require(self._queue_of(consumer_id))
            desk = self._desk(row)
            [consumer] = [one for one in row.consumers if one.consumer_id == consumer_id]
            desk.fill(consumer, max(self.fill_rows // len(found), 1))
            self._worked(desk)
        self.write_back()
        return bool(found and consumers.filling(self.db, 1))

    def _tidy(self, at: int) -> None:
        """Forget keys, results, leases and receipts whose time is over."""
        dedup.sweep(self.db, at, TIDY_ROWS)
        results.sweep(self.db, at, TIDY_ROWS)
        rates.sweep(self.db, at * 1_000, TIDY_ROWS)
        entities.sweep(self.db, at, TIDY_ROWS)
        attempts.sweep(self.db, at - LEASE_MS_MAX, TIDY_ROWS)
        audit.sweep(self.db, at, TIDY_ROWS)
        for soonest in (each.soonest(self.db) for each in (dedup, results, rates, entities, audit)):
            if soonest is not None:
                self._alarm_in(max(soonest - at, TIDY_PAUSE_MS))
