"""The verb that has a spec hold: its queues are made, changed and removed, unless messages would be lost by that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from edgequeues.core import attrs, jsontext
from edgequeues.core.errors import SpecConflict
from edgequeues.core.who import SERVER
from edgequeues.models import ENTRY_BYTES_MAX
from edgequeues.space import consumers, deadletters, deliveries, log, queues, rates, retention, views
from edgequeues.space.consumers import DEFAULT, Consumer
from edgequeues.space.queues import Queue, default_of
from edgequeues.space.schedule_verbs import ScheduleVerbs
from edgequeues.space.watched import told
from edgequeues.spec import planning
from edgequeues.spec.ir import QueueSpec, Spec
from edgequeues.spec.planning import Plan
from edgequeues.spec.values import Applied, QueueChange, ScheduleChange
from shards.shard import grows

LOOKED_AT = 1_000  # unfinished messages that are compared with a new type
LOOKED_AT_BYTES = 4 * ENTRY_BYTES_MAX


class SpecVerbs(ScheduleVerbs):
    """A spec is that of an app; several apps may share a space."""

    @grows
    def apply(self, spec: Spec, *, dry_run: bool = False) -> Applied:
        """Have a spec hold instead of the app's earlier one. dry_run: only say what that would do.

        Queues that it has no more lose their names; `remove` takes them away, turn by turn. The spec is valid by
        itself. Raises SpecConflict with all that speaks against it, and then nothing is changed.
        """
        self._settle()
        plans = planning.plans(spec)
        before = {row.name or row.queue_id: row for row in queues.of_app(self.db, spec.app)}
        gone = [self._require(row.queue_id) for name, row in before.items() if name not in plans]
        conflicts = [text for name, plan in plans.items() for text in self._conflicts(spec.app, name, plan)]
        conflicts += [text for row in gone for text in self._why_kept(row)]
        conflicts += self._schedules_taken(spec)
        if conflicts:
            raise SpecConflict("; ".join(conflicts))
        changes = [self._change(name, plan) for name, plan in plans.items()]
        changes += [QueueChange(row.name or row.queue_id, "removed") for row in gone]
        if not dry_run:
            self._pass()
            self._carry_out(spec.app, plans, gone)
        schedules = self._declare_schedules(spec, dry_run=dry_run)
        if not dry_run:
            self._record_spec(spec, changes, schedules)
        return Applied(spec.app, changes, [row.queue_id for row in gone], schedules)

    def _record_spec(
        self, spec: Spec, queues_: Sequence[QueueChange], schedules: Sequence[ScheduleChange]
    ) -> None:
        """Have it on record what a spec did; not that a server applied what it was started with once more."""
        done = told(one for one in queues_ if one.change != "same")
        timed = told(one for one in schedules if one.change != "same")
        if done or timed or self.who != SERVER:
            holds = spec.queues or spec.webhooks or spec.commands or spec.schedules
            action = "apply_spec" if holds else "remove_spec"
            self._record(action, app=spec.app, queues=done, schedules=timed or None)

    def _carry_out(self, app: str, plans: dict[str, Plan], gone: list[Queue]) -> None:
        for row in gone:
            queues.govern(self.db, row, None, None, None)
            self._reconfigured(row, replace(row.config, name=None))  # nobody finds it while it goes
        # What is there already goes first: a new queue's dead letters must not seem to come round by rules of before.
        for name, plan in sorted(plans.items(), key=lambda one: self._find(one[0]) is None):
            found = self._find(name)
            if found is None:
                self._make_worked(name, plan.config, plan.rules)
            else:
                self._reconfigured(found, replace(plan.config, paused=found.paused))
                self._give_rules(self._require(name), plan)
                old = _spec_of(found)
                if old is None or old.rate_limit != plan.spec.rate_limit:
                    rates.remove(self.db, found.queue_id)
            queues.govern(self.db, self._require(name), app, plan.text, plan.command)
        for name in plans:
            row = self._require(name)
            self._check_graves(row, [one.config for one in row.consumers])
        views.remake(self.db, queues.declared(self.db), sessions=queues.any_sessions(self.db))
        self._forget_queues()
        self._alarm_in(0)  # what waits may be worked from now on

    def _give_rules(self, row: Queue, plan: Plan) -> None:
        """Give the consumer `default` the rules of a plan, or make it."""
        found = default_of(row)
        if found is not None and found.config.ordering != plan.rules.ordering:
            assert not found.counts.unfinished
            row.consumers.remove(found)
            consumers.remove(self.db, found.consumer_id)
            self._make_consumer(row, DEFAULT, plan.rules, start="new")
        elif found is None:
            self._make_consumer(row, DEFAULT, plan.rules, start="beginning")
        else:
            rules = replace(
                plan.rules,
                lapse_delay_ms=found.config.lapse_delay_ms,
                starvation_after_ms=found.config.starvation_after_ms,
                dead_letter_body=found.config.dead_letter_body,
                facts=found.config.facts,
            )
            consumers.configure(self.db, found, rules)

    # -- what it would do -------------------------------------------------------------------------------

    def _change(self, name: str, plan: Plan) -> QueueChange:
        row = self._find(name)
        if row is None:
            return QueueChange(name, "made")
        fields = planning.fields_changed(_spec_of(row), plan.spec)
        return QueueChange(name, "changed" if fields or row.rules is None else "same", fields)

    # -- what speaks against it -------------------------------------------------------------------------

    def _conflicts(self, app: str, name: str, plan: Plan) -> Iterator[str]:
        """Why a queue cannot become what it is to be."""
        row = self._find(name)
        if row is None:
            taken = queues.owner(self.db, name)
            if taken is not None:
                yield f"queue {name}: the name counts as the same as that of {self._require(taken).name}"
            return
        if row.app not in (None, app):
            yield f"queue {name}: app {row.app} declares it"
        elif row.kind != "work":
            yield f"queue {name}: it is a log, and a queue of a spec is worked; give it another name"
        else:
            yield from self._conflicts_with(row, plan)

    def _conflicts_with(self, row: Queue, plan: Plan) -> Iterator[str]:
        """Why the messages that a queue holds do not let it change so."""
        found = default_of(row)
        unfinished = 0 if found is None else found.counts.unfinished
        if found is not None and unfinished and found.config.ordering != plan.rules.ordering:
            yield (
                f"queue {row.name}: unfinished messages in {found.config.ordering} order: {unfinished}; they cannot"
                f" be put in {plan.rules.ordering} order, so finish or purge them first"
            )
        aged = self._aged_by(row, plan.config.max_age_ms)
        if aged:
            yield (f"queue {row.name}: {aged}; finish them first, or give retention.max_age_seconds more")
        old = _spec_of(row)
        new_type = plan.spec.message_type
        old_type = None if old is None else old.message_type
        if found is not None and unfinished and not planning.takes_all(old_type, new_type):
            yield from self._unfit(row, found, plan)

    def _aged_by(self, row: Queue, max_age_ms: int | None) -> str | None:
        """What would be lost if messages lived no longer than that; None: nothing."""
        at = self._time()
        if max_age_ms is None or (row.max_age_ms is not None and row.max_age_ms <= max_age_ms):
            return None
        oldest = log.oldest_live(self.db, row.queue_id, at, retention.aged_ts(row, at))
        if oldest is None or oldest > at - max_age_ms:
            return None
        return f"messages up to {(at - oldest) // 1_000} s old would expire at once"

    def _unfit(self, row: Queue, consumer: Consumer, plan: Plan) -> Iterator[str]:
        """Say so where unfinished messages are not of the type that is to be."""
        assert plan.spec.message_type is not None
        check = attrs.checker(plan.spec.message_type)
        some = deliveries.some(self.db, consumer.consumer_id, LOOKED_AT + 1)
        if len(some) > LOOKED_AT or sum(one.size for one in some) > LOOKED_AT_BYTES:
            yield (
                f"queue {row.name}: unfinished messages of another message_type: {consumer.counts.unfinished}, too"
                " many to look at; finish them first, or have the new type take all of the old one"
            )
            return
        faults = []
        for one in some:
            entry = log.at(self.db, one.position)
            fault = None if entry is None else check(jsontext.value(entry.data))
            if entry is not None and fault is not None:
                faults.append(f"{entry.id} ({fault})")
        if faults:
            yield (
                f"queue {row.name}: unfinished messages that are not of the new message_type: {len(faults)}, the"
                f" first is {faults[0]}; finish or delete them first"
            )

    def _why_kept(self, row: Queue) -> Iterator[str]:
        """Why a queue that the spec has no more cannot be removed."""
        name = row.name or row.queue_id
        entries, _ = retention.live(self.db, row, self._time())
        if entries:
            yield f"queue {name}: messages in it: {entries}; finish, replay or purge them before you leave it out"
        elif row.entries:
            yield f"queue {name}: its expired messages are still being removed; try again in a minute"
        letters = deadletters.waiting_from(self.db, row.queue_id)
        if letters:
            yield (
                f"queue {name}: dead letters that come from it and could not be replayed any more: {letters}; replay"
                " or purge them before you leave it out"
            )


def _spec_of(row: Queue) -> QueueSpec | None:
    return None if row.rules is None else msgspec.json.decode(row.rules, type=QueueSpec)
