"""A store over HTTP: the queues of one space of an edgequeues server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio

from edgequeues import client as api
from edgequeues.client import Client, NewEntry
from edgequeues.store import base
from edgequeues.store.base import DeadMessage, Options, StoredMessage
from edgequeues.store.holding import Answer, Held, Holding, id_of


@asynccontextmanager
async def open_remote(
    base_url: str, space: str, options: Options | None = None, *, token: str | None = None
) -> AsyncIterator[RemoteStore]:
    """A store over a connection of its own to the server at `base_url`; leaving closes it.

    Raises ValueError for an address, token or space that cannot be. Runs on trio and on asyncio.
    """
    async with Client(base_url, token=token) as client:
        yield RemoteStore(client, space, options)


class RemoteStore:
    """The queues of a space, over a client that the caller opened and closes. See QueueStore.

    A queue is made by its first message, where the token may `create`; its rules are those of the server.
    """

    def __init__(self, client: Client, space: str, options: Options | None = None) -> None:
        self.options = options or Options()
        self._client = client
        self._space = base.address(space, "any").space
        self._holding = Holding(self.options.held_max)

    def another(self, options: Options | None = None) -> RemoteStore:
        """Another store object over the same client: another worker, with leases of its own."""
        return RemoteStore(self._client, self._space, options or self.options)

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        """See QueueStore."""
        dxn, data = base.address(self._space, queue), base.encode(message)
        base.check_key(idempotency_key)
        entry = NewEntry(data, idempotency_key=idempotency_key, plain=True)
        with as_store_errors():
            answer = await self._client.push(str(dxn), [entry])
        [made] = answer.results
        return id_of(dxn, made.id)

    async def dequeue(self, queue: str) -> StoredMessage | None:
        """See QueueStore."""
        dxn, options = base.address(self._space, queue), self.options
        with self._holding.room(anyio.current_time()):
            with as_store_errors():
                given = await self._client.pull(
                    str(dxn),
                    batch=1,
                    lease_ms=options.lease_ms,
                    worker=options.worker,
                    wait_s=options.wait_ms / 1000 if options.wait_ms else None,
                )
            if not given.messages:
                return None
            [one] = given.messages
            message = StoredMessage(id_of(dxn, one.id), queue, one.data, one.attempts, one.created)
            held = Held(dxn, one.lease, anyio.current_time() + options.lease_ms / 1000)
            return self._holding.keep(message, held)

    async def ack(self, message_id: str) -> None:
        """See QueueStore."""
        held = self._holding.find(message_id)
        with as_store_errors():
            [told] = await self._client.ack(str(held.queue), [held.lease])
        self._holding.answered(message_id, held, "ack", told.outcome)

    async def retry(self, message_id: str, delay_ms: int) -> None:
        """See QueueStore."""
        base.check_delay(delay_ms)
        await self._give_up(message_id, "retry", delay_ms=delay_ms)

    async def dead_letter(self, message_id: str, error: str) -> None:
        """See QueueStore. It lies in the queue of dead letters that the queue has, `<queue>-dlq` by default."""
        await self._give_up(message_id, "dead_letter", error=base.error_text(error))

    async def extend(self, message_id: str) -> None:
        """Have the lease of a message begin anew. Raises NotHeld, LeaseLost."""
        held, lease_ms = self._holding.find(message_id), self.options.lease_ms
        with as_store_errors():
            [told] = await self._client.extend(str(held.queue), [held.lease], lease_ms)
        self._holding.extended(message_id, held, told.outcome, anyio.current_time() + lease_ms / 1000)

    async def dead_letters(self, queue: str, limit: int = 100) -> list[DeadMessage]:
        """Up to `limit` (1,000 at most) dead letters in `<queue>-dlq`, by age; none where no message died yet."""
        dxn = base.address(self._space, base.grave(queue))
        base.check_limit(limit)
        try:
            with as_store_errors():
                page = await self._client.dead_letters(str(dxn), limit=limit)
        except base.QueueNotFound:
            return []
        return [
            DeadMessage(id_of(dxn, one.id), one.data, one.last_error, one.attempts, one.failed)
            for one in page.letters
        ]

    async def _give_up(
        self, message_id: str, answer: Answer, *, delay_ms: int | None = None, error: str | None = None
    ) -> None:
        held = self._holding.find(message_id)
        with as_store_errors():
            [told] = await self._client.retry(
                str(held.queue),
                [held.lease],
                delay_ms=delay_ms,
                error=error,
                permanent=answer == "dead_letter",
            )
        self._holding.answered(message_id, held, answer, told.outcome)


@contextmanager
def as_store_errors() -> Iterator[None]:
    """What a client raises, as what stores and inboxes raise."""
    try:
        yield
    except api.Refused as error:
        if error.code == "queue_not_found":
            raise base.QueueNotFound(error.detail) from error
        raise base.Refused(error.code, error.detail) from error
    except api.Unavailable as error:
        unknown = error.code == "outcome_unknown"
        raise base.Unavailable(error.code, error.detail, maybe_done=unknown) from error
    except api.Unreachable as error:
        raise base.Unavailable("unreachable", str(error), maybe_done=error.maybe_done) from error
    except api.ClientError as error:
        raise base.StoreFailed(str(error)) from error
