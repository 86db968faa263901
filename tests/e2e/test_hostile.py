"""Clients that send what is no request: each costs its own connection and nothing else."""

from __future__ import annotations

import json
import logging
import random
import resource
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import trio

from edgequeues.http.http1 import HEAD_BYTES_MAX, HEADERS_MAX

from . import process
from .local import GUARD_S, QUICK, UPGRADE, Running, frame, head, serving, until_end

BOTH_FRONTS = True

Q = "/v1/dxn:queue:demo:log"
BODY = b'{"entries":[{"data":1}]}'
CONTENT = ("Content-Type: application/json", f"Content-Length: {len(BODY)}")
POST = head("POST", Q, *CONTENT) + BODY
LAST = head("POST", Q, *CONTENT, "Connection: close") + BODY
CHUNKED = ("Content-Type: application/json", "Transfer-Encoding: chunked")
TLS_HELLO = b"\x16\x03\x01\x00\xf4\x01\x00\x00\xf0\x03\x03" + bytes(range(64))

ODD: dict[str, tuple[bytes, bytes]] = {
    "an upgrade with a byte behind it": (head("GET", "/ws", *UPGRADE) + b"x", b"400"),
    "an upgrade whose connection is no text": (
        head("GET", "/ws", *UPGRADE, "Sec-WebSocket-Protocol: a").replace(b"Protocol: a", b"Protocol: \xff"),
        b"400",
    ),
    "an upgrade that is none": (head("GET", "/ws", *UPGRADE[:2]), b"400"),
    "a body longer than stated": (LAST + b"more than that", b"200"),
    "both lengths": (
        head("POST", Q, "Content-Length: 3", "Connection: close", *CHUNKED) + b"0\r\n\r\n",
        b"400",
    ),
    "two lengths": (head("POST", Q, "Content-Length: 3", "Content-Length: 4") + b"abcd", b"400"),
    "a length of thousands of digits": (head("POST", Q, "Content-Length: " + "9" * 5_000), b"400"),
    "a length below zero": (head("POST", Q, "Content-Length: -1"), b"400"),
    "a chunk size that is none": (head("POST", Q, *CHUNKED) + b"zz\r\n\r\n", b"400"),
    "a chunk size without end": (head("POST", Q, *CHUNKED) + b"f" * 100 + b"\r\n", b"400"),
    "a chunk longer than stated": (head("POST", Q, *CHUNKED) + b"1\r\nabcd\r\n", b"400"),
    "NUL in a header": (head("GET", "/healthz", "X: a\0b"), b"400"),
    "a header line of 100 kB": (head("GET", "/healthz", "X: " + "x" * 100_000), b"431"),
    "a head without end": (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 200_000, b"431"),
    "too many headers": (head("GET", "/healthz", *["X: y"] * HEADERS_MAX), b"431"),
    "TLS on the plain port": (TLS_HELLO + b"\r\n\r\n", b"400"),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    "a version to come": (b"GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n", b"400"),
    "a tunnel": (b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"400"),
    "a method in small letters": (
        b"head /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"40",  # 400 in the lane, where llhttp knows its methods
    ),
    "nothing but line ends": (b"\r\n" * 10, b"400"),
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serving(tmp_path, deadlines=QUICK) as running:
        yield running


@pytest.fixture
async def patient(tmp_path: Path) -> AsyncIterator[Running]:
    """With the deadlines that it has for everybody: no pause of this machine is as long."""
    async with serving(tmp_path) as running:
        yield running


@pytest.mark.parametrize("name", ODD)
async def test_ht_s01_an_odd_request_ends_its_own_connection(
    server: Running, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line in the log at most, no traceback, and a request on another connection goes on meanwhile."""
    caplog.set_level(logging.INFO)
    sent, status = ODD[name]
    other = await server.connect()
    await other.send_all(POST[:-5])
    stream = await server.connect()
    with suppress(trio.BrokenResourceError):
        await stream.send_all(sent)
    with trio.fail_after(GUARD_S):
        answer = await until_end(stream)
    assert answer.startswith(b"HTTP/1.1 " + status), answer
    await stream.aclose()
    lines = [record for record in caplog.records if record.name == "edgequeues.http"]
    assert len(lines) <= 1
    assert all(record.levelno < logging.ERROR and record.exc_info is None for record in lines)
    await other.send_all(POST[-5:])
    assert (await other.receive_some()).startswith(b"HTTP/1.1 200")
    await other.aclose()


@pytest.mark.parametrize("sent", [POST[:9], POST[:60], POST[:-3]], ids=["line", "head", "body"])
@pytest.mark.parametrize("how", ["close", "reset", "half"])
async def test_ht_s01_a_client_that_leaves_in_the_middle_costs_nothing(
    server: Running, sent: bytes, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await server.connect()
    await stream.send_all(sent)
    if how == "half":
        await stream.send_eof()
        assert b" 400 " in await until_end(stream)
    elif how == "reset":
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await stream.aclose()
    assert (await server.raw(LAST)).startswith(b"HTTP/1.1 200")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_connection_that_is_reset_before_it_is_looked_at_costs_nothing(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        client = socket.create_connection(("127.0.0.1", server.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    assert (await server.raw(LAST)).startswith(b"HTTP/1.1 200")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("sent", [b"nonsense\r\n\r\n", head("GET", "/", "X: " + "x" * 100_000)])
async def test_what_is_no_request_is_answered_with_a_problem(server: Running, sent: bytes) -> None:
    answer = await server.raw(sent)
    top, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\ncontent-type: application/problem+json" in top
    assert b"\r\ncontent-length: %d" % len(body) in top
    assert b"\r\nconnection: close" in top
    problem = json.loads(body)
    assert problem["code"] == ("headers_too_large" if b" 431 " in top else "invalid_request")


async def test_the_log_does_not_repeat_what_was_sent(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await server.raw(head("GET", "/healthz", "Authorization: secret\0"))
    assert "secret" not in caplog.text


async def test_a_head_is_taken_up_to_its_limit_whole_or_in_pieces(patient: Running) -> None:
    """h11 itself looks at the size of incomplete heads only."""
    server = patient

    def of_size(size: int) -> bytes:
        return head("GET", "/healthz?" + "x" * (size - 200), "Y: " + "y" * 80, "Connection: close")

    for size, status in ((HEAD_BYTES_MAX, b"200"), (HEAD_BYTES_MAX + 1_000, b"431")):
        answer = await server.raw(of_size(size))
        assert answer.split(b" ")[1] == status
        stream = await server.connect()
        for start in range(0, size, 10_000):
            await stream.send_all(of_size(size)[start : start + 10_000])
            await trio.sleep(0.01)
        assert (await stream.receive_some()).split(b" ")[1] == status
        await stream.aclose()


async def test_a_body_does_not_count_as_headers(patient: Running) -> None:
    stream = await patient.connect()
    body = b'{"entries":[{"data":"%s"}]}' % (b"x" * 2 * HEAD_BYTES_MAX)
    one = head("POST", Q, "Content-Type: application/json", f"Content-Length: {len(body)}") + body
    for _ in range(3):
        await stream.send_all(one)
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
    await stream.aclose()


async def test_requests_sent_at_once_are_answered_in_order(patient: Running) -> None:
    answers = await patient.raw(POST * 50 + head("GET", Q, "Connection: close"))
    assert answers.count(b"HTTP/1.1 200") == 51
    assert answers.count(b'"data":1') == 50


# -- a minute of noise -----------------------------------------------------------------------------------

SEED = 20_260_101
FLOOD_S = 60.0
FLOODERS = 40

VALID = [
    POST,
    head("GET", f"{Q}?limit=3"),
    head("GET", f"{Q}/subscribe", "Connection: close"),
    head("DELETE", f"{Q}:01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    head("POST", Q, *CHUNKED) + b"18\r\n" + BODY + b"\r\n0\r\n\r\n",
    head("POST", Q, "Content-Type: application/x-ndjson", "Transfer-Encoding: chunked")
    + b'b\r\n{"data":1}\n\r\n',
    head("GET", "/ws/a/b", *UPGRADE) + frame(1, b"{}"),
    head("OPTIONS", Q, "Origin: http://localhost", "Access-Control-Request-Method: POST"),
    head("POST", Q, "Expect: 100-continue", f"Content-Length: {len(BODY)}"),
    TLS_HELLO,
]
SPICE = [
    b"\r\n",
    b"\0",
    b"\xff",
    b":",
    b"\r\n\r\n",
    b"Content-Length: 7\r\n",
    b"Transfer-Encoding: chunked\r\n",
]


def noise(chance: random.Random) -> Iterator[bytes]:
    """Requests with something wrong with them, for ever."""
    while True:
        one = bytearray(b"".join(chance.choices(VALID, k=chance.randint(1, 3))))
        for _ in range(chance.randint(0, 6)):
            at = chance.randrange(len(one))
            change = chance.randrange(4)
            if change == 0:
                one[at] = chance.randrange(256)
            elif change == 1:
                del one[at : at + chance.randint(1, 30)]
            elif change == 2:
                one[at:at] = chance.choice(SPICE)
            else:
                one[at:at] = one[: chance.randint(1, 200)]
            one = one or bytearray(b"\n")
        if chance.random() < 0.1:
            one = bytearray(chance.randbytes(chance.randint(1, 100_000)))
        yield bytes(one[: chance.randint(1, len(one))] if chance.random() < 0.3 else one)


async def pester(port: int, chance: random.Random) -> None:
    for sent in noise(chance):
        with suppress(OSError, trio.BrokenResourceError):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            with closing(stream.socket), trio.move_on_after(0.2):
                await stream.send_all(sent)
                if chance.random() < 0.5:
                    await stream.send_eof()
                while chance.random() < 0.9 and await stream.receive_some():
                    pass


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
async def test_ht_s01_a_minute_of_noise_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    """Seeded: mutations, truncations, random bytes, closed and half-closed, from many connections."""
    async with process.serving(tmp_path / "data") as server:
        port = int(server.port)
        with trio.move_on_after(FLOOD_S / 4):
            async with trio.open_nursery() as nursery:
                for number in range(FLOODERS):
                    nursery.start_soon(pester, port, random.Random(SEED + number))
        before = resident_bytes(server.process.pid)
        with trio.move_on_after(FLOOD_S):
            async with trio.open_nursery() as nursery:
                for number in range(FLOODERS):
                    nursery.start_soon(pester, port, random.Random(SEED - 1 - number))
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(POST)
        with trio.fail_after(GUARD_S):
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
        await stream.aclose()
        assert server.process.returncode is None
        assert resident_bytes(server.process.pid) < before + 64 * 1024 * 1024
        assert await server.stop() == 0
        said = server.log.read_text()
        assert "Traceback" not in said
        assert " ERROR " not in said


@pytest.mark.slow
async def test_ht_s01_five_hundred_connections_at_once_are_all_answered_or_refused_cleanly(
    tmp_path: Path,
) -> None:
    statuses: list[bytes] = []

    async def ask(port: int) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(head("GET", "/healthz", "Connection: close"))
        statuses.append((await until_end(stream)).split(b" ")[1])
        await stream.aclose()

    async with process.serving(tmp_path / "data", "--connections-max", "300") as server:
        with trio.fail_after(5 * GUARD_S):
            async with trio.open_nursery() as nursery:
                for _ in range(500):
                    nursery.start_soon(ask, int(server.port))
        assert len(statuses) == 500
        assert set(statuses) <= {b"200", b"503"}
        assert b"200" in statuses


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.mark.slow
async def test_more_connections_than_files_wait_and_end_nothing(tmp_path: Path) -> None:
    async with process.serving(tmp_path / "data") as server:
        stream = await trio.open_tcp_stream("127.0.0.1", int(server.port))
        await stream.send_all(POST)
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
        in_use = open_files(server.process.pid)
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (in_use + 20, hard))
        others = [await trio.open_tcp_stream("127.0.0.1", int(server.port)) for _ in range(60)]
        await trio.sleep(1)
        await stream.send_all(POST)
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
        for other in others:
            await other.aclose()
        late = await trio.open_tcp_stream("127.0.0.1", int(server.port))
        await late.send_all(LAST)
        with trio.fail_after(GUARD_S):
            assert (await until_end(late)).startswith(b"HTTP/1.1 200")
        await late.aclose()
        await stream.aclose()
        assert await server.stop() == 0
        said = server.log.read_text()
        assert said.count("connections have to wait") == 1
        assert "Traceback" not in said
