"""The desk of one queue within a turn: what is made, handed out, given back, finished and given up.

All decisions about a delivery are here; `moves.py` carries them out, rows are read and written by the table modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from edgequeues.core import backoff
from edgequeues.core.leases import Lease, Signer
from edgequeues.models import ENTRY_BYTES_MAX, PULL_MAX, Entry, Message, Pull, Reason, Verdict
from edgequeues.space import attempts, deadletters, deliveries, endings, log, retention
from edgequeues.space.consumers import Consumer
from edgequeues.space.deliveries import Candidate, Delivery
from edgequeues.space.log import Victim
from edgequeues.space.moves import Arrival, Burial, End, Moves

ENDED_MAX = 1_000  # messages that are over which one pull sees off
BURIED_MAX = 100  # messages without attempts left that one pull gives up


class Desk(Moves):
    """What becomes of the deliveries of one queue within a turn."""

    # -- arriving ---------------------------------------------------------------------------------------

    def arrive(self, arrivals: Sequence[Arrival]) -> None:
        """Give new entries to all consumers that have been given everything before them."""
        for consumer in self.queue.consumers:
            if not consumer.filling:
                self._make(consumer, arrivals)
                consumer.filled = arrivals[-1].position
                consumer.dirty = True

    def fill(self, consumer: Consumer, rows_max: int) -> None:
        """Give a consumer the next `rows_max` entries that were there before it, but no replayed dead letters."""
        arrivals = [
            Arrival(*row) for row in log.arrivals(self.db, self.queue.queue_id, consumer.filled, rows_max)
        ]
        if arrivals:
            replayed = deadletters.replayed_among(self.db, [one.position for one in arrivals])
            if self.is_about_sessions(consumer):  # what ended with an earlier one of its name begins anew
                endings.remove(self.db, [one.position for one in arrivals])
            self._make(consumer, [one for one in arrivals if one.position not in replayed])
            consumer.filled = arrivals[-1].position
        if len(arrivals) < rows_max:
            consumer.filled = max(consumer.filled, self.queue.tail)
            consumer.filling = False
        consumer.dirty = True

    # -- handing out ------------------------------------------------------------------------------------

    def pull(self, consumer: Consumer, ask: Pull, signer: Signer) -> list[Message]:
        """Lease what is next, at most a batch and about ENTRY_BYTES_MAX of data."""
        batch = consumer.config.batch if ask.batch is None else ask.batch
        given: list[Message] = []
        room, looked_at, ended, buried = ENTRY_BYTES_MAX, batch, 0, 0
        while ended < ENDED_MAX:
            found = self._next(consumer, looked_at, room)
            over = [one for one in found if self._is_over(consumer, one)]
            live = [one for one in found if not self._is_over(consumer, one)] if over else found
            given += self._hand_out(consumer, live[: batch - len(given)], ask, signer)
            ended += len(over)
            for one in over:
                buried += self._end_by_itself(
                    consumer, self._require(consumer, one.entry.position), one.entry
                )
            if not over or len(given) == batch:
                break
            room = ENTRY_BYTES_MAX - sum(len(one.entry.data) for one in given)
            if room <= 0 or buried >= BURIED_MAX:
                self.woken = True  # there may be more, for another pull
                break
            looked_at = PULL_MAX  # many may have ended together
        else:
            self.woken = True
        return given

    def upcoming(self, consumer: Consumer, limit: int) -> list[Candidate]:
        """What a pull would hand out; it stays there."""
        found = self._next(consumer, limit, ENTRY_BYTES_MAX)
        return [one for one in found if not self._is_over(consumer, one)]

    def look(self, consumer: Consumer, limit: int) -> list[Candidate]:
        """The same, once what is over among them has ended."""
        live = []
        for one in self._next(consumer, limit, ENTRY_BYTES_MAX):
            if self._is_over(consumer, one):
                self._end_by_itself(consumer, self._require(consumer, one.entry.position), one.entry)
            else:
                live.append(one)
        return live

    def hold(self, consumer: Consumer, one: Candidate, until: int) -> None:
        """Put a message off until unix ms `until`; whoever had it last may still ack it."""
        state: Literal["backoff", "scheduled"] = "backoff" if one.serial else "scheduled"
        deliveries.hold(self.db, consumer.consumer_id, one.entry.position, state, until)
        self._at(until)
        self._move(consumer, "ready", "hold", state)

    def _next(self, consumer: Consumer, limit: int, room: int) -> list[Candidate]:
        starvation_ms = consumer.config.starvation_after_ms
        if starvation_ms is None:
            return deliveries.ready(self.db, consumer.consumer_id, limit, room)
        return deliveries.ready_by_age(
            self.db, consumer.consumer_id, limit, room, starved_ts=self.at - starvation_ms
        )

    def _hand_out(
        self, consumer: Consumer, found: list[Candidate], ask: Pull, signer: Signer
    ) -> list[Message]:
        until = self.at + (consumer.config.lease_ms if ask.lease_ms is None else ask.lease_ms)
        positions = [one.entry.position for one in found]
        deliveries.lease(self.db, consumer.consumer_id, positions, worker=ask.worker, at=self.at, until=until)
        given = []
        for one in found:
            lease = Lease(one.entry.position, consumer.consumer_id, one.serial + 1)
            given.append(Message(one.entry, signer.token(lease), one.attempts + 1, until))
        if given:
            self._move(consumer, "ready", "lease", "leased", len(given))
            self.waited_ms += [self.at - one.entry.updated for one in found if not one.attempts]
            consumer.counts.total_attempts += len(given)
            self._at(until)
        return given

    def _is_over(self, consumer: Consumer, one: Candidate) -> bool:
        """Is a message not to be handed out any more, though nothing has said so yet?"""
        spent = backoff.exhausted(one.attempts, consumer.config.attempts_max)  # fewer are allowed than were
        return spent or self._expired(one.entry)

    def _end_by_itself(self, consumer: Consumer, row: Delivery, entry: Entry) -> bool:
        """End what is over; return whether a dead letter was made of it."""
        if self._expired(entry):
            self._end(consumer, [row], "expire")
            return False
        self.give_up(consumer, row, "exhausted", row.error or "no attempts are left")
        return True

    def _expired(self, entry: Entry) -> bool:
        return retention.expired(self.queue, entry.updated, entry.expires, self.at)

    # -- what holders of leases say ---------------------------------------------------------------------

    def ack(self, leases: Sequence[Lease | None], *, even_stale: bool = False) -> list[Verdict]:
        """Finish messages; None is a lease of nothing that is known here.

        A lease that lapsed counts while it is the newest; `even_stale`: in any case.
        """
        rows: dict[int, dict[int, Delivery]] = {}  # by consumer and position, without those that end here
        for consumer_id in {one.consumer for one in leases if one is not None} & self._consumers.keys():
            positions = {one.position for one in leases if one is not None and one.consumer == consumer_id}
            rows[consumer_id] = deliveries.among(self.db, consumer_id, positions)
        ended: dict[int, list[Delivery]] = {one: [] for one in rows}
        verdicts: list[Verdict] = []
        for lease in leases:
            if lease is None:
                verdicts.append("unknown")
                continue
            row = rows[lease.consumer].get(lease.position) if lease.consumer in rows else None
            if row is None:
                verdicts.append(self._why_over(lease))
            elif even_stale or _is_newest(row, lease):
                ended[lease.consumer].append(rows[lease.consumer].pop(lease.position))
                verdicts.append("done")
            else:
                verdicts.append("stale")
        for consumer_id, some in ended.items():
            self._end(self._consumers[consumer_id], some, "ack")
        return verdicts

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
        self._give_back(consumer, row, "retry", delay_ms, attempts_=row.attempts, error=error)
        return "done"

    def release(self, lease: Lease) -> Verdict:
        """Give a message back untouched: it is ready at once, and the attempt does not count."""
        live = self._live(lease)
        if isinstance(live, str):
            return live
        consumer, row = live
        self._log(row, "released", None)
        consumer.counts.total_released += 1
        self._give_back(consumer, row, "release", 0, attempts_=row.attempts - 1, error=None)
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
        self.timed = True
        return "done"

    def _held(self, lease: Lease) -> tuple[Consumer, Delivery] | Verdict:
        """The delivery that a lease is about, or why there is none."""
        consumer = self._consumers.get(lease.consumer)
        row = None if consumer is None else deliveries.get(self.db, lease.consumer, lease.position)
        return self._why_over(lease) if consumer is None or row is None else (consumer, row)

    def _why_over(self, lease: Lease) -> Verdict:
        """Why there is no delivery any more that a lease is about."""
        if lease.consumer not in self._consumers:
            return "finished"
        ended = attempts.ending(self.db, lease.consumer, lease.position, lease.serial)
        return "superseded" if ended == "superseded" else "finished"

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
            self._move(self._consumers[row.consumer_id], row.state, "due", "ready")
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
            self._give_back(consumer, row, "lapse", delay_ms, attempts_=row.attempts, error=error)

    # -- endings ----------------------------------------------------------------------------------------

    def give_up(self, consumer: Consumer, row: Delivery, reason: Reason, error: str) -> None:
        """Make a dead letter of a message."""
        total = f"total_{reason}"
        setattr(consumer.counts, total, getattr(consumer.counts, total) + 1)
        self._bury(Burial(consumer, row, reason, error, self.at))
        self._end(consumer, [row], "bury", logged=True, error=error)

    def cancel(self, victims: Iterable[Victim], *, superseded: bool = False) -> None:
        """Their entries are going: expired ones have expired, all others, and what is handed out, are cancelled."""
        for victim in victims:
            for row in deliveries.of_entry(self.db, victim.position):
                leased = row.state == "leased"
                event: End = "expire" if victim.expired and not leased else "cancel"
                self._end(self._consumers[row.consumer_id], [row], event, keep=True)
                if superseded and leased:
                    self._log(row, "superseded", None)

    def close_session(self, consumer: Consumer, rows: Sequence[Delivery]) -> None:
        """Have these messages of a session expire, what is handed out too."""
        self._end(consumer, rows, "close")

    def hurry(self, consumer: Consumer, row: Delivery) -> None:
        """Have a message that waits for a time be ready now."""
        deliveries.hurry(self.db, row, self.at)
        self._move(consumer, row.state, "due", "ready")

    def lapse(self, consumer: Consumer, rows: Sequence[Delivery]) -> None:
        """End leases now that nobody will answer."""
        for row in rows:
            self._lapse(consumer, row._replace(due=self.at))

    def forget(self, consumer: Consumer, rows: Sequence[Delivery]) -> None:
        """Cancel deliveries of a consumer that is being removed. Without another one, their entries stay."""
        alone = len(self._consumers) == 1
        self._end(consumer, rows, "cancel", keep=alone)


def _is_newest(row: Delivery, lease: Lease) -> bool:
    """Was the message not handed out again since, nor this lease answered?"""
    return row.serial == lease.serial and bool(row.open)
