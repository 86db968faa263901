"""Commands that are carried out outside of the space: handed out as leases, and their effects taken in one turn.

What runs outside may hang or die, so the lease is on disk before it starts, and nothing of what it did counts before
the turn that also acknowledges the message. What it looked at is compared then: had that changed, it would run again.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from edgequeues.core.errors import InvalidMessage
from edgequeues.models import Pull, Verdict
from edgequeues.space import entities
from edgequeues.space.command_verbs import WORKER, CommandVerbs, room
from edgequeues.space.consumers import Consumer
from edgequeues.space.effects import Cause
from edgequeues.space.entities import Entity
from edgequeues.space.queues import Queue
from edgequeues.space.work_verbs import WorkVerbs
from edgequeues.spec.calling import Call, Effects
from edgequeues.spec.ir import CommandSpec
from edgequeues.spec.working import Chained, Runner
from shards.shard import grows, reads

LEASE_MARGIN_MS = 10_000  # over the time a command may take, for its way there and back

Finish = Verdict | Literal["conflict"]


class Task(Struct, frozen=True):
    """A command to be carried out for a message, which is leased for it. created, at: unix ms of the two."""

    queue_id: str
    lease: str
    message_id: str
    attempt: int
    call: Call
    command: CommandSpec
    created: int
    at: int


class Handed(Struct, frozen=True):
    """What there is to be done, and whether there is more."""

    tasks: list[Task]
    more: bool


class CallingVerbs(CommandVerbs, WorkVerbs):
    """The part of the runner of a space that hands out."""

    @grows
    def take_calls(self, runner: Runner, limit: int) -> Handed:
        """Lease up to `limit` messages whose commands such a runner carries out, each queue in its turn.

        A message of which no input can be made is a dead letter at once.
        """
        self._settle()
        tasks: list[Task] = []
        left, busy = limit, self._busy(runner)
        while busy and left > 0:
            for row, consumer in busy[:left]:
                handed = self._hand_out(row, consumer, min(left, consumer.config.batch))
                left -= max(len(handed), 1)
                tasks += [task for task in handed if task is not None]
            busy = self._busy(runner)
        return Handed(tasks, bool(busy))

    @grows
    def finish_call(self, task: Task, effects: Effects) -> Finish:
        """Take what a command did and finish its message, unless another lease than the task's holds that by now.

        `conflict`: what it looked at has changed meanwhile. Then, and where this raises, nothing is changed.
        Raises InvalidMessage, CommandRejected for a message that a queue does not take.
        """
        self._settle()
        if self._is_stale(effects):
            return "conflict"
        row = self._require(task.queue_id)
        desk, [lease] = self._desk(row), self._leases(row, [task.lease])
        [verdict] = desk.ack([lease])
        if verdict == "done":
            assert lease is not None
            self._take(effects, task.call.command, Cause(row.queue_id, task.message_id), desk.at)
            self._keep_result(lease.position, effects.result, desk.at, (row.queue_id, task.message_id))
        self._worked(desk)
        return verdict

    @reads
    def looked_up(self, entity_type: str, entity_id: str) -> Entity | None:
        """An entity as it is now."""
        return entities.get(self.db, entity_type, entity_id)

    def _hand_out(self, row: Queue, consumer: Consumer, limit: int) -> list[Task | None]:
        """Lease up to `limit` messages; None stands for one that was given up."""
        work = row.work
        assert work is not None
        assert work.command is not None
        desk, at = self._desk(row), self._time()
        ask = Pull(
            batch=min(limit, room(row, consumer)),
            worker=WORKER,
            lease_ms=work.command.timeout_ms + LEASE_MARGIN_MS,
        )
        tasks: list[Task | None] = []
        for one in self._pull_in_time(row, desk, consumer, ask):
            try:
                call = work(one.entry, at)
            except InvalidMessage as error:
                self._no_input(desk, self._lease(one), error)
                tasks.append(None)
                continue
            assert not isinstance(call, Chained)
            entry, command = one.entry, work.command
            tasks.append(
                Task(row.queue_id, one.lease, entry.id, one.attempts, call, command, entry.created, at)
            )
        self._worked(desk)
        return tasks
