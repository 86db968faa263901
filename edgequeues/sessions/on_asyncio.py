"""The manager of sessions for programs on asyncio: trio runs in a thread, and nobody sees it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Required, TypedDict, Unpack

from edgequeues.inbound import MessageType
from edgequeues.models_sessions import SessionPage
from edgequeues.sessions.host import Host
from edgequeues.sessions.manager import Deliver, Options
from edgequeues.sessions.signs import Typing
from edgequeues.sessions.thread import ManagerClosed, ManagerThread, OpenInbox

__all__ = ["AsyncioManager", "Fields", "ManagerClosed", "open_manager"]


class Fields(TypedDict, total=False):
    """Of a message: see `edgequeues.inbound.Inbound`. payload: what JSON has; None: nothing."""

    session_id: Required[str]
    origin: Required[str]
    content: str
    message_type: MessageType
    payload: object
    actor_id: str | None
    actor_name: str | None
    actor_avatar_url: str | None
    source_message_id: str | None
    source_channel_id: str | None


@asynccontextmanager
async def open_manager(
    open_inbox: OpenInbox,
    deliver: Deliver,
    options: Options | None = None,
    *,
    log: logging.Logger | None = None,
) -> AsyncIterator[AsyncioManager]:
    """Have what comes into an inbox delivered until the block ends; trio runs in a thread that ends with it.

    open_inbox: called there, as `lambda: open_local_inbox(Path("data"))`; what it raises is raised here as it is,
    such as shards.errors.FolderLocked.
    deliver: see `edgequeues.sessions.open_manager`. An async function runs as a task on this loop, a plain one in a
    thread; both have the context variables as they are now. Cancelling cancels the task and waits three seconds for
    it; a task that goes on all the same is left to itself, and its session with it.

    When the block is left, or its task is cancelled, calls under way have five seconds, deliveries are cancelled
    after `grace_s`, their messages given back, and the folder closed. If the manager ended by itself, what ended it
    is raised then, unless the block raises. A loop that is closed without leaving the block ends the manager, too.
    """
    log = log or logging.getLogger("edgequeues.sessions")
    host = Host(log)
    thread = ManagerThread(open_inbox, host.threaded(deliver), options, log, host)
    await thread.open()
    try:
        yield AsyncioManager(thread, log)
    finally:
        thread.stop()
        await thread.ended()
    if thread.fault is not None:
        raise thread.fault


class AsyncioManager:
    """What `open_manager` gives. Its calls may come from any running asyncio loop, in any thread.

    Whoever is cancelled stops waiting at once. A message is then taken in as a whole or not at all: send it again
    with the same source_message_id. Besides what the calls of `SessionManager` raise, each raises ManagerClosed once
    the manager is closed, and where it was closed before the call was done.
    """

    def __init__(self, thread: ManagerThread, log: logging.Logger) -> None:
        self._thread = thread
        self._log = log

    @property
    def closed(self) -> bool:
        """Does it take no calls any more?"""
        return self._thread.closed

    def stop(self) -> None:
        """From any thread: have it end, and do not wait for that. The block is still to be left."""
        self._thread.stop()

    def join(self, within_s: float) -> None:
        """After `stop`: wait for its end, where no loop runs in this thread."""
        self._thread.join(within_s)

    async def ended(self) -> None:
        """After `stop`: wait for its end, on whichever loop; the folder is free then."""
        await self._thread.ended()

    async def enqueue(self, *, typing: Typing | None = None, **fields: Unpack[Fields]) -> int | None:
        """See SessionManager. typing: plain or async, runs on the loop that calls this, and must not block it."""
        shown = None if typing is None else Host(self._log).looped(typing)
        return await self._thread.call(partial(self._thread.manager.enqueue, typing=shown, **fields))

    async def expire_session(self, session_id: str) -> int:
        """See SessionManager."""
        return await self._thread.call(self._thread.manager.expire_session, session_id)

    async def skip(self, session_id: str) -> bool:
        """See SessionManager."""
        return await self._thread.call(self._thread.manager.skip, session_id)

    async def retry_now(self, session_id: str) -> bool:
        """See SessionManager."""
        return await self._thread.call(self._thread.manager.retry_now, session_id)

    async def sessions(self, after: str | None = None, limit: int = 100) -> SessionPage:
        """See SessionManager."""
        return await self._thread.call(self._thread.manager.sessions, after, limit)

    async def cleanup(self, older_than: str | datetime | int) -> int:
        """See SessionManager."""
        return await self._thread.call(self._thread.manager.cleanup, older_than)

    async def active(self) -> list[str]:
        """The sessions whose delivery runs now, sorted."""

        async def active() -> list[str]:
            return self._thread.manager.active()

        return await self._thread.call(active)
