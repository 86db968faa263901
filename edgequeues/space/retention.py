"""What has expired, what is too much, and the sweeping that makes room of it.

Entries expire by their own end (expires_ts) and by age (updated_ts, the queue's max_age_ms). Both make them
invisible at that instant, by query; sweeping only gives the room back. Entries beyond max_entries are removed by
the append that made them too many; where the setting was lowered, by sweeping.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from edgequeues.space import deliveries, log, queues
from edgequeues.space.log import Victim
from edgequeues.space.queues import Queue

SWEEP_ROWS = 1_000  # removed in one turn, over all queues
SWEEP_BYTES = 16 * 1024 * 1024  # of data removed in one turn, give or take an entry: long ones cost by length
SWEEP_QUEUES = 50  # that one turn looks at; they share the above
TRIM_EXTRA = 8  # an append removes at most twice what it added, and so many more


def aged_ts(queue: Queue, at: int) -> int:
    """Entries last appended at this unix ms or before have expired by age at unix ms `at`; -1: none has."""
    return queue.aged_ts if queue.max_age_ms is None else max(queue.aged_ts, at - queue.max_age_ms)


def expired(queue: Queue, updated: int, expires: int | None, at: int) -> bool:
    """Has what was last appended at `updated`, with its own end at `expires`, expired at unix ms `at`?"""
    return updated <= aged_ts(queue, at) or (expires is not None and expires <= at)


def live(db: apsw.Connection, queue: Queue, at: int) -> tuple[int, int]:
    """Entries that have not expired at unix ms `at`, and the bytes of their data."""
    if not queue.due(at):
        return queue.entries, queue.bytes
    entries, size = log.count_expired(db, queue.queue_id, at, aged_ts(queue, at))
    return queue.entries - entries, queue.bytes - size


def about(db: apsw.Connection, queue: Queue, at: int, rows_max: int) -> int:
    """Entries that have not expired at unix ms `at`, as far as a look at `rows_max` can tell: the rest counts."""
    if not queue.due(at):
        return queue.entries
    past = aged_ts(queue, at)
    gone = len(log.aged(db, queue.queue_id, past, rows_max))
    if gone < rows_max:
        gone += len(log.lapsed(db, queue.queue_id, at, past, rows_max - gone))
    return queue.entries - gone


def drop(db: apsw.Connection, queue: Queue, victims: Sequence[Victim]) -> int:
    """Remove these rows and count them out; return how many had not expired.

    Left to do: have the counters written down, `changes` if a reader could notice, and the deliveries of what is
    in `queue.dropped`.
    """
    log.remove(db, (victim.position for victim in victims))
    queue.dropped += victims
    queue.entries -= len(victims)
    queue.bytes -= sum(victim.size for victim in victims)
    return sum(not victim.expired for victim in victims)


def within(victims: list[Victim], bytes_max: int) -> list[Victim]:
    """The first of these, until their data comes to `bytes_max`; one at least."""
    room = bytes_max
    for index, victim in enumerate(victims):
        if room <= 0:
            return victims[:index]
        room -= victim.size
    return victims


def sweep(db: apsw.Connection, queue: Queue, at: int, *, rows_max: int, bytes_max: int) -> int:
    """Remove up to `rows_max` expired rows, then those beyond max_entries; note when there will be work again.

    About `bytes_max` of data at most goes. Returns how many rows went. The counters are still to be written down.
    """
    removed, none_left = clear(db, queue, at, rows_max, bytes_max)
    if none_left:
        removed += trim(db, queue, rows_max - removed, bytes_max)
    queues.wake(db, queue, next_due(db, queue, at))
    return removed


def clear(db: apsw.Connection, queue: Queue, at: int, rows_max: int, bytes_max: int) -> tuple[int, bool]:
    """Remove up to `rows_max` rows that have expired; return how many, and whether none is left."""
    past = aged_ts(queue, at)
    victims = log.aged(db, queue.queue_id, past, rows_max)
    if len(victims) < rows_max:
        victims += log.lapsed(db, queue.queue_id, at, past, rows_max - len(victims))
    if queue.consumers:  # what is handed out expires when its lease ends
        victims = [victim for victim in victims if not deliveries.is_leased(db, victim.position)]
    some = within(victims, bytes_max)
    drop(db, queue, some)
    return len(some), len(some) == len(victims) < rows_max


def trim(db: apsw.Connection, queue: Queue, rows_max: int, bytes_max: int) -> int:
    """Remove up to `rows_max` of the oldest rows beyond max_entries, where none has expired; return how many."""
    if queue.excess <= 0:
        return 0
    victims = within(log.oldest(db, queue.queue_id, min(queue.excess, rows_max)), bytes_max)
    queue.changes += 1
    return drop(db, queue, victims)


def hold(db: apsw.Connection, queue: Queue, at: int, added: int) -> None:
    """After an append of `added` entries: keep the queue within max_entries, as far as one turn can.

    Expired rows do not count, so those go first. What is left to the sweep is noted; the
    counters are still to be written down.
    """
    if queue.excess <= 0:
        return
    none_expired = not queue.due(at) or clear(db, queue, at, SWEEP_ROWS, SWEEP_BYTES)[1]
    if none_expired:
        trim(db, queue, 2 * added + TRIM_EXTRA, SWEEP_BYTES)
    if queue.excess > 0 or queue.due(at):
        queues.wake(db, queue, next_due(db, queue, at))


def next_due(db: apsw.Connection, queue: Queue, at: int) -> int | None:
    """Unix ms at which sweeping has or will have work, seen from unix ms `at`; None: never."""
    first = None
    if queue.max_age_ms is not None or queue.aged_ts >= 0:
        first = log.next_age(db, queue.queue_id, -1)
    times = [log.next_end(db, queue.queue_id, -1)]
    if first is not None and first <= queue.aged_ts:
        times.append(first)
    if first is not None and queue.max_age_ms is not None:
        times.append(first + queue.max_age_ms)
    if queue.excess > 0:
        times.append(at)
    return min((ts for ts in times if ts is not None), default=None)
