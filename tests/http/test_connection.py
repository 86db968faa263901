"""A connection by itself: what is written to a client that is slow to read."""

from __future__ import annotations

import socket
from typing import Any, cast

import pytest
import trio
import trio.testing

from edgequeues.http.connection import Connection
from edgequeues.http.listen import DEADLINES
from edgequeues.http.wire import WRITE_BYTES, Backlog, Wire

LARGE = b"a" * 4_000_000


def connected() -> tuple[socket.socket, Wire, Connection]:
    """The client's end; the server's, and its connection, which nobody runs."""
    ours, theirs = socket.socketpair()
    wire = Wire(theirs, DEADLINES, Backlog())
    nothing = cast(Any, None)
    return ours, wire, Connection(nothing, nothing, nothing, wire, DEADLINES, None, lane=True)


async def test_a_write_waits_for_the_one_before_it_though_there_is_room_again() -> None:
    ours, wire, connection = connected()
    got = bytearray()
    with ours, trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.write, LARGE)
            await trio.testing.wait_all_tasks_blocked()
            got += ours.recv(WRITE_BYTES * 4)
            nursery.start_soon(_read, ours, got, len(LARGE) + 1)
            await connection.write(b"b")
    wire.close()
    assert got == LARGE + b"b"


async def test_what_a_full_socket_takes_a_part_of_is_sent_to_its_end() -> None:
    ours, wire, connection = connected()
    got = bytearray()
    pieces = [bytes([number]) * (WRITE_BYTES - 1) for number in range(100)]
    with ours, trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_write, connection, pieces)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(_read, ours, got, sum(map(len, pieces)))
    wire.close()
    assert got == b"".join(pieces)


async def test_after_a_client_has_left_nothing_is_written_and_nothing_raised() -> None:
    ours, wire, connection = connected()
    ours.close()
    with trio.fail_after(1):
        await connection.write(b"x")
        await connection.lost()
        await connection.write(b"x")
    wire.close()
    with pytest.raises(trio.ClosedResourceError):
        await wire.send_all(b"x")


async def _write(connection: Connection, pieces: list[bytes]) -> None:
    for piece in pieces:
        await connection.write(piece)


async def _read(ours: socket.socket, got: bytearray, size: int) -> None:
    ours.setblocking(False)
    while len(got) < size:
        await trio.lowlevel.wait_readable(ours)
        got += ours.recv(WRITE_BYTES)
