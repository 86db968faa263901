"""A worker whose handler is a plain function: `Worker` on an event loop in a thread of its own, handlers in others.

def handle(message: Message) -> None:
    send(message.data)  # returning is an ack; TryAgain and GiveUp say otherwise

SyncWorker("http://127.0.0.1:8700", "dxn:queue:demo:jobs", handle).run()
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from types import FrameType

from edgequeues.client.api import Client
from edgequeues.client.errors import ClientError
from edgequeues.client.handling import Handled, Tally
from edgequeues.client.http import Retry
from edgequeues.client.messages import Message
from edgequeues.client.worker import FOR_EVER, Until, Worker


class _Job:
    """One message on its way to a thread and back. Made on the loop."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.unwanted = False  # its lease was lost before a thread came to it
        self.error: Exception | None = None
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()

    async def wait(self) -> None:
        """On the loop: wait for the thread. Raises what the handler raised."""
        try:
            await self._done.wait()
        except asyncio.CancelledError:
            self.unwanted = True
            raise
        if self.error is not None:
            raise self.error

    def settle(self, error: Exception | None) -> None:
        """In the thread: the handler is through with it."""
        self.error = error
        with suppress(RuntimeError):  # the loop is closed: it was given back meanwhile
            self._loop.call_soon_threadsafe(self._done.set)


class SyncWorker:
    """Works one queue with one handler that blocks; use it once. See `Worker`, of which this has all but `timeout_s`.

    handle: called with each message, in the thread of `run`; with `concurrency`, in so many threads, that one
        included. Returning acks it; any exception is a retry with its text, see TryAgain, GiveUp.
    on_handled, on_away: called in another thread, and must not block.

    A handler in a thread cannot be ended from outside: give what it does a time limit. When its lease is lost, or the
    grace is over, its message goes to others while it still runs.
    """

    def __init__(
        self,
        base_url: str,
        dxn: str,
        handle: Callable[[Message], object],
        *,
        token: str | None = None,
        consumer: str | None = None,
        name: str | None = None,
        concurrency: int = 1,
        batch: int | None = None,
        lease_ms: int = 30_000,
        wait_s: float = 20.0,
        grace_s: float = 30.0,
        retry: Retry = FOR_EVER,
        on_handled: Callable[[Handled], None] = lambda handled: None,
        on_away: Callable[[ClientError | None], None] = lambda error: None,
    ) -> None:
        """Raises ValueError for numbers, an address or a token that cannot be."""
        self._client = Client(base_url, token=token)
        self._worker = Worker(
            self._client,
            dxn,
            self._hand_over,
            consumer=consumer,
            name=name,
            concurrency=concurrency,
            batch=batch,
            lease_ms=lease_ms,
            wait_s=wait_s,
            grace_s=grace_s,
            retry=retry,
            on_handled=on_handled,
            on_away=on_away,
        )
        self._handle = handle
        self._concurrency = concurrency
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()  # None: a thread may go
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told: asyncio.Event  # of stops; there before the loop is
        self._stops: list[float | None] = []
        self._fault: BaseException | None = None

    @property
    def tally(self) -> Tally:
        """How many messages ended how so far."""
        return self._worker.tally

    def run(self, *, until: Until = "stopped") -> Tally:
        """Work until `stop`, until nothing is ready and nothing runs here (`empty`), or what one pull gives (`once`).

        In the main thread, the first Ctrl-C is a `stop`: what is being handled is finished, then KeyboardInterrupt is
        raised. The second interrupts the handler, and its message is given back. Raises what `Worker.run` raises.
        """
        threads = [threading.Thread(target=self._serve, args=(until,), daemon=True)]
        threads += [
            threading.Thread(target=self._handle_all, daemon=True) for _ in range(self._concurrency - 1)
        ]
        with self._heeding_ctrl_c() as interrupted:
            for thread in threads:
                thread.start()
            self._handle_all()
            for thread in threads:
                thread.join()
        if self._fault is not None:
            raise self._fault
        if interrupted.is_set():
            raise KeyboardInterrupt
        return self._worker.tally

    def stop(self, *, grace_s: float | None = None) -> None:
        """Have `run` end, as `Worker.stop`: from any thread, also from the handler of a signal."""
        self._stops.append(grace_s)
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it is over
                loop.call_soon_threadsafe(self._told.set)

    # -- on the loop -------------------------------------------------------------------------------------

    def _serve(self, until: Until) -> None:
        try:
            asyncio.run(self._work(until))
        except BaseException as error:
            self._fault = self._fault or error
        finally:
            for _ in range(self._concurrency):
                self._jobs.put(None)

    async def _work(self, until: Until) -> None:
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        heeding = asyncio.create_task(self._heed_stops())
        try:
            async with self._client:
                await self._worker.run(until=until)
        finally:
            heeding.cancel()

    async def _heed_stops(self) -> None:
        """In a task: the worker asks which loop it is on."""
        while True:
            while self._stops:  # the first time, of those that came before there was a loop
                self._worker.stop(grace_s=self._stops.pop(0))
            await self._told.wait()
            self._told.clear()

    async def _hand_over(self, message: Message) -> None:
        job = _Job(message)
        self._jobs.put(job)
        await job.wait()

    # -- in the threads of handlers ----------------------------------------------------------------------

    def _handle_all(self) -> None:
        while True:
            try:
                job = self._jobs.get()
                if job is None:
                    return
                if not job.unwanted:
                    self._do(job)
            except BaseException as error:  # Ctrl-C, or a handler that called sys.exit
                if self._fault is not None:
                    raise  # the way out is taken already, and takes somebody too long
                self._fault = error
                self.stop(grace_s=0.0)  # gives back what is not settled

    def _do(self, job: _Job) -> None:
        error: Exception | None = None
        try:
            self._handle(job.message)
        except Exception as raised:
            error = raised
        job.settle(error)

    @contextmanager
    def _heeding_ctrl_c(self) -> Iterator[threading.Event]:
        """Have the first SIGINT be a stop, where that is ours to say; tell whether one came."""
        interrupted = threading.Event()
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield interrupted
            return

        def heed(number: int, frame: FrameType | None) -> None:
            del number, frame
            signal.signal(signal.SIGINT, signal.default_int_handler)
            interrupted.set()
            self.stop()

        signal.signal(signal.SIGINT, heed)
        try:
            yield interrupted
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
