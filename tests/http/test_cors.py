"""Web pages: which may call, what they are told before, and what they may read."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from edgequeues.http.routes import Receive, Scope, Send

from .asgi import Client, Pairs, Reply
from .dxos_queue import Queue, body, note
from .dxos_queue import path as dxos_path
from .fronted import only
from .world import World

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"
PAGE = b"http://localhost:5173"
FOREIGN = b"https://example.org"
EXPOSED = {"etag", "location", "retry-after", "www-authenticate"}


def of(origin: bytes) -> tuple[bytes, bytes]:
    return b"origin", origin


def readable(reply: Reply, origin: bytes) -> bool:
    """May a page of this origin read the answer?"""
    if "access-control-allow-origin" not in reply.headers:
        assert not any(name.startswith("access-control") for name in reply.headers)
        return False
    assert reply.headers["access-control-allow-origin"] == origin.decode()
    assert set(reply.headers["access-control-expose-headers"].split(", ")) == EXPOSED
    assert reply.headers["vary"] == "origin"
    return True


async def preflight(client: Client, path: str, *more: tuple[bytes, bytes], origin: bytes = PAGE) -> Reply:
    """What a browser sends before a request that is not simple."""
    headers: Pairs = [of(origin), (b"access-control-request-method", b"POST"), *more]
    return await client.ask("OPTIONS", path, headers=headers)


# -- who may call ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", [PAGE, b"http://localhost", b"https://127.0.0.1:1", b"http://[::1]:3000"])
async def test_pages_of_this_machine_may_call(client: Client, origin: bytes) -> None:
    for _ in range(2):  # the second time it is remembered
        assert readable(await client.get("/healthz", of(origin)), origin)


async def test_a_program_sends_no_origin_and_gets_no_headers(client: Client) -> None:
    reply = await client.get("/healthz")
    assert reply.status == 200
    assert not readable(reply, b"")


@pytest.mark.parametrize(
    "origin", [FOREIGN, b"null", b"http://localhost.example.org", b"http://localhost:1/"]
)
async def test_other_pages_are_refused_before_anything_is_done(client: Client, origin: bytes) -> None:
    simple = (b"content-type", b"text/plain")
    queue = Queue(client)
    for reply in (
        await client.post(LOG, {"entries": [{"data": 1}]}, of(origin)),
        await client.get("/healthz", of(origin)),
        await preflight(client, LOG, origin=origin),
    ):
        assert (reply.status, reply.code) == (403, "forbidden_origin")
        assert not readable(reply, origin)
    assert (await queue.send(body([note(1)]), of(origin), simple)).status == 403
    assert (await client.get("/v1/spaces")).json()["spaces"] == []


async def test_a_token_does_not_help_a_page_that_may_not_call(world: World) -> None:
    token = world.token()
    client = await world.open()
    assert (await client.get(LOG, token, of(FOREIGN))).code == "forbidden_origin"


async def test_the_pages_that_may_call_are_a_setting(world: World) -> None:
    client = await world.open(cors_origins=["https://App.example", "http://dev.example:*"])
    for origin in (
        b"https://app.example",
        b"HTTPS://APP.EXAMPLE",
        b"http://dev.example",
        b"http://dev.example:8080",
    ):
        assert readable(await client.get("/healthz", of(origin)), origin)
    for origin in (
        PAGE,
        b"http://app.example",
        b"https://app.example:8443",
        b"https://appxexample",
        b"https://app.example.org",
        b"http://dev.example:",
        b"http://dev.example:80x",
    ):
        assert (await client.get("/healthz", of(origin))).code == "forbidden_origin"


async def test_no_origins_leave_the_servers_own_pages(world: World) -> None:
    client = await world.open(cors_origins=[], allowed_hosts=["queues.example:8700"])
    assert readable(await client.get("/healthz", of(b"http://localhost:8700")), b"http://localhost:8700")
    reply = await client.get("/healthz", of(b"http://queues.example:8700"))
    assert reply.code == "forbidden_origin"  # that is not what this request's Host says
    own: Pairs = [(b"host", b"Queues.example:8700"), of(b"http://queues.example:8700")]
    assert (await client.ask("GET", "/healthz", headers=own, host=False)).status == 200
    assert (await client.get("/healthz", of(b"http://queues.example:8700"))).code == "forbidden_origin"
    assert (await client.get("/healthz", of(b"http://localhost:8701"))).code == "forbidden_origin"


async def test_a_star_lets_every_page_call(world: World) -> None:
    client = await world.open(cors_origins=["*"])
    for origin in (FOREIGN, PAGE, b"null"):
        assert readable(await client.get("/healthz", of(origin)), origin)


async def test_a_star_does_not_make_other_hosts_ours(world: World) -> None:
    client = await world.open(cors_origins=["*"])
    reply = await client.ask("GET", "/healthz", headers=[(b"host", b"example.org"), of(FOREIGN)], host=False)
    assert reply.status == 421


async def test_credentials_are_never_allowed(world: World) -> None:
    client = await world.open(cors_origins=["*"])
    for reply in (await client.get("/healthz", of(PAGE)), await preflight(client, LOG)):
        assert "access-control-allow-credentials" not in reply.headers


# -- preflight -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        (LOG, "DELETE, GET, HEAD, POST"),
        (f"{LOG}/config", "DELETE, GET, HEAD, PATCH, PUT"),
        ("/v1/spaces", "GET, HEAD"),
        (dxos_path(), "DELETE, POST"),
    ],
)
async def test_a_preflight_lists_the_methods_of_the_path_and_needs_no_token(
    world: World, path: str, methods: str
) -> None:
    client = await world.open(auth="required")
    asked = b"authorization, content-type, x-anything"
    reply = await preflight(client, path, (b"access-control-request-headers", asked))
    assert (reply.status, reply.body) == (204, b"")
    assert readable(reply, PAGE)
    assert reply.headers["access-control-allow-methods"] == methods
    assert reply.headers["access-control-allow-headers"] == asked.decode()
    assert int(reply.headers["access-control-max-age"]) > 0
    assert "access-control-allow-private-network" not in reply.headers


async def test_a_preflight_that_asks_for_no_headers_is_told_of_none(client: Client) -> None:
    assert "access-control-allow-headers" not in (await preflight(client, LOG)).headers


async def test_a_page_of_the_public_network_may_be_let_in(client: Client) -> None:
    reply = await preflight(client, LOG, (b"access-control-request-private-network", b"true"))
    assert reply.headers["access-control-allow-private-network"] == "true"


async def test_options_that_are_no_preflight_are_a_wrong_method(client: Client) -> None:
    reply = await client.ask("OPTIONS", LOG, headers=[of(PAGE)])
    assert reply.code == "method_not_allowed"


async def test_a_preflight_to_no_path_is_refused_in_words_the_page_may_read(client: Client) -> None:
    reply = await preflight(client, "/v1/no/such/path")
    assert (reply.status, readable(reply, PAGE)) == (404, True)


# -- what a page may read --------------------------------------------------------------------------------


async def test_a_page_may_read_errors(world: World) -> None:
    reader = world.token("read", spaces=["demo"])
    client = await world.open()
    replies = [
        await client.get(LOG, of(PAGE)),
        await client.get("/v1/spaces", of(PAGE), reader),
        await client.get("/v1/no/such/path", of(PAGE), reader),
        await client.get(f"{LOG}/config", of(PAGE), reader),
        await client.ask("PUT", LOG, b"{}", headers=[of(PAGE), reader]),
        await client.get(f"{LOG}?limit=x", of(PAGE), reader),
        await Queue(client).ask("", of(PAGE)),
    ]
    assert [reply.status for reply in replies] == [401, 403, 404, 404, 405, 400, 401]
    assert all(readable(reply, PAGE) for reply in replies)


async def test_a_page_may_read_answers_and_streams(client: Client) -> None:
    await client.append(Q, 1)
    assert readable(await client.get(f"{LOG}/stats", of(PAGE)), PAGE)
    async with client.open("GET", f"{LOG}/subscribe", headers=[of(PAGE)]) as exchange:
        exchange.end()
        assert await exchange.begun() == 200
        assert readable(Reply(200, exchange.headers, b""), PAGE)


async def test_an_answer_that_did_not_change_may_be_read_too(client: Client) -> None:
    await client.append(Q, 1)
    etag = (await client.get(LOG)).headers["etag"].encode()
    reply = await client.get(LOG, of(PAGE), (b"if-none-match", etag))
    assert (reply.status, readable(reply, PAGE)) == (304, True)


@only("app", why="it looks at the messages of the app")
async def test_an_answer_that_is_compressed_varies_by_both(world: World) -> None:
    """Two header lines, which the client of these tests would merge."""
    server = await world.server()
    client, sent = Client(server), []
    await client.append(Q, "x" * 5_000)

    async def overheard(scope: Scope, receive: Receive, send: Send) -> None:
        async def listen(message: MutableMapping[str, Any]) -> None:
            sent.extend(message.get("headers", []))
            await send(message)

        await server(scope, receive, listen)

    reply = await Client(overheard).get(LOG, of(PAGE), (b"accept-encoding", b"gzip"))
    assert reply.headers["content-encoding"] == "gzip"
    assert {value for name, value in sent if name == b"vary"} == {b"origin", b"accept-encoding"}
