"""WebSockets of clients that break the rules, and their end when the server stops."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio

from edgequeues.http.listen import WEBSOCKET_MESSAGE_BYTES_MAX as MESSAGE_BYTES_MAX
from edgequeues.http.wire import Deadlines

from .local import GUARD_S, QUICK, UPGRADE, Bare, Running, frame, head, listening, until_end

BOTH_FRONTS = True


class Sink(Bare):
    """Takes what comes; notes it, and that a client is gone."""

    def __init__(self) -> None:
        super().__init__(self._take)
        self.seen: list[str] = []
        self.asked = trio.Event()
        self.go = trio.Event()  # and answer
        self.gone = trio.Event()

    async def _take(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "websocket"
        await receive()
        self.asked.set()
        if scope["path"] == "/slow":
            await self.go.wait()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            self.seen.append(message["type"])
        self.gone.set()


async def opened(server: Running, path: str = "/ws") -> trio.SocketStream:
    stream = await server.connect()
    await stream.send_all(head("GET", path, *UPGRADE, "Sec-WebSocket-Extensions: permessage-deflate"))
    answer = await stream.receive_some()
    assert answer.startswith(b"HTTP/1.1 101")
    assert b"deflate" not in answer  # which would let a small message inflate to a large one
    return stream


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (frame(2, bytes(2_000_000)), b"\x88\x02\x03\xf1"),  # 1009: too big
        (frame(2, bytes(900_000), final=False) + frame(0, bytes(900_000)), b"\x88\x02\x03\xf1"),
        (frame(8, b"\x03\xe8"), b"\x88\x02\x03\xe8"),
        (frame(8, b"\x03\xe8") + frame(1, b"late"), b"\x88\x02\x03\xe8"),
        (frame(1, b"\xff\xfe"), b""),
        (frame(1, b"cut in a letter\xc3", final=False) + frame(0, b"z"), b""),
        (frame(1, b"first", final=False) + frame(1, b"another"), b""),
        (frame(0, b"goes on with nothing"), b""),
        (frame(9, bytes(126)), b""),  # a ping that is too large
        (frame(9, b"a part", final=False), b""),
        (frame(3, b"unknown opcode"), b""),
        (b"\x81\x05hello", b""),  # unmasked
        (b"\xff" * 100, b""),
    ],
)
async def test_a_websocket_ends_with_its_first_fault(
    sent: bytes, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The app hears of it, too, so that its task does not stay for ever."""
    sink = Sink()
    async with listening(sink, deadlines=QUICK) as server:
        stream = await opened(server)
        with suppress(trio.BrokenResourceError):
            await stream.send_all(sent)
        with trio.fail_after(GUARD_S):
            answer = await until_end(stream)
            assert answer.startswith(said)
            await sink.gone.wait()
        assert sink.seen == []
        await stream.aclose()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


# -- within the rules --------------------------------------------------------------------------------------

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
PARTS = (
    frame(TEXT, b"a\xc3", final=False) + frame(PING, b"mid") + frame(0, b"\xa4", final=False) + frame(0, b"z")
)


async def _echo(_scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        kind = "text" if message.get("text") is not None else "bytes"
        await send({"type": "websocket.send", kind: message[kind]})


said = partial(frame, masked=False)  # by the server


@pytest.mark.parametrize("step", [1, 7, 100_000], ids=["byte by byte", "in pieces", "at once"])
async def test_messages_come_whole_and_in_order_however_they_were_cut(step: int) -> None:
    """A text may be cut within a letter, and a ping may come within a text."""
    large = b"x" * (MESSAGE_BYTES_MAX if step > 7 else 300)
    sent = frame(TEXT, b"one") + PARTS + frame(PING, b"hello") + frame(BINARY, b"\xff\x00")
    sent += frame(TEXT, b"") + frame(TEXT, large)
    messages = [said(TEXT, b"one"), said(TEXT, "a\u00e4z".encode()), said(BINARY, b"\xff\x00")]
    messages += [said(TEXT, b""), said(TEXT, large)]
    pongs = [said(PONG, b"mid"), said(PONG, b"hello")]
    async with listening(Bare(_echo), deadlines=QUICK) as server:
        stream = await opened(server)
        async with trio.open_nursery() as nursery:

            async def send() -> None:
                for start in range(0, len(sent), step):
                    await stream.send_all(sent[start : start + step])

            nursery.start_soon(send)
            with trio.fail_after(GUARD_S):
                frames = await read(stream, len(messages) + len(pongs))
        assert [one for one in frames if one[0] & 0xF == PONG] == pongs  # each kind in its order
        assert [one for one in frames if one[0] & 0xF != PONG] == messages
        await stream.send_all(frame(CLOSE, b"\x03\xe8bye"))
        with trio.fail_after(GUARD_S):
            assert await until_end(stream) == said(CLOSE, b"\x03\xe8bye")
        await stream.aclose()


async def read(stream: trio.SocketStream, count: int) -> list[bytes]:
    """So many frames of the server, and nothing behind them."""
    data = b""
    found: list[bytes] = []
    while len(found) < count:
        data += await stream.receive_some()
        while len(data) > 1 and len(data) >= (size := _size(data)):
            found.append(data[:size])
            data = data[size:]
    assert data == b""
    return found


def _size(data: bytes) -> int:
    """Of the frame that begins here; one too many where that is not known yet."""
    width = {126: 2, 127: 8}.get(data[1], 0)
    if len(data) < 2 + width:
        return len(data) + 1
    return 2 + width + (int.from_bytes(data[2 : 2 + width], "big") if width else data[1])


async def test_a_client_that_leaves_without_a_word_ends_its_handler() -> None:
    sink = Sink()
    async with listening(sink, deadlines=QUICK) as server:
        stream = await opened(server)
        await stream.send_all(frame(TEXT, b"seen") + frame(TEXT, b"never whole")[:5])
        await stream.aclose()
        with trio.fail_after(GUARD_S):
            await sink.gone.wait()
    assert sink.seen == ["websocket.receive"]


# -- beside the rules --------------------------------------------------------------------------------------


async def test_ht_s01_frames_sent_before_the_answer_end_the_socket_and_its_handler() -> None:
    sink = Sink()
    async with listening(sink, deadlines=QUICK) as server:
        stream = await server.connect()
        await stream.send_all(head("GET", "/slow", *UPGRADE))
        await sink.asked.wait()
        await stream.send_all(frame(1, b"early"))
        with trio.fail_after(GUARD_S):
            assert (await until_end(stream)).startswith(b"HTTP/1.1 400")
            sink.go.set()
            await sink.gone.wait()
        assert sink.seen == []
        await stream.aclose()


async def test_stopping_ends_idle_websockets_with_going_away() -> None:
    async with listening(Sink(), deadlines=Deadlines(), grace_s=30) as server:
        streams = [await opened(server) for _ in range(20)]
        with trio.fail_after(GUARD_S):
            server.shutdown.set()
            for stream in streams:
                assert await until_end(stream) == b"\x88\x02\x03\xe9"  # 1001
                await stream.aclose()
            await server.ended.wait()
