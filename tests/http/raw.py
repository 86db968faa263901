"""Bytes sent to a front as they are, a small server behind it that notes what it is asked, and answers apart."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any, NamedTuple, cast

import h11
import trio

from edgequeues.control import Control
from edgequeues.http import problems
from edgequeues.http.auth import Auth
from edgequeues.http.hosts import Hosts, Origins
from edgequeues.http.listen import DEADLINES, Front
from edgequeues.http.routes import Dialect, Head, Out, Receive, Request, Response, Route, Scope, Send
from edgequeues.http.server import Server
from edgequeues.http.waits import Waits
from shards.clock import SystemClock

from .fronted import OF_THE_FRONT, READ_BYTES, FrontName, connect

BODY_BYTES_MAX = 1024 * 1024
WAIT_S = 20.0
DROP_S = 15.0
END_S = 600.0  # of virtual time, after which a connection that is still open counts as stuck


class Bytes(bytes):
    """Bytes that a failing test shows in short."""

    def __repr__(self) -> str:
        return re.sub(r"(.)\1{40,}", lambda run: f"{run[1]}<{len(run[0])} times>", super().__repr__())


class Asked(NamedTuple):
    """A request as the app saw it."""

    method: str
    path: bytes
    body: bytes


class Answer(NamedTuple):
    """One as it came over the wire. framing: the headers that the front adds, but the date."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    framing: dict[bytes, bytes]


async def _nothing(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def small_server(control: Control, asked: list[Asked]) -> Server:
    """Routes that answer in each way there is; what they are asked is added to `asked`."""

    def route(method: str, path: str, handler: Any) -> Route:
        async def noted(request: Request) -> Response:
            body = await request.body(BODY_BYTES_MAX) if method == "POST" and path != "/ignore" else b""
            asked.append(Asked(request.method, path.encode(), body))
            response: Response = await handler(request, body)
            return response

        return Route(method, path, noted, None)

    async def short(_request: Request, _body: bytes) -> Response:
        return Response(b"{}")

    async def echo(_request: Request, body: bytes) -> Response:
        return Response(body, media=b"text/plain")

    async def pour(_request: Request, body: bytes) -> Response:
        return Response(_thirds(body), media=b"text/plain")

    async def wait(request: Request, _body: bytes) -> Response:
        async def work() -> bytes:
            await trio.sleep(WAIT_S)
            return b"waited"

        return Response(await request.while_connected(work))

    async def drip(_request: Request, _body: bytes) -> Response:
        return Response(_drops(), compress=False)

    table: list[tuple[str, str, Any]]
    table = [
        ("GET", "/short", short),
        ("GET", "/hidden", short),
        ("GET", "/wait", wait),
        ("GET", "/drip", drip),
    ]
    table += [("POST", "/echo", echo), ("POST", "/pour", pour), ("POST", "/ignore", short)]
    dialect = Dialect("test", ("/",), [route(*one) for one in table], problems.refuse)
    auth = Auth("off", "127.0.0.1", control, SystemClock())
    return Server([dialect], _nothing, Waits(), auth=auth, hosts=Hosts("127.0.0.1", []), origins=Origins())


async def _drops() -> AsyncGenerator[bytes, None]:
    while True:
        yield b"drop"
        await trio.sleep(DROP_S)


async def _thirds(body: bytes) -> AsyncGenerator[bytes, None]:
    size = len(body) // 3 + 1
    for start in range(0, len(body), size):
        yield body[start : start + size]
        await trio.lowlevel.checkpoint()


class Heard:
    """A server, and the methods of all that it is asked: an answer to HEAD looks like one that was cut short."""

    def __init__(self, app: Server) -> None:
        self.waits = app.waits
        self.rest = app.rest
        self.methods: list[str] = []
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.methods.append(scope["method"])
        await self._app(scope, receive, send)

    async def serve(self, head: Head, receive: Receive, out: Out) -> bool:
        self.methods.append(head.method)
        return await self._app.serve(head, receive, out)


@asynccontextmanager
async def opened(app: Server | Heard, name: FrontName) -> AsyncIterator[Front]:
    """A front that serves one connection at a time, and keeps it to its deadlines."""
    front = Front(cast(Server, app), 1, DEADLINES, None, lane=name == "lane")
    async with trio.open_nursery() as watching:
        watching.start_soon(front.watch)
        yield front
        watching.cancel_scope.cancel()


async def said(
    front: Front, pieces: Iterable[bytes], *, pause_s: float = 0, half_close: bool = False
) -> bytes:
    """Send the pieces and return all that is answered until the server ends the connection, as it must."""
    answer = bytearray()
    with trio.fail_after(END_S):
        async with trio.open_nursery() as nursery:
            stream = connect(front, nursery)

            async def send() -> None:
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    for piece in pieces:
                        await stream.send_all(piece)
                        await trio.sleep(pause_s)
                    if half_close:
                        await stream.send_eof()

            nursery.start_soon(send)
            with suppress(trio.BrokenResourceError):  # for what was sent and not read
                while data := await stream.receive_some(READ_BYTES):
                    answer += data
            await stream.aclose()
    return bytes(answer)


async def talk(
    app: Server | Heard,
    name: FrontName,
    pieces: Iterable[bytes],
    *,
    pause_s: float = 0,
    half_close: bool = False,
) -> bytes:
    """As `said`, to a front of its own."""
    async with opened(app, name) as front:
        return await said(front, pieces, pause_s=pause_s, half_close=half_close)


def split(data: bytes, at: list[int]) -> list[bytes]:
    """The bytes in pieces, cut at these places."""
    ends = sorted({0, len(data), *(one % (len(data) + 1) for one in at)})
    return [data[start:end] for start, end in pairwise(ends)]


def answers(data: bytes, methods: Sequence[str] = (), *, cut: bool = False) -> list[Answer]:
    """Take answers apart, which must be well formed and whole. methods: of what was asked, else GET. cut: the last
    may be cut short, and is then left out."""
    parser = h11.Connection(h11.CLIENT)
    parser.receive_data(data)
    parser.receive_data(b"")
    found: list[Answer] = []
    asked = iter(methods)
    while parser.trailing_data[0]:
        assert parser.our_state is h11.IDLE, f"something follows the last answer: {parser.trailing_data[0]!r}"
        parser.send(h11.Request(method=next(asked, "GET"), target="/", headers=[("host", "a")]))
        parser.send(h11.EndOfMessage())
        answer = _answer(parser)
        if answer is None:
            assert cut, "an answer is cut short"
            break
        found.append(answer)
        if parser.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            parser.start_next_cycle()
    return found


def _answer(parser: h11.Connection) -> Answer | None:
    event: Any = parser.next_event()
    while type(event) is h11.InformationalResponse:
        if not parser.trailing_data[0]:
            return None
        event = parser.next_event()
    assert type(event) is h11.Response, event
    headers, status, body = dict(event.headers), event.status_code, b""
    assert sum(name != b"vary" for name, _ in event.headers) == sum(name != b"vary" for name in headers)
    try:
        while type(event := parser.next_event()) is h11.Data:
            body += event.data
    except h11.RemoteProtocolError as error:
        if "peer closed" not in str(error):
            raise
        return None
    assert type(event) is h11.EndOfMessage, event
    framing = {name: headers.pop(name) for name in OF_THE_FRONT if name in headers}
    framing.pop(b"date", None)
    return Answer(status, headers, body, framing)
