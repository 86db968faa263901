"""The manager of sessions: takes in messages for them, and has each delivered in its turn."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import trio
from msgspec import UNSET, Raw

from edgequeues.core.times import moment_ms
from edgequeues.inbound import Inbound, InboundRow, MessageType
from edgequeues.models_sessions import SessionPage
from edgequeues.sessions.draining import Drain
from edgequeues.sessions.inbox import Inbox
from edgequeues.sessions.options import Options
from edgequeues.sessions.signs import Signs, Typing
from edgequeues.store import base
from edgequeues.workers.beside import beside
from shards.clock import Clock, SystemClock

__all__ = ["Deliver", "Options", "SessionManager", "open_manager"]

Deliver = Callable[[InboundRow], object]


@asynccontextmanager
async def open_manager(
    inbox: Inbox,
    deliver: Deliver,
    options: Options | None = None,
    *,
    log: logging.Logger | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[SessionManager]:
    """Have what comes into the inbox delivered, on trio, until the block ends.

    deliver: called with each message, once the ones before it in its session are delivered. A plain function runs in
    a thread, and may take its time; an async one runs on trio. What it returns is ignored; where it raises, it is
    called again after the next of RETRIES_MS, without an end, unless it raises `sessions.errors.Rejected`.
    log: is told of failures, with ids and never with what messages hold. clock: by which `keep_ms` counts.

    What an earlier life of the same worker held is taken over. At the end deliveries are cancelled, after `grace_s`,
    and their messages given back. A thread cannot be cancelled: it is left behind, and nobody asks what it did. An
    async function that shields itself is waited for. Raises Refused for an inbox that will not serve.
    """
    manager = SessionManager(
        inbox,
        deliver,
        options or Options(),
        log or logging.getLogger("edgequeues.sessions"),
        clock or SystemClock(),
    )
    await manager.drain.start()
    async with beside(manager.drain.run, manager.signs.run, manager.sweep):
        try:
            yield manager
        finally:
            manager.drain.stop()


class SessionManager:
    """What `open_manager` gives. Every call may raise Unavailable, Refused and StoreFailed of `edgequeues.store`."""

    def __init__(
        self, inbox: Inbox, deliver: Deliver, options: Options, log: logging.Logger, clock: Clock
    ) -> None:
        self.drain = Drain(inbox, deliver, options, log)
        self.signs = Signs(log)
        self._inbox = inbox
        self._options = options
        self._log = log
        self._clock = clock

    async def enqueue(
        self,
        *,
        session_id: str,
        origin: str,
        content: str = "",
        message_type: MessageType = "text",
        payload: object = None,
        actor_id: str | None = None,
        actor_name: str | None = None,
        actor_avatar_url: str | None = None,
        source_message_id: str | None = None,
        source_channel_id: str | None = None,
        typing: Typing | None = None,
    ) -> int | None:
        """Take in a message; return its position once it is on disk. None: it came before, and nothing was done.

        For the fields see `edgequeues.inbound.Inbound`; payload: what JSON has; None: nothing. typing: called with
        session and origin after a success, beside everything else; it may be plain or async, hang, and raise.
        Raises Refused for fields that cannot be, TypeError or ValueError for a payload that JSON could not give back.
        """
        position = await self._inbox.enqueue(
            Inbound(
                session_id=session_id,
                origin=origin,
                content=content,
                message_type=message_type,
                payload=UNSET if payload is None else Raw(base.encode(payload)),
                actor_id=actor_id,
                actor_name=actor_name,
                actor_avatar_url=actor_avatar_url,
                source_message_id=source_message_id,
                source_channel_id=source_channel_id,
            )
        )
        if position is not None and typing is not None:
            self.signs.show(typing, session_id, origin)
        return position

    async def expire_session(self, session_id: str) -> int:
        """Cancel the delivery of a session, and expire all that is unfinished in it; return how many messages.

        What comes in afterwards is delivered, as for a new session.
        """
        return await self.drain.close(session_id)

    async def skip(self, session_id: str) -> bool:
        """Expire the message that a session waits for. False: there is none, or it is being delivered."""
        return await self._inbox.skip(session_id)

    async def retry_now(self, session_id: str) -> bool:
        """Have the message that backs off in a session delivered now. False: there is none."""
        return await self._inbox.retry_now(session_id)

    async def sessions(self, after: str | None = None, limit: int = 100) -> SessionPage:
        """Sessions with messages that are not finished, by id from above `after`; up to 1,000 a page."""
        return await self._inbox.sessions(after, limit)

    async def cleanup(self, older_than: str | datetime | int) -> int:
        """Remove what was finished before a moment; return how many messages.

        older_than: ISO 8601 text with Z or an offset, a datetime with a time zone, or unix ms. Raises ValueError for
        one that may be any of several moments.
        """
        return await self._inbox.cleanup(max(moment_ms(older_than), 0))

    def active(self) -> list[str]:
        """The sessions whose delivery runs now, sorted."""
        return self.drain.active()

    async def sweep(self) -> None:
        """Remove what was finished long ago, every so often, for ever, if the options say how long ago."""
        while (keep_ms := self._options.keep_ms) is not None:
            try:
                removed = await self._inbox.cleanup(max(self._clock.now_ms() - keep_ms, 0))
            except base.StoreError as error:
                self._log.warning("old messages could not be removed, it is tried again later: %s", error)
            else:
                if removed:
                    self._log.info("%d old messages are removed", removed)
            await trio.sleep(self._options.clean_every_s)
