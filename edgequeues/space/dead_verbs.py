"""The verbs about dead letters: list them, make messages of them again, delete some. Each is one turn."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import asdict, replace

from edgequeues.models import ENTRIES_MAX, ENTRY_BYTES_MAX, Entry, NewEntry
from edgequeues.models_letters import LetterFilter, Replayed
from edgequeues.space import audit, deadletters, letters, log, retention
from edgequeues.space.base import SpaceBase
from edgequeues.space.deadletters import START, DeadLetter, Place, Replay, Search, Summary
from edgequeues.space.letters import Envelope
from edgequeues.space.log import Victim
from edgequeues.space.queues import Queue
from edgequeues.space.watched import told
from edgequeues.spec.conditions import of_letters
from shards.shard import grows, reads

LOOKED_AT = 2_000  # dead letters that one turn compares with a filter
REPLAYED_MAX = 250  # that one turn makes messages of

Pair = tuple[Entry, DeadLetter]


class Part(Struct, frozen=True):
    """What a turn did of something longer.

    resume: not None when there may be more: call again with it as `after`, and with `through`, so that what dies
    meanwhile is left alone.
    """

    resume: Place | None
    through: int


class Told(Struct, frozen=True):
    """What is told of a dead letter beside its message, and the JSON of its envelope where that is shown instead."""

    summary: Summary
    envelope: bytes | None


class Matched(Part, frozen=True):
    """Dead letters that a turn found by a filter, and the first of them."""

    count: int
    shown: list[tuple[Entry, Envelope]] = []


class Replays(Part, frozen=True):
    """What became of the dead letters that a turn found by a filter."""

    results: list[Replayed]


class ReplayAsk(Struct, frozen=True):
    """Replay what a filter names, `limit` letters at most. per_second: so many are due a second; None: at once."""

    wanted: LetterFilter
    limit: int = sys.maxsize
    per_second: float | None = None


class DeadVerbs(SpaceBase):
    """`queue` is the id or the name of the queue the dead letters are in, checked by the caller."""

    @reads
    def dead_letters(self, queue: str, after: int, limit: int) -> list[tuple[Entry, Envelope]]:
        """Dead letters with their facts, by position from above `after`. Entries of other origin are left out."""
        row, at = self._require(queue), self._time()
        return letters.listed(self.db, row, at, after, limit)

    def told(self, positions: Sequence[int], *, whole: bool) -> dict[int, Told]:
        """What other dialects tell of those of these entries that are dead letters, by position.

        whole: with their envelopes.
        """
        found = letters.summaries(self.db, positions)
        return {
            position: Told(summary, letters.envelope_json(self.db, position) if whole else None)
            for position, summary in found.items()
        }

    def preview(
        self,
        queue: str,
        wanted: LetterFilter,
        after: Place = START,
        through: int | None = None,
        *,
        show: int,
    ) -> Matched:
        """Count the dead letters that `replay_some` would replay, and show the first `show` of them."""
        row = self._require(queue)
        search = self._search(row, replace(wanted, replayed=False), through)
        found = deadletters.look(self.db, search, after, rows_max=LOOKED_AT)
        shown: list[tuple[Entry, Envelope]] = []
        for place, _ in found.places[:show]:
            shown += [(entry, letters.envelope(letter, entry.data)) for entry, letter in self._pairs([place])]
        return Matched(found.resume, search.through, len(found.places), shown)

    @grows
    def replay(
        self, queue: str, object_ids: Sequence[str], per_second: float | None = None
    ) -> list[Replayed]:
        """Make new messages of dead letters where they came from, in the order they were appended there.

        Each once: one that was replayed before reports the message that was made then. A full queue takes them all
        the same. The answer is in the order in which the messages were made. per_second: so many are due a second.
        After about ENTRY_BYTES_MAX of data it ends: ask again for those of which it says nothing.
        """
        row, at = self._require(queue), self._time()
        positions = log.positions(self.db, row.queue_id, object_ids)
        named = deadletters.named(self.db, positions, at=at, aged_ts=retention.aged_ts(row, at))
        known = {object_id for _, _, object_id in named}
        unknown = [Replayed(one, None, "unknown") for one in object_ids if one not in known]
        places, room = [], ENTRY_BYTES_MAX
        for place, size, _ in named:
            if room > 0:
                places.append(place)
            room -= size
        results = self._replay(row, self._pairs(places), per_second)
        self._record_replays(row, results, per_second=per_second)
        return unknown + results

    @grows
    def replay_some(
        self, queue: str, ask: ReplayAsk, after: Place = START, through: int | None = None
    ) -> Replays:
        """As `replay`, of those that a filter names and that were not replayed yet; a bounded number in a turn.

        A turn that was repeated, or a call that broke off and is made anew, finds what is left, and keeps the pace.
        """
        row = self._require(queue)
        search = self._search(row, replace(ask.wanted, replayed=False), through)
        found = deadletters.look(
            self.db,
            search,
            after,
            rows_max=LOOKED_AT,
            letters_max=min(ask.limit, REPLAYED_MAX),
            bytes_max=ENTRY_BYTES_MAX,
        )
        pairs = self._pairs([place for place, _ in found.places])
        results = self._replay(row, pairs, ask.per_second)
        self._record_replays(row, results, filter=said(ask.wanted), per_second=ask.per_second)
        return Replays(found.resume, search.through, results)

    def purge_letters(
        self, queue: str, wanted: LetterFilter, after: Place = START, through: int | None = None
    ) -> Matched:
        """Delete the dead letters that a filter names, replayed or not; a bounded number in a turn."""
        row = self._require(queue)
        search = self._search(row, wanted, through)
        found = deadletters.look(
            self.db,
            search,
            after,
            rows_max=LOOKED_AT,
            letters_max=ENTRIES_MAX,
            bytes_max=retention.SWEEP_BYTES,
        )
        victims = [Victim(place.position, size, False) for place, size in found.places]
        ids = deadletters.among(self.db, [one.position for one in victims[: audit.TOLD_MAX]])
        self._drop(row, victims)
        if victims:
            self._record("delete_letters", row, count=len(victims), ids=ids, filter=said(wanted))
        return Matched(found.resume, search.through, len(found.places))

    def _record_replays(self, row: Queue, results: Sequence[Replayed], **how: object) -> None:
        """Have it on record which messages were made now; nothing where none was."""
        made = {one.id: one.message for one in results if one.outcome == "replayed"}
        if made:
            first = dict(told(made.items()))
            self._record("replay", row, count=len(made), messages=first, **how)

    def _search(self, row: Queue, wanted: LetterFilter, through: int | None) -> Search:
        """What to look for. Raises InvalidRequest for an expression that is none."""
        source = None if wanted.queue is None else self._find(wanted.queue)
        at, last = self._time(), row.tail if through is None else through
        source_id = None if source is None else source.queue_id
        aged_ts = retention.aged_ts(row, at)
        search = Search(row.queue_id, wanted, source_id, last, at, aged_ts)
        if wanted.where is None:
            return search
        asked = of_letters(wanted.where, None if source is None else source.rules)

        def holds(entry: Entry, letter: DeadLetter) -> bool:
            return asked(entry.data, letters.known(entry, letter), at)

        return search._replace(holds=holds, scans=asked.scans)

    def _pairs(self, places: Sequence[Place]) -> list[Pair]:
        """The dead letters at these places, in this order."""
        found = {
            entry.position: (entry, letter)
            for entry, letter in deadletters.at(self.db, [one.position for one in places])
        }
        return [found[one.position] for one in places]

    def _replay(self, row: Queue, found: Sequence[Pair], per_second: float | None) -> list[Replayed]:
        """Make new messages of these, one after the other, unless that was done."""
        pace = letters.pace(self.db, row, per_second, self._time())
        results: list[Replayed] = []
        for source_id, some in groupby(found, key=lambda pair: pair[1].source_id):
            results += self._replay_to(row, self._find(source_id), list(some), pace)
        return results

    def _replay_to(
        self, row: Queue, source: Queue | None, found: Sequence[Pair], pace: Iterator[int | None]
    ) -> list[Replayed]:
        at = self._time()
        results, fresh, dues = {}, [], []
        for entry, letter in found:
            if letter.replay_id is not None:
                results[entry.id] = Replayed(entry.id, letter.replay_id, "already")
            elif source is None:
                results[entry.id] = Replayed(entry.id, None, "no_queue")
            elif not letters.fits(source, entry, at):
                results[entry.id] = Replayed(entry.id, None, "invalid")
            elif letters.in_time(source, due := next(pace), at):
                fresh.append((entry, letter))
                dues.append(due)
            else:
                results[entry.id] = Replayed(entry.id, None, "later")
        if source is not None and fresh:
            for (entry, _), message in zip(fresh, self._remake(row, source, fresh, dues), strict=True):
                results[entry.id] = Replayed(entry.id, message, "replayed")
        return [results[entry.id] for entry, _ in found]

    def _remake(
        self,
        row: Queue,
        source: Queue,
        fresh: Sequence[Pair],
        dues: Sequence[int | None],
        messages: Sequence[NewEntry] = (),
    ) -> list[str]:
        """Put them where they came from, and note it; the ids of the new messages.

        messages: to be put there instead, one for each.
        """
        at = self._time()
        entries = messages or [letters.again(entry, due) for (entry, _), due in zip(fresh, dues, strict=True)]
        made = self._put(source, entries, limited=False).results
        replays = []
        for (entry, letter), one, due in zip(fresh, made, dues, strict=True):
            replays.append(Replay(at, one.id, due, entry.position))
            known = letters.restored(letter, one.position)
            if known is not None:
                deadletters.insert(self.db, known)
        deadletters.replayed(self.db, replays)
        desk = self._desk(row)
        desk.cancel([Victim(entry.position, 0, False) for entry, _ in fresh])
        self._worked(desk)
        return [one.id for one in made]


def said(wanted: LetterFilter) -> dict[str, object]:
    """What a filter says, without what it leaves open."""
    return {name: value for name, value in asdict(wanted).items() if value not in (None, ())}
