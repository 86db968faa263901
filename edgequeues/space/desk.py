"""The deliveries of one queue within a turn: what is made, handed out, given back, finished, and whose turn it is.

All decisions about a delivery are here; rows are read and written through the table modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Literal, NamedTuple

import apsw

from edgequeues.core import backoff, leases
from edgequeues.core.leases import Lease
from edgequeues.core.lifecycle import State
from edgequeues.models import ENTRY_BYTES_MAX, PULL_MAX, Entry, Message, Ordering, Pull, Reason, Verdict
from edgequeues.space import attempts, consumers, deliveries, log, retention
from edgequeues.space.attempts import Attempt, Ending
from edgequeues.space.consumers import Consumer
from edgequeues.space.deliveries import Delivery, Made
from edgequeues.space.log import Victim
from edgequeues.space.queues import Queue
from edgequeues.space.store import Store

FIFO_LINE = ""
EXPIRED_LOOKS = 20  # times a pull looks again because what it found had expired


class Arrival(NamedTuple):
    """An entry that consumers are to be given. due: unix ms, not before."""

    position: int
    key: str | None
    priority: int
    due: int | None
    size: int


class Burial(NamedTuple):
    """A message that is given up."""

    consumer: Consumer
    delivery: Delivery
    reason: Reason
    error: str
    at: int


class Desk:
    """One queue's deliveries in a turn at the store's time `at` (unix ms). `close` it at the end.

    bury: puts a message that is given up where dead letters go.
    """

    def __init__(
        self,
        db: apsw.Connection,
        store: Store,
        queue: Queue,
        at: int,
        random: Random,
        bury: Callable[[Burial], None],
    ) -> None:
        self.db = db
        self.store = store
        self.queue = queue
        self.at = at
        self.random = random
        self.soonest: int | None = None  # unix ms at which the first of what was parked or leased here is due
        self.woken = False  # is there something to pull that was not before?
        self._bury = bury
        self._consumers = {one.consumer_id: one for one in queue.consumers}
        self._done: dict[int, int] = {}  # positions that a consumer finished, and the size of each

    # -- arriving ---------------------------------------------------------------------------------------

    def arrive(self, arrivals: Sequence[Arrival]) -> None:
        """Give new entries to all consumers that have been given everything before them."""
        for consumer in self.queue.consumers:
            if not consumer.filling:
                self._make(consumer, arrivals)
                consumer.filled = arrivals[-1].position
                consumer.dirty = True

    def fill(self, consumer: Consumer, rows_max: int) -> None:
        """Give a consumer the next `rows_max` entries that were there before it."""
        arrivals = [
            Arrival(*row) for row in log.arrivals(self.db, self.queue.queue_id, consumer.filled, rows_max)
        ]
        if arrivals:
            self._make(consumer, arrivals)
            consumer.filled = arrivals[-1].position
        if len(arrivals) < rows_max:
            consumer.filled = max(consumer.filled, self.queue.tail)
            consumer.filling = False
        consumer.dirty = True

    def _make(self, consumer: Consumer, arrivals: Sequence[Arrival]) -> None:
        ordering, counts = consumer.config.ordering, consumer.counts
        lines = [_line(ordering, one.key) for one in arrivals]
        in_lines = {line for line in lines if line is not None}
        busy = deliveries.busy(self.db, consumer.consumer_id, in_lines) if in_lines else set()
        made = []
        for one, line in zip(arrivals, lines, strict=True):
            if line is not None and line in busy:
                state: State = "waiting"
            else:
                state = self._when(one.due)
                if line is not None:
                    busy.add(line)
            turn = one.position
            if ordering != "unordered" and state != "waiting":
                consumer.turns += 1
                turn = consumer.turns
            due = self._at(one.due) if state == "scheduled" else None
            rank = 9 - one.priority
            made.append(Made(consumer.consumer_id, one.position, state, rank, turn, line, due, one.size))
            counts.move(None, state)
            self.woken = self.woken or state == "ready"
        counts.total_in += len(made)
        consumer.bytes += sum(one.size for one in made)
        deliveries.insert(self.db, made)

    def _when(self, due: int | None) -> Literal["scheduled", "ready"]:
        return "scheduled" if due is not None and due > self.at else "ready"

    # -- handing out ------------------------------------------------------------------------------------

    def pull(self, consumer: Consumer, ask: Pull, key: bytes) -> list[Message]:
        """Lease what is next, at most a batch and about ENTRY_BYTES_MAX of data. key: signs the leases."""
        until = self.at + (consumer.config.lease_ms if ask.lease_ms is None else ask.lease_ms)
        given: list[Message] = []
        batch = consumer.config.batch if ask.batch is None else ask.batch
        room, looked_at = ENTRY_BYTES_MAX, batch
        for _ in range(EXPIRED_LOOKS):
            found = deliveries.ready(self.db, consumer.consumer_id, looked_at, room)
            dead = [one for one in found if self._expired(one.entry)]
            live = [one for one in found if not self._expired(one.entry)] if dead else found
            live = live[: batch - len(given)]
            positions = [one.entry.position for one in live]
            self._at(until if live else None)
            deliveries.lease(
                self.db, consumer.consumer_id, positions, worker=ask.worker, at=self.at, until=until
            )
            for one in live:
                lease = Lease(one.entry.position, consumer.consumer_id, one.serial + 1)
                text = leases.token(key, self.store.store_id, lease)
                given.append(Message(one.entry, text, one.attempts + 1, until))
                consumer.counts.move("ready", "leased")
                room -= len(one.entry.data)
            consumer.counts.total_attempts += len(live)
            consumer.dirty = consumer.dirty or bool(found)
            for one in dead:
                self._end(consumer, self._require(consumer, one.entry.position), "total_expired")
            if not dead or room <= 0 or len(given) == batch:
                break
            looked_at = PULL_MAX  # many may have expired together
        return given

    def _expired(self, entry: Entry) -> bool:
        return retention.expired(self.queue, entry.updated, entry.expires, self.at)

    # -- what holders of leases say ---------------------------------------------------------------------

    def ack(self, lease: Lease, *, even_stale: bool = False) -> Verdict:
        """Finish a message. A lease that lapsed counts while it is the newest; `even_stale`: in any case."""
        held = self._held(lease)
        if isinstance(held, str):
            return held
        consumer, row = held
        if not even_stale and not _is_newest(row, lease):
            return "stale"
        consumer.counts.total_acked += 1
        self._end(consumer, row, None)
        return "done"

    def retry(
        self, lease: Lease, *, delay_ms: int | None = None, error: str | None = None, permanent: bool = False
    ) -> Verdict:
        """Give up an attempt: the message is tried again later, or is a dead letter if it was the last one.

        delay_ms: instead of what the consumer's back-off says.
        """
        live = self._live(lease)
        if isinstance(live, str):
            return live
        consumer, row = live
        config = consumer.config
        self._log(row, "failed" if permanent else "retried", error)
        if permanent or backoff.exhausted(row.attempts, config.attempts_max):
            reason: Reason = "permanent" if permanent else "exhausted"
            self.give_up(consumer, row, reason, error or "failed without saying why")
            return "done"
        if delay_ms is None:
            delay_ms = backoff.delay_ms(config.backoff, row.attempts, self.random.random())
        consumer.counts.total_retried += 1
        self._give_back(consumer, row, delay_ms, row.attempts, error=error, open=False)
        return "done"

    def release(self, lease: Lease) -> Verdict:
        """Give a message back untouched: it is ready at once, and the attempt does not count."""
        live = self._live(lease)
        if isinstance(live, str):
            return live
        consumer, row = live
        self._log(row, "released", None)
        consumer.counts.total_released += 1
        self._give_back(consumer, row, 0, row.attempts - 1, error=None, open=False)
        return "done"

    def extend(self, lease: Lease, lease_ms: int) -> Verdict:
        """Have a lease end `lease_ms` from now."""
        live = self._live(lease)
        if isinstance(live, str):
            return live
        consumer, row = live
        until = self.at + lease_ms
        deliveries.extend(self.db, consumer.consumer_id, row.position, until)
        self._at(until)
        return "done"

    def _held(self, lease: Lease) -> tuple[Consumer, Delivery] | Verdict:
        """The delivery that a lease is about, or why there is none."""
        consumer = self._consumers.get(lease.consumer)
        if consumer is None:
            return "finished"
        row = deliveries.get(self.db, lease.consumer, lease.position)
        if row is None:
            ended = attempts.ending(self.db, *lease)
            return "superseded" if ended == "superseded" else "finished"
        return consumer, row

    def _live(self, lease: Lease) -> tuple[Consumer, Delivery] | Verdict:
        """The delivery that is handed out under a lease, or why it is not."""
        held = self._held(lease)
        if isinstance(held, str):
            return held
        if not _is_newest(held[1], lease):
            return "stale"
        return held if held[1].state == "leased" else "lapsed"

    # -- time -------------------------------------------------------------------------------------------

    def come_due(self, rows: Sequence[Delivery]) -> None:
        """Take these on, whose time has come: parked messages become ready, leases lapse."""
        parked = [row for row in rows if row.state != "leased"]
        deliveries.make_ready(self.db, parked)
        for row in parked:
            consumer = self._consumers[row.consumer_id]
            consumer.counts.move(row.state, "ready")
            consumer.dirty = self.woken = True
        for row in rows:
            if row.state == "leased":
                self._lapse(self._consumers[row.consumer_id], row)

    def _lapse(self, consumer: Consumer, row: Delivery) -> None:
        error = "the lease lapsed without an answer"
        consumer.counts.total_lapsed += 1
        self._log(row, "lapsed", error)
        if backoff.exhausted(row.attempts, consumer.config.attempts_max):
            self.give_up(consumer, row, "exhausted", error)
        else:
            assert row.due is not None
            delay_ms = row.due + consumer.config.lapse_delay_ms - self.at  # however late it is noticed
            self._give_back(consumer, row, delay_ms, row.attempts, error=error, open=True)

    # -- endings ----------------------------------------------------------------------------------------

    def give_up(self, consumer: Consumer, row: Delivery, reason: Reason, error: str) -> None:
        """Make a dead letter of a message."""
        total = f"total_{reason}"
        setattr(consumer.counts, total, getattr(consumer.counts, total) + 1)
        self._bury(Burial(consumer, row, reason, error, self.at))
        self._end(consumer, row, None, logged=True)

    def cancel(self, victims: Iterable[Victim], *, superseded: bool = False) -> None:
        """Their entries are going: expired ones have expired, all others are cancelled."""
        for victim in victims:
            for row in deliveries.of_entry(self.db, victim.position):
                total = "total_expired" if victim.expired else "total_cancelled"
                self._end(self._consumers[row.consumer_id], row, total, gone=True)
                if superseded and row.state == "leased":
                    self._log(row, "superseded", None)

    def forget(self, consumer: Consumer, rows: Iterable[Delivery]) -> None:
        """Cancel deliveries of a consumer that is being removed."""
        for row in sorted(rows, key=lambda one: -one.position):  # heads of lines last: they make others heads
            self._end(consumer, row, "total_cancelled")

    def close(self) -> list[Victim]:
        """Write the counters down; return the entries that nobody needs any more, which are still to be removed."""
        for consumer in self.queue.consumers:
            consumers.save(self.db, consumer)
        if self.queue.on_ack != "delete":
            return []
        several = len(self._consumers) > 1  # one that is going included: what it gives up, others may need
        return [
            Victim(position, size, False)
            for position, size in self._done.items()
            if not several or self._finished_by_all(position)
        ]

    def _finished_by_all(self, position: int) -> bool:
        if any(one.filled < position for one in self.queue.consumers):
            return False
        return not deliveries.of_entry(self.db, position)

    def _end(
        self,
        consumer: Consumer,
        row: Delivery,
        total: str | None,
        *,
        gone: bool = False,
        logged: bool = False,
    ) -> None:
        """Remove a delivery, and give the next of its line its turn.

        gone: the entry is being removed already. logged: the end of this very attempt was written down.
        """
        counts = consumer.counts
        if total is not None:
            setattr(counts, total, getattr(counts, total) + 1)
        counts.move(row.state, None)
        consumer.bytes -= row.size
        consumer.dirty = True
        key = (consumer.consumer_id, row.position)
        deliveries.remove(self.db, [key])
        if row.serial > 1 or (row.serial == 1 and (logged or row.state != "leased")):
            attempts.remove(self.db, [key])
        if not gone:
            self._done[row.position] = row.size
        if row.line is not None and row.state != "waiting":
            self._next_in(consumer, row.line)

    def _next_in(self, consumer: Consumer, line: str) -> None:
        head = deliveries.head(self.db, consumer.consumer_id, line)
        if head is None:
            return
        assert head.state == "waiting"
        state = self._when(head.due)
        consumer.turns += 1
        due = self._at(head.due) if state == "scheduled" else None
        deliveries.advance(self.db, consumer.consumer_id, head, state, due, consumer.turns)
        consumer.counts.move("waiting", state)
        self.woken = self.woken or state == "ready"

    def _give_back(
        self,
        consumer: Consumer,
        row: Delivery,
        delay_ms: int,
        attempts_: int,
        *,
        error: str | None,
        open: bool,
    ) -> None:
        state: State = "backoff" if delay_ms > 0 else "ready"
        due = self._at(self.at + delay_ms) if delay_ms > 0 else None
        deliveries.give_back(self.db, row, state, due=due, attempts=attempts_, open=open, error=error)
        consumer.counts.move(row.state, state)
        consumer.dirty = True
        self.woken = self.woken or state == "ready"

    def _at(self, due: int | None) -> int | None:
        """Note that something is due at this unix ms."""
        if due is not None and (self.soonest is None or due < self.soonest):
            self.soonest = due
        return due

    def _log(self, row: Delivery, ending: Ending, error: str | None) -> None:
        assert row.last is not None
        ended = Attempt(row.serial, row.attempts, ending, row.worker, row.last, self.at, error)
        attempts.insert(self.db, row.consumer_id, row.position, ended)

    def _require(self, consumer: Consumer, position: int) -> Delivery:
        row = deliveries.get(self.db, consumer.consumer_id, position)
        assert row is not None
        return row


def _line(ordering: Ordering, key: str | None) -> str | None:
    """The line a message stands in; None: in none."""
    if ordering == "fifo":
        return FIFO_LINE
    return key if ordering == "per_key" else None


def _is_newest(row: Delivery, lease: Lease) -> bool:
    """Was the message not handed out again since, nor this lease answered?"""
    return row.serial == lease.serial and bool(row.open)
