"""A manager of sessions on trio, in a thread of its own, for programs that run on something else."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import TypeVar

import trio

from edgequeues.loops import Calls
from edgequeues.sessions.calling import alone
from edgequeues.sessions.host import Host
from edgequeues.sessions.inbox import Inbox
from edgequeues.sessions.manager import Deliver, Options, SessionManager
from edgequeues.sessions.manager import open_manager as open_on_trio

CALLS_S = 5.0  # that calls under way have to end by themselves when it is stopped

T = TypeVar("T")
OpenInbox = Callable[[], AbstractAsyncContextManager[Inbox]]


class ManagerClosed(Exception):
    """The manager is not open: it was closed, or it ended by itself and the log says why. Open one anew."""

    def __init__(self, detail: str) -> None:
        remedy = " ".join((ManagerClosed.__doc__ or "").split())
        super().__init__(f"{detail}. {remedy}")


class ManagerThread:
    """One life of a manager; use it once: `open`, then `stop` and `end`.

    closed: no call is taken any more. fault: what ended it by itself, if something did.
    """

    def __init__(
        self,
        open_inbox: OpenInbox,
        deliver: Deliver,
        options: Options | None,
        log: logging.Logger,
        host: Host,
    ) -> None:
        self.closed = False
        self.fault: BaseException | None = None
        self.manager: SessionManager
        self.calls: Calls
        self._open_inbox = open_inbox
        self._deliver = deliver
        self._options = options
        self._log = log
        self._host = host
        self._opened: Future[None] = Future()
        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()  # those who wait for it cannot cancel it
        self._opened.set_running_or_notify_cancel()
        self._lock = threading.Lock()
        self._token: trio.lowlevel.TrioToken | None = None
        self._opening = trio.CancelScope()
        self._watching = trio.CancelScope()
        self._stopped = trio.Event()
        # Were it none that dies with its program, a host that never leaves the manager could not exit.
        self._thread = threading.Thread(target=self._run, name="edgequeues sessions", daemon=True)

    async def open(self) -> None:
        """On asyncio: wait until it is open. Raises what opening the inbox or the manager raises."""
        self._thread.start()
        try:
            await asyncio.wrap_future(self._opened)
        except BaseException:
            self.stop()
            await self.ended()
            raise

    def stop(self) -> None:
        """From any thread: have it end. Deliveries are cancelled, their messages given back, the folder closed."""
        with self._lock:
            self.closed = True
            token = self._token
        if token is not None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(self._stop)

    async def ended(self) -> None:
        """On asyncio: wait until it has ended, whoever is cancelled meanwhile; the folder is free then."""
        cancelled: asyncio.CancelledError | None = None
        ended = asyncio.wrap_future(self._ended)
        while not ended.done():
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError as error:
                cancelled = error
        self._thread.join()  # the future was the last it did
        if cancelled is not None:
            raise cancelled

    def join(self, within_s: float) -> None:
        """Wait for its end, with no loop."""
        self._thread.join(within_s)

    def over(self) -> ManagerClosed:
        """What calls raise once it is closed."""
        if self.fault is not None:
            return ManagerClosed(f"the manager ended by itself: {type(self.fault).__name__}")
        return ManagerClosed("the manager was closed before this was done")

    async def call(self, do: Callable[..., Awaitable[T]], *args: object) -> T:
        """On any asyncio loop: have something done on trio."""
        if self.closed:
            raise self.over()
        return await self.calls.wait(do, *args)

    # -- its thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        fault: BaseException | None
        try:
            trio.run(self._main)
        except BaseException as raised:
            fault = alone(raised)
        else:
            fault = None if self._opened.done() else self.over()
        self.fault = fault
        self.closed = True
        if not self._opened.done():
            assert fault is not None
            self._opened.set_exception(fault)
        elif fault is not None:
            self._log.error(
                "the manager of sessions ended by itself: %s", type(fault).__name__, exc_info=fault
            )
        self._ended.set_result(None)

    async def _main(self) -> None:
        with self._lock:
            self._token = trio.lowlevel.current_trio_token()
            if self.closed:
                return
        with self._opening:
            async with (
                self._open_inbox() as inbox,
                open_on_trio(inbox, self._deliver, self._options, log=self._log) as self.manager,
            ):
                await self._serve()

    async def _serve(self) -> None:
        async with trio.open_nursery() as nursery:
            self.calls = Calls(nursery, self.over)
            nursery.start_soon(self._watch)
            self._opened.set_result(None)
            try:
                await self._stopped.wait()
            finally:
                self.calls.refuse()
            nursery.cancel_scope.deadline = trio.current_time() + CALLS_S

    async def _watch(self) -> None:
        """Stop once the host's loop is closed, as nobody could leave the manager any more."""
        with self._watching:
            await self._host.closed()
            self._log.warning("the event loop that the manager was opened on is closed: the manager ends")
            self.stop()

    def _stop(self) -> None:
        self._stopped.set()
        if self._opened.done():
            self._watching.cancel()
        else:
            self._opening.cancel()
