"""Schedules: specs declare them, the alarm makes their messages, each in the transaction that sets the next time."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgequeues.core.cron import CronFault
from edgequeues.core.errors import InvalidMessage, QueueFull, ScheduleNotFound
from edgequeues.models import Appended, NewEntry
from edgequeues.space import schedules
from edgequeues.space.base import SpaceBase
from edgequeues.space.queues import Queue
from edgequeues.space.schedules import Schedule
from edgequeues.spec import scheduling
from edgequeues.spec.ir import Spec
from edgequeues.spec.judging import Malformed, Verdict
from edgequeues.spec.scheduling import Timer
from edgequeues.spec.values import Change, ScheduleChange, ScheduleInfo, ScheduleList
from shards.shard import grows, reads

LISTED_MAX = 1_000
RUNS_MAX = 100  # messages that one alarm makes, of all schedules together
RUN_BYTES = 16 * 1024 * 1024  # of their data, give or take a message
WAIT_MS = 10_000  # between looks at a schedule whose queue takes nothing now
BROKEN_MS = 3_600_000  # between looks at one whose time zone is not known here


class ScheduleVerbs(SpaceBase):
    """Times are those of the space, which never fall: no time comes twice, whatever the clock does."""

    @reads
    def schedules(self, after: str, limit: int) -> ScheduleList:
        """Schedules with names above `after` ("" for all), by name, at most `limit` and LISTED_MAX of them."""
        limit = min(limit, LISTED_MAX)
        rows = schedules.page(self.db, after, limit + 1)
        resume = rows[limit - 1].name if len(rows) > limit else None
        return ScheduleList([_info(row) for row in rows[:limit]], resume)

    @grows
    def run_schedule(self, name: str) -> Appended:
        """Make the message of a schedule now; its next time stays as it is.

        Raises ScheduleNotFound, InvalidMessage, QueueFull, QueueNotFound.
        """
        row = schedules.get(self.db, name)
        if row is None:
            raise ScheduleNotFound(f"schedule {name}")
        timer, at = scheduling.of_spec(row.spec), self._time()
        queue = self._require(timer.spec.queue)
        verdict = self._verdict(queue, NewEntry(timer.message(at)))
        [made] = self._put_judged(queue, [verdict], None)
        count = row.made + (made.outcome == "new")
        schedules.put(self.db, row._replace(last_ts=at, made=count, last_error=None))
        self._record("run_schedule", queue, schedule=name, message=made.id or None)
        return made

    # -- declaring --------------------------------------------------------------------------------------

    def _schedules_taken(self, spec: Spec) -> Iterator[str]:
        """Why a schedule cannot be this spec's."""
        for name in spec.schedules:
            row = schedules.get(self.db, name)
            if row is not None and row.app != spec.app:
                yield f"schedule {name}: app {row.app} declares it"

    def _declare_schedules(self, spec: Spec, *, dry_run: bool) -> list[ScheduleChange]:
        """Have the schedules of a spec, and no other of its app. One whose times are as they were stays due."""
        before, at = {row.name: row for row in schedules.of_app(self.db, spec.app)}, self._time()
        changes = []
        for name, one in spec.schedules.items():
            text, row = msgspec.json.encode(one).decode(), before.pop(name, None)
            change: Change = "made" if row is None else "same" if row.spec == text else "changed"
            declared = _declared(spec.app, name, text, row, at)
            changes.append(ScheduleChange(name, change, declared.next_ts))
            if change != "same" and not dry_run:
                schedules.put(self.db, declared)
        for name in before:
            changes.append(ScheduleChange(name, "removed"))
            if not dry_run:
                schedules.remove(self.db, name)
        return changes

    # -- the alarm --------------------------------------------------------------------------------------

    def _run_schedules(self) -> None:
        """Make the messages that are due, a bounded number, and set the alarm to when the next one is."""
        at, left, room = self._time(), RUNS_MAX, RUN_BYTES
        for found in schedules.due(self.db, at, RUNS_MAX):
            row: Schedule | None = found
            while row is not None and left > 0 and room > 0:
                left -= 1
                row, size = self._come(row, at)
                room -= size
        soonest = schedules.soonest(self.db)
        if soonest is not None:
            self._alarm_in(soonest - at)

    def _come(self, row: Schedule, at: int) -> tuple[Schedule | None, int]:
        """Do what is due of one schedule; return it if more is, and the bytes of what was made."""
        timer = scheduling.of_spec(row.spec)
        assert row.next_ts is not None
        try:
            due, next_ts = timer.times(row.next_ts, at)
        except CronFault as fault:
            schedules.put(self.db, row._replace(look_ts=at + BROKEN_MS, last_error=str(fault)))
            return None, 0
        queue = self._require(timer.spec.queue)  # it cannot go while the spec declares both
        why = None if due is None else self._why_waits(queue)
        if why is not None:
            schedules.put(self.db, row._replace(look_ts=at + WAIT_MS, last_error=f"waiting: {why}"))
            return None, 0
        after = row._replace(next_ts=next_ts, look_ts=next_ts)
        size = 0
        if due is not None:
            after, size = self._made(after, timer, queue, due)
        schedules.put(self.db, after)
        return (after if next_ts is not None and next_ts <= at else None), size

    def _why_waits(self, queue: Queue) -> str | None:
        """Why a queue takes no message of a schedule now: then it waits, instead of piling up."""
        if queue.paused:
            return f"queue {queue.name} is paused"
        try:
            self._check_depth(queue, 1)
        except QueueFull as error:
            return error.detail
        return None

    def _made(self, row: Schedule, timer: Timer, queue: Queue, due: int) -> tuple[Schedule, int]:
        """Make the message for a time; where that cannot be, note why, and leave it at that."""
        try:
            data = timer.message(due)
            verdict = self._verdict(queue, NewEntry(data))
            [made] = self._put_judged(queue, [verdict], None, limited=False)
        except InvalidMessage as error:
            return row._replace(last_error=error.detail), 0
        fault = f"a dead letter: {verdict.error}" if isinstance(verdict, Malformed) else None
        count = row.made + (made.outcome == "new")
        return row._replace(last_ts=due, made=count, last_error=fault), len(data)

    def _verdict(self, queue: Queue, entry: NewEntry) -> Verdict:
        """What the queue's spec says of a message. Raises InvalidMessage where it is neither taken nor buried."""
        verdict = entry if queue.judge is None else queue.judge(entry, self._time())
        if isinstance(verdict, Malformed) and queue.judge is not None and not queue.judge.buries:
            raise InvalidMessage(verdict.error)
        return verdict


def _declared(app: str, name: str, text: str, row: Schedule | None, at: int) -> Schedule:
    """A schedule as a spec has it from unix ms `at` on."""
    if row is not None and row.spec == text:
        return row
    if row is not None and scheduling.same_times(row.spec, text):
        return row._replace(spec=text, look_ts=row.next_ts)
    next_ts = scheduling.of_spec(text).next_after(at)
    if row is None:
        return Schedule(name, app, text, next_ts, next_ts)
    return row._replace(spec=text, next_ts=next_ts, look_ts=next_ts)


def _info(row: Schedule) -> ScheduleInfo:
    spec = scheduling.of_spec(row.spec).spec
    return ScheduleInfo(
        row.name,
        row.app,
        spec.queue,
        spec.cron,
        spec.timezone,
        spec.missed,
        row.next_ts,
        row.last_ts,
        row.made,
        row.last_error,
    )
