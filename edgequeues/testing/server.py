"""A real server in a thread of this process, for tests on any event loop or none, with a clock that can be moved."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import trio
from msgspec import structs

from edgequeues.app import open_app
from edgequeues.control import Control
from edgequeues.core.grants import Grant
from edgequeues.http.listen import serve
from edgequeues.settings import Settings
from shards.testing import MovedClock

SETTLE_S_MAX = 10.0
GRACE_S = 2.0


class ServerClock:
    """The server's time, unix ms. It goes as the system's does, and tests move it. For any thread.

    What comes due by a move has happened when the move returns: delays and back-offs end, leases lapse, entries
    expire, schedules push, long polls and subscriptions are answered. What then begins takes its own time: webhooks
    that are sent, handlers that run. Timeouts of connections and long polls go by the system's time.
    """

    def __init__(self, clock: MovedClock, on_trio: Callable[[Callable[[], object]], None]) -> None:
        self._clock = clock
        self._on_trio = on_trio

    def now_ms(self) -> int:
        """Return what time it is for the server."""
        return self._clock.now_ms()

    def advance(self, by_ms: int) -> None:
        """Let time pass. Raises ValueError for less than none, TimeoutError if what is due does not end."""
        if by_ms < 0:
            raise ValueError("advance goes forward; set says which time it is")
        self._on_trio(lambda: self._clock.move(by_ms))

    def set(self, now_ms: int) -> None:
        """Say which time it is, earlier ones included, as when a machine's clock is set. Raises TimeoutError."""
        self._on_trio(lambda: self._clock.move(now_ms - self._clock.now_ms()))


class RunningServer:
    """A server that runs. Made by `running` and `serving`.

    url: for clients. folder: of its data. tokens: their texts, by the names that were given. clock: see ServerClock.
    """

    def __init__(self, folder: Path, settings: Settings, tokens: Mapping[str, str]) -> None:
        self.folder = folder
        self.tokens = tokens
        self.url = ""  # until it listens
        self._moved = MovedClock()
        self.clock = ServerClock(self._moved, self._on_trio)
        self._settings = settings
        self._ready: Future[trio.lowlevel.TrioToken] = Future()
        self._shutdown: trio.Event
        self._nursery: trio.Nursery
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="edgequeues server", daemon=True)

    def start(self) -> None:
        """Return once it listens. Raises what opening the folder and the port raises."""
        self._thread.start()
        self._token = self._ready.result()

    def stop(self) -> None:
        """Finish the requests under way, close the files. Raises what the server ended with, if that was an error."""
        if self._thread.is_alive():
            with suppress(trio.RunFinishedError):  # it ended by itself, and says why below
                self._token.run_sync_soon(self._shutdown.set)
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def _on_trio(self, move: Callable[[], object]) -> None:
        """Have it done in the server's thread. A loop of the test waits meanwhile."""
        done: Future[bool] = Future()

        async def work() -> None:
            try:
                move()
                with trio.move_on_after(SETTLE_S_MAX) as scope:
                    await self._moved.settled()
                done.set_result(not scope.cancelled_caught)
            finally:
                if not done.done():
                    done.set_exception(RuntimeError("the server ended meanwhile"))

        self._token.run_sync_soon(self._nursery.start_soon, work)
        if not done.result():
            raise TimeoutError(f"what is due has not come to an end within {SETTLE_S_MAX:g} s")

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:
            fault = error
            while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
                fault = fault.exceptions[0]
            if self._ready.done():
                self._fault = fault
            else:
                self._ready.set_exception(fault)

    async def _serve(self) -> None:
        self._shutdown = trio.Event()
        async with (
            open_app(self.folder, self._settings, clock=self._moved) as app,
            trio.open_nursery() as self._nursery,
        ):

            async def listen(*, task_status: trio.TaskStatus[str]) -> None:
                chosen = self._settings
                await serve(
                    app,
                    chosen.host,
                    chosen.port,
                    shutdown=self._shutdown,
                    grace_s=min(chosen.shutdown_grace_s, GRACE_S),
                    connections_max=chosen.connections_max,
                    lane=chosen.front == "lane",
                    task_status=task_status,
                )

            self.url = await self._nursery.start(listen)
            self._ready.set_result(trio.lowlevel.current_trio_token())


@contextmanager
def running(
    folder: Path | None = None,
    *,
    settings: Settings | None = None,
    tokens: Mapping[str, Grant] | None = None,
) -> Iterator[RunningServer]:
    """Run a server until the block ends. Blocks while it starts and stops, some hundredths of a second each.

    folder: of the data, kept. None: an empty one, gone at the end.
    settings: as for `serve`, but on a free port of this machine unless they name one, and without TLS; their `data`
        does not count.
    tokens: made before it starts, by name. With at least one, requests need a token.
    Raises what the server cannot start with, such as SettingsError, SpecError, FolderLocked.
    """
    with _folder(folder) as data:
        server = RunningServer(data, _settings(settings), _tokens(data, tokens or {}))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@asynccontextmanager
async def serving(
    folder: Path | None = None,
    *,
    settings: Settings | None = None,
    tokens: Mapping[str, Grant] | None = None,
) -> AsyncIterator[RunningServer]:
    """`running` for tests on trio or asyncio: the loop goes on while the server starts and stops.

    The server is in another thread, so the time of the test's own loop must be real: no clock that jumps.
    """
    with _folder(folder) as data:
        server = RunningServer(data, _settings(settings), _tokens(data, tokens or {}))
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(server.start)
        try:
            yield server
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(server.stop)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with TemporaryDirectory(prefix="edgequeues-") as folder:
        yield Path(folder)


def _settings(given: Settings | None) -> Settings:
    chosen = given or Settings()
    is_default = chosen.port == Settings().port
    return structs.replace(chosen, port=0) if is_default else chosen


def _tokens(folder: Path, grants: Mapping[str, Grant]) -> dict[str, str]:
    if not grants:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[str, str] = {}
    with Control.open(folder) as control:
        for name, grant in grants.items():
            _, text = control.create(name, grant, now_ms=MovedClock().now_ms())
            assert text is not None
            texts[name] = text
    return texts
