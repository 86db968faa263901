"""How answers are written: as few writes as there can be, and none late."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import trio
import trio.testing
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext

from edgequeues.http.handlers import MESSAGES_MAX, Inbox
from edgequeues.http.http1 import Http1
from edgequeues.http.server import Server


class Recorder:
    """A connection that notes what is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    async def write(self, data: bytes) -> None:
        self.writes.append(data)

    def request_began(self) -> None:
        pass

    def request_ended(self) -> None:
        pass

    def hang_up(self) -> None:
        pass


@asynccontextmanager
async def asked(
    request: bytes, app: Callable[[Any, Any, Any], Awaitable[None]], *more: bytes
) -> AsyncIterator[list[bytes]]:
    """Send a request to an app, and more once the app waits; yield what is written, which grows."""
    transport = Recorder()
    async with trio.open_nursery() as nursery:
        http = Http1(
            cast(Server, app),
            Config(),
            WorkerContext(None),
            transport,
            nursery,
            tls=False,
            client=None,
            server=None,
        )
        for data in (request, *more):
            await http.feed(data)
            await trio.testing.wait_all_tasks_blocked()
        yield transport.writes
        nursery.cancel_scope.cancel()


def answer(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


@pytest.mark.parametrize(
    ("method", "messages"),
    [
        (b"GET", [answer((b"content-length", b"2")), body(b"ok")]),
        (b"HEAD", [answer((b"content-length", b"2")), body(b"")]),
        (b"GET", [answer((b"content-length", b"0")), body(b"")]),
        (b"GET", [answer(status=204), body(b"")]),
    ],
)
async def test_a_whole_answer_is_one_write(method: bytes, messages: list[dict[str, Any]]) -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    async with asked(method + b" / HTTP/1.1\r\nHost: a\r\n\r\n", app) as writes:
        assert len(writes) == 1
        assert writes[0].endswith(b"\r\n\r\nok" if messages[1]["body"] else b"\r\n\r\n")


async def test_the_head_of_a_stream_and_each_piece_leave_at_once() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send(answer())
        for piece in (b"one", b"two"):
            await trio.sleep(10)
            await send(body(piece, more=True))
        await trio.sleep_forever()

    async with asked(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", app) as writes:
        assert [write[:12] for write in writes] == [b"HTTP/1.1 200"]
        await trio.sleep(11)
        assert writes[1:] == [b"3\r\none\r\n"]
        await trio.sleep(10)
        assert writes[2:] == [b"3\r\ntwo\r\n"]


async def test_a_fault_in_a_body_is_told_while_nothing_of_the_answer_has_left() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send(answer((b"content-length", b"2")))
        await trio.sleep_forever()

    request = b"HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with asked(request, app, b"garbage\r\n") as [write]:
        assert write.startswith(b"HTTP/1.1 400 ")
        assert write.endswith(b"\r\n\r\n")


async def test_a_client_that_asks_first_is_told_to_continue_at_once() -> None:
    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        while True:
            await receive()

    request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    async with asked(request, app) as writes:
        assert [write[:12] for write in writes] == [b"HTTP/1.1 100"]


# -- what a handler receives -----------------------------------------------------------------------------

PIECE = {"type": "http.request", "body": b"x", "more_body": True}
GONE = {"type": "http.disconnect"}


async def test_pieces_wait_for_a_handler_that_is_slow_but_a_disconnect_does_not() -> None:
    inbox = Inbox()
    for _ in range(MESSAGES_MAX):
        await inbox.put(PIECE)
    with trio.move_on_after(60) as waiting:
        await inbox.put(PIECE)
    assert waiting.cancelled_caught
    with trio.fail_after(60):
        await inbox.put(GONE)


async def test_a_disconnect_is_the_last_thing_and_stays() -> None:
    inbox = Inbox()
    await inbox.put(PIECE)
    await inbox.put(GONE)
    assert [await inbox() for _ in range(4)] == [PIECE, GONE, GONE, GONE]
