"""What commands do to a space, taken in the turn that also finishes what they were called for."""

from __future__ import annotations

from typing import NamedTuple

from edgequeues.core.errors import CommandRejected
from edgequeues.models import NewEntry
from edgequeues.space import builtins, entities
from edgequeues.space.base import SpaceBase
from edgequeues.space.entities import Entity, Receipt
from edgequeues.spec.calling import Call, Change, Effects, Posted, Read


class Cause(NamedTuple):
    """What a command was called for: a message of a queue, or, without one, a request of this id."""

    queue_id: str | None
    object_id: str


class EffectVerbs(SpaceBase):
    """Has no verbs of its own: what those about commands share."""

    def _do(self, call: Call, cause: Cause, at: int) -> str:
        """Have a built-in command take effect; return its result, JSON. Raises CommandRejected."""
        done = builtins.carry_out(self.db, call, cause.object_id, at)
        self._receipt(call.command, cause, done[:3], at)
        return done.json()

    def _is_stale(self, effects: Effects) -> bool:
        """Has anything changed since that was looked at?"""
        return any(self._version(one) != one.version for one in effects.reads)

    def _take(self, effects: Effects, command: str, cause: Cause, at: int) -> None:
        """Have recorded effects happen. Raises InvalidMessage, CommandRejected; the turn must not go on then."""
        for change in effects.changes:
            version = self._change_entity(change, at)
            self._receipt(command, cause, (change.entity_type, change.entity_id, version), at)
        for message in effects.messages:
            self._send_on(message)

    def _send_on(self, message: Posted) -> str:
        """Make a message of another queue; return its id. It is judged, but not refused for want of room: a full
        queue would hold up the one before it. Raises InvalidMessage, CommandRejected.
        """
        target = self._find(message.queue)
        if target is None:
            raise CommandRejected(f"queue {message.queue} is not there")
        entries = [NewEntry(message.data, idempotency_key=message.idempotency_key)]
        if target.judge is None:
            [made] = self._put(target, entries, limited=False).results
        else:
            [made] = self._put_judged(target, target.judge.all(entries, self._time()), None, limited=False)
        return made.id

    def _version(self, read: Read) -> int | None:
        found = entities.get(self.db, read.entity_type, read.entity_id)
        return None if found is None else found.version

    def _change_entity(self, change: Change, at: int) -> int:
        """Have an entity be as is said; return its version."""
        before = entities.get(self.db, change.entity_type, change.entity_id)
        version = 1 if before is None else before.version + 1
        if change.attributes is None:
            entities.remove(self.db, change.entity_type, change.entity_id)
        else:
            created = at if before is None else before.created
            after = Entity(
                change.entity_type, change.entity_id, change.state, change.attributes, version, created, at
            )
            entities.put(self.db, after)
        return version

    def _receipt(self, command: str, cause: Cause, done: tuple[str, str, int], at: int) -> None:
        home = self._home()
        home.position += 1
        entities.record(self.db, Receipt(home.position, *done, command, *cause, at))
        self._alarm_in(entities.RECEIPTS_KEPT_MS)
