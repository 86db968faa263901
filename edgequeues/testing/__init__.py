"""For the tests of programs that use queues: a real server in this process, and a clock that tests move.

    with running() as server, SyncClient(server.url) as client:
        client.push(QUEUE, [NewEntry({"n": 1}, delay_ms=60_000)])
        server.clock.advance(60_000)
        [message] = client.pull(QUEUE).messages

`serving` is the same for tests on trio or asyncio, and `edgequeues_server` a fixture of pytest, to be imported in a
conftest.py: `from edgequeues.testing import edgequeues_server`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgequeues.core.grants import Grant
from edgequeues.settings import Settings
from edgequeues.testing.server import RunningServer, ServerClock, running, serving

if TYPE_CHECKING:
    from edgequeues.testing.fixtures import edgequeues_server

__all__ = ["Grant", "RunningServer", "ServerClock", "Settings", "edgequeues_server", "running", "serving"]


def __getattr__(name: str) -> object:
    """The fixture, which needs pytest, is made when somebody asks for it."""
    if name == "edgequeues_server":
        from edgequeues.testing.fixtures import edgequeues_server

        return edgequeues_server
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
