"""The verbs of those who mend what has failed: find dead letters by the queue they come from, look at them, try them,
send them again as they were or otherwise. Each is one turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edgequeues.core.errors import EntryNotFound, InvalidMessage, InvalidRequest, QueueGone, QueueNotFound
from edgequeues.models import ENTRY_BYTES_MAX, Entry, NewEntry
from edgequeues.models_letters import LetterFilter, Replayed
from edgequeues.space import deadletters, kinship, letters, log, retention
from edgequeues.space.dead_verbs import LOOKED_AT, DeadVerbs
from edgequeues.space.deadletters import DeadLetter, Place
from edgequeues.space.letters import Envelope
from edgequeues.space.log import Victim
from edgequeues.space.queues import Queue
from edgequeues.space.watched import told
from edgequeues.spec import trying
from edgequeues.spec.ir import Mapping
from edgequeues.spec.trying import Trial
from shards.shard import grows, reads

HEAPS_MAX = 1_000  # queues in which dead letters of one queue are looked for
KIN_MAX = 50  # forerunners and descendants of a letter that are told, of each


class Heap(NamedTuple):
    """Where dead letters of a queue lie. source: the queue they come from, by id or former name; None: any."""

    queue_id: str
    source: str | None


class Found(Struct, frozen=True):
    """A part of a list. resume: not None when there may be more: the position to go on after."""

    letters: list[tuple[Entry, DeadLetter]]
    resume: int | None


class Sorted(Struct, frozen=True):
    """Ids of dead letters, by the queue in which they lie, and those of none."""

    by_queue: dict[str, list[str]]
    unknown: list[str]


class Kin(Struct, frozen=True):
    """A dead letter that another descends from, or that descends from it. Times are unix ms.

    id: None where it is no letter any more. queue: in which it lies.
    """

    id: str | None
    queue: str
    reason: str
    error: str
    attempts: int
    failed: int
    replayed: int | None
    message: str | None


class Inspected(Struct, frozen=True):
    """All that is known of a dead letter. queue: in which it lies.

    forerunners, descendants: letters that the same message was before, or has become since; the oldest first.
    """

    queue: str
    entry: Entry
    envelope: Envelope
    forerunners: list[Kin]
    descendants: list[Kin]


class Workbench(DeadVerbs):
    """`queue` is the queue that dead letters come from, or one in which they lie: id or name, already checked."""

    # -- finding ----------------------------------------------------------------------------------------

    @reads
    def heaps(self, queue: str) -> list[Heap]:
        """Where the dead letters of a queue lie, by the ids of the queues; those that lie in it are meant, too.

        Raises QueueNotFound. The letters of a queue that is gone are found where they were put by default.
        """
        row = self._find(queue)
        if row is None:
            grave = self._find(f"{queue}-dlq")
            if grave is None or not kinship.holds(self.db, grave.queue_id):
                raise QueueNotFound(f"queue {queue}")
            return [Heap(grave.queue_id, queue)]
        places = kinship.lies_in(self.db, row.queue_id, HEAPS_MAX)
        found = {queue_id: Heap(queue_id, row.queue_id) for queue_id in places}
        if kinship.holds(self.db, row.queue_id):
            found[row.queue_id] = Heap(row.queue_id, None)
        return [heap for _, heap in sorted(found.items())]

    @reads
    def find_letters(
        self, queue: str, wanted: LetterFilter, after: int, limit: int, bytes_max: int = ENTRY_BYTES_MAX
    ) -> Found:
        """Dead letters that lie in a queue, by position from above `after`, that a filter names.

        A bounded number is looked at, so there may be fewer than `limit`, even none, with more behind them. They end
        at about `bytes_max` of data and errors, one at least.
        """
        row = self._require(queue)
        search = self._search(row, wanted, None)
        found = deadletters.look(
            self.db,
            search,
            Place(position=after),
            rows_max=LOOKED_AT,
            letters_max=limit,
            bytes_max=bytes_max,
            as_they_came=True,
        )
        pairs: list[tuple[Entry, DeadLetter]] = []
        for place, _ in found.places:
            if bytes_max <= 0:
                return Found(pairs, pairs[-1][0].position)
            [pair] = self._pairs([place])
            pairs.append(pair)
            bytes_max -= len(pair[0].data) + len(pair[1].errors)
        return Found(pairs, None if found.resume is None else found.resume.position)

    @reads
    def inspect(self, queue: str, object_id: str) -> Inspected:
        """A dead letter with all that is known of it. Raises QueueNotFound, EntryNotFound."""
        row, entry, letter = self._letter(queue, object_id)
        return Inspected(
            row.name or row.queue_id,
            entry,
            letters.envelope(letter, entry.data),
            self._forerunners(letter),
            self._descendants(letter),
        )

    def _letter(self, queue: str, object_id: str) -> tuple[Queue, Entry, DeadLetter]:
        """A dead letter by its id, and the queue in which it lies. Raises QueueNotFound, EntryNotFound."""
        for heap in self.heaps(queue):
            row, at = self._require(heap.queue_id), self._time()
            entry = log.get(self.db, row.queue_id, object_id, at, retention.aged_ts(row, at))
            letter = None if entry is None else deadletters.get(self.db, entry.position)
            if entry is None or letter is None:
                continue
            if heap.source in (None, letter.source_id, letter.source_name):
                return row, entry, letter
        raise EntryNotFound(f"dead letter {object_id} of queue {queue}")

    @reads
    def sort_letters(self, queue: str, object_ids: Sequence[str]) -> Sorted:
        """Dead letters by the queue in which they lie. Raises QueueNotFound."""
        by_queue: dict[str, list[str]] = {}
        unknown = []
        for one in object_ids:
            try:
                row, _, _ = self._letter(queue, one)
            except EntryNotFound:
                unknown.append(one)
            else:
                by_queue.setdefault(row.queue_id, []).append(one)
        return Sorted(by_queue, unknown)

    # -- kin --------------------------------------------------------------------------------------------

    def _forerunners(self, letter: DeadLetter) -> list[Kin]:
        """Letters of which the message was made that became this letter."""
        found: list[Kin] = []
        one: DeadLetter | None = letter
        while one is not None and len(found) < KIN_MAX:
            if one.before is not None:  # it was a letter where it died, and is none there any more
                one = msgspec.json.decode(one.before, type=DeadLetter)
                found.append(self._kin(one, gone=True))
            else:
                one = kinship.replayed_as(self.db, one.object_id, one.source_id)
                if one is not None:
                    found.append(self._kin(one))
        return found[::-1]

    def _descendants(self, letter: DeadLetter) -> list[Kin]:
        """Letters that the messages have become that were made of this letter."""
        found: list[Kin] = []
        todo = [letter]
        while todo and len(found) < KIN_MAX:
            one = todo.pop(0)
            if one.replay_id is None:
                continue
            some = kinship.of_object(self.db, one.replay_id, one.source_id, KIN_MAX - len(found))
            found += [self._kin(each) for each in some]
            todo += some
        return found

    def _kin(self, letter: DeadLetter, *, gone: bool = False) -> Kin:
        entry = None if gone else log.at(self.db, letter.position)
        place = self._find(letter.queue_id)
        return Kin(
            None if entry is None else entry.id,
            letter.queue_id if place is None else place.name or place.queue_id,
            letter.reason,
            letter.error,
            letter.attempts,
            letter.failed,
            letter.replayed,
            letter.replay_id,
        )

    # -- mending ----------------------------------------------------------------------------------------

    @grows
    def replay_one(self, queue: str, object_id: str, data: str | None = None) -> Replayed:
        """Make a new message of a dead letter, where it came from; of other data, where that is given.

        Once: one that was replayed before reports the message that was made then, whatever data is given now.
        Raises QueueNotFound, EntryNotFound, QueueGone, InvalidMessage.
        """
        row, entry, letter = self._letter(queue, object_id)
        if letter.replay_id is not None:
            return Replayed(object_id, letter.replay_id, "already")
        source = self._find(letter.source_id)
        if source is None:
            raise QueueGone(f"dead letter {object_id} came from queue {letter.source_name}")
        message = self._judged(source, entry, data)
        [made] = self._remake(row, source, [(entry, letter)], [None], [message])
        edited = None if data is None else True
        self._record("replay", row, count=1, messages={object_id: made}, edited=edited)
        return Replayed(object_id, made, "replayed")

    def delete_letter(self, queue: str, object_id: str) -> None:
        """Delete a dead letter, replayed or not. Raises QueueNotFound, EntryNotFound."""
        row, entry, _ = self._letter(queue, object_id)
        self._drop(row, [Victim(entry.position, len(entry.data.encode()), False)])
        self._record("delete_letters", row, count=1, ids=[object_id])

    def delete_letters(self, queue: str, object_ids: Sequence[str]) -> int:
        """Delete dead letters; those that are not there count 0. Raises QueueNotFound."""
        some = self.sort_letters(queue, object_ids).by_queue
        for queue_id, named in some.items():
            row, at = self._require(queue_id), self._time()
            aged_ts = retention.aged_ts(row, at)
            self._drop(row, log.named(self.db, queue_id, named, at=at, aged_ts=aged_ts))
            self._record("delete_letters", row, count=len(named), ids=told(named))
        return sum(map(len, some.values()))

    @reads
    def try_letter(
        self, queue: str, object_id: str, mapping: Mapping | None = None, data: str | None = None
    ) -> Trial:
        """What the mapping of the queue it came from, or another one, would make of a dead letter now.

        data: instead of its own. Raises QueueNotFound, EntryNotFound, QueueGone, InvalidRequest where there is no
        mapping, or one that fits no message of that queue.
        """
        _, entry, letter = self._letter(queue, object_id)
        source = self._find(letter.source_id)
        if source is None:
            raise QueueGone(f"dead letter {object_id} came from queue {letter.source_name}")
        at = self._time()
        if mapping is None and source.work is None:
            raise InvalidRequest(
                f"map_to: queue {source.name or source.queue_id} has none of its own, so give one to try"
            )
        try:
            message = self._judged(source, entry, data)
        except InvalidMessage as error:
            return Trial(False, [trying.Misfit(None, None, None, None, error.detail)])
        work = source.work if mapping is None else trying.work(source.rules, source.command, mapping)
        assert work is not None
        return trying.trial(work, replace(entry, data=message.data), at)

    def _judged(self, source: Queue, entry: Entry, data: str | None) -> NewEntry:
        """The message as it goes back to its queue. Raises InvalidMessage where that does not take it.

        What the queue computes of each message it computes of other data anew.
        """
        message = letters.again(entry)
        if data is None:
            self._taken(source, message)
            return message
        fresh = self._taken(source, NewEntry(data=data, headers=entry.headers, type=entry.type))
        return replace(
            message,
            data=data,
            content_type=entry.content_type if data.startswith('"') else None,
            key=entry.key if fresh.key is None else fresh.key,
            priority=fresh.priority if source.judge is not None and source.judge.ranks else entry.priority,
            due=fresh.due,
        )

    def _taken(self, source: Queue, message: NewEntry) -> NewEntry:
        verdict = message if source.judge is None else source.judge(message, self._time())
        if verdict is None:
            raise InvalidMessage(f"queue {source.name}: its filter does not want this message")
        if not isinstance(verdict, NewEntry):
            raise InvalidMessage(f"queue {source.name}: {verdict.error}")
        return verdict
