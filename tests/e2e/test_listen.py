"""The app behind real sockets, in this process: connections, framing, streaming, stopping."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio

from edgequeues.app import open_app
from edgequeues.http.listen import serve

from .local import GUARD_S, Running, head, serving, until_end

BOTH_FRONTS = True

Q = "/v1/dxn:queue:demo:log"
BOTH_LENGTHS = ("Content-Length: 3", "Transfer-Encoding: chunked")
ENTRY = b'{"entries":[{"data":1}]}'


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serving(tmp_path) as running:
        yield running


async def test_a_connection_serves_many_requests(server: Running) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        for n in range(1, 6):
            reply = await client.post(Q, content=ENTRY, headers={"content-type": "application/json"})
            assert reply.json()["results"][0]["position"] == n
            assert "server" not in reply.headers
    stream = await server.connect()
    for _ in range(3):
        await stream.send_all(head("GET", "/healthz"))
        assert b'{"status":"ok"}' in await stream.receive_some()  # head and body are one write
    await stream.aclose()


async def test_a_taken_port_is_an_error(server: Running, tmp_path: Path) -> None:
    async with open_app(tmp_path / "other") as app:
        with pytest.raises(OSError, match="in use"):
            await serve(app, "localhost", int(server.url.rsplit(":", 1)[1]))


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"400"),
        (head("GET", "/", "Host: localhost", "Connection: close"), b"400"),
        (b"GET / HTTP/1.0\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n", b"421"),
        (head("POST", Q, *BOTH_LENGTHS, "Connection: close") + b"0\r\n\r\n", b"400"),
        (head("GET", "/", "X: " + "x" * 200_000), b"431"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    ],
)
async def test_what_is_no_proper_request_is_refused(
    server: Running, request_bytes: bytes, status: bytes
) -> None:
    answer = await server.raw(request_bytes)
    assert answer.split(b" ")[1] == status, answer


async def test_an_offer_of_http2_is_not_taken_up(server: Running) -> None:
    offer = ("Connection: close, Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    answer = await server.raw(head("GET", "/healthz", *offer))
    assert answer.startswith(b"HTTP/1.1 200")


async def test_a_body_that_is_too_large_is_answered_not_reset(server: Running) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        reply = await client.post(Q, content=b" " * 20_000_000, headers={"content-type": "application/json"})
        assert (reply.status_code, reply.json()["code"]) == (413, "too_large")


async def test_a_client_that_sends_all_lines_before_it_reads_gets_its_answer(server: Running) -> None:
    """httpx does; were each line answered and waited for, both would wait for ever."""

    async def lines() -> AsyncIterator[bytes]:
        for start in range(0, 20_000, 100):
            yield b"".join(b'{"data":%d}\n' % n for n in range(start, start + 100))

    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        reply = await client.post(Q, content=lines(), headers={"content-type": "application/x-ndjson"})
        last = json.loads(reply.text.splitlines()[-1])
        assert (last["through"], last["appended"]) == (20_000, 20_000)
        answer = (await client.get(Q)).json()
        assert [one["data"] for one in answer["entries"]] == list(range(20_000))


async def test_events_arrive_one_by_one(server: Running) -> None:
    stream = await server.connect()
    await stream.send_all(head("GET", f"{Q}/subscribe"))
    assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
    async with httpx.AsyncClient(base_url=server.url) as client:
        for n in range(3):
            await client.post(Q, json={"entries": [{"data": n}]})
            with trio.fail_after(GUARD_S):
                assert b'"data":%d}\n\n' % n in await stream.receive_some()
    await stream.aclose()


async def test_more_connections_than_there_may_be_are_turned_away(tmp_path: Path) -> None:
    async with serving(tmp_path, connections_max=1) as server:
        first = await server.connect()
        await first.send_all(head("GET", "/healthz"))
        assert await first.receive_some()
        answer = await server.raw(head("GET", "/healthz"))
        assert answer.startswith(b"HTTP/1.1 503")
        assert b'"overloaded"' in answer
        await first.aclose()
        with trio.fail_after(GUARD_S):  # until it has noticed
            while not (await server.raw(head("GET", "/healthz", "Connection: close"))).startswith(
                b"HTTP/1.1 200"
            ):
                pass


# -- stopping --------------------------------------------------------------------------------------------


async def fill(client: httpx.AsyncClient) -> None:
    """Enough that no socket buffer holds it."""
    for _ in range(20):
        await client.post(Q, json={"entries": [{"data": "x" * 1_000_000}]})


async def test_stopping_ends_waits_idle_connections_and_subscriptions_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, grace_s=30) as server, httpx.AsyncClient(base_url=server.url) as client:
        results: dict[str, str] = {}
        silent, used = await server.connect(), await server.connect()
        await used.send_all(head("GET", "/healthz"))
        assert await used.receive_some()

        async def ask(path: str) -> None:
            results[path] = (await client.get(path, timeout=60)).text

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, f"{Q}?wait=50")
            nursery.start_soon(ask, f"{Q}/subscribe")
            await trio.sleep(0.3)
            with trio.fail_after(GUARD_S):
                server.shutdown.set()
                assert (await until_end(silent), await until_end(used)) == (b"", b"")
                await server.ended.wait()
        await silent.aclose()
        await used.aclose()
        assert json.loads(results[f"{Q}?wait=50"])["entries"] == []
        assert results[f"{Q}/subscribe"] == ""


async def test_stopping_lets_an_answer_under_way_finish(tmp_path: Path) -> None:
    async with serving(tmp_path, grace_s=30) as server, httpx.AsyncClient(base_url=server.url) as client:
        await fill(client)
        async with client.stream("GET", Q, headers={"accept-encoding": "identity"}) as answer:
            server.shutdown.set()
            await trio.sleep(0.2)
            assert not server.ended.is_set()
            assert len(json.loads(await answer.aread())["entries"]) == 20
        with trio.fail_after(GUARD_S):
            await server.ended.wait()


async def test_a_client_that_never_reads_cannot_keep_the_server_from_stopping(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, grace_s=0.3) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            await fill(client)
        stream = await server.connect()
        await stream.send_all(head("GET", Q))
        await trio.sleep(0.3)
        with trio.fail_after(GUARD_S):
            server.shutdown.set()
            await server.ended.wait()
        await stream.aclose()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_client_that_resets_in_the_middle_harms_nobody(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        await fill(client)
        for path in (Q, f"{Q}/subscribe", f"{Q}?wait=30&type=none"):
            stream = await server.connect()
            await stream.send_all(head("GET", path))
            await trio.sleep(0.1)
            stream.socket.close()
        stream = await server.connect()
        await stream.send_all(head("POST", Q, "Content-Length: 100", "Content-Type: application/json") + b"{")
        stream.socket.close()
        await trio.sleep(0.2)
        assert (await client.get("/healthz")).status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_cancelling_the_server_ends_it_at_once(tmp_path: Path) -> None:
    async with open_app(tmp_path) as app:
        with trio.fail_after(GUARD_S), trio.move_on_after(0.5):
            await serve(app, "127.0.0.1", 0, shutdown=trio.Event())
