"""The verbs about sessions, a part of `Client`. A session is an ordering key of a queue of messages of users."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec
from msgspec import Struct

from edgequeues import inbound
from edgequeues.client import answers
from edgequeues.client.http import Transport
from edgequeues.client.wire import JSON, RANGE_DELETE_PATIENCE_S, Call, pairs, path_of
from edgequeues.core.errors import EdgeQueuesError
from edgequeues.inbound import Inbound
from edgequeues.models_sessions import SESSIONS_MAX, Received, SessionInfo, SessionPage


class _Expired(Struct, frozen=True):
    expired: int


class _Touched(Struct, frozen=True):
    id: str | None


class _Reclaimed(Struct, frozen=True):
    reclaimed: int


class _Removed(Struct, frozen=True):
    removed: int


class SessionVerbs:
    """What is done with messages for sessions. Those who deliver them pull, and say what became of them, as of
    others.
    """

    _transport: Transport

    async def enqueue_inbound(self, dxn: str, message: Inbound) -> Received:
        """Append a message to its session; when this returns it is on disk. The first one makes the queue.

        What comes again is known by its origin, source channel and source message, for 72 h and while the first is
        there: then nothing is done, and both fields of the answer are None. Repeated by itself only if it has a
        `source_message_id`.
        Raises ValueError for a message that cannot be; Refused: `config_conflict` where the queue is none for
        sessions, `too_large` above 4 MiB; Unavailable: `queue_full`.
        """
        try:
            body = inbound.body(inbound.check(message)).encode()
        except EdgeQueuesError as error:
            raise ValueError(error.detail) from None
        repeatable = message.source_message_id is not None
        call = Call("POST", path_of(dxn, "inbound"), headers=(JSON,), body=body, repeatable=repeatable)
        return answers.decoded(await self._transport.send(call), Received)

    async def sessions(self, dxn: str, *, after: str | None = None, limit: int | None = None) -> SessionPage:
        """Return sessions with messages that are not finished, by id. limit: 1 to 1,000. None: 100.

        Raises Refused: `queue_not_found`, `config_conflict`.
        """
        return await self._sessions(dxn, after=after, limit=limit)

    async def iterate_sessions(self, dxn: str) -> AsyncGenerator[SessionInfo, None]:
        """Yield all of them, page by page."""
        after: str | None = None
        while True:
            page = await self._sessions(dxn, after=after, limit=SESSIONS_MAX)
            for one in page.sessions:
                yield one
            after = page.resume
            if after is None:
                return

    async def session(self, dxn: str, session_id: str) -> SessionInfo | None:
        """Return how one session stands; None: nothing is unfinished in it."""
        page = await self._sessions(dxn, session=session_id)
        return page.sessions[0] if page.sessions else None

    async def close_session(self, dxn: str, session_id: str) -> int:
        """Expire all that is unfinished in a session, what is handed out too; return how many messages.

        What comes later is delivered. Never repeated by itself.
        """
        found = await self._post(dxn, "close", _Expired, session_id=session_id)
        return found.expired

    async def skip_session(self, dxn: str, session_id: str) -> str | None:
        """Expire the message that a session waits for, so that it goes on; return the id of that message.

        None: there is none, or it is being delivered. Never repeated by itself.
        """
        return (await self._post(dxn, "skip", _Touched, session_id=session_id)).id

    async def retry_session(self, dxn: str, session_id: str) -> str | None:
        """Have the message that backs off in a session delivered now; return its id. None: there is none."""
        found = await self._post(dxn, "retry", _Touched, repeatable=True, session_id=session_id)
        return found.id

    async def reclaim(self, dxn: str, worker: str) -> int:
        """End the leases of a worker that is gone, as if they had lapsed; return how many.

        worker: what it called itself when it pulled. Never repeated by itself: it may be back by then.
        """
        return (await self._post(dxn, "reclaim", _Reclaimed, worker=worker)).reclaimed

    async def clean_sessions(self, dxn: str, before_ms: int) -> int:
        """Remove messages that were finished before unix ms `before_ms`; return how many."""
        found = await self._post(dxn, "clean", _Removed, repeatable=True, before=before_ms)
        return found.removed

    async def _sessions(self, dxn: str, **asked: str | int | None) -> SessionPage:
        call = Call("GET", path_of(dxn, "sessions"), query=pairs(**asked), repeatable=True)
        return answers.decoded(await self._transport.send(call), SessionPage)

    async def _post(
        self, dxn: str, verb: str, kind: type[answers.T], *, repeatable: bool = False, **said: str | int
    ) -> answers.T:
        call = Call(
            "POST",
            path_of(dxn, f"sessions/{verb}"),
            headers=(JSON,),
            body=msgspec.json.encode(said),
            repeatable=repeatable,
            patience_s=RANGE_DELETE_PATIENCE_S,
        )
        return answers.decoded(await self._transport.send(call), kind)
