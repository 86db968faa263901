"""The pace at which a space works messages itself: whose turn has not come is put off, and uses up no attempt."""

from __future__ import annotations

from msgspec.structs import replace

from edgequeues.models import Message, Pull
from edgequeues.space import rates
from edgequeues.space.base import SpaceBase
from edgequeues.space.consumers import Consumer
from edgequeues.space.desk import Desk
from edgequeues.space.queues import Queue
from edgequeues.spec import pacing
from edgequeues.spec.pacing import NO_KEY, Pace, Taken


class RateVerbs(SpaceBase):
    """What the runner of a space asks before it hands out messages of a queue with a `rate_limit`."""

    def _within_rate(self, row: Queue, room: int) -> int:
        """How many of `room` messages may go now, as far as that is known without a look at them.

        Where none may, the alarm goes off when one does.
        """
        pace = _pace(row)
        if pace is None or pace.is_keyed or room <= 0:
            return room
        at, taken = self._time() * 1_000, rates.get(self.db, row.queue_id, NO_KEY)
        free = pace.free(taken, at)
        if free <= 0:
            self._alarm_in(pacing.ms_after(pace.opens(taken) - at))
        return min(room, free)

    def _pull_in_time(self, row: Queue, desk: Desk, consumer: Consumer, ask: Pull) -> list[Message]:
        """Lease what is next and may go now; put off what may not."""
        pace = _pace(row)
        if pace is None:
            return desk.pull(consumer, ask, self._signer())
        at, taken = desk.at * 1_000, dict[str, Taken]()
        batch = consumer.config.batch if ask.batch is None else ask.batch
        if pace.is_keyed:
            batch = self._put_off(row, desk, consumer, pace, batch, taken)
        else:
            batch = min(batch, self._within_rate(row, batch))
        given = desk.pull(consumer, replace(ask, batch=batch), self._signer()) if batch > 0 else []
        for message in given:
            key = pace.key(message.entry, at)
            before = taken[key] if key in taken else rates.get(self.db, row.queue_id, key)
            taken[key] = pace.let(before, 1, at)
        for key, one in taken.items():
            rates.put(self.db, row.queue_id, key, one)
        return given

    def _put_off(
        self, row: Queue, desk: Desk, consumer: Consumer, pace: Pace, limit: int, taken: dict[str, Taken]
    ) -> int:
        """Put off those of the next messages whose keys are ahead of their pace; how many of them may go.

        taken: is filled with what is known of their keys.
        """
        at, going, count = desk.at * 1_000, dict[str, int](), 0
        waiting = set[str]()  # keys of which something was put off already
        for one in desk.look(consumer, limit):
            key = pace.key(one.entry, at)
            if key not in taken:
                taken[key] = rates.get(self.db, row.queue_id, key)
                going[key] = pace.free(taken[key], at)
            if going[key] > 0:
                going[key] -= 1
                count += 1
                continue
            let = pace.let(taken[key], max(pace.free(taken[key], at), 0), at)  # those before it go first
            after, turn = pace.put_off(let, at, is_next=key not in waiting)
            waiting.add(key)
            taken[key] = taken[key]._replace(next=after.next)
            desk.hold(consumer, one, pacing.ms_after(turn))
        return count


def _pace(row: Queue) -> Pace | None:
    return None if row.rules is None else pacing.of_rules(row.rules)
