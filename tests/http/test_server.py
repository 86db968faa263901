"""What every request goes through: admission, dispatch, errors, compression, streaming. No queues involved."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import AsyncGenerator, MutableMapping
from typing import Any

import pytest
import trio

from edgequeues.control import Control
from edgequeues.core.errors import TooLarge
from edgequeues.http import problems
from edgequeues.http.auth import Auth
from edgequeues.http.hosts import Hosts, Origins
from edgequeues.http.routes import Dialect, Receive, Request, Response, Route, Send
from edgequeues.http.server import Server
from edgequeues.http.waits import Waits
from shards.clock import SystemClock
from shards.errors import Overloaded

from .asgi import HOST, JSON, Client, Pairs
from .fronted import FrontName, behind, only

LONG = b"0123456789" * 1_000
GZIP = (b"accept-encoding", b"gzip, deflate")

closed: list[str] = []


async def rest(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b"the rest"})


async def short(_: Request) -> Response:
    return Response(b"{}")


async def long(_: Request) -> Response:
    return Response(LONG, headers=[(b"etag", b"x")])


async def unchanged(_: Request) -> Response:
    return Response(status=304, headers=[(b"etag", b"x")])


async def echo(request: Request) -> Response:
    return Response(await request.body(10_000))


async def bug(request: Request) -> Response:
    await request.body(100)
    raise ZeroDivisionError("oops")


async def overloaded(_: Request) -> Response:
    raise Overloaded("shard demo")


async def hundred_pages(name: str) -> AsyncGenerator[bytes, None]:
    try:
        for number in range(100):
            yield b"%d\n" % number + LONG
            await trio.lowlevel.checkpoint()
    finally:
        closed.append(name)


async def pages(_: Request) -> Response:
    return Response(hundred_pages("pages"))


async def broken(error: Exception) -> AsyncGenerator[bytes, None]:
    yield b"half"
    raise error


async def cut_by_bug(_: Request) -> Response:
    return Response(broken(ZeroDivisionError("oops")))


async def cut_by_shard(_: Request) -> Response:
    return Response(broken(Overloaded()))


async def endless(_: Request) -> Response:
    async def forever() -> AsyncGenerator[bytes, None]:
        try:
            yield b"begun"
            await trio.sleep_forever()
        finally:
            closed.append("endless")

    return Response(forever())


async def too_large(_: Request) -> Response:
    raise TooLarge("so many bytes")


HANDLERS = [short, long, unchanged, bug, overloaded, pages, cut_by_bug, cut_by_shard, endless, too_large]


@pytest.fixture
def app(control: Control, front: FrontName) -> Client:
    closed.clear()
    gets = [Route("GET", f"/{handler.__name__}", handler, "read") for handler in HANDLERS]
    posts = [Route("POST", f"/{handler.__name__}", handler, "append") for handler in (echo, bug, too_large)]
    server = Server(
        [Dialect("test", ("/own/",), [*gets, *posts], problems.refuse)],
        rest,
        Waits(),
        auth=Auth("off", "127.0.0.1", control, SystemClock()),
        hosts=Hosts("127.0.0.1", ["Queues.example:8700"]),
        origins=Origins(),
    )
    return Client(behind(front, server))


# -- admission -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [b"localhost", b"127.0.0.1:8700", b"[::1]:8700", b"queues.example:8700"])
async def test_a_request_for_this_machine_is_answered(app: Client, host: bytes) -> None:
    for _ in range(2):  # the second time it is remembered
        assert (await app.ask("GET", "/short", headers=[(b"host", host)], host=False)).status == 200


@pytest.mark.parametrize("host", [b"example.org", b"queues.example", b"10.0.0.1:8700"])
async def test_a_request_for_another_machine_is_421_before_routing(app: Client, host: bytes) -> None:
    reply = await app.ask("GET", "/no/such/path", headers=[(b"host", host)], host=False)
    assert (reply.status, reply.code) == (421, "misdirected")


@pytest.mark.parametrize("hosts", [[], [HOST, HOST]])
async def test_a_request_with_no_or_two_hosts_is_400(app: Client, hosts: Pairs) -> None:
    reply = await app.ask("GET", "/short", headers=hosts, host=False)
    assert (reply.status, reply.code) == (400, "invalid_request")


async def test_a_web_page_of_another_origin_is_403_before_routing(app: Client) -> None:
    for origin in (b"https://example.org", b"null"):
        reply = await app.get("/no/such/path", (b"origin", origin))
        assert (reply.status, reply.code) == (403, "forbidden_origin")
        assert "access-control-allow-origin" not in reply.headers
    assert (await app.get("/short", (b"origin", b"http://localhost:3000"))).status == 200


async def test_a_request_with_two_lengths_is_400(app: Client) -> None:
    reply = await app.ask("POST", "/echo", b"x", headers=[(b"transfer-encoding", b"chunked")])
    assert (reply.status, reply.code) == (400, "invalid_request")


@only("app", why="it drives the messages of a WebSocket by hand")
async def test_a_websocket_of_another_origin_is_refused(app: Client) -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "websocket", "headers": [HOST, (b"origin", b"https://example.org")]}
    await app.app(scope, trio.sleep_forever, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


# -- dispatch --------------------------------------------------------------------------------------------


async def test_what_no_table_has_goes_to_the_other_app(app: Client) -> None:
    assert (await app.get("/no/such/path")).status == 418


@pytest.mark.parametrize("target", ["", "?x=1", "*", "short", "ftp://localhost/short"])
async def test_a_target_that_is_no_path_is_400(app: Client, target: str) -> None:
    reply = await app.get(target)
    assert (reply.status, reply.code) == (400, "invalid_request")


async def test_a_target_in_absolute_form_is_its_path(app: Client) -> None:
    assert (await app.get("http://localhost:8700/short")).status == 200
    assert (await app.get("http://localhost:8700")).status == 418


async def test_a_wrong_method_is_405_with_those_there_are(app: Client) -> None:
    reply = await app.delete("/bug")
    assert (reply.status, reply.code, reply.headers["allow"]) == (
        405,
        "method_not_allowed",
        "GET, HEAD, POST",
    )
    assert (await app.get("/echo")).headers["allow"] == "POST"


async def test_head_is_get_without_a_body(app: Client) -> None:
    reply = await app.ask("HEAD", "/long")
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["content-length"] == str(len(LONG))
    reply = await app.ask("HEAD", "/overloaded")
    assert (reply.status, reply.body, reply.headers["retry-after"]) == (503, b"", "1")


async def test_head_of_a_stream_does_not_begin_it(app: Client) -> None:
    reply = await app.ask("HEAD", "/pages")
    assert (reply.status, reply.body, closed) == (200, b"", [])


async def test_304_has_neither_body_nor_length(app: Client) -> None:
    assert (await app.get("/unchanged")).headers == {"etag": "x"}


async def test_a_query_that_is_not_utf8_is_400(app: Client) -> None:
    assert (await app.get("/short?%FF")).code == "invalid_request"


# -- errors ----------------------------------------------------------------------------------------------


async def test_a_bug_is_500_and_logged_once_without_the_body(
    app: Client, caplog: pytest.LogCaptureFixture
) -> None:
    reply = await app.ask("POST", "/bug", b"private")
    assert (reply.status, reply.code) == (500, "internal")
    assert b"oops" not in reply.body
    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "POST /bug failed")
    assert "ZeroDivisionError: oops" in caplog.text
    assert "private" not in caplog.text


async def test_a_refusal_comes_at_once_and_the_rest_of_the_body_is_taken_in(app: Client) -> None:
    """Else the connection would be reset, and the client might never see why."""
    async with app.open("POST", "/too_large", headers=[JSON, (b"content-length", b"9")]) as exchange:
        exchange.send(b"1234")
        assert await exchange.begun() == 413
        assert json.loads(await exchange.piece() or b"")["code"] == "too_large"
        await trio.sleep(1)
        assert not exchange.ended.is_set()
        exchange.end(b"56789")
        await exchange.ended.wait()
        assert await exchange.rest() == b""
        assert exchange.whole


async def test_a_refusal_does_not_wait_for_a_slow_body_for_long(app: Client) -> None:
    async with app.open("POST", "/too_large", headers=[JSON, (b"content-length", b"9")]) as exchange:
        start = trio.current_time()
        await exchange.ended.wait()
        assert trio.current_time() - start == pytest.approx(5)


async def test_a_client_may_hang_up_on_a_refusal(app: Client) -> None:
    async with app.open("POST", "/too_large", headers=[JSON, (b"content-length", b"9")]) as exchange:
        exchange.hang_up()
        await exchange.ended.wait()


async def test_nothing_is_answered_to_a_client_that_hangs_up_while_sending(app: Client) -> None:
    async with app.open("POST", "/echo") as exchange:
        exchange.send(b"half")
        exchange.hang_up()
        await exchange.ended.wait()
        with pytest.raises(trio.EndOfChannel):
            await exchange.begun()


@pytest.mark.parametrize("path", ["/cut_by_bug", "/cut_by_shard"])
async def test_an_error_within_a_stream_cuts_it_short(
    app: Client, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with app.open("GET", path) as exchange:
        assert await exchange.rest() == b"half"
        await exchange.ended.wait()
        assert not exchange.whole
    assert len(caplog.records) == 1


# -- compression -----------------------------------------------------------------------------------------


async def test_a_long_answer_is_compressed_for_those_who_ask(app: Client) -> None:
    reply = await app.get("/long", GZIP)
    assert reply.headers["content-encoding"] == "gzip"
    assert reply.headers["vary"] == "accept-encoding"
    assert int(reply.headers["content-length"]) == len(reply.body) < len(LONG) / 10
    assert gzip.decompress(reply.body) == LONG


@pytest.mark.parametrize("accepted", [b"", b"br", b"gzip;q=0", b"gzip; q=0.000, *", b"identity", b"*;q=0"])
async def test_others_get_it_as_it_is(app: Client, accepted: bytes) -> None:
    reply = await app.get("/long", (b"accept-encoding", accepted))
    assert ("content-encoding" in reply.headers, reply.body) == (False, LONG)


@pytest.mark.parametrize("accepted", [b"GZIP", b"*", b"br, gzip;q=0.5", b"gzip;q=1.0"])
async def test_other_ways_to_ask_count(app: Client, accepted: bytes) -> None:
    assert (await app.get("/long", (b"accept-encoding", accepted))).headers["content-encoding"] == "gzip"


async def test_a_short_answer_is_never_compressed(app: Client) -> None:
    assert (await app.get("/short", GZIP)).body == b"{}"


async def test_a_compressed_stream_can_be_read_page_by_page(app: Client) -> None:
    async with app.open("GET", "/pages", headers=[GZIP], ahead=0) as exchange:
        unzip = zlib.decompressobj(31)
        assert unzip.decompress(await exchange.piece() or b"") == b"0\n" + LONG
        assert unzip.decompress(await exchange.piece() or b"") == b"1\n" + LONG
        rest_of_it = unzip.decompress(await exchange.rest())
        assert rest_of_it.endswith(b"99\n" + LONG)
        assert unzip.eof


# -- hanging up ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [[], [GZIP]])
async def test_a_stream_nobody_reads_any_more_is_closed(app: Client, headers: Pairs) -> None:
    async with app.open("GET", "/pages", headers=headers, ahead=0) as exchange:
        assert await exchange.piece()
        exchange.hang_up()
        await exchange.ended.wait()
        assert closed == ["pages"]
        assert not exchange.whole


async def test_a_stream_that_waits_ends_when_the_client_hangs_up(app: Client) -> None:
    async with app.open("GET", "/endless") as exchange:
        assert await exchange.piece() == b"begun"
        exchange.hang_up()
        await exchange.ended.wait()
        assert closed == ["endless"]
