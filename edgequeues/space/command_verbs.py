"""Queues whose messages the space works itself: each is mapped, carried out and acknowledged in one transaction."""

from __future__ import annotations

from edgequeues.core.errors import InvalidMessage
from edgequeues.models import Message, NewEntry, Pull
from edgequeues.space import builtins, entities, queues, results
from edgequeues.space.base import DEFAULT, SpaceBase
from edgequeues.space.builtins import Rejected
from edgequeues.space.consumers import Consumer
from edgequeues.space.desk import Desk
from edgequeues.space.entities import Receipt
from edgequeues.space.queues import Queue
from edgequeues.spec.working import Call, Chained
from shards.shard import Context

WORKER = "commands"  # who has leased a message that is being worked here
RUN_MESSAGES = 100  # that one alarm works, of all queues together


class CommandVerbs(SpaceBase):
    """The runner of a space, which its alarm starts."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._worked_here: list[str] | None = None  # ids of the queues whose messages are worked here

    def forget(self) -> None:
        """Read all rows afresh from now on."""
        super().forget()
        self._worked_here = None

    def _forget_queues(self) -> None:
        super()._forget_queues()
        self._worked_here = None

    def _run(self) -> bool:
        """Work what is ready, each queue in its turn, a bounded number; return whether there is more."""
        left, busy = RUN_MESSAGES, [row for row in self._mapped() if _has_work(row)]
        while busy and left > 0:
            for row in busy:
                consumer = _worker(row)
                assert consumer is not None
                left -= self._work(row, consumer, min(consumer.config.batch, max(left, 1)))
            busy = [row for row in busy if _has_work(row)]
        return bool(busy)

    def _mapped(self) -> list[Queue]:
        if self._worked_here is None:
            self.write_back()
            self._worked_here = [row.queue_id for row in queues.declared(self.db) if row.work is not None]
        found = (self._find(queue_id) for queue_id in self._worked_here)
        return [row for row in found if row is not None]

    def _work(self, row: Queue, consumer: Consumer, limit: int) -> int:
        """Work up to `limit` messages; return how many were."""
        desk = self._desk(row)
        given = desk.pull(consumer, Pull(batch=limit, worker=WORKER), self._signer())
        for message in given:
            self._work_one(row, desk, message)
        self._worked(desk)
        return max(len(given), 1)

    def _work_one(self, row: Queue, desk: Desk, message: Message) -> None:
        """Have the message's effect and finish it, or neither."""
        assert row.work is not None
        lease = self._signer().read(message.lease)
        assert lease is not None
        try:
            todo = row.work(message.entry, desk.at)
            result = (
                self._chain(row, todo)
                if isinstance(todo, Chained)
                else self._effect(row, message, todo, desk.at)
            )
        except InvalidMessage as error:
            desk.retry(lease, error=f"map_to: {error.detail}", permanent=True)
        except Rejected as error:
            desk.retry(lease, error=f"command failed: {error}")
        else:
            desk.ack([lease])
            results.put(self.db, lease.position, result, desk.at)
            self._alarm_in(results.KEPT_MS)

    def _effect(self, row: Queue, message: Message, call: Call, at: int) -> str:
        done = builtins.carry_out(self.db, call, message.entry.id, at)
        home = self._home()
        home.position += 1
        receipt = Receipt(home.position, *done[:3], call.command, row.queue_id, message.entry.id, at)
        entities.record(self.db, receipt)
        return done.json()

    def _chain(self, row: Queue, chained: Chained) -> str:
        """Make the next message. It is judged, but not refused for want of room: it would be stuck here."""
        target = self._find(chained.queue)
        if target is None:
            raise Rejected(f"queue {chained.queue} is not there")
        entries = [NewEntry(chained.data)]
        if target.judge is None:
            [made] = self._put(target, entries, limited=False).results
        else:
            [made] = self._put_judged(target, target.judge.all(entries, self._time()), None, limited=False)
        return f'{{"queue":"{chained.queue}","message_id":"{made.id}"}}'


def _worker(row: Queue) -> Consumer | None:
    return next((one for one in row.consumers if one.name == DEFAULT), None)


def _has_work(row: Queue) -> bool:
    consumer = _worker(row)
    return not row.paused and consumer is not None and consumer.counts.ready > 0
