"""What a check is given: a store to look at, and what the one who made it can do with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import anyio

from edgequeues.store.base import QueueStore, StoredMessage

Open = Callable[[], AbstractAsyncContextManager[QueueStore]]
SECOND_MS = 1_000
Letter = tuple[object, str]  # a message as it was enqueued, and what was said to be wrong


class NotRun(Exception):
    """A check needs what the subject does not have. The text says what."""


class Subject(NamedTuple):
    """A store to be checked.

    open: a store object with leases of its own; all look at the same messages, and several are open at once.
    lease_ms: how long a message is hidden once it was handed out.
    prefix: what the names of all queues begin with. One that was never used: queues are to be empty, or not there.
    advance: have so many ms pass for the store, by moving its clock; None: they are really waited for.
    time_max_ms: what takes longer is not checked.
    letters: the dead letters of a queue, oldest first; None: that an error is kept is not checked.
    restart: end what `open` opens on, none of it being open, as a crash would, and start it anew; None: not checked.
    """

    open: Open
    lease_ms: int
    prefix: str
    advance: Callable[[int], Awaitable[None]] | None = None
    time_max_ms: int = 3 * SECOND_MS
    letters: Callable[[str], Awaitable[list[Letter]]] | None = None
    restart: Callable[[], Awaitable[None]] | None = None


class Check(NamedTuple):
    """One claim about stores, and how it is looked into. `run` raises AssertionError where it does not hold."""

    name: str
    claim: str
    look: Callable[[Trial], Awaitable[None]]

    async def run(self, subject: Subject) -> None:
        """Look whether it holds. Raises AssertionError, NotRun, and whatever the store raises that it must not."""
        await self.look(Trial(subject, self.name))


class Trial:
    """One run of one check: queues of its own, and what it asks of the subject."""

    def __init__(self, subject: Subject, name: str) -> None:
        self.subject = subject
        self.queue = f"{subject.prefix}-{name}"

    def queue_of(self, suffix: str) -> str:
        """Another queue for this check alone."""
        return f"{self.queue}-{suffix}"

    @asynccontextmanager
    async def store(self) -> AsyncIterator[QueueStore]:
        """A store object."""
        async with self.subject.open() as store:
            yield store

    @asynccontextmanager
    async def stores(self) -> AsyncIterator[tuple[QueueStore, QueueStore]]:
        """Two store objects."""
        async with self.subject.open() as one, self.subject.open() as other:
            yield one, other

    async def wait(self, ms: int) -> None:
        """Have so many ms pass. Raises NotRun where that is too long."""
        self.require_time(ms)
        if self.subject.advance is None:
            await anyio.sleep(ms / 1000)
        else:
            await self.subject.advance(ms)

    async def lapse(self) -> None:
        """Have the leases lapse that are held now."""
        await self.wait(self.subject.lease_ms + 1)

    def require_time(self, ms: int) -> None:
        """Raises NotRun unless so many ms can pass."""
        if ms > self.subject.time_max_ms:
            raise NotRun(f"takes {ms:,} ms, the subject lets {self.subject.time_max_ms:,} pass")

    async def letters(self, queue: str) -> list[Letter]:
        """The dead letters of a queue. Raises NotRun."""
        if self.subject.letters is None:
            raise NotRun("the subject does not show dead letters")
        return await self.subject.letters(queue)

    async def restart(self) -> None:
        """Have the store end and start. Raises NotRun."""
        if self.subject.restart is None:
            raise NotRun("the subject cannot be restarted")
        await self.subject.restart()


def equal(found: object, wanted: object, what: str) -> None:
    """Raises AssertionError unless they are."""
    if found != wanted:
        raise AssertionError(f"{what}: found {_shown(found)}, should be {_shown(wanted)}")


async def given(store: QueueStore, queue: str, wanted: object) -> StoredMessage:
    """Dequeue, and expect this message."""
    found = await store.dequeue(queue)
    if found is None:
        raise AssertionError(f"dequeue of {queue} gave nothing, should be {_shown(wanted)}")
    equal(found.message, wanted, f"dequeue of {queue}")
    return found


async def nothing(store: QueueStore, queue: str, why: str) -> None:
    """Dequeue, and expect that there is none."""
    found = await store.dequeue(queue)
    if found is not None:
        raise AssertionError(f"dequeue of {queue} gave {_shown(found.message)}, should be nothing: {why}")


async def refused(
    asked: Awaitable[object], kinds: type[Exception] | tuple[type[Exception], ...], what: str
) -> None:
    """Expect that this raises."""
    names = kinds.__name__ if isinstance(kinds, type) else " or ".join(one.__name__ for one in kinds)
    try:
        await asked
    except kinds:
        return
    except Exception as error:
        raise AssertionError(f"{what} raised {error!r}, should be {names}") from error
    raise AssertionError(f"{what} was accepted, should raise {names}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:199] + "…"
