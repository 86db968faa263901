"""Tables find routes; requests give their bodies within limits. Both without a server."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import trio

from edgequeues.core.errors import InvalidRequest, TooLarge
from edgequeues.http.problems import RequestTimeout
from edgequeues.http.routes import ClientGone, Request, Response, Route
from edgequeues.http.table import REMEMBERED_BYTES_MAX, Table


def route(method: str, template: str, name: str) -> Route:
    async def handler(_: Request) -> Response:
        return Response()

    handler.__name__ = name
    return Route(method, template, handler, "read")


TABLE = Table(
    [
        route("GET", "/v1/{dxn}", "read"),
        route("POST", "/v1/{dxn}", "append"),
        route("GET", "/v1/{dxn}/config", "config"),
        route("GET", "/v1/spaces", "spaces"),
        route("GET", "/v1/spaces/{space}/queues", "queues"),
        route("GET", "/v1/{other}/any", "any"),
        route("GET", "/files/{space}/{key...}", "file"),
        route("POST", "/files/{space}", "space"),
    ]
)


def found(path: bytes) -> tuple[list[str], dict[str, str]] | None:
    match = TABLE.find(path)
    return None if match is None else ([route.name for route in match[0].values()], dict(match[1]))


@pytest.mark.parametrize(
    ("path", "key"),
    [
        (b"/files/a/b", "b"),
        (b"/files/a/b/c%2Fd/e", "b/c/d/e"),
        (b"/files/a/%252e/..", "%2e/.."),
        (b"/files/a/b//", "b//"),
        (b"/files/a/", ""),
    ],
)
def test_a_tail_takes_all_that_is_left(path: bytes, key: str) -> None:
    assert found(path) == (["file"], {"space": "a", "key": key})
    assert found(b"/files/a") == (["space"], {"space": "a"})
    assert found(b"/files") is None


@pytest.mark.parametrize(
    ("path", "names", "params"),
    [
        (b"/v1/dxn:queue:s:q", ["read", "append"], {"dxn": "dxn:queue:s:q"}),
        (b"/v1/dxn%3Aqueue%3as:q", ["read", "append"], {"dxn": "dxn:queue:s:q"}),
        (b"/v1/echo:%2F%2Fs%2Fq", ["read", "append"], {"dxn": "echo://s/q"}),
        (b"/v1/dxn:queue:s:q/config", ["config"], {"dxn": "dxn:queue:s:q"}),
        (b"/v1/dxn:queue:s:q/%63onfig", ["config"], {"dxn": "dxn:queue:s:q"}),
        (b"/v1/spaces", ["spaces"], {}),
        (b"/v1/spaces/s/queues", ["queues"], {"space": "s"}),
        (b"/v1/x%20y/any", ["any"], {"other": "x y"}),
    ],
)
def test_a_path_finds_its_routes_and_parameters(
    path: bytes, names: list[str], params: dict[str, str]
) -> None:
    assert found(path) == (names, params)


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/",
        b"/v1",
        b"/v1/",
        b"/v1/nocolon",
        b"/v1/dxn:q/",
        b"/v1/dxn:q/nope",
        b"/v1/spaces/",
        b"/v1/spaces//queues",
    ],
)
def test_other_paths_find_nothing(path: bytes) -> None:
    assert found(path) is None


@pytest.mark.parametrize("path", [b"/v1/dxn:%FF", b"/v1/dxn:\xff"])
def test_a_path_that_is_not_utf8_is_refused(path: bytes) -> None:
    with pytest.raises(InvalidRequest):
        TABLE.find(path)


def test_what_is_found_is_remembered_for_short_paths_alone() -> None:
    """A client could fill the memory with long ones."""
    short, long = (b"/v1/spaces/" + b"x" * size + b"/queues" for size in (10, REMEMBERED_BYTES_MAX))
    for path in (short, long):
        assert found(path) == found(path) == (["queues"], {"space": path.split(b"/")[3].decode()})
    assert TABLE.find(short) is TABLE.find(short)
    assert TABLE.find(long) is not TABLE.find(long)


def request(*messages: dict[str, Any], headers: dict[bytes, bytes] | None = None) -> Request:
    """A request whose body arrives in these messages; then nothing more comes."""
    left: Iterator[dict[str, Any]] = iter(messages)

    async def receive() -> MutableMapping[str, Any]:
        for message in left:
            return message
        await trio.sleep_forever()
        raise AssertionError

    return Request("POST", {}, {}, headers or {}, receive)


def part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


GONE = {"type": "http.disconnect"}


async def test_a_body_is_joined_from_its_pieces() -> None:
    assert (
        await request(part(b"a", more=True), part(b"", more=True), part(b"b", more=False)).body(10) == b"ab"
    )


async def test_a_body_of_exactly_the_limit_is_taken() -> None:
    assert await request(part(b"abc", more=True), part(b"", more=False)).body(3) == b"abc"


async def test_a_body_stated_to_be_too_large_is_refused_unread() -> None:
    with pytest.raises(TooLarge, match="has 4 bytes, at most 3"):
        await request(headers={b"content-length": b"4"}).body(3)


async def test_a_body_that_turns_out_too_large_is_refused_at_once() -> None:
    with pytest.raises(TooLarge, match="more than 3"):
        await request(part(b"ab", more=True), part(b"cd", more=True)).body(3)


async def test_a_body_that_stalls_is_refused_after_a_minute() -> None:
    start = trio.current_time()
    one = request(part(b"ab", more=True))
    assert await one.piece() == b"ab"
    with pytest.raises(RequestTimeout):
        await one.piece()
    assert trio.current_time() - start == pytest.approx(60)


async def test_a_client_that_hangs_up_within_its_body_ends_the_request() -> None:
    with pytest.raises(ClientGone):
        await request(part(b"ab", more=True), GONE).body(3)


async def test_pieces_end_with_an_empty_one_again_and_again() -> None:
    one = request(part(b"a", more=True), part(b"", more=False))
    assert [await one.piece() for _ in range(4)] == [b"a", b"", b"", b""]


async def test_work_ends_when_the_client_hangs_up() -> None:
    with pytest.raises(ClientGone):
        await request(part(b"left over", more=False), GONE).while_connected(trio.sleep_forever)


async def test_work_beside_a_patient_client_gives_its_result_or_its_own_error() -> None:
    async def result() -> int:
        await trio.sleep(3600)
        return 7

    async def error() -> int:
        await trio.sleep(1)
        raise TooLarge("as it was raised, in no group")

    assert await request().while_connected(result) == 7
    with pytest.raises(TooLarge, match="in no group"):
        await request().while_connected(error)
