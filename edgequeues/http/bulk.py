"""Dead letters by the many: replayed, counted, deleted, turn by turn to the end, whatever dialect asked."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from edgequeues.core.who import Who
from edgequeues.http.reading import patiently
from edgequeues.http.waits import Waits
from edgequeues.models import ENTRIES_MAX, Entry
from edgequeues.models_letters import LetterFilter, Replayed
from edgequeues.space.dead_verbs import Part, ReplayAsk
from edgequeues.space.deadletters import START, Place
from edgequeues.space.letters import Envelope
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from shards.namespace import Ref

SHOWN = 10  # letters a preview shows
DONE = Part(None, 0)

Step = Callable[[Place, int | None], Awaitable[Part]]


class Heap(NamedTuple):
    """Dead letters in one queue, and which of them are meant."""

    queue: str
    wanted: LetterFilter


class Outcome(Struct, frozen=True):
    """What became of letters that were to be replayed, and the first of them. more: were some left for later?"""

    totals: dict[str, int]
    more: bool
    results: list[Replayed]


class Bulk:
    """What one request does with dead letters of a space. `waits` ends it between turns when the server stops."""

    def __init__(self, space: Ref[SpaceShard], waits: Waits, who: Who) -> None:
        self._space = space
        self._waits = waits
        self._who = who

    async def replay_named(
        self, queue: str, named: Sequence[str], per_second: float | None
    ) -> list[Replayed]:
        """Replay these, in as many turns as their data takes."""
        results: list[Replayed] = []
        while named:
            turn = by(self._who, SpaceShard.replay)
            results += await self._space.call(turn, queue, named, per_second)
            told = {one.id for one in results}
            named = [one for one in named if one not in told]
        return results

    async def replay(
        self, heaps: Sequence[Heap], limit: int = sys.maxsize, per_second: float | None = None
    ) -> Outcome:
        """Replay to the end, or until `limit` were, or the pace leads too far; tell the first ENTRIES_MAX."""
        totals, first, more = Counter[str](), list[Replayed](), False

        async def step(heap: Heap, after: Place, through: int | None) -> Part:
            nonlocal more
            left = limit - totals["replayed"]
            if left <= 0 or totals["later"]:
                more = True
                return DONE
            ask = ReplayAsk(heap.wanted, left, per_second)
            turn = by(self._who, SpaceShard.replay_some)
            part = await self._space.call(turn, heap.queue, ask, after, through)
            totals.update(one.outcome for one in part.results)
            first.extend(part.results[: ENTRIES_MAX - len(first)])
            return part

        for heap in heaps:
            await self._walk(partial(step, heap))
        counts = {name: totals[name] for name in ("replayed", "no_queue", "later", "invalid")}
        return Outcome(counts, more or totals["later"] > 0, first)

    async def preview(self, heaps: Sequence[Heap]) -> tuple[int, list[tuple[Entry, Envelope]]]:
        """Count what would be replayed, and give the first few."""
        count, shown = 0, list[tuple[Entry, Envelope]]()

        async def step(heap: Heap, after: Place, through: int | None) -> Part:
            nonlocal count
            show = SHOWN - len(shown)
            turn = SpaceShard.preview
            part = await self._space.call(turn, heap.queue, heap.wanted, after, through, show=show)
            count += part.count
            shown.extend(part.shown)
            return part

        for heap in heaps:
            await self._walk(partial(step, heap))
        return count, shown

    async def purge(self, heaps: Sequence[Heap]) -> int:
        """Delete what is meant; how many that were."""
        count = 0

        async def step(heap: Heap, after: Place, through: int | None) -> Part:
            nonlocal count
            turn = by(self._who, SpaceShard.purge_letters)
            part = await self._space.call(turn, heap.queue, heap.wanted, after, through)
            count += part.count
            return part

        for heap in heaps:
            await self._walk(partial(step, heap))
        return count

    async def _walk(self, step: Step) -> None:
        """Look through the dead letters there are now, one turn after the other."""
        part = await step(START, None)
        while part.resume is not None:
            part = await patiently(partial(step, part.resume, part.through), self._waits)
