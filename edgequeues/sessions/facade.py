"""One manager of sessions for the process, by the names of seed 4: for programs on asyncio that are written to them.

Who can hand a manager to what needs it is better off with `on_asyncio.open_manager`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Unpack

from edgequeues import inbound
from edgequeues.sessions import local
from edgequeues.sessions.manager import Deliver, Options
from edgequeues.sessions.on_asyncio import AsyncioManager, Fields, open_manager
from edgequeues.sessions.signs import Typing
from edgequeues.sessions.thread import ManagerClosed, OpenInbox

JOIN_S = 15.0  # that a reset waits where no loop runs


class NotInitialized(RuntimeError):
    """There is no manager of sessions yet. Call `init_inbound_queue_manager` when the program starts."""


class AlreadyInitialized(RuntimeError):
    """There is a manager of sessions already. Use that one, or pass `force=True` to replace it."""


class InboundQueueManager:
    """A manager of sessions over a folder, opened by `startup` or by the first call.

    deliver_fn: see `on_asyncio.open_manager`; it runs on the loop that opened the manager. data: the folder, made if
    absent. open_inbox: another inbox instead, as on a server. after: the manager it replaces, which is shut down
    before this one opens.
    """

    def __init__(
        self,
        deliver_fn: Deliver,
        *,
        data: Path | str = "data",
        space: str = "sessions",
        queue: str = inbound.QUEUE,
        options: Options | None = None,
        open_inbox: OpenInbox | None = None,
        log: logging.Logger | None = None,
        after: InboundQueueManager | None = None,
    ) -> None:
        self._open_inbox = open_inbox or partial(local.open_inbox, Path(data), space, queue)
        self._deliver = deliver_fn
        self._options = options
        self._log = log
        self._after = after
        self._changing = asyncio.Lock()
        self._stack: AsyncExitStack | None = None
        self._manager: AsyncioManager | None = None
        self._shut = threading.Event()

    async def startup(self) -> None:
        """Open it, and deliver what waits. Nothing is done where it is open.

        After `shutdown`, or where it ended by itself, it opens again. Raises what `on_asyncio.open_manager` raises.
        """
        async with self._changing:
            if self._manager is not None and self._manager.closed:
                with suppress(Exception):  # it is in the log
                    await self._close()
        self._shut.clear()
        await self._opened()

    async def shutdown(self) -> None:
        """Cancel deliveries, and close the folder; messages stay for the next start. Calls raise ManagerClosed then.

        Raises what ended the manager by itself, if something did.
        """
        self.stop()
        async with self._changing:
            await self._close()

    async def enqueue(
        self, *, payload_json: str | None = None, typing: Typing | None = None, **fields: Unpack[Fields]
    ) -> int | None:
        """Take in a message; return its position once it is on disk. None: it came before, and nothing was done.

        payload_json: the payload as text, in place of `payload`. Raises ValueError for both, and for what is no JSON;
        else see AsyncioManager.
        """
        if payload_json is not None:
            if fields.get("payload") is not None:
                raise ValueError("payload and payload_json are both given: give one of them")
            try:
                fields["payload"] = json.loads(payload_json)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"payload_json is no JSON: {error}") from None
        return await (await self._opened()).enqueue(typing=typing, **fields)

    async def expire_session(self, session_id: str) -> int:
        """Cancel the delivery of a session, and expire all that is unfinished in it; return how many messages."""
        return await (await self._opened()).expire_session(session_id)

    async def cleanup(self, older_than_iso: str) -> int:
        """Remove what was finished before a time in ISO 8601 with Z or an offset; return how many messages."""
        return await (await self._opened()).cleanup(older_than_iso)

    def stop(self) -> None:
        """From any thread: have it end as by `shutdown`, and do not wait for that."""
        self._shut.set()
        if self._manager is not None:
            self._manager.stop()

    def join(self, within_s: float) -> None:
        """After `stop`: wait for its end, where no loop runs in this thread."""
        if self._manager is not None:
            self._manager.join(within_s)

    async def ended(self) -> None:
        """After `stop`: wait for its end, on whichever loop."""
        async with self._changing:
            await self._ended_before()
            if self._manager is not None:
                await self._manager.ended()

    async def _opened(self) -> AsyncioManager:
        if self._manager is not None and not self._shut.is_set():
            return self._manager
        async with self._changing:
            if self._manager is None and not self._shut.is_set():
                await self._ended_before()
                async with AsyncExitStack() as stack:
                    opening = open_manager(self._open_inbox, self._deliver, self._options, log=self._log)
                    self._manager = await stack.enter_async_context(opening)
                    self._stack = stack.pop_all()
                if self._shut.is_set():  # meanwhile
                    await self._close()
            if self._manager is None or self._shut.is_set():
                raise ManagerClosed("the manager was shut down")
            return self._manager

    async def _ended_before(self) -> None:
        if self._after is not None:
            await self._after.ended()
            self._after = None

    async def _close(self) -> None:
        stack, self._stack, self._manager = self._stack, None, None
        if stack is not None:
            await stack.aclose()


class _Process:
    """What the process has. last: the newest there was, which the next one waits for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.manager: InboundQueueManager | None = None
        self.last: InboundQueueManager | None = None


_process = _Process()


def init_inbound_queue_manager(
    deliver_fn: Deliver,
    *,
    force: bool = False,
    data: Path | str = "data",
    space: str = "sessions",
    queue: str = inbound.QUEUE,
    options: Options | None = None,
    open_inbox: OpenInbox | None = None,
    log: logging.Logger | None = None,
) -> InboundQueueManager:
    """Make the manager of this process, once; see InboundQueueManager. It opens no folder yet.

    force: replace the one there is. That is stopped at once, its calls raise ManagerClosed, and the new one waits for
    its end before it opens. Raises AlreadyInitialized without it.
    """
    with _process.lock:
        if _process.manager is not None and not force:
            raise AlreadyInitialized(_text(AlreadyInitialized))
        if _process.manager is not None:
            _process.manager.stop()
        made = InboundQueueManager(
            deliver_fn,
            data=data,
            space=space,
            queue=queue,
            options=options,
            open_inbox=open_inbox,
            log=log,
            after=_process.last,
        )
        _process.manager = _process.last = made
        return made


def get_inbound_queue_manager() -> InboundQueueManager:
    """The manager of this process. Raises NotInitialized."""
    with _process.lock:
        if _process.manager is None:
            raise NotInitialized(_text(NotInitialized))
        return _process.manager


def reset_inbound_queue_manager() -> None:
    """Forget the manager of this process, for tests. It is stopped.

    Where no loop runs in this thread, its end is waited for; else the next manager waits for it before it opens.
    """
    with _process.lock:
        manager, _process.manager = _process.manager, None
    if manager is None:
        return
    manager.stop()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        manager.join(JOIN_S)


def _text(kind: type[Exception]) -> str:
    return " ".join((kind.__doc__ or "").split())
