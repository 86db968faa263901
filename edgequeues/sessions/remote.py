"""An inbox on a server: a queue of messages for sessions, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio

from edgequeues import inbound
from edgequeues.client import Client, Message
from edgequeues.core.errors import EdgeQueuesError
from edgequeues.inbound import Inbound, InboundRow
from edgequeues.models_sessions import SessionPage
from edgequeues.sessions.inbox import Claimed, Outcome
from edgequeues.store import base
from edgequeues.store.remote import as_store_errors

CLAIM_MAX = 100  # messages in one pull
POLL_S = 60.0  # that one pull waits at most
WAIT_S_MIN = 0.001  # that is worth waiting
ABSENT_S = 1.0  # between two looks for a queue that nobody has made yet


@asynccontextmanager
async def open_inbox(
    base_url: str,
    space: str,
    queue: str = inbound.QUEUE,
    *,
    worker: str = "manager",
    token: str | None = None,
) -> AsyncIterator[RemoteInbox]:
    """The inbox in a queue of the server at `base_url`, over a connection of its own; leaving closes that.

    worker: who this is, for as long as it lives and in its next life: `reclaim` ends what that name holds. Two that
    work the same queue at once have two names. token: what the server wants, if it wants one: with the verbs `push`,
    `pull` and `read`; `create` for the first message, `configure` to close, skip and retry, `delete` to clean up.
    Raises ValueError for an address, token, space, queue or worker that cannot be. Runs on trio and on asyncio.
    """
    async with Client(base_url, token=token) as client:
        yield RemoteInbox(client, space, queue, worker=worker)


class RemoteInbox:
    """The inbox in a queue, over a client that the caller opened and closes. See Inbox.

    The queue is made by the first message. A call that only finds no queue finds nothing, and raises nothing.
    What was handed out in an answer that never came is claimed again when its lock ends.
    """

    def __init__(
        self, client: Client, space: str, queue: str = inbound.QUEUE, *, worker: str = "manager"
    ) -> None:
        if not 1 <= len(worker) <= 256:
            raise ValueError(f"worker has {len(worker)} characters; it may have 1 to 256")
        self._client = client
        self._dxn = str(base.address(space, queue))
        self._worker = worker
        self._enqueued = anyio.Event()  # the next time

    async def enqueue(self, message: Inbound) -> int | None:
        """See Inbox."""
        try:
            inbound.check(message)
        except EdgeQueuesError as error:
            raise base.Refused(error.code, str(error)) from error
        with as_store_errors():
            received = await self._client.enqueue_inbound(self._dxn, message)
        self._enqueued.set()
        self._enqueued = anyio.Event()
        return received.position

    async def claim(self, limit: int, *, lock_ms: int, wait_s: float) -> list[Claimed]:
        """See Inbox. What is no message for a session, as others may have pushed it, is rejected at once."""
        until = anyio.current_time() + wait_s
        while True:
            left_s = until - anyio.current_time()
            claimed = await self._claim(limit, lock_ms, min(left_s, POLL_S))
            if claimed or until - anyio.current_time() < WAIT_S_MIN:
                return claimed

    async def delivered(self, lease: str) -> Outcome:
        """See Inbox."""
        with as_store_errors():
            [answered] = await self._client.ack(self._dxn, [lease])
        return answered.outcome

    async def failed(self, lease: str, error: str) -> Outcome:
        """See Inbox. 4,096 characters of the error are kept."""
        return await self._give_up(lease, error, permanent=False)

    async def rejected(self, lease: str, error: str) -> Outcome:
        """See Inbox. 4,096 characters of the error are kept."""
        return await self._give_up(lease, error, permanent=True)

    async def release(self, leases: Sequence[str]) -> None:
        """See Inbox."""
        with as_store_errors():
            await self._client.release(self._dxn, leases)

    async def extend(self, leases: Sequence[str], lock_ms: int) -> list[Outcome]:
        """See Inbox."""
        with as_store_errors():
            return [one.outcome for one in await self._client.extend(self._dxn, leases, lock_ms)]

    async def reclaim(self) -> int:
        """See Inbox."""
        with _if_there(), as_store_errors():
            return await self._client.reclaim(self._dxn, self._worker)
        return 0

    async def close(self, session_id: str) -> int:
        """See Inbox."""
        with _if_there(), as_store_errors():
            return await self._client.close_session(self._dxn, session_id)
        return 0

    async def skip(self, session_id: str) -> bool:
        """See Inbox."""
        with _if_there(), as_store_errors():
            return await self._client.skip_session(self._dxn, session_id) is not None
        return False

    async def retry_now(self, session_id: str) -> bool:
        """See Inbox."""
        with _if_there(), as_store_errors():
            return await self._client.retry_session(self._dxn, session_id) is not None
        return False

    async def sessions(self, after: str | None = None, limit: int = 100) -> SessionPage:
        """See Inbox."""
        with _if_there(), as_store_errors():
            return await self._client.sessions(self._dxn, after=after, limit=limit)
        return SessionPage([], None)

    async def cleanup(self, older_than_ms: int) -> int:
        """See Inbox."""
        with _if_there(), as_store_errors():
            return await self._client.clean_sessions(self._dxn, older_than_ms)
        return 0

    async def _claim(self, limit: int, lock_ms: int, wait_s: float) -> list[Claimed]:
        """What one pull gives; while there is no queue, what one look for it took in time."""
        enqueued = self._enqueued
        try:
            with as_store_errors():
                given = await self._client.pull(
                    self._dxn,
                    batch=min(limit, CLAIM_MAX),
                    lease_ms=lock_ms,
                    worker=self._worker,
                    wait_s=wait_s if wait_s >= WAIT_S_MIN else None,
                )
        except base.QueueNotFound:
            with anyio.move_on_after(max(0.0, min(wait_s, ABSENT_S))):
                await enqueued.wait()
            return []
        found = [(one, await self._readable(one, lock_ms)) for one in given.messages]
        return [Claimed(one.id, one.lease, row) for one, row in found if row is not None]

    async def _readable(self, one: Message, lock_ms: int) -> InboundRow | None:
        try:
            return inbound.row(
                one.raw,
                one.key,
                position=one.position,
                created_ms=one.created,
                locked_ms=one.until - lock_ms,
                attempts=one.attempts,
            )
        except EdgeQueuesError as error:
            with suppress(base.StoreError):  # then it comes again when its lock ends
                await self.rejected(one.lease, f"not a message for a session: {error.detail}")
            return None

    async def _give_up(self, lease: str, error: str, *, permanent: bool) -> Outcome:
        text = base.error_text(error)
        with as_store_errors():
            [answered] = await self._client.retry(self._dxn, [lease], error=text, permanent=permanent)
        return answered.outcome


def _if_there() -> suppress:
    """Nothing is in a queue that nobody has made."""
    return suppress(base.QueueNotFound)
