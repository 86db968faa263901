"""Commands that webhooks call at once, without a queue: each request once, however often it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from edgequeues.space import dedup, results
from edgequeues.space.dedup import First
from edgequeues.space.effects import Cause, EffectVerbs
from edgequeues.spec.calling import Call, Effects
from shards.shard import grows, reads

SCOPE = "webhooks"  # of the keys of requests, which are none of any queue


class Asked(Struct, frozen=True):
    """A command that a request calls. keys: any of them tells a repeat."""

    keys: tuple[str, ...]
    call: Call


class Answered(Struct, frozen=True):
    """What came of a command. result: JSON. duplicate: it came of an earlier request."""

    result: str
    duplicate: bool = False


class HookVerbs(EffectVerbs):
    """A key is remembered for as long as one of a message."""

    @grows
    def call_now(self, asked: Sequence[Asked]) -> list[Answered]:
        """Carry out built-in commands, but for those that were before: all of them, or none where this raises.

        Raises CommandRejected.
        """
        answers = []
        for one in asked:
            before = self._before(one.keys)
            if before is None:
                cause = Cause(None, self._new_id())
                result = self._do(one.call, cause, self._time())
                before = self._keep(one.keys, cause, result)
            answers.append(before)
        return answers

    @reads
    def called_before(self, keys: Sequence[str]) -> Answered | None:
        """What came of a command that was called under one of these keys, if any was."""
        return self._before(keys)

    @grows
    def take_now(
        self, keys: Sequence[str], command: str, request_id: str, effects: Effects
    ) -> Answered | Literal["conflict"]:
        """Take what a command did that was carried out outside, unless one of its keys was used meanwhile.

        `conflict`: what it looked at has changed. Then, and where this raises, nothing is changed.
        Raises InvalidMessage, CommandRejected for a message that a queue does not take.
        """
        before = self._before(keys)
        if before is not None:
            return before
        if self._is_stale(effects):
            return "conflict"
        cause = Cause(None, request_id)
        self._take(effects, command, cause, self._time())
        return self._keep(keys, cause, effects.result)

    def _before(self, keys: Sequence[str]) -> Answered | None:
        at = self._time()
        for key in keys:
            first = dedup.get(self.db, SCOPE, key, at)
            if first is not None:
                kept = results.get(self.db, first.position, at)
                return Answered("null" if kept is None else kept.result, duplicate=True)
        return None

    def _keep(self, keys: Sequence[str], cause: Cause, result: str) -> Answered:
        """Remember what came of a request."""
        home, at = self._home(), self._time()
        self._pass()
        home.position += 1
        first = First(cause.object_id, home.position, "", b"")
        dedup.put(self.db, SCOPE, keys, first, at + dedup.WINDOW_MS)
        results.put(self.db, home.position, result, at, None)
        self._alarm_in(dedup.WINDOW_MS)
        return Answered(result)
