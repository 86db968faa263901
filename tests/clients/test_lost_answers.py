"""An answer is lost on a real connection: on trio, asyncio and blocking, the call is repeated and doubles nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from edgequeues.client import Client, Unreachable
from edgequeues.testing import RunningServer

from .ways import Way, run

PATIENCE_S = 20.0


class Cut:
    """A way to the server that loses the first answer, and from then on passes all on. connections: so many came."""

    def __init__(self, server: tuple[str, int], listener: socket.socket) -> None:
        self.connections = 0
        self._server = server
        self._listener = listener

    def run(self) -> None:
        """Take connections until the listener is closed, each in a thread of its own."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                work = self._pass_on if self.connections > 1 else self._lose
                threading.Thread(target=work, args=(client,), daemon=True).start()

    def _lose(self, client: socket.socket) -> None:
        """The server does what it is asked, and says so to nobody."""
        with ended(client), ended(socket.create_connection(self._server, PATIENCE_S)) as server:
            threading.Thread(target=_copy, args=(client, server), daemon=True).start()
            server.recv(65_536)

    def _pass_on(self, client: socket.socket) -> None:
        with ended(client), ended(socket.create_connection(self._server, PATIENCE_S)) as server:
            threading.Thread(target=_copy, args=(client, server), daemon=True).start()
            _copy(server, client)


@contextmanager
def ended(connection: socket.socket) -> Iterator[socket.socket]:
    """End a connection after the block, also where another thread waits for what it brings."""
    with connection:
        yield connection
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)


@contextmanager
def cut(server: RunningServer) -> Iterator[tuple[Cut, str]]:
    address = urlsplit(server.url)
    assert address.hostname is not None
    assert address.port is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        between = Cut((address.hostname, address.port), listener)
        thread = threading.Thread(target=between.run, daemon=True)
        thread.start()
        yield between, f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE_S)


def test_a_keyed_push_is_repeated_and_doubles_nothing(server: RunningServer, way: Way) -> None:
    q = f"dxn:queue:keyed-{way}:jobs"

    async def test(client: Client) -> None:
        answer = await client.push(q, [{"n": 1}, {"n": 2}], keyed=True)
        assert [one.outcome for one in answer.results] == ["same", "same"]
        assert [one.data for one in (await client.peek(q)).messages] == [{"n": 1}, {"n": 2}]

    with cut(server) as (between, url):
        run(way, url, test)
    assert between.connections >= 2


def test_a_push_without_keys_is_not_repeated(server: RunningServer, way: Way) -> None:
    q = f"dxn:queue:plain-{way}:jobs"

    async def test(client: Client) -> None:
        with pytest.raises(Unreachable) as caught:
            await client.push(q, [{"n": 1}])
        assert caught.value.maybe_done
        assert len((await client.peek(q)).messages) == 1

    with cut(server) as (between, url):
        run(way, url, test)
    assert between.connections == 2


def test_an_ack_is_repeated_and_the_message_is_done_once(server: RunningServer, way: Way) -> None:
    q = f"dxn:queue:acked-{way}:jobs"

    async def leased(client: Client) -> None:
        await client.push(q, [1])
        leases.extend([one.lease for one in (await client.pull(q)).messages])

    async def test(client: Client) -> None:
        assert [one.outcome for one in await client.ack(q, leases)] == ["finished"]
        [consumer] = await client.consumers(q)
        assert consumer.total_acked == 1

    leases: list[str] = []
    run(way, server.url, leased)
    with cut(server) as (between, url):
        run(way, url, test)
    assert between.connections >= 2
