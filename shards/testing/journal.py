"""A journal in memory, shared by any number of owners: it can delay, lose answers and refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator

import trio

from shards.errors import Fenced
from shards.journal import Claim, Effects, Kind, Record


class AnswerLost(Exception):
    """The record was kept, but the word of it never came back."""


class MemoryLog:
    """The replicated log of one shard: its records, and who may append."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.epoch = 0
        self.sequence = 0
        self.images: dict[int, bytes] = {}

    def add(self, kind: Kind, data: bytes) -> int:
        """Append a record and return its sequence."""
        self.sequence += 1
        self.records.append(Record(self.sequence, kind, data))
        return self.sequence


class MemoryJournal:
    """One owner's view of a MemoryLog.

    append_takes: seconds each append and barrier takes, on trio's clock.
    lose_answers: how many of the next appends keep the record and then raise AnswerLost.
    """

    records_effects = True

    def __init__(self, log: MemoryLog, *, append_takes: float = 0.0) -> None:
        self.log = log
        self.append_takes = append_takes
        self.lose_answers = 0
        self.epoch = 0

    async def claim(self) -> Claim:
        """Fence every earlier owner."""
        self.log.epoch += 1
        self.epoch = self.log.epoch
        return Claim(self.epoch, self.log.add("claim", str(self.epoch).encode()))

    async def replay(self, after: int) -> AsyncIterator[Record]:
        """Yield the records after `after`."""
        for record in [record for record in self.log.records if record.sequence > after]:
            await trio.lowlevel.checkpoint()
            yield record

    async def append(self, effects: Effects) -> int:
        """Keep the record, or raise Fenced when there is a newer owner."""
        await self.barrier()
        sequence = self.log.add(effects.kind, effects.data)
        if self.lose_answers:
            self.lose_answers -= 1
            raise AnswerLost(sequence)
        return sequence

    async def barrier(self) -> None:
        """Return if still the owner."""
        await trio.sleep(self.append_takes)
        if self.epoch != self.log.epoch:
            raise Fenced(f"epoch {self.epoch}, the owner has {self.log.epoch}")

    async def checkpoint(self, image: bytes) -> int:
        """Replace all records by the image."""
        await self.barrier()
        sequence = self.log.add("image", b"")
        self.log.images[sequence] = image
        del self.log.records[:-1]
        return sequence

    async def image(self, record: Record) -> bytes:
        """Return the image of a record."""
        await trio.lowlevel.checkpoint()
        return self.log.images[record.sequence]
