"""Calls over real sockets: answers in all the forms of HTTP/1.1, what is none, and connections used again."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio
import trustme

from edgequeues.daemon import wire
from edgequeues.daemon.connections import HEAD_BYTES_MAX, Broken, Connections, open_connections
from edgequeues.daemon.queue import open_queue
from edgequeues.daemon.wire import Away

from .service import QUEUE_ID

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


class Server:
    """Answers each request with the next of `answers`; with the last one, from then on. An empty one hangs up.

    requests: what came. connections: how many there were.
    """

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self.hang_up = trio.Event()
        self.port = 0

    async def serve(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._leave, stream, nursery.cancel_scope)
            with suppress(trio.BrokenResourceError):  # the client has hung up
                await self._answer(stream)
            nursery.cancel_scope.cancel()
        await trio.aclose_forcefully(stream)

    async def _leave(self, stream: trio.abc.Stream, scope: trio.CancelScope) -> None:
        await self.hang_up.wait()
        scope.cancel()

    async def _answer(self, stream: trio.abc.Stream) -> None:
        came = b""
        while data := await stream.receive_some():
            came += data
            head, found, body = came.partition(b"\r\n\r\n")
            if not found or len(body) < int(head.rpartition(b"content-length: ")[2].split()[0]):
                continue
            self.requests.append(came)
            came = b""
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            await stream.send_all(answer)
            if b"content-length" not in answer and b"chunked" not in answer:
                return


@asynccontextmanager
async def serving(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answers)
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.port = listener.socket.getsockname()[1]
        if tls is None:
            nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        else:
            secure = trio.SSLListener(listener, tls)
            nursery.start_soon(trio.serve_listeners, server.serve, [secure])
        yield server
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def to(
    server: Server, *, token: str | None = None, timeout_s: float = 20.0
) -> AsyncIterator[Connections]:
    url = f"http://127.0.0.1:{server.port}/a"
    async with open_connections(url, token, timeout_s=timeout_s, bytes_max=1_000) as connections:
        yield connections


def url(server: Server, path: str = "/a/b") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


async def test_a_call_is_one_request_with_what_it_needs_and_the_next_has_the_same_connection() -> None:
    async with serving(OK) as server, to(server, token="t0ken") as connections:
        for path in ("/a/b", "/a/c d?name=é"):
            answer = await connections.call("POST", url(server, path), b'{"n":1}')
            assert (answer.status, answer.headers, answer.body) == (200, {"content-length": "2"}, b"{}")
    assert server.connections == 1
    first, second = server.requests
    assert first == (
        b"POST /a/b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\naccept: application/json\r\ncontent-type: application/json\r\n"
        b"accept-encoding: identity\r\nauthorization: Bearer t0ken\r\ncontent-length: 7\r\n\r\n"
        b'{"n":1}' % server.port
    )
    assert second.startswith(b"POST /a/c%20d?name=%C3%A9 HTTP/1.1\r\n")


async def test_calls_at_one_time_have_a_connection_each() -> None:
    async with serving(OK) as server, to(server) as connections:
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(connections.call, "GET", url(server))
        assert server.connections == 3


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", b"abcd"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na", b"a"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", b""),
    ],
)
async def test_an_answer_ends_in_any_way_that_http_has(answer: bytes, body: bytes) -> None:
    async with serving(answer, OK) as server, to(server) as connections:
        assert (await connections.call("GET", url(server))).body == body
        assert (await connections.call("GET", url(server))).body == b"{}"


def packed(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


async def test_an_answer_may_be_packed() -> None:
    async with serving(packed(gzip.compress(b"a" * 1_000))) as server, to(server) as connections:
        assert (await connections.call("GET", url(server))).body == b"a" * 1_000


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"hello\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", "no HTTP|closed"),
        (b"", "closed"),
        (b"HTTP/1.1 200 OK\r\nx: y", "closed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n" + b"a" * 1_001, "more than 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 1_001, "more than 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * (HEAD_BYTES_MAX + 1), "headers of more"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000, "headers of more"),
        (packed(gzip.compress(b"a" * 1_001)), "more than 1000 bytes"),
        (packed(gzip.compress(b"a" * 100)[:-9]), "cut off"),
        (packed(b"no gzip"), "header"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\na", "not asked for"),
    ],
)
async def test_what_is_no_whole_answer_is_told_and_its_connection_is_not_used_again(
    answer: bytes, told: str
) -> None:
    async with serving(answer, OK) as server, to(server) as connections:
        with pytest.raises(Broken, match=told):
            await connections.call("GET", url(server))
        if b"content-encoding" not in answer:
            assert (await connections.call("GET", url(server))).body == b"{}"
            assert server.connections == 2


@pytest.mark.parametrize(
    "answer", [OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), OK + OK, OK + b"rubbish"]
)
async def test_a_connection_that_is_to_end_or_says_more_than_was_asked_is_not_used_again(
    answer: bytes,
) -> None:
    async with serving(answer, OK) as server, to(server) as connections:
        for _ in range(2):
            assert (await connections.call("GET", url(server))).body == b"{}"
    assert server.connections == 2


async def test_a_connection_that_was_closed_or_kept_for_long_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(OK) as server, to(server) as connections:
        await connections.call("GET", url(server))
        server.hang_up.set()
        await trio.sleep(0.05)
        server.hang_up = trio.Event()
        for _ in range(2):
            await connections.call("GET", url(server))
        assert server.connections == 2
        monkeypatch.setattr("edgequeues.daemon.connections.KEPT_S_MAX", 0.0)
        await trio.sleep(0.01)
        await connections.call("GET", url(server))
        assert server.connections == 3


async def test_a_call_that_is_given_up_ends_its_connection() -> None:
    part = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{"
    async with serving(part, OK) as server, to(server, timeout_s=0.5) as connections:
        with pytest.raises(Broken, match=r"nothing for 0\.5 s"):
            await connections.call("GET", url(server))
        assert (await connections.call("GET", url(server))).body == b"{}"
    assert server.connections == 2


async def test_a_service_that_is_not_there_is_told_without_the_token() -> None:
    async with serving(OK) as server:
        pass
    at = wire.endpoint(url(server, f"/client/v4/accounts/demo/queues/{QUEUE_ID}"))
    async with open_queue(at, "s3cret") as queue:
        with pytest.raises(Away, match=f"no answer from http://127.0.0.1:{server.port}: ") as told:
            await queue.pull(1, 1_000)
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize(
    ("trusted", "host", "told"),
    [(False, "localhost", "verify failed"), (True, "127.0.0.1", "mismatch"), (True, "localhost", None)],
)
async def test_over_tls_the_certificate_has_to_be_of_the_host_and_of_an_authority_that_is_trusted(
    trusted: bool, host: str, told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    if trusted:
        authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    async with serving(OK, tls=tls) as server:
        at = f"https://{host}:{server.port}/a"
        async with open_connections(at, None, timeout_s=20.0, bytes_max=1_000) as connections:
            if told is not None:
                with pytest.raises(Broken, match=told):
                    await connections.call("GET", at)
                return
            for _ in range(2):
                assert (await connections.call("GET", at)).body == b"{}"
        assert server.connections == 1
