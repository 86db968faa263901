"""What all verbs of a space stand on: making queues, writing entries, deliveries, and the alarm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain, count
from typing import ClassVar

import msgspec

from edgequeues.core import cursors, ids
from edgequeues.core.errors import (
    ConfigConflict,
    InvalidId,
    InvalidMessage,
    InvalidRequest,
    NameTaken,
    QueueFull,
)
from edgequeues.models import AppendAnswer, Appended, ConsumerConfig, NewEntry, QueueConfig, QueueInfo, Start
from edgequeues.space import (
    consumers,
    deadletters,
    dedup,
    deliveries,
    endings,
    letters,
    log,
    queues,
    retention,
    views,
)
from edgequeues.space.append import Append
from edgequeues.space.consumers import DEFAULT, Consumer
from edgequeues.space.deliveries import Delivery
from edgequeues.space.desk import Desk
from edgequeues.space.log import Victim
from edgequeues.space.moves import Arrival, Burial
from edgequeues.space.queues import Queue
from edgequeues.space.schema import MIGRATIONS
from edgequeues.space.timings import Timings
from edgequeues.spec.judging import Malformed, Verdict
from edgequeues.spec.working import Runner

SETTLE_ROWS = 1_000  # deliveries whose time has come that one turn takes on
WORK = "work"  # with a queue: the event that there is something to pull
CALLS = "calls"  # with a runner: the event that there are commands for it
NUDGE_MS = 1_000  # after which those who carry out commands outside of the space are told of them once more
FILTERED = Appended("", 0, "", "filtered")


class SpaceBase(Timings):
    """`queue` is a queue's id or its name, checked by the caller."""

    migrations: ClassVar[Sequence[str]] = MIGRATIONS

    # -- queues -----------------------------------------------------------------------------------------

    def _make(self, queue: str, config: QueueConfig) -> Queue:
        queue_id = queue
        if not ids.is_ulid(queue):
            if config.name not in (None, queue):
                raise InvalidRequest(f"name: there is no queue {queue} to be renamed {config.name}")
            queue_id, config = self._new_id(), msgspec.structs.replace(config, name=queue)
        self._check_name(config.name, queue_id)
        if config.sessions and config.kind != "work":
            raise InvalidRequest("sessions: only a work queue is for them")
        row = self._remember(queues.insert(self.db, queue_id, config, self._time()))
        if row.sessions:
            views.make_inbound(self.db)
        return row

    def _check_name(self, name: str | None, queue_id: str) -> None:
        if name is None:
            return
        try:
            ids.check_name(name)
        except InvalidId as error:
            raise InvalidRequest(f"name: {error.detail}") from error
        if queues.owner(self.db, name) not in (None, queue_id):
            raise NameTaken(f"queue name {name}")

    def _reconfigured(self, row: Queue, config: QueueConfig) -> QueueInfo:
        if config.kind != row.kind:
            raise ConfigConflict(f"kind: {row.queue_id} is a {row.kind} queue")
        if config.sessions != row.sessions:
            raise ConfigConflict(f"sessions: fixed, {row.sessions} for {row.queue_id}")
        if row.app is not None and config.name != row.name:
            raise ConfigConflict(f"name: the spec of app {row.app} declares queue {row.name}")
        if config != row.config:
            self._check_name(config.name, row.queue_id)
            if config.name not in (None, row.name):
                self._check_graves(row, [one.config for one in row.consumers], config.name)
            at = self._time()
            self._pass()
            if row.paused and not config.paused:
                self._wake(row)
            # What has expired by the old max_age_ms stays so under a longer one, swept or not.
            queues.configure(self.db, row, config, retention.aged_ts(row, at), at)
            queues.wake(self.db, row, retention.next_due(self.db, row, at))
            if row.sweep_ts is not None:
                self._sweep_by(row.sweep_ts, urgent=row.due(at))
            self._forget_queues()  # under the old name, too
        return self._info(row)

    def _info(self, row: Queue) -> QueueInfo:
        at = self._time()
        entries, size = retention.live(self.db, row, at)
        oldest = log.oldest_live(self.db, row.queue_id, at, retention.aged_ts(row, at))
        tail = self._cursor(row, row.tail)
        return QueueInfo(
            row.queue_id, row.config, row.created_ts, row.configured_ts, entries, size, oldest, tail
        )

    def _put(
        self, row: Queue, entries: Sequence[NewEntry], actor: str | None = None, *, limited: bool = True
    ) -> AppendAnswer:
        """Append to a queue, and give what is new to its consumers. A repeated idempotency key answers as the first.

        limited: may the queue refuse, because it is full or by its spec? Not what the space itself moves there: it
        would be stuck. Raises as `Append.run`, IdempotencyMismatch, QueueFull, InvalidMessage.
        """
        if limited and row.judge is not None:
            results = self._put_judged(row, row.judge.all(entries, self._time()), actor)
        else:
            results = self._put_wanted(row, entries, actor, limited=limited)
        return AppendAnswer(results, self._cursor(row, row.tail))

    def _put_judged(
        self, row: Queue, verdicts: Sequence[Verdict], actor: str | None, *, limited: bool = True
    ) -> list[Appended]:
        """Append what the spec of the queue allows; what is not of its type is a dead letter at once."""
        wanted = [one for one in verdicts if isinstance(one, NewEntry)]
        made = iter(self._put_wanted(row, wanted, actor, limited=limited))
        return [
            FILTERED
            if one is None
            else self._bury_unfit(row, one)
            if isinstance(one, Malformed)
            else next(made)
            for one in verdicts
        ]

    def _put_wanted(
        self, row: Queue, entries: Sequence[NewEntry], actor: str | None, *, limited: bool
    ) -> list[Appended]:
        if any(one.idempotency_key is not None for one in entries):
            return self._put_once(row, entries, actor, limited=limited)
        return self._write(row, entries, actor, limited=limited)

    def _put_once(
        self, row: Queue, entries: Sequence[NewEntry], actor: str | None, *, limited: bool
    ) -> list[Appended]:
        """Write what is not a repeat of what a key made before; all results, in the order of the entries."""
        at = self._time()
        before = dedup.repeats(self.db, row.queue_id, entries, at)
        fresh = [one for index, one in enumerate(entries) if index not in before]
        results = self._write(row, fresh, actor, limited=limited)
        if dedup.remember(self.db, row.queue_id, fresh, results, at):
            self._alarm_in(dedup.WINDOW_MS)
        given = iter(results)
        return [before.get(index) or next(given) for index in range(len(entries))]

    def _write(
        self, row: Queue, entries: Sequence[NewEntry], actor: str | None, *, limited: bool
    ) -> list[Appended]:
        home = self._home()
        append = Append(self.db, home, row, self._time(), actor or home.actor)
        results = append.run(entries, self.random)
        if append.rows:
            if limited:
                self._check_depth(row, len(append.rows))
            self._pass()
            self._appended(row, append)
        return results

    def _check_depth(self, row: Queue, added: int) -> None:
        if row.depth_max is None:
            return
        if row.depth(added) + added > row.depth_max and row.due(self._time()):
            # What has expired does not count, so it goes first.
            retention.clear(self.db, row, self._time(), retention.SWEEP_ROWS, retention.SWEEP_BYTES)
            self._count(row)
        depth = row.depth(added)
        if depth + added > row.depth_max:
            raise QueueFull(
                f"queue {row.name or row.queue_id} holds {depth} of at most {row.depth_max} messages"
            )

    def _appended(self, row: Queue, append: Append) -> None:
        """Note the counters, remove what is too much, and see to consumers and the sweep."""
        retention.hold(self.db, row, append.at, len(append.rows))
        self._accept(row, append.at, len(append.rows))
        # Some of these very rows, where they are more than it may hold.
        gone = {one.position for one in row.dropped}
        self._count(row, superseded=append.replaced)
        if row.consumers:
            desk = self._desk(row)
            left = [one for one in append.rows if one.position not in gone]
            desk.arrive([Arrival(one.position, one.key, one.priority, one.due, one.size) for one in left])
            self._worked(desk)
        first_ms = append.expires_first
        if first_ms is not None and (row.sweep_ts is None or first_ms < row.sweep_ts):
            queues.wake(self.db, row, first_ms)
        if row.sweep_ts is not None:
            self._sweep_by(row.sweep_ts, urgent=row.excess > 0)
        self.emit(row.queue_id)
        if row.name is not None:
            self.emit(row.name)

    def _drop(self, row: Queue, victims: Sequence[Victim]) -> int:
        deleted = retention.drop(self.db, row, victims)
        if victims:
            # Had they all expired, too: a clock that steps back would show some again, but not these.
            row.changes += 1
            self._count(row)
        return deleted

    def _count(self, row: Queue, superseded: Sequence[Victim] = ()) -> None:
        """Note a queue's counters after entries came or went, and cancel the deliveries of those that went."""
        self._note(row)
        if row.consumers and (row.dropped or superseded):
            desk = self._desk(row)
            desk.cancel(superseded, superseded=True)
            desk.cancel(row.dropped)
            self._worked(desk)
        if row.dropped or superseded:
            self._forget(row, [*row.dropped, *superseded])
        row.dropped.clear()

    def _forget(self, row: Queue, gone: Sequence[Victim]) -> None:
        """Forget what was known of entries that have gone."""
        deadletters.remove(self.db, (victim.position for victim in gone))
        if row.sessions:
            endings.remove(self.db, (victim.position for victim in gone))

    # -- deliveries -------------------------------------------------------------------------------------

    def _desk(self, row: Queue) -> Desk:
        return Desk(self.db, self._home(), row, self._time(), self.random, partial(self._bury, row))

    def _worked(self, desk: Desk) -> None:
        """Note what was done at a desk, remove what nobody needs any more, wake who waits."""
        if desk.timed:
            self._pass()
        row, finished = desk.queue, desk.close()
        self._note(row)
        self._took(row.queue_id, desk.waited_ms, desk.handled_ms)
        self._finish(row, desk.at, desk.acked)
        if finished and row.retain_acked_ms:
            log.keep_until(self.db, (one.position for one in finished), desk.at + row.retain_acked_ms)
            queues.wake(self.db, row, retention.next_due(self.db, row, desk.at))
            self._sweep_by(desk.at + row.retain_acked_ms, urgent=False)
        elif finished:
            retention.drop(self.db, row, finished)
            row.dropped.clear()  # their deliveries are gone already
            self._forget(row, finished)
            row.changes += 1
        if desk.soonest is not None:
            self._alarm_in(desk.soonest - desk.at)
        if desk.woken:
            self._wake(row)

    def _wake(self, row: Queue) -> None:
        """Tell who waits for messages of a queue, by id or by name, that there may be some."""
        if row.work is not None and row.work.runner == "space":
            self._alarm_in(0)
        elif row.work is not None:
            self._call_for(row.work.runner)
        self.emit((WORK, row.queue_id))
        if row.name is not None:
            self.emit((WORK, row.name))

    def _call_for(self, runner: Runner) -> None:
        """Tell who carries commands out that there are some, and once more should nobody take them."""
        self.emit((CALLS, runner))
        self._alarm_in(NUDGE_MS)

    def _settle(self) -> bool:
        """Do what has come due by now, a bounded part of it; return whether there is more."""
        if self._home().stepped_back(self.now_ms):
            self._pass()
        alarm_ms = self._alarm_at()
        if alarm_ms is None or alarm_ms > self.now_ms:
            return False  # the alarm is never later than what is due
        rows = deliveries.due(self.db, self._time(), SETTLE_ROWS)
        by_queue: dict[str, list[Delivery]] = {}
        for one in rows:
            queue_id = self._queue_of(one.consumer_id)
            by_queue.setdefault(queue_id, []).append(one)
        for queue_id, some in by_queue.items():
            desk = self._desk(self._require(queue_id))
            # What was given up in one queue may have pushed dead letters out of the next.
            desk.come_due(some if len(by_queue) == 1 else deliveries.left_of(self.db, some))
            self._worked(desk)
        return len(rows) == SETTLE_ROWS

    def _bury(self, source: Queue, burial: Burial) -> None:
        """Put a message that is given up where its consumer's dead letters go, if they go anywhere."""
        target = self._grave(source, burial.consumer.config)
        entry = None if target is None else log.at(self.db, burial.delivery.position)
        if target is None or entry is None:
            return
        [appended] = self._put(target, [letters.again(entry)], limited=False).results
        facts = letters.facts(self.db, source, target.queue_id, appended.position, entry, burial)
        deadletters.insert(self.db, facts)

    def _bury_unfit(self, source: Queue, unfit: Malformed) -> Appended:
        """Make a dead letter of a message that is not of its queue's type, unless one was made under its key.

        Raises InvalidMessage where dead letters go nowhere.
        """
        home, at, key = self._home(), self._time(), unfit.entry.idempotency_key
        first = None if key is None else dedup.get(self.db, source.queue_id, key, at)
        if first is not None:
            return Appended(first.object_id, first.position, first.version, "same")
        target = self._grave(source, source.consumers[0].config if source.consumers else ConsumerConfig())
        if target is None:
            raise InvalidMessage(unfit.error)
        home.position += 1  # where it would have been
        position = home.position
        [made] = self._put(target, [letters.again(unfit.entry)], limited=False).results
        facts = letters.unfit_facts(source, target.queue_id, position, made, unfit, at)
        deadletters.insert(self.db, facts)
        if dedup.remember(self.db, source.queue_id, [unfit.entry], [made], at):
            self._alarm_in(dedup.WINDOW_MS)
        return Appended(made.id, made.position, made.version, "dead")

    def _grave(self, source: Queue, rules: ConsumerConfig) -> Queue | None:
        named = rules.dead_letters
        if named == "":
            return None
        # Where it is gone and its name as good as taken, they go to the queue's own.
        if named is not None and (self._find(named) or queues.owner(self.db, named) is None):
            return self._find(named) or self._make_worked(named, letters.CONFIG, letters.consumer_for(rules))
        own = self._own_grave(source)
        if own is not None:
            return own
        name = self._free_name(f"{source.name or source.queue_id}-dlq")
        grave = self._make_worked(name, letters.CONFIG, letters.consumer_for(rules))
        queues.set_dead_letters_of(self.db, grave, source.queue_id)
        return grave

    def _own_grave(self, source: Queue) -> Queue | None:
        found = queues.dead_letters_of(self.db, source.queue_id)
        return None if found is None else self._require(found)

    def _check_graves(self, row: Queue, rules: Sequence[ConsumerConfig], name: str | None = None) -> None:
        """Dead letters do not come round again, once these rules hold, or the queue has that name.

        Raises InvalidRequest.
        """

        def named(text: str) -> Queue | None:
            return row if text == name else self._find(text)

        first = letters.come_round(row, rules, named, self._own_grave)
        if first is not None:
            raise InvalidRequest(f"dead_letters: {first} leads back to {name or row.name or row.queue_id}")

    def _free_name(self, wanted: str) -> str:
        """The name itself, or one like it that no queue has."""
        names = (f"{wanted[:120]}{suffix}" for suffix in chain([""], (f"-{n}" for n in count(2))))
        return next(name for name in names if queues.owner(self.db, name) is None)

    def _make_worked(self, queue: str, config: QueueConfig, rules: ConsumerConfig) -> Queue:
        """Make a work queue with the consumer `default`."""
        row = self._make(queue, config)
        self._make_consumer(row, DEFAULT, rules, start="beginning")
        return row

    def _make_consumer(self, row: Queue, name: str, rules: ConsumerConfig, *, start: Start) -> Consumer:
        self._check_graves(row, [rules])
        if row.sessions and name == DEFAULT and rules.ordering != "per_key":
            raise InvalidRequest("ordering: must be per_key where a queue is for sessions")
        home, at = self._home(), self._time()
        home.position += 1  # never used for anything else
        filled = row.tail if start == "new" or not row.entries else 0
        made = consumers.insert(
            self.db, home.position, row.queue_id, name, rules, filled=filled, tail=row.tail, now_ms=at
        )
        row.consumers.append(made)
        if made.filling:
            self._alarm_in(0)
        return made

    # -- cursors ----------------------------------------------------------------------------------------

    def _cursor(self, row: Queue, position: int) -> str:
        return cursors.encode(self._home().store_id, row.queue_id, position)

    def _position(self, row: Queue, cursor: str) -> int:
        return cursors.decode(self._home().store_id, row.queue_id, cursor)

    def _refuse_cursors(self, queue: str, *texts: str | None) -> None:
        """No cursor belongs to a queue that is not there. Raises InvalidCursor, CursorStore."""
        for text in texts:
            if text is not None:
                cursors.decode(self._home().store_id, queue, text)
