"""The lane by itself: how much it takes in."""

from __future__ import annotations

import tracemalloc

import pytest
import trio
from hypercorn.trio.worker_context import WorkerContext

from edgequeues.control import Control
from edgequeues.http.lane import Lane

from .raw import WAIT_S, small_server


class Flood:
    """A connection from which more can be read, always."""

    def __init__(self, first: bytes, more: bytes) -> None:
        self.reads = 0
        self.written = b""
        self._next = first
        self._more = more

    async def read(self) -> bytes:
        await trio.lowlevel.checkpoint()
        self.reads += 1
        data, self._next = self._next, self._more
        return data

    async def write(self, data: bytes) -> None:
        self.written += data

    async def lost(self) -> None:
        await trio.sleep_forever()

    def request_began(self) -> None:
        pass

    def request_ended(self) -> None:
        pass

    def head_began(self) -> None:
        pass


@pytest.mark.parametrize(
    ("more", "reads"),
    [
        (b"GET /short HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000, 2),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 60_000, 2),
        (b"\0" * 60_000, 2),
        (b"GET /short HTTP/1.1\r\nX: " + b"x" * 60_000, 4),  # until the head is refused
    ],
    ids=["requests", "a body", "garbage", "a head"],
)
async def test_nothing_is_read_beyond_what_a_request_that_waits_is_followed_by(
    control: Control, more: bytes, reads: int
) -> None:
    """Who asks for much while a long poll waits must wait as well: one read is held, or a head."""
    flood = Flood(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n", more)
    lane = Lane(small_server(control, []), flood, WorkerContext(None), {"root_path": ""})
    with trio.move_on_after(WAIT_S - 1):
        await lane.run()
    assert flood.written == b""
    assert flood.reads <= reads


@pytest.mark.parametrize("line", [b"3;", b"3\r\nabc\r\n0\r\nx: "], ids=["an extension", "a trailer"])
async def test_a_line_without_end_behind_a_head_is_not_kept(control: Control, line: bytes) -> None:
    """It brings the app nothing, so nothing else would end it before the body's time is over."""
    first = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + line
    flood = Flood(first, b"x" * 60_000)
    lane = Lane(small_server(control, []), flood, WorkerContext(None), {"root_path": ""})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lane.run)
        while not flood.written and flood.reads < 100:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert flood.written.startswith(b"HTTP/1.1 431 ")
    assert flood.reads <= 4


@pytest.mark.parametrize("path", [b"/wait", b"/short", b"/ignore"])
async def test_a_body_that_nobody_wants_is_thrown_away(control: Control, path: bytes) -> None:
    """Megabytes a second for as long as the app is at work, and none of them is kept."""
    first = b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000000\r\n\r\n"
    flood = Flood(first.replace(b"POST", b"GET") if path != b"/ignore" else first, b"x" * 60_000)
    lane = Lane(small_server(control, []), flood, WorkerContext(None), {"root_path": ""})
    tracemalloc.start()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lane.run)
            while flood.reads < 2_000:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
