"""Queues whose messages the space works itself: each is mapped, carried out and acknowledged in one transaction.

What commands do outside of the space is handed out by `calling_verbs.py`.
"""

from __future__ import annotations

from edgequeues.core.errors import CommandRejected, InvalidMessage
from edgequeues.core.leases import Lease
from edgequeues.models import Message, Pull
from edgequeues.space import queues, results
from edgequeues.space.consumers import Consumer
from edgequeues.space.desk import Desk
from edgequeues.space.effects import Cause, EffectVerbs
from edgequeues.space.queues import Queue, default_of
from edgequeues.space.rate_verbs import RateVerbs
from edgequeues.spec.calling import Call, Posted
from edgequeues.spec.working import OUTSIDE, Chained, Runner
from shards.shard import Context

WORKER = "commands"  # who has leased a message that is being worked here
RUN_MESSAGES = 100  # that one alarm works, of all queues together


class CommandVerbs(EffectVerbs, RateVerbs):
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
        left, busy = RUN_MESSAGES, self._busy("space")
        while busy and left > 0:
            for row, consumer in busy:
                left -= self._work(row, consumer, min(consumer.config.batch, max(left, 1)))
            busy = self._busy("space")
        for runner in OUTSIDE:
            if self._busy(runner):
                self._call_for(runner)
        return bool(busy)

    def _worked(self, desk: Desk) -> None:
        super()._worked(desk)
        work, worker = desk.queue.work, default_of(desk.queue)
        if work is None or worker is None or work.concurrency is None:
            return
        if room(desk.queue, worker) > 0:
            self._call_for(work.runner)  # one less is out, so another may go

    def _busy(self, runner: Runner) -> list[tuple[Queue, Consumer]]:
        """The queues with messages that such a runner could be given now, and who works them."""
        found = []
        for row in self._mapped():
            assert row.work is not None
            consumer = default_of(row)
            if row.work.runner == runner and consumer is not None and self._room(row, consumer) > 0:
                found.append((row, consumer))
        return found

    def _room(self, row: Queue, consumer: Consumer) -> int:
        """How many of a queue's messages may be handed out now to who works them."""
        return self._within_rate(row, room(row, consumer))

    def _mapped(self) -> list[Queue]:
        if self._worked_here is None:
            self.write_back()
            self._worked_here = [row.queue_id for row in queues.declared(self.db) if row.work is not None]
        found = (self._find(queue_id) for queue_id in self._worked_here)
        return [row for row in found if row is not None]

    def _work(self, row: Queue, consumer: Consumer, limit: int) -> int:
        """Work up to `limit` messages; return how many were."""
        desk = self._desk(row)
        given = self._pull_in_time(row, desk, consumer, Pull(batch=limit, worker=WORKER))
        for message in given:
            self._work_one(row, desk, message)
        self._worked(desk)
        return max(len(given), 1)

    def _work_one(self, row: Queue, desk: Desk, message: Message) -> None:
        """Have the message's effect and finish it, or neither."""
        assert row.work is not None
        lease = self._lease(message)
        try:
            todo = row.work(message.entry, desk.at)
            result = self._result(todo, Cause(row.queue_id, message.entry.id), desk.at)
        except InvalidMessage as error:
            self._no_input(desk, lease, error)
        except CommandRejected as error:
            desk.retry(lease, error=f"command failed: {error.detail}")
        else:
            desk.ack([lease])
            self._keep_result(lease.position, result, desk.at, (row.queue_id, message.entry.id))

    def _result(self, todo: Call | Chained, cause: Cause, at: int) -> str:
        if isinstance(todo, Chained):
            return f'{{"queue":"{todo.queue}","message_id":"{self._send_on(Posted(todo.queue, todo.data))}"}}'
        return self._do(todo, cause, at)

    def _keep_result(self, position: int, result: str, at: int, message: tuple[str, str]) -> None:
        results.put(self.db, position, result, at, message)
        self._alarm_in(results.KEPT_MS)

    def _no_input(self, desk: Desk, lease: Lease, error: InvalidMessage) -> None:
        """Give up a message of which no input can be made, however often that is tried."""
        desk.retry(lease, error=f"map_to: {error.detail}", permanent=True)

    def _lease(self, message: Message) -> Lease:
        lease = self._signer().read(message.lease)
        assert lease is not None
        return lease


def room(row: Queue, consumer: Consumer) -> int:
    """The same, whatever the pace of the queue."""
    assert row.work is not None
    if row.paused:
        return 0
    most = row.work.concurrency
    room = consumer.counts.ready if most is None else most - consumer.counts.leased
    return min(room, consumer.counts.ready)
