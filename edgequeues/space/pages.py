"""Range reads: a page of a queue, and the cursors that go on from it."""

from __future__ import annotations

import apsw

from edgequeues.core import cursors
from edgequeues.core.cursors import POSITION_MAX
from edgequeues.models import ENTRIES_MAX, ENTRY_BYTES_MAX, Entry, Page, RangeQuery
from edgequeues.space import log, retention
from edgequeues.space.log import Range
from edgequeues.space.queues import Queue
from edgequeues.space.store import Store

WINDOW_ROWS = 5_000  # examined in one turn, however few of them pass the filters


def read(db: apsw.Connection, store: Store, queue: Queue, ask: RangeQuery, at: int) -> Page:
    """A page of what has not expired at unix ms `at`. Raises InvalidCursor, CursorStore."""
    wanted = _range(db, store, queue, ask, at)
    entries_max = ENTRIES_MAX if ask.limit is None else min(ask.limit, ENTRIES_MAX)
    if ask.ids:
        places = [
            place for place in log.positions(db, queue.queue_id, ask.ids) if wanted.low < place < wanted.high
        ]
        entries, more = log.pick(db, places, wanted, entries_max=entries_max, bytes_max=ENTRY_BYTES_MAX)
        edge = None
    else:
        edge = log.window(db, wanted, WINDOW_ROWS) if _selective(queue, ask, at) else None
        if edge is not None:
            wanted = wanted._replace(low=edge - 1) if ask.reverse else wanted._replace(high=edge + 1)
        entries, more = log.scan(db, wanted, entries_max=entries_max, bytes_max=ENTRY_BYTES_MAX)
    resume = entries[-1].position if more else edge
    if ask.limit is not None and len(entries) >= ask.limit:
        resume = None
    return _page(store, queue, ask, entries, resume)


def _range(db: apsw.Connection, store: Store, queue: Queue, ask: RangeQuery, at: int) -> Range:
    """Where to look. Times that bound updated_ts from below are turned into a position."""
    low, high = 0, POSITION_MAX
    if ask.after is not None:
        low = cursors.decode(store.store_id, queue.queue_id, ask.after)
    if ask.before is not None:
        high = cursors.decode(store.store_id, queue.queue_id, ask.before)
    skipped_ts = retention.aged_ts(queue, at) if queue.due(at) else -1
    since = -1 if ask.since_ms is None else ask.since_ms
    until = POSITION_MAX if ask.until_ms is None else ask.until_ms
    skipped_ts = max(skipped_ts, since - 1)  # what was first appended at `since` was not last appended before
    if skipped_ts >= 0:
        low = max(low, log.passed(db, queue.queue_id, skipped_ts))
    return Range(queue.queue_id, low, high, ask.reverse, ask.type, at, since, until)


def _selective(queue: Queue, ask: RangeQuery, at: int) -> bool:
    """May there be many rows in the range that do not pass? Then a turn looks at a window of it only."""
    return queue.due(at) or ask.since_ms is not None or ask.until_ms is not None


def _page(store: Store, queue: Queue, ask: RangeQuery, entries: list[Entry], resume: int | None) -> Page:
    def cursor(position: int) -> str:
        return cursors.encode(store.store_id, queue.queue_id, position)

    above, below = ask.after, ask.before
    if entries:
        first, last = entries[0].position, entries[-1].position
        above, below = cursor(max(first, last)), cursor(min(first, last))
    further = None if resume is None else cursor(resume)
    return Page(entries, above, below, further, store.store_id, queue.queue_id)
