"""How the deliveries of a queue move: states by their table, counters along with them, and whose turn comes next.

What is to happen to a delivery is decided at the desk; here it is done, the same way for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, NamedTuple

import apsw

from edgequeues.core.lifecycle import TRANSITIONS, UNFINISHED, Event, State, allowed
from edgequeues.models import Ordering, Reason
from edgequeues.space import attempts, deliveries, endings
from edgequeues.space.attempts import Attempt, Ending
from edgequeues.space.consumers import DEFAULT, Consumer
from edgequeues.space.deliveries import Delivery, Made
from edgequeues.space.log import Victim
from edgequeues.space.queues import Queue
from edgequeues.space.store import Store

FIFO_LINE = ""
End = Literal["ack", "bury", "expire", "cancel", "close"]
BY_TIME = frozenset({"lease", "due", "retry", "release", "lapse", "expire", "hold"})


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


class Moves:
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
        self.timed = False  # was anything decided by what time it is?
        self.waited_ms: list[int] = []  # by messages that were handed out for the first time
        self.handled_ms: list[int] = []  # by attempts that were acked or given up
        self.acked = 0  # deliveries that were
        self._bury = bury
        self._consumers = {one.consumer_id: one for one in queue.consumers}
        self._done: dict[int, int] = {}  # positions that a consumer finished, and the size of each

    def close(self) -> list[Victim]:
        """Return the entries that nobody needs any more, which are still to be removed."""
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

    # -- making -----------------------------------------------------------------------------------------

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

    # -- moving -----------------------------------------------------------------------------------------

    def _move(self, consumer: Consumer, state: State, event: Event, then: State, count: int = 1) -> None:
        """Count deliveries from one state to the next, which the table of transitions must have."""
        assert allowed(state, event, then), f"{event}: {state} to {then}"
        consumer.counts.move(state, then if then in UNFINISHED else None, count)
        consumer.dirty = True
        self.woken = self.woken or then == "ready"
        self.timed = self.timed or event in BY_TIME

    def _give_back(
        self,
        consumer: Consumer,
        row: Delivery,
        event: Literal["retry", "release", "lapse"],
        delay_ms: int,
        *,
        attempts_: int,
        error: str | None,
    ) -> None:
        """End a lease without finishing the delivery. The holder of one that lapsed may still ack it.

        delay_ms: less than nothing where the message has been ready for so long already.
        """
        state: State = "backoff" if delay_ms > 0 else "ready"
        due = self._at(self.at + delay_ms) if delay_ms > 0 else None
        lapsed, since = event == "lapse", self.at + min(delay_ms, 0)
        if event == "retry" and row.last is not None:
            self.handled_ms.append(self.at - row.last)
        deliveries.give_back(
            self.db, row, state, due=due, attempts=attempts_, open=lapsed, error=error, at=since
        )
        self._move(consumer, row.state, event, state)

    def _end(
        self,
        consumer: Consumer,
        rows: Sequence[Delivery],
        event: End,
        *,
        keep: bool = False,
        logged: bool = False,
        error: str | None = None,
    ) -> None:
        """Remove deliveries, and give the next of their lines its turn.

        keep: the entries' own end is not decided by this. logged: the ends of these very attempts were written down.
        error: why it ends, where that is not the error of the last attempt.
        """
        for state, count in Counter([row.state for row in rows]).items():
            (then,) = TRANSITIONS[state, event]
            self._move(consumer, state, event, then, count)
        counts = consumer.counts
        if event == "ack":
            self.handled_ms += [self.at - row.last for row in rows if row.last is not None]
            counts.total_acked += len(rows)
            self.acked += len(rows)
        elif event in ("expire", "close"):
            counts.total_expired += len(rows)
        elif event == "cancel":
            counts.total_cancelled += len(rows)
        consumer.bytes -= sum([row.size for row in rows])
        deliveries.remove(self.db, [row[:2] for row in rows])
        attempts.remove(self.db, [row[:2] for row in rows if _has_attempts(row, logged=logged)])
        if not keep:
            self._done.update({row.position: row.size for row in rows})
        if self.is_about_sessions(consumer):
            endings.put(self.db, [self._ending(row, event, error) for row in rows])
        for row in rows:
            if row.line is not None and row.state != "waiting":
                self._next_in(consumer, row.line)

    def is_about_sessions(self, consumer: Consumer) -> bool:
        """Is it what this consumer does with a message that becomes of it in its session?"""
        return self.queue.sessions and consumer.name == DEFAULT

    def _ending(self, row: Delivery, event: End, error: str | None) -> endings.End:
        """How a message for a session ended. Of its deliveries, one that succeeds or is cut off has not failed."""
        (then,) = TRANSITIONS[row.state, event]
        did_not_fail = event == "ack" or (event in ("close", "cancel") and row.state == "leased")
        failures = row.attempts - did_not_fail
        assert then in ("acked", "dead", "expired", "cancelled")
        return endings.End(row.position, self.queue.queue_id, then, failures, error or row.error, self.at)

    def _next_in(self, consumer: Consumer, line: str) -> None:
        head = deliveries.head(self.db, consumer.consumer_id, line)
        if head is None:
            return
        state = self._when(head.due)
        consumer.turns += 1
        due = self._at(head.due) if state == "scheduled" else None
        deliveries.advance(self.db, consumer.consumer_id, head, state, due, consumer.turns, self.at)
        self._move(consumer, head.state, "turn", state)

    # -- notes ------------------------------------------------------------------------------------------

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


def _has_attempts(row: Delivery, *, logged: bool) -> bool:
    """May there be attempts that ended?"""
    return row.serial > 1 or (row.serial == 1 and (logged or row.state != "leased"))


def _line(ordering: Ordering, key: str | None) -> str | None:
    """The line a message stands in; None: in none."""
    if ordering == "fifo":
        return FIFO_LINE
    return key if ordering == "per_key" else None
