"""The load generator takes answers apart as they come, and counts no failure as an answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest

from bench import served
from bench.http_load import Connection, drive
from bench.http_requests import head

LENGTH = b"HTTP/1.1 201 \r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = b"HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n5\r\n0\r\n\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"
NOTHING = b"HTTP/1.1 304 \r\nconnection: close\r\n\r\n"


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    """A connection, and the server's end of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(listener.getsockname()[1])
        with listener.accept()[0] as peer:
            yield connection, peer
            connection.close()


@pytest.mark.parametrize("answer", [LENGTH, CHUNKS, NOTHING], ids=["length", "chunks", "nothing"])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_an_answer_is_over_with_its_last_byte(
    pair: tuple[Connection, socket.socket], answer: bytes, step: int
) -> None:
    connection, peer = pair
    for _ in range(2):
        connection.send(b"GET / HTTP/1.1\r\n\r\n")
        over = []
        for at in range(0, len(answer), step):
            peer.sendall(answer[at : at + step])
            over.append(connection.take())
        assert over == [False] * (len(over) - 1) + [True]
        assert connection.status == int(answer[9:12])
        assert connection.closing == (answer is NOTHING)


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_the_body_of_an_answer_is_kept_where_it_is_wanted(step: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(listener.getsockname()[1], keep=True)
        with listener.accept()[0] as peer:
            for _ in range(2):
                connection.send(b"GET / HTTP/1.1\r\n\r\n")
                for at in range(0, len(LENGTH), step):
                    peer.sendall(LENGTH[at : at + step])
                    connection.take()
                assert connection.body == b"hello"
        connection.close()


def test_an_answer_cut_short_is_an_error(pair: tuple[Connection, socket.socket]) -> None:
    connection, peer = pair
    connection.send(b"GET / HTTP/1.1\r\n\r\n")
    peer.sendall(LENGTH[:-1])
    peer.shutdown(socket.SHUT_WR)
    assert not connection.take()
    with pytest.raises(EOFError):
        connection.take()


@pytest.mark.slow
def test_every_request_is_answered_though_the_server_closes_connections(tmp_path: Path) -> None:
    with served.bare(tmp_path) as bare:
        stock_max = 1_000  # requests Hypercorn answers on one connection
        load = drive(bare.port, repeat(head("GET", "/"), 2 * stock_max + 10), connections=1, status=200)
        assert len(load.took) == 2 * stock_max + 10
        with pytest.raises(ValueError, match="answered 200 where 201 was expected"):
            drive(bare.port, repeat(head("GET", "/"), 5), connections=2, status=201)


@pytest.mark.slow
def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    with (
        pytest.raises(ValueError, match=r"did not start: .*cannot use the folder"),
        served.edgequeues(tmp_path),
    ):
        pass
