"""The verb that takes messages from outside, each once, however often it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from edgequeues.models import Appended, NewEntry
from edgequeues.space import deadletters, dedup, deliveries, log, results
from edgequeues.space.base import SpaceBase
from edgequeues.space.dedup import First
from edgequeues.space.profiles import Profile
from edgequeues.space.queues import Queue
from edgequeues.spec.judging import Malformed, Verdict
from edgequeues.spec.values import Arriving, MessageState, Taken
from shards.shard import grows


class Fresh(NamedTuple):
    """A message that did not come before. keys: all of its own."""

    verdict: NewEntry | Malformed
    keys: tuple[str, ...]


Sorted = Fresh | First | int | None  # int: the same as the one at that place; None: it is not wanted


class IngestVerbs(SpaceBase):
    """`queue` is a queue's id or its name, checked by the caller."""

    @grows
    def ingest(
        self,
        queue: str,
        arriving: Sequence[Arriving],
        *,
        make: Profile | None = None,
        window_ms: int = dedup.WINDOW_MS,
        lasting: bool = False,
    ) -> list[Taken]:
        """Append messages from outside, but for those that came before. All of them or, if this raises, none.

        Unlike with `push`, another message under a key that was used is a repeat too: its sender cannot help it.
        make: as what to make a queue that is not there. window_ms: for how long keys are remembered, and if `lasting`
        for as long as their messages are there.
        Raises QueueNotFound, QueueFull, InvalidMessage where the queue buries none.
        """
        row = self._find(queue)
        if row is None:
            row = self._require(queue) if make is None else self._make_worked(queue, *make)
        at = self._time()
        verdicts = _verdicts(row, arriving, at)
        sorted_ = self._sorted(row, arriving, verdicts, at)
        fresh = [one for one in sorted_ if isinstance(one, Fresh)]
        made = self._take_fresh(row, fresh, at, window_ms, lasting=lasting)
        taken: list[Taken] = []
        for found in sorted_:
            if found is None:
                taken.append(Taken("", "filtered"))
            elif isinstance(found, Fresh):
                taken.append(_taken(found, next(made)))
            elif isinstance(found, First):
                taken.append(self._repeat(row, found, at))
            else:
                taken.append(replace(taken[found], outcome="duplicate", position=None))
        return taken

    def came(self, queue: str, key: str) -> Taken | None:
        """What became of the message that came under a key; None: there was none, as far as is remembered."""
        row, at = self._find(queue), self._time()
        first = None if row is None else dedup.get(self.db, row.queue_id, key, at)
        return None if row is None or first is None else self._repeat(row, first, at)

    def _sorted(
        self, row: Queue, arriving: Sequence[Arriving], verdicts: Sequence[Verdict], at: int
    ) -> list[Sorted]:
        """What each is: new, a repeat of what came before or of one beside it, or not wanted."""
        found: list[Sorted] = []
        used: dict[str, int] = {}
        for one, verdict in zip(arriving, verdicts, strict=True):
            if verdict is None:
                found.append(None)
                continue
            fresh = _with_keys(one, verdict)
            firsts = (dedup.get(self.db, row.queue_id, key, at) for key in fresh.keys)
            first = next((known for known in firsts if known is not None), None)
            twin = next((used[key] for key in fresh.keys if key in used), None)
            if first is None and twin is None:
                used |= dict.fromkeys(fresh.keys, len(found))
            found.append(fresh if first is None and twin is None else first or twin)
        return found

    def _take_fresh(
        self, row: Queue, fresh: Sequence[Fresh], at: int, window_ms: int, *, lasting: bool
    ) -> Iterator[Appended]:
        """Append what has not come before, and remember its keys."""
        wanted = [one.verdict for one in fresh if isinstance(one.verdict, NewEntry)]
        written = iter(self._write(row, wanted, None, limited=True))
        made = [
            self._bury_unfit(row, one.verdict) if isinstance(one.verdict, Malformed) else next(written)
            for one in fresh
        ]
        for one, appended in zip(fresh, made, strict=True):
            entry = one.verdict.entry if isinstance(one.verdict, Malformed) else one.verdict
            first = dedup.first(entry, appended)
            dedup.put(self.db, row.queue_id, one.keys, first, at + window_ms, lasting=lasting)
        if any(one.keys for one in fresh):
            self._alarm_in(window_ms)
        return iter(made)

    def _repeat(self, row: Queue, first: First, at: int) -> Taken:
        """What is said of a message that came before."""
        kept = results.get(self.db, first.position, at)
        state: MessageState
        if (letter := deadletters.get(self.db, first.position)) is not None:  # it was dead when it came
            state = "dead" if letter.replayed is None else "replayed"
        elif deliveries.of_entry(self.db, first.position):
            state = "queued"
        elif (came_to := deadletters.of_message(self.db, row.queue_id, first.position)) is not None:
            state = came_to
        elif kept is not None:
            state = "processed"
        elif not row.consumers and log.at(self.db, first.position) is not None:
            state = "queued"  # nobody works it: it lies there to be read
        else:
            state = "finished"
        return Taken(first.object_id, "duplicate", state, None if kept is None else kept.result)


def _verdicts(row: Queue, arriving: Sequence[Arriving], at: int) -> list[Verdict]:
    """What the spec of the queue says of each; of those with a fault, their sender said it."""
    sound = [one.entry for one in arriving if one.fault is None]
    judged = iter(sound if row.judge is None else row.judge.all(sound, at))
    return [next(judged) if one.fault is None else Malformed(one.entry, one.fault) for one in arriving]


def _with_keys(one: Arriving, verdict: NewEntry | Malformed) -> Fresh:
    """The message with the keys of its sender and, where it has one by the queue's spec, of itself."""
    if isinstance(verdict, NewEntry) and verdict.idempotency_key is not None:
        return Fresh(replace(verdict, idempotency_key=None), (*one.keys, verdict.idempotency_key))
    return Fresh(verdict, one.keys)


def _taken(fresh: Fresh, made: Appended) -> Taken:
    if isinstance(fresh.verdict, Malformed):
        return Taken(made.id, "dead", "dead", error=fresh.verdict.error)
    return Taken(made.id, "queued", "queued", position=made.position)
