"""The verbs that treat a queue as work to be done: consumers, leases, what becomes of them. Each is one turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

import msgspec

from edgequeues.core import ids
from edgequeues.core.errors import (
    ConsumerNotFound,
    EntryNotFound,
    InvalidRequest,
    NoConsumer,
    QueueNotFound,
)
from edgequeues.core.leases import Lease
from edgequeues.core.lifecycle import State
from edgequeues.models import (
    WORK_QUEUE,
    AppendAnswer,
    Backlog,
    ConsumerConfig,
    ConsumerInfo,
    Explanation,
    NewEntry,
    Pull,
    Pulled,
    QueueConfig,
    QueueInfo,
    Retry,
    Start,
    Verdict,
)
from edgequeues.space import consumers, deliveries, explaining, log, standings
from edgequeues.space import results as kept
from edgequeues.space.append import check_priorities
from edgequeues.space.base import SpaceBase
from edgequeues.space.consumers import DEFAULT, Consumer
from edgequeues.space.deliveries import Candidate, Delivery
from edgequeues.space.desk import Desk
from edgequeues.space.explaining import Lines, Peeked
from edgequeues.space.queues import Queue
from edgequeues.space.watched import changed
from shards.shard import grows, reads

REMOVED_ROWS = 1_000
FILL_ROWS = 1_000


class WorkVerbs(SpaceBase):
    """`queue` is a queue's id or its name, checked by the caller; `consumer` is a name, None for the only one."""

    removed_rows: ClassVar[int] = REMOVED_ROWS  # deliveries of a consumer that goes, in one turn
    fill_rows: ClassVar[int] = FILL_ROWS  # entries a new consumer is given in one turn

    @grows
    def push(
        self, queue: str, entries: Sequence[NewEntry], actor: str | None = None, *, make: bool = True
    ) -> AppendAnswer:
        """Append messages; a queue that is not there is made as a work queue, if it may be.

        Raises QueueNotFound, and as `append` does, IdempotencyMismatch, QueueFull.
        """
        row = self._find(queue)
        if row is None and not make:
            raise QueueNotFound(f"queue {queue}")
        if row is None:
            row = self._make_worked(queue, WORK_QUEUE, ConsumerConfig())
        check_priorities(row, entries)
        return self._put(row, entries, actor)

    # -- consumers --------------------------------------------------------------------------------------

    @grows
    def consume(self, queue: str, consumer: str, rules: ConsumerConfig, start: Start = "new") -> ConsumerInfo:
        """Make a consumer, or change its rules. It is given what is appended from now on, or all there is.

        Raises QueueNotFound, InvalidRequest for another ordering than it has.
        """
        row = self._require(queue)
        self._check_grave(rules)
        found = next((one for one in row.consumers if one.name == consumer), None)
        if found is None:
            found = self._make_consumer(row, consumer, rules, start=start)
            self._record("set_consumer", row, consumer=consumer, made=True)
        elif rules.ordering != found.config.ordering:
            raise InvalidRequest(f"ordering: fixed, {consumer} has {found.config.ordering}")
        else:
            self._check_graves(row, [rules])
            changes = changed(found.config, rules)
            consumers.configure(self.db, found, rules)
            if changes:
                self._record("set_consumer", row, consumer=consumer, changes=changes)
        return explaining.counted(self.db, row, found, self._time())

    @grows
    def provision(self, queue: str, config: QueueConfig, rules: ConsumerConfig) -> QueueInfo:
        """Make a work queue whose consumer `default` has these rules, or give both their settings anew.

        Raises as `configure` and `consume` do.
        """
        row = self._find(queue)
        if row is None:
            self._check_grave(rules)
            return self._info(self._recorded(self._make_worked(queue, config, rules)))
        if config.name is None and not ids.is_ulid(queue):
            config = msgspec.structs.replace(config, name=queue)
        before = row.config
        info = self._reconfigured(row, config)
        self._record_settings(row, before)
        self.consume(row.queue_id, DEFAULT, rules, start="beginning")
        return info

    def dismiss(self, queue: str, consumer: str) -> bool:
        """Remove a consumer and its deliveries, a bounded number in a turn; return whether there are more.

        What nobody else has still to do goes too, where `on_ack` is `delete`; with the last consumer nothing does.
        """
        row = self._require(queue)
        found = self._consumer(row, consumer)
        desk = self._desk(row)
        waited_for = found.filling and len(row.consumers) > 1  # by what the others have finished
        if waited_for:
            desk.fill(found, self.fill_rows)
        gone = deliveries.some(self.db, found.consumer_id, self.removed_rows)
        desk.forget(found, gone)
        if (waited_for and found.filling) or len(gone) == self.removed_rows:
            self._worked(desk)
            return True
        row.consumers.remove(found)
        consumers.remove(self.db, found.consumer_id)
        self._worked(desk)
        self._record("remove_consumer", row, consumer=consumer)
        return False

    def consumers(self, queue: str) -> list[ConsumerInfo]:
        """The consumers of a queue. Raises QueueNotFound."""
        self._settle()
        row = self._require(queue)
        return [explaining.counted(self.db, row, one, self._time()) for one in row.consumers]

    @reads
    def rules(self, queue: str, consumer: str | None = None) -> ConsumerConfig:
        """The rules of a consumer. Raises QueueNotFound, NoConsumer, ConsumerNotFound."""
        return self._consumer(self._require(queue), consumer).config

    @reads
    def backlog(self, queue: str) -> Backlog:
        """What is still to be done by the consumer that is meant where none is named; all entries where nobody is.

        Raises QueueNotFound.
        """
        row = self._require(queue)
        if not row.consumers:
            info = self._info(row)
            return Backlog(info.entries, info.entries, info.bytes, info.oldest)
        found = self._consumer(row, None if len(row.consumers) == 1 else row.consumers[0].name)
        oldest = standings.oldest(self.db, found.consumer_id)
        return Backlog(found.counts.unfinished, found.counts.ready, found.bytes, oldest)

    # -- handing out ------------------------------------------------------------------------------------

    @grows
    def pull(self, queue: str, consumer: str | None, ask: Pull) -> Pulled:
        """Lease messages, those whose turn it is. Raises QueueNotFound, NoConsumer, ConsumerNotFound."""
        self._settle()
        row = self._require(queue)
        found = self._consumer(row, consumer)
        if row.paused:
            return Pulled([], True, found.counts.unfinished)
        desk = self._desk(row)
        given = desk.pull(found, ask, self._signer())
        self._worked(desk)
        return Pulled(given, False, found.counts.unfinished)

    def ack(
        self,
        queue: str,
        tokens: Sequence[str],
        *,
        even_stale: bool = False,
        results: Mapping[str, str] = MappingProxyType({}),
    ) -> list[Verdict]:
        """Finish messages. `even_stale`: also by a lease that is no longer the newest.

        results: JSON by token, of what came of it, kept for those who send the message again.
        """
        self._settle()
        row = self._require(queue)
        desk, leases = self._desk(row), self._leases(row, tokens)
        told = [
            lease.position for token, lease in zip(tokens, leases, strict=True) if lease and token in results
        ]
        entries = {position: log.at(self.db, position) for position in told}  # while they are there
        verdicts = desk.ack(leases, even_stale=even_stale)
        for token, lease, verdict in zip(tokens, leases, verdicts, strict=True) if results else ():
            if token not in results or verdict != "done":  # two tokens may be of one message
                continue
            if lease is not None and (entry := entries.get(lease.position)):
                message = (row.queue_id, entry.id)
                kept.put(self.db, lease.position, results[token], self._time(), message)
                self._alarm_in(kept.KEPT_MS)
        self._worked(desk)
        return verdicts

    def retry(self, queue: str, retries: Sequence[Retry]) -> list[Verdict]:
        """Give up attempts: the messages are tried again later, or are dead letters if it was for the last time."""

        def one(desk: Desk, lease: Lease, number: int) -> Verdict:
            ask = retries[number]
            return desk.retry(lease, delay_ms=ask.delay_ms, error=ask.error, permanent=ask.permanent)

        return self._each(queue, [ask.lease for ask in retries], one)

    def release(self, queue: str, tokens: Sequence[str]) -> list[Verdict]:
        """Give messages back untouched: ready at once, the attempts do not count."""
        return self._each(queue, tokens, lambda desk, lease, _: desk.release(lease))

    def extend(self, queue: str, tokens: Sequence[str], lease_ms: int) -> list[Verdict]:
        """Have leases end `lease_ms` from now."""
        return self._each(queue, tokens, lambda desk, lease, _: desk.extend(lease, lease_ms))

    def skip(self, queue: str, consumer: str | None, object_id: str) -> None:
        """Give up a message nobody holds, so that its line goes on. Raises EntryNotFound, InvalidRequest."""
        row, found, standing = self._unfinished(queue, consumer, object_id)
        if standing.state == "leased":
            raise InvalidRequest(f"object {object_id} is handed out: wait until its lease ends")
        desk = self._desk(row)
        desk.give_up(found, standing, "skipped", "skipped by an operator")
        self._worked(desk)
        self._record("skip", row, consumer=found.name, id=object_id)

    def hurry(self, queue: str, consumer: str | None, object_id: str) -> None:
        """Have a message that waits for its time be ready now. Raises EntryNotFound, InvalidRequest."""
        row, found, standing = self._unfinished(queue, consumer, object_id)
        if not self._hurry(row, found, standing):
            raise InvalidRequest(f"object {object_id} waits for no time: it is {standing.state}")
        self._record("retry_now", row, consumer=found.name, id=object_id)

    def _hurry(self, row: Queue, consumer: Consumer, standing: Delivery) -> bool:
        """Have a message be ready now; False: it waits for no time."""
        if standing.state not in ("backoff", "scheduled"):
            return False
        desk = self._desk(row)
        desk.hurry(consumer, standing)
        self._worked(desk)
        return True

    def _unfinished(
        self, queue: str, consumer: str | None, object_id: str
    ) -> tuple[Queue, Consumer, Delivery]:
        """How a message stands with a consumer now. Raises EntryNotFound."""
        self._settle()
        row = self._require(queue)
        found = self._consumer(row, consumer)
        standing = deliveries.get(self.db, found.consumer_id, self._position_of(row, object_id))
        if standing is None:
            raise EntryNotFound(f"object {object_id} has no unfinished delivery in queue {queue}")
        return row, found, standing

    # -- looking ----------------------------------------------------------------------------------------

    @reads
    def peek(
        self, queue: str, consumer: str | None, states: Sequence[State], after: int, limit: int
    ) -> Peeked:
        """Messages of a consumer in any of these states, by position from above `after`. Changes nothing.

        A bounded number is looked at, so there may be fewer than `limit`, even none, with more behind them.
        """
        row = self._require(queue)
        found = self._consumer(row, consumer)
        return explaining.peek(self.db, found, states, after, limit)

    def upcoming(self, queue: str, consumer: str | None, limit: int) -> list[Candidate]:
        """What would be handed out now, in that order, whether the queue is paused or not. It stays there."""
        self._settle()
        row = self._require(queue)
        return self._desk(row).upcoming(self._consumer(row, consumer), limit)

    @reads
    def explain(self, queue: str, object_id: str) -> list[Explanation]:
        """Why a message is not delivered now, to each consumer. Raises EntryNotFound."""
        row = self._require(queue)
        entry = log.at(self.db, self._position_of(row, object_id))
        assert entry is not None
        return [explaining.explain(self.db, row, one, entry, self._time()) for one in row.consumers]

    @reads
    def lines(self, queue: str, consumer: str | None, after: str | None, limit: int) -> Lines:
        """The ordering keys of a consumer whose messages wait behind another, the longest lines first.

        Among a bounded number of keys, in order from above `after`.
        """
        row = self._require(queue)
        found = self._consumer(row, consumer)
        return explaining.lines(self.db, found, after, limit)

    # -- rows -------------------------------------------------------------------------------------------

    def _consumer(self, row: Queue, name: str | None) -> Consumer:
        if name is None and not row.consumers:
            raise NoConsumer(f"queue {row.name or row.queue_id}")
        wanted = name or DEFAULT
        found = next((one for one in row.consumers if one.name == wanted), None)
        if found is None and name is None and len(row.consumers) == 1:
            found = row.consumers[0]
        if found is None:
            raise ConsumerNotFound(f"consumer {wanted} of queue {row.name or row.queue_id}")
        return found

    def _each(
        self, queue: str, tokens: Sequence[str], act: Callable[[Desk, Lease, int], Verdict]
    ) -> list[Verdict]:
        """Act on each lease that a text stands for, and its number among them; one of no such lease is unknown."""
        self._settle()
        row = self._require(queue)
        desk = self._desk(row)
        verdicts: list[Verdict] = [
            "unknown" if lease is None else act(desk, lease, number)
            for number, lease in enumerate(self._leases(row, tokens))
        ]
        self._worked(desk)
        return verdicts

    def _leases(self, row: Queue, texts: Sequence[str]) -> list[Lease | None]:
        """The leases that texts stand for; None: none of this queue."""
        known = {one.consumer_id for one in row.consumers}
        signer = self._signer()
        found = [signer.read(text) for text in texts]
        # One of a consumer that is not of this queue may be of one that is gone.
        return [
            one
            if one is None or one.consumer in known or consumers.queue_of(self.db, one.consumer) is None
            else None
            for one in found
        ]

    def _position_of(self, row: Queue, object_id: str) -> int:
        found = log.positions(self.db, row.queue_id, [object_id])
        if not found:
            raise EntryNotFound(f"object {object_id} in queue {row.name or row.queue_id}")
        return found[0]

    def _check_grave(self, rules: ConsumerConfig) -> None:
        if rules.dead_letters and self._find(rules.dead_letters) is None:
            raise InvalidRequest(f"dead_letters: there is no queue {rules.dead_letters}")
