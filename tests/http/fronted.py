"""A front in the way of a test's requests: an ASGI app that sends each over a socket to the server under it.

So `Client` and its exchanges work as they do without, and what comes out must be what the app itself answers. The
socket is one of a pair in this process: what is written to it can be read at once, so virtual time stands still while
bytes are under way.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, Literal, cast, get_args

import h11
import pytest
import trio

from edgequeues.http.listen import DEADLINES, Front
from edgequeues.http.routes import App, Head, Out, Receive, Scope, Send
from edgequeues.http.server import Server

FrontName = Literal["app", "lane", "hypercorn"]  # app: none, the app is called directly
FRONTS: tuple[FrontName, ...] = get_args(FrontName)
READ_BYTES = 256 * 1024
WITH_BODY = ("POST", "PUT", "PATCH")
CHUNKED = (b"transfer-encoding", b"chunked")
OF_THE_FRONT = (b"date", b"connection", b"transfer-encoding")

Message = MutableMapping[str, Any]


def only(*fronts: FrontName, why: str) -> pytest.MarkDecorator:
    """Run a test at these fronts alone."""
    assert why
    return pytest.mark.parametrize("front", fronts, indirect=True)


def behind(front: FrontName, server: Server) -> App:
    """The server, behind a front."""
    return server if front == "app" else Fronted(server, lane=front == "lane")


def connect(front: Front, nursery: trio.Nursery) -> trio.SocketStream:
    """Open a connection to a front, which serves it in the nursery."""
    ours, theirs = socket.socketpair()
    nursery.start_soon(front.handle, trio.SocketStream(trio.socket.from_stdlib_socket(theirs)))
    return trio.SocketStream(trio.socket.from_stdlib_socket(ours))


class Noted:
    """A server that is asked once, whether it was, and whether it has answered."""

    def __init__(self, server: Server) -> None:
        self.called = False
        self.returned = trio.Event()
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._noting():
            await self._server(scope, receive, send)

    async def serve(self, head: Head, receive: Receive, out: Out) -> bool:
        with self._noting():
            return await self._server.serve(head, receive, out)

    async def rest(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._server.rest(scope, receive, send)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        self.called = True
        try:
            yield
        finally:
            self.returned.set()


class Fronted:
    """Serves each request on a connection of its own, through a front. WebSockets go to the app itself."""

    def __init__(self, app: Server, *, lane: bool) -> None:
        self._app = app
        self._lane = lane

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Returns when the app has and all of its answer was taken in, or when the client has hung up."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        noted = Noted(self._app)
        front = Front(cast(Server, noted), 1, DEADLINES, None, lane=self._lane)
        async with trio.open_nursery() as serving:  # and then the connection must end by itself
            stream = connect(front, serving)
            async with stream, trio.open_nursery() as talking:
                talk = Talk(stream, scope, receive, send)
                talking.start_soon(talk.ask)
                talking.start_soon(talk.listen)
                await talk.over.wait()
                if noted.called and not talk.has_hung_up:
                    await noted.returned.wait()
                talking.cancel_scope.cancel()


class Talk:
    """One request as it is sent, and its answer as it comes. over: it has come to its end, or nobody waits for it."""

    def __init__(self, stream: trio.SocketStream, scope: Scope, receive: Receive, send: Send) -> None:
        self.over = trio.Event()
        self.has_hung_up = False
        self._stream = stream
        self._scope = scope
        self._receive = receive
        self._send = send

    # -- the request -------------------------------------------------------------------------------------

    async def ask(self) -> None:
        """Send it as it is given."""
        given = {name for name, _ in self._scope["headers"]}
        unsaid = self._scope["method"] in WITH_BODY and not given & {b"content-length", b"transfer-encoding"}
        chunked = unsaid or b"transfer-encoding" in given
        with suppress(trio.BrokenResourceError):  # the server may have ended the connection
            await self._stream.send_all(self._head(*([CHUNKED] if unsaid else [])))
            while (message := await self._receive())["type"] != "http.disconnect":
                await self._stream.send_all(framed(message) if chunked else message.get("body", b""))
        self.has_hung_up = True
        await self._stream.aclose()
        self.over.set()

    def _head(self, *more: tuple[bytes, bytes]) -> bytes:
        """By hand: h11 would not send what some tests want refused."""
        scope = self._scope
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        lines = b"".join(b"%b: %b\r\n" % header for header in [*scope["headers"], *more])
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (scope["method"].encode(), target, lines)

    # -- its answer --------------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Hand on the answer in the pieces that the app made, as far as it comes."""
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=self._scope["method"], target="/", headers=[("host", "a")]))
        parser.send(h11.EndOfMessage())
        pieces: list[bytes] = []
        chunked = False
        while (event := await self._next(parser)) is not None:
            if type(event) is h11.Response:
                chunked = CHUNKED in event.headers
                await self._send(start(event))
            elif type(event) is h11.Data:
                pieces.append(event.data)
                if chunked and event.chunk_end:
                    await self._send(body(pieces, more=True))
            elif type(event) is h11.EndOfMessage:
                assert parser.trailing_data[0] == b"", "something follows the answer"
                await self._send(body(pieces, more=False))
                break
        if pieces:
            await self._send(body(pieces, more=True))
        self.over.set()

    async def _next(self, parser: h11.Connection) -> Any:
        """The next part of the answer; None: it ends here, whole or not."""
        data = b" "
        while data:
            event = parser.next_event()
            if event is not h11.NEED_DATA:
                return None if type(event) is h11.ConnectionClosed else event
            try:
                data = bytes(await self._stream.receive_some(READ_BYTES))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return None
            parser.receive_data(data)
        return None


def framed(message: Message) -> bytes:
    """A part of a request's body as chunks."""
    piece = message.get("body", b"")
    return (b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"") + (
        b"" if message.get("more_body") else b"0\r\n\r\n"
    )


def start(answer: h11.Response) -> Message:
    """The head of an answer, without what the front adds."""
    headers = list(answer.headers)
    assert [name for name, _ in headers].count(b"date") <= 1  # none in a refusal by the front itself
    kept = [header for header in headers if header[0] not in OF_THE_FRONT]
    return {"type": "http.response.start", "status": answer.status_code, "headers": kept}


def body(pieces: list[bytes], *, more: bool) -> Message:
    """A part of an answer; what it is made of is taken out."""
    joined = b"".join(pieces)
    pieces.clear()
    return {"type": "http.response.body", "body": joined, "more_body": more}
