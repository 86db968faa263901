"""Clients that take their time: to send, to read, to leave. And how the server stops with all of them there."""

from __future__ import annotations

import json
import select
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.http.wire import BACKLOG_BYTES_MAX

from . import process
from .local import GUARD_S, QUICK, Bare, Running, head, listening, serving, until_end

BOTH_FRONTS = True

Q = "/v1/dxn:queue:demo:log"
BODY = b'{"entries":[{"data":1}]}'
CONTENT = ("Content-Type: application/json", f"Content-Length: {len(BODY)}")
POST = head("POST", Q, *CONTENT) + BODY


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serving(tmp_path, deadlines=QUICK) as running:
        yield running


async def append(stream: trio.SocketStream, data: bytes = b"1") -> None:
    """Append one entry on an open connection."""
    body = b'{"entries":[{"data":%s}]}' % data
    await stream.send_all(head("POST", Q, CONTENT[0], f"Content-Length: {len(body)}") + body)
    assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")


async def fill(port: int, megabytes: int) -> None:
    """More than socket buffers hold."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    for _ in range(megabytes):
        await append(stream, b'"%s"' % (b"x" * 1_000_000))
    await stream.aclose()


async def drip(stream: trio.SocketStream, data: bytes, every_s: float) -> bytes:
    """Send byte after byte until the server has enough; return what it says."""
    answer = b""

    async def send() -> None:
        with suppress(trio.BrokenResourceError):
            for at in range(len(data)):
                await stream.send_all(data[at : at + 1])
                await trio.sleep(every_s)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        with suppress(trio.BrokenResourceError):
            answer = await until_end(stream)
        nursery.cancel_scope.cancel()
    await stream.aclose()
    return answer


def ask_for_all(port: int) -> socket.socket:
    """A client with little room that asks for a lot and does not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(head("GET", Q, "Accept-Encoding: identity"))
    return client


def read_all(client: socket.socket) -> None:
    while client.recv(1_000_000):
        pass


@pytest.mark.slow
async def test_answers_nobody_takes_have_a_limit_together_and_the_slowest_go_first() -> None:
    async with listening(Bare(send_megabytes)) as server:
        clients = [
            await trio.to_thread.run_sync(ask_for_all, server.port) for _ in range(40)
        ]  # of 16 MB each
        with trio.fail_after(GUARD_S):
            while sum(map(is_cut, clients)) < 20:  # noqa: ASYNC110
                await trio.sleep(0.05)
            await trio.sleep(0.5)  # in which it might cut too many
        cut = [is_cut(client) for client in clients]
        assert cut == sorted(cut, reverse=True)
        assert 20 <= cut.count(True) < 30
        for client in clients:
            client.close()


async def test_headers_that_drip_are_answered_408_and_closed(server: Running) -> None:
    with trio.fail_after(GUARD_S):
        answer = await drip(await server.connect(), POST, 0.05)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"request_timeout"' in answer


async def test_the_deadline_of_headers_counts_on_a_used_connection_too(tmp_path: Path) -> None:
    async with serving(tmp_path, deadlines=QUICK._replace(idle_s=60)) as server:
        stream = await server.connect()
        await append(stream)
        with trio.fail_after(GUARD_S):
            assert (await drip(stream, POST, 0.05)).startswith(b"HTTP/1.1 408")


async def test_a_client_that_never_speaks_is_let_go_without_a_word(server: Running) -> None:
    stream = await server.connect()
    with trio.fail_after(GUARD_S):
        assert await until_end(stream) == b""
    await stream.aclose()


@pytest.mark.slow
async def test_an_idle_connection_may_wait_longer_than_headers_may(tmp_path: Path) -> None:
    async with serving(tmp_path, deadlines=QUICK._replace(idle_s=5)) as server:
        stream = await server.connect()
        await append(stream)
        await trio.sleep(QUICK.head_s + 0.2)
        await append(stream)
        with trio.fail_after(GUARD_S):
            assert await until_end(stream) == b""
        await stream.aclose()


@pytest.mark.slow
async def test_a_request_under_way_has_no_deadline_of_the_connection(server: Running) -> None:
    stream = await server.connect()
    await stream.send_all(head("GET", f"{Q}?wait=2"))
    assert b'"entries":[]' in await stream.receive_some()
    await stream.aclose()


async def send_megabytes(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * 16_000_000})


@pytest.mark.slow
async def test_a_client_that_does_not_read_is_dropped_one_that_reads_slowly_is_not() -> None:
    """Though it takes several times as long as a part of the answer may take."""
    async with listening(Bare(send_megabytes), deadlines=QUICK._replace(write_s=2)) as server:
        stuck, slow = ask_for_all(server.port), await server.connect()
        await slow.send_all(head("GET", Q, "Connection: close"))
        size = 0
        with trio.fail_after(GUARD_S):
            while piece := await slow.receive_some(400_000):
                size += len(piece)
                await trio.sleep(0.2)
        assert size > 16_000_000
        await slow.aclose()
        with pytest.raises(ConnectionResetError):
            read_all(stuck)
        stuck.close()


# -- HT-S03 ----------------------------------------------------------------------------------------------

DRIP_S = 5.0
EACH = 500


@pytest.mark.slow
async def test_ht_s03_slow_senders_and_readers_are_dropped_while_others_are_served(tmp_path: Path) -> None:
    """500 drip headers, 500 drip a body, 500 read a byte every 5 s; 50 appends a second go on. The real deadlines."""
    answers: dict[str, list[bytes]] = {"head": [], "body": []}
    dropped = served = 0

    async def send_slowly(kind: str, at_once: bytes, dripped: bytes) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(at_once)
        answers[kind].append(await drip(stream, dripped, DRIP_S))

    async def read_slowly() -> None:
        nonlocal dropped
        with await trio.to_thread.run_sync(ask_for_all, port) as client:
            while not is_cut(client):
                await trio.to_thread.run_sync(client.recv, 1)
                await trio.sleep(DRIP_S)
        dropped += 1

    async def append_steadily() -> None:
        nonlocal served
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            while True:
                with trio.fail_after(GUARD_S):
                    await append(stream)
                served += 1
                await trio.sleep(0.02)

    async with process.serving(tmp_path / "data") as server:
        port = int(server.port)
        await fill(port, 3)
        before = resident_bytes(server.process.pid)
        most = 0
        async with trio.open_nursery() as forever:
            forever.start_soon(append_steadily)
            with trio.fail_after(10 * GUARD_S):
                async with trio.open_nursery() as nursery:
                    for _ in range(EACH):
                        nursery.start_soon(
                            send_slowly, "head", b"", head("GET", "/healthz", "X: " + "x" * 1000)
                        )
                        nursery.start_soon(send_slowly, "body", POST[:-20], b" " * 1000)
                        nursery.start_soon(read_slowly)
                    forever.start_soon(watch, server.process.pid, sizes := [before])
            most = max(sizes)
            forever.cancel_scope.cancel()
        assert {one[:12] for one in answers["head"]} == {b"HTTP/1.1 408"}
        assert {one[:12] for one in answers["body"]} == {b"HTTP/1.1 408"}
        assert (len(answers["head"]), len(answers["body"]), dropped) == (EACH, EACH, EACH)
        assert served > 500
        assert most - before < 3 * BACKLOG_BYTES_MAX
        assert await server.stop() == 0
        assert "Traceback" not in server.log.read_text()


def is_cut(client: socket.socket) -> bool:
    """Has the other side reset the connection? What came before is still there to read."""
    poll = select.poll()
    poll.register(client, 0)
    return bool(poll.poll(0))


async def watch(pid: int, sizes: list[int]) -> None:
    """Note how much memory a process has, again and again."""
    while True:
        sizes.append(resident_bytes(pid))
        await trio.sleep(0.5)


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


# -- HT-S02 ----------------------------------------------------------------------------------------------

PUSHES = 20
PULLS = 5


async def push_in_two_parts(
    port: int, stopping: trio.Event, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> bytes:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(head("POST", Q, *CONTENT, "Expect: 100-continue"))
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 100 ")
        await stream.send_all(BODY[:5])
        task_status.started()
        await stopping.wait()
        await trio.sleep(0.5)
        await stream.send_all(BODY[5:])
        return await until_end(stream)


@pytest.mark.slow
async def test_ht_s02_requests_under_way_are_answered_in_full_and_new_ones_refused(tmp_path: Path) -> None:
    """What was confirmed is there after a restart."""
    answers: list[bytes] = []
    stopping = trio.Event()

    async def push(*, task_status: trio.TaskStatus[None]) -> None:
        answers.append(await push_in_two_parts(port, stopping, task_status=task_status))

    async def pull(*, task_status: trio.TaskStatus[None]) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(head("GET", "/v1/dxn:queue:demo:quiet?wait=20"))
            task_status.started()
            answers.append(await until_end(stream))

    async with process.serving(tmp_path / "data", "--shutdown-grace-s", "60") as server:
        port = int(server.port)
        async with trio.open_nursery() as nursery:
            for one in [push] * PUSHES + [pull] * PULLS:
                await nursery.start(one)
            await trio.sleep(0.5)  # so that the server has read what was sent, however busy the machine
            server.process.send_signal(signal.SIGTERM)
            await refuses_connections(port)
            assert server.process.returncode is None
            stopping.set()
            with trio.fail_after(40):  # far from the grace: all that were under way are done
                assert await server.process.wait() == 0
    assert len(answers) == PUSHES + PULLS
    for answer in answers:
        top, _, body = answer.partition(b"\r\n\r\n")
        assert top.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in top
        json.loads(body)
    async with process.serving(tmp_path / "data") as server:
        stream = await trio.open_tcp_stream("127.0.0.1", int(server.port))
        await stream.send_all(head("GET", Q, "Connection: close"))
        body = (await until_end(stream)).partition(b"\r\n\r\n")[2]
        assert body.count(b'"data":1') == PUSHES
        await stream.aclose()


async def refuses_connections(port: int) -> None:
    with trio.fail_after(GUARD_S):
        while True:
            try:
                stream = await trio.open_tcp_stream("127.0.0.1", port)
            except OSError:
                return
            await stream.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2])
async def test_ht_s02_it_ends_within_its_grace_or_at_a_second_signal(tmp_path: Path, signals: int) -> None:
    """Though clients upload for ever, never read, or only sit there."""
    grace_s = 2 if signals == 1 else 60
    async with process.serving(tmp_path / "data", "--shutdown-grace-s", str(grace_s)) as server:
        port = int(server.port)
        await fill(port, 8)
        stuck = [ask_for_all(port) for _ in range(20)]
        idle = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(20)]
        for stream in idle[:10]:
            await append(stream)
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                await nursery.start(push_in_two_parts, port, trio.Event())
            await trio.sleep(0.5)
            server.process.send_signal(signal.SIGTERM)
            await refuses_connections(port)
            if signals == 2:
                server.process.send_signal(signal.SIGTERM)
            with trio.fail_after(GUARD_S):  # far from never, and from the second grace
                assert await server.process.wait() == 0
            nursery.cancel_scope.cancel()
        for one in stuck:
            one.close()
        for stream in idle:
            await stream.aclose()
        assert "Traceback" not in server.log.read_text()
