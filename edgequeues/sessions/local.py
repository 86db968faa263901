"""An inbox in this process: a queue of messages for sessions, in a data folder that no server has open."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trio

from edgequeues import inbound
from edgequeues.core.errors import EdgeQueuesError, TooLarge
from edgequeues.inbound import Inbound, InboundRow
from edgequeues.models import ENTRY_BYTES_MAX, PULL_MAX, Message, Pull, Retry
from edgequeues.models_sessions import SessionPage
from edgequeues.router import Router
from edgequeues.sessions.inbox import Claimed, Outcome
from edgequeues.space.shard import SpaceShard
from edgequeues.store import base
from edgequeues.store.local import as_store_errors
from shards.clock import Clock
from shards.disk import Disk
from shards.limits import Limits
from shards.namespace import Ref, open_namespace


@asynccontextmanager
async def open_inbox(
    data: Path,
    space: str = "sessions",
    queue: str = inbound.QUEUE,
    *,
    worker: str = "manager",
    clock: Clock | None = None,
    disk: Disk | None = None,
    limits: Limits | None = None,
    randomness: random.Random | None = None,
) -> AsyncIterator[LocalInbox]:
    """The inbox in a queue of the data folder, made if absent, on trio; leaving closes the folder.

    While it is open, what a server would do by itself is done here: back-offs and locks end, old messages go.
    worker: who this is, for as long as it lives and in its next life: `reclaim` ends what that name holds.
    Raises ValueError for a space, queue or worker that cannot be, shards.errors.FolderLocked while another process
    has the folder open, and what else `shards.namespace.open_namespace` raises.
    """
    base.address(space, queue)
    base.Options(worker=worker)
    async with open_namespace(
        SpaceShard, data, clock=clock, disk=disk, limits=limits, randomness=randomness
    ) as namespace:
        yield LocalInbox(Router(namespace), space, queue, worker=worker)


class LocalInbox:
    """The inbox in a queue of a folder that is open in this process. See Inbox.

    The queue is made by the first message. A call that only finds no queue finds nothing, and raises nothing.
    """

    def __init__(
        self, router: Router, space: str, queue: str = inbound.QUEUE, *, worker: str = "manager"
    ) -> None:
        self._router = router
        self._dxn = base.address(space, queue)
        self._queue = queue
        self._worker = worker

    async def enqueue(self, message: Inbound) -> int | None:
        """See Inbox."""
        with as_store_errors():
            inbound.check(message)
            size = len(inbound.body(message).encode())
            if size > ENTRY_BYTES_MAX:
                raise TooLarge(f"the message has {size:,} bytes of at most {ENTRY_BYTES_MAX:,}")
            space = await self._router.make(self._dxn)
            [received] = await space.call(SpaceShard.receive, self._queue, [message])
        return received.position

    async def claim(self, limit: int, *, lock_ms: int, wait_s: float) -> list[Claimed]:
        """See Inbox. What is no message for a session, as others may have pushed it, is rejected at once.

        Whoever is cancelled while something is handed out is given it all the same.
        """
        ends_s = trio.current_time() + wait_s
        ask = Pull(batch=min(limit, PULL_MAX), lease_ms=lock_ms, worker=self._worker)
        with self._router.watch_work(self._dxn, None) as watch:
            while True:
                await trio.lowlevel.checkpoint_if_cancelled()
                with trio.CancelScope(shield=True):
                    claimed, more = await self._pull(ask)
                if claimed:
                    return claimed
                if more:
                    continue
                with trio.move_on_at(ends_s) as scope:
                    await watch.wait()
                if scope.cancelled_caught:
                    return []

    async def delivered(self, lease: str) -> Outcome:
        """See Inbox."""
        with as_store_errors():
            [outcome] = await (await self._space()).call(SpaceShard.ack, self._queue, [lease])
        return outcome

    async def failed(self, lease: str, error: str) -> Outcome:
        """See Inbox. 4,096 characters of the error are kept."""
        return await self._give_up(Retry(lease, error=base.error_text(error)))

    async def rejected(self, lease: str, error: str) -> Outcome:
        """See Inbox. 4,096 characters of the error are kept."""
        return await self._give_up(Retry(lease, error=base.error_text(error), permanent=True))

    async def release(self, leases: Sequence[str]) -> None:
        """See Inbox."""
        with _if_there(), as_store_errors():
            await (await self._space()).call(SpaceShard.release, self._queue, leases)

    async def extend(self, leases: Sequence[str], lock_ms: int) -> list[Outcome]:
        """See Inbox."""
        if not leases:
            return []
        with as_store_errors():
            given = await (await self._space()).call(SpaceShard.extend, self._queue, leases, lock_ms)
        return list(given)

    async def reclaim(self) -> int:
        """See Inbox."""
        total = 0
        with _if_there(), as_store_errors():
            space = await self._space()
            while some := await space.call(SpaceShard.reclaim, self._queue, self._worker):
                total += some
        return total

    async def close(self, session_id: str) -> int:
        """See Inbox."""
        expired = 0
        with _if_there(), as_store_errors():
            space = await self._space()
            part = await space.call(SpaceShard.close_session, self._queue, session_id)
            expired += part.expired
            while part.through is not None:
                part = await space.call(SpaceShard.close_session, self._queue, session_id, part.through)
                expired += part.expired
        return expired

    async def skip(self, session_id: str) -> bool:
        """See Inbox."""
        with _if_there(), as_store_errors():
            space = await self._space()
            return await space.call(SpaceShard.skip_head, self._queue, session_id) is not None
        return False

    async def retry_now(self, session_id: str) -> bool:
        """See Inbox."""
        with _if_there(), as_store_errors():
            space = await self._space()
            return await space.call(SpaceShard.hurry_head, self._queue, session_id) is not None
        return False

    async def sessions(self, after: str | None = None, limit: int = 100) -> SessionPage:
        """See Inbox."""
        with _if_there(), as_store_errors():
            return await (await self._space()).call(SpaceShard.sessions, self._queue, after, limit)
        return SessionPage([], None)

    async def cleanup(self, older_than_ms: int) -> int:
        """See Inbox."""
        removed, more = 0, True
        with _if_there(), as_store_errors():
            space = await self._space()
            while more:
                part = await space.call(SpaceShard.clean, self._queue, older_than_ms)
                removed, more = removed + part.removed, part.more
        return removed

    async def _space(self) -> Ref[SpaceShard]:
        return await self._router.require(self._dxn)

    async def _pull(self, ask: Pull) -> tuple[list[Claimed], bool]:
        """What can be claimed now, and whether more may be, though none of that was a message for a session."""
        with _if_there(), as_store_errors():
            space = await self._space()
            given = (await space.call(SpaceShard.pull, self._queue, None, ask)).messages
            assert ask.lease_ms is not None
            found = [(one, await self._readable(one, ask.lease_ms)) for one in given]
            return [Claimed(one.entry.id, one.lease, row) for one, row in found if row is not None], bool(
                given
            )
        return [], False

    async def _readable(self, one: Message, lock_ms: int) -> InboundRow | None:
        try:
            return inbound.row(
                one.entry.data.encode(),
                one.entry.key,
                position=one.entry.position,
                created_ms=one.entry.created,
                locked_ms=one.until - lock_ms,
                attempts=one.attempts,
            )
        except EdgeQueuesError as error:
            with suppress(base.StoreError):  # then it comes again when its lock ends
                await self.rejected(one.lease, f"not a message for a session: {error.detail}")
            return None

    async def _give_up(self, ask: Retry) -> Outcome:
        with as_store_errors():
            [outcome] = await (await self._space()).call(SpaceShard.retry, self._queue, [ask])
        return outcome


def _if_there() -> suppress:
    """Nothing is in a queue that nobody has made."""
    return suppress(base.QueueNotFound)
