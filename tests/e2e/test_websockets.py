"""WebSockets of clients that break the rules, and their end when the server stops."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import pytest
import trio

from edgequeues.http.wire import Deadlines

from .local import QUICK, UPGRADE, Bare, Running, frame, head, listening, until_end

BOTH_FRONTS = True


class Sink(Bare):
    """Takes what comes; notes it, and that a client is gone."""

    def __init__(self) -> None:
        super().__init__(self._take)
        self.seen: list[str] = []
        self.gone = trio.Event()

    async def _take(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "websocket"
        await receive()
        if scope["path"] == "/slow":
            await trio.sleep(0.2)
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
        with trio.fail_after(5):
            answer = await until_end(stream)
            assert answer.startswith(said)
            await sink.gone.wait()
        assert sink.seen == []
        await stream.aclose()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_ht_s01_frames_sent_before_the_answer_end_the_socket_and_its_handler() -> None:
    sink = Sink()
    async with listening(sink, deadlines=QUICK) as server:
        stream = await server.connect()
        await stream.send_all(head("GET", "/slow", *UPGRADE))
        await trio.sleep(0.05)
        await stream.send_all(frame(1, b"early"))
        with trio.fail_after(5):
            assert (await until_end(stream)).startswith(b"HTTP/1.1 400")
            await sink.gone.wait()
        assert sink.seen == []
        await stream.aclose()


async def test_stopping_ends_idle_websockets_with_going_away() -> None:
    async with listening(Sink(), deadlines=Deadlines(), grace_s=30) as server:
        streams = [await opened(server) for _ in range(20)]
        with trio.fail_after(5):
            server.shutdown.set()
            for stream in streams:
                assert await until_end(stream) == b"\x88\x02\x03\xe9"  # 1001
                await stream.aclose()
            await server.ended.wait()
