"""A store in this process: the queues of one space of a data folder that no server has open."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trio

from edgequeues.core import errors as core
from edgequeues.core import jsontext
from edgequeues.core.dxn import Dxn
from edgequeues.models import ENTRY_BYTES_MAX, Message, NewEntry, Pull, Retry, Verdict
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.store import base
from edgequeues.store.base import DeadMessage, Options, StoredMessage
from edgequeues.store.holding import Held, Holding, id_of
from shards import errors as shards
from shards.clock import Clock
from shards.disk import Disk
from shards.limits import Limits
from shards.namespace import open_namespace


@asynccontextmanager
async def open_local(
    data: Path,
    space: str,
    options: Options | None = None,
    *,
    clock: Clock | None = None,
    disk: Disk | None = None,
    limits: Limits | None = None,
    randomness: random.Random | None = None,
) -> AsyncIterator[LocalStore]:
    """A store over the data folder, made if absent, on trio; leaving closes the folder.

    While it is open, what a server would do by itself is done here: delays end, leases lapse, old keys go.
    Raises ValueError for a space that cannot be, shards.errors.FolderLocked while another process has the folder
    open, and what else `shards.namespace.open_namespace` raises.
    """
    base.address(space, "any")
    async with open_namespace(
        SpaceShard, data, clock=clock, disk=disk, limits=limits, randomness=randomness
    ) as namespace:
        yield LocalStore(Router(namespace), space, options)


class LocalStore:
    """The queues of a space in a folder that is open in this process. See QueueStore.

    A queue is made by its first message, as a work queue. What is asked here is asked by whoever owns the files:
    there are no tokens.
    """

    def __init__(self, router: Router, space: str, options: Options | None = None) -> None:
        self.options = options or Options()
        self._router = router
        self._space = base.address(space, "any").space
        self._holding = Holding(self.options.held_max)

    def another(self, options: Options | None = None) -> LocalStore:
        """Another store object over the same folder: another worker, with leases of its own."""
        return LocalStore(self._router, self._space, options or self.options)

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        """See QueueStore."""
        dxn, data = base.address(self._space, queue), base.encode(message)
        base.check_key(idempotency_key)
        with as_store_errors():
            jsontext.check(data)
            if len(data) > ENTRY_BYTES_MAX:
                raise core.TooLarge(f"the message has {len(data):,} bytes of at most {ENTRY_BYTES_MAX:,}")
            space = await self._router.make(dxn)
            entry = NewEntry(data.decode(), idempotency_key=idempotency_key)
            [made] = (await space.call(SpaceShard.push, dxn.queue, [entry])).results
        return id_of(dxn, made.id)

    async def dequeue(self, queue: str) -> StoredMessage | None:
        """See QueueStore."""
        dxn, options = base.address(self._space, queue), self.options
        with self._holding.room(trio.current_time()):
            with as_store_errors():
                one = await self._pull(dxn)
            if one is None:
                return None
            data = jsontext.value(one.entry.data)
            message = StoredMessage(id_of(dxn, one.entry.id), queue, data, one.attempts, one.entry.created)
            held = Held(dxn, one.lease, trio.current_time() + options.lease_ms / 1000)
            return self._holding.keep(message, held)

    async def ack(self, message_id: str) -> None:
        """See QueueStore."""
        held = self._holding.find(message_id)
        with as_store_errors():
            space = await self._router.require(held.queue)
            [outcome] = await space.call(SpaceShard.ack, held.queue.queue, [held.lease])
        self._holding.answered(message_id, held, "ack", outcome)

    async def retry(self, message_id: str, delay_ms: int) -> None:
        """See QueueStore."""
        base.check_delay(delay_ms)
        held = self._holding.find(message_id)
        outcome = await self._give_up(held, Retry(held.lease, delay_ms))
        self._holding.answered(message_id, held, "retry", outcome)

    async def dead_letter(self, message_id: str, error: str) -> None:
        """See QueueStore. It lies in the queue of dead letters that the queue has, `<queue>-dlq` by default."""
        held = self._holding.find(message_id)
        outcome = await self._give_up(held, Retry(held.lease, None, base.error_text(error), True))
        self._holding.answered(message_id, held, "dead_letter", outcome)

    async def extend(self, message_id: str) -> None:
        """Have the lease of a message begin anew. Raises NotHeld, LeaseLost."""
        held, lease_ms = self._holding.find(message_id), self.options.lease_ms
        with as_store_errors():
            space = await self._router.require(held.queue)
            [outcome] = await space.call(SpaceShard.extend, held.queue.queue, [held.lease], lease_ms)
        self._holding.extended(message_id, held, outcome, trio.current_time() + lease_ms / 1000)

    async def dead_letters(self, queue: str, limit: int = 100) -> list[DeadMessage]:
        """Up to `limit` (1,000 at most) dead letters in `<queue>-dlq`, by age; none where no message died yet."""
        dxn = base.address(self._space, base.grave(queue))
        base.check_limit(limit)
        try:
            with as_store_errors():
                space = await self._router.require(dxn)
                found = await space.call(SpaceShard.dead_letters, dxn.queue, 0, limit)
        except base.QueueNotFound:
            return []
        return [
            DeadMessage(
                id_of(dxn, entry.id),
                jsontext.value(entry.data),
                envelope.last_error,
                envelope.attempts,
                envelope.failed_at,
            )
            for entry, envelope in found
        ]

    async def _pull(self, dxn: Dxn) -> Message | None:
        """The next message; wait for it, if the options say so. What is due later makes itself heard when it is."""
        ask = Pull(batch=1, lease_ms=self.options.lease_ms, worker=self.options.worker)
        space = await self._router.require(dxn)
        deadline = trio.current_time() + self.options.wait_ms / 1000
        with self._router.watch_work(dxn, None) as watch:
            while True:
                given = await space.call(SpaceShard.pull, dxn.queue, None, ask)
                if given.messages:
                    return given.messages[0]
                with trio.move_on_at(deadline) as scope:
                    await watch.wait()
                if scope.cancelled_caught:
                    return None

    async def _give_up(self, held: Held, ask: Retry) -> Verdict:
        with as_store_errors():
            space = await self._router.require(held.queue)
            [outcome] = await space.call(SpaceShard.retry, held.queue.queue, [ask])
        return outcome


@contextmanager
def as_store_errors() -> Iterator[None]:
    """What verbs raise, as what stores and inboxes raise."""
    try:
        yield
    except core.QueueNotFound as error:
        raise base.QueueNotFound(error.detail) from error
    except core.EdgeQueuesError as error:
        if error.retryable:
            raise base.Unavailable(error.code, str(error)) from error
        raise base.Refused(error.code, str(error)) from error
    except shards.ShardError as error:
        if not error.retryable:
            raise base.StoreFailed(str(error)) from error
        unknown = isinstance(error, shards.ShardBroken)
        raise base.Unavailable(
            _CODES.get(type(error), "unavailable"), str(error), maybe_done=unknown
        ) from error


_CODES: dict[type[shards.ShardError], str] = {  # as the native protocol has them
    shards.Overloaded: "overloaded",
    shards.DiskFull: "disk_full",
    shards.ShardBroken: "outcome_unknown",
    shards.ShardClosed: "shutting_down",
    shards.ShardBusy: "busy",
    shards.Moved: "moved",
}
