"""Signing in with a browser: what the cookie is good for, how long, and whose pages may use it. In virtual time."""

from __future__ import annotations

import json
import logging
import re

import pytest
import trio

from edgequeues import __version__
from edgequeues.core.errors import RateLimited
from edgequeues.http import signins
from edgequeues.http.signins import FAILURES_MAX, FAILURES_S, LASTS_S, SignIns
from tests.http.asgi import Client, Pairs
from tests.http.fronted import only
from tests.http.test_dxos_socket import connecting
from tests.http.world import World, bearer, challenged, heeded

from .signing import OWN, Browser, text

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"
ENTRY = json.dumps({"entries": [{"data": 1}]}).encode()
SIBLING = (b"origin", b"http://localhost:5173")  # may call, by `cors_origins`, but has no sign-in here


async def test_a_token_is_traded_for_a_cookie_that_scripts_and_other_sites_cannot_use(world: World) -> None:
    token = world.token()
    browser = Browser(await world.open())
    reply = await browser.sign_in(token)
    assert (reply.status, reply.body, reply.headers["cache-control"]) == (204, b"", "no-store")
    assert not {"content-length", "content-type"} & set(reply.headers)
    name, *attributes = browser.set_cookie.split("; ")
    assert re.fullmatch(r"edgequeues-8700=[A-Za-z0-9_-]{43}", name)
    assert attributes == [f"Max-Age={LASTS_S}", "Path=/", "HttpOnly", "SameSite=Strict"]
    assert text(token) not in browser.set_cookie


async def test_under_tls_the_cookie_is_bound_to_the_host_and_to_tls(world: World) -> None:
    token = world.token()
    client = await world.open(public_base_url="https://queues.example")
    browser = Browser(client)
    host: Pairs = [(b"host", b"queues.example"), (b"origin", b"https://queues.example")]
    body = json.dumps({"token": text(token)}).encode()
    reply = await client.ask("POST", "/ui/login", body, headers=host, host=False)
    browser._taken(reply)
    assert browser.set_cookie.startswith("__Host-edgequeues=")
    assert browser.set_cookie.endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")
    assert browser.cookie is not None
    reply = await client.ask("POST", LOG, ENTRY, headers=[browser.cookie, *host], host=False)
    assert reply.status == 200
    plain = [browser.cookie, host[0], (b"origin", b"http://queues.example")]
    reply = await client.ask("POST", LOG, ENTRY, headers=plain, host=False)
    assert (reply.status, reply.code) == (403, "forbidden_origin")


async def test_a_sign_in_is_as_good_as_its_token(world: World) -> None:
    token = world.token("read", "append", spaces=["demo"], name="ops")
    browser = Browser(await world.open())
    assert challenged(await browser.get(LOG))
    await browser.sign_in(token)
    assert (await browser.ask("POST", LOG, ENTRY, OWN)).status == 200
    assert (await browser.get(LOG)).json()["entries"][0]["data"] == 1
    for reply in (
        await browser.get("/v1/spaces"),
        await browser.ask("DELETE", f"{LOG}?id=x", None, OWN),
        await browser.get("/v1/dxn:queue:other:log"),
    ):
        assert (reply.status, reply.code) == (403, "forbidden")


async def test_what_is_granted_to_everybody_adds_to_a_sign_in(world: World) -> None:
    world.let_everybody("read", spaces=["public"])
    token = world.token("append", spaces=["demo"])
    browser = Browser(await world.open())
    await browser.sign_in(token)
    assert (await browser.ask("POST", LOG, ENTRY, OWN)).status == 200
    assert (await browser.get("/v1/dxn:queue:public:log")).status == 200


async def test_where_a_request_carries_a_token_too_the_token_counts(world: World) -> None:
    reader, lister = world.token("read"), world.token("list")
    browser = Browser(await world.open())
    await browser.sign_in(reader)
    assert (await browser.get("/v1/spaces", lister)).status == 200
    assert (await browser.get(LOG, lister)).code == "forbidden"
    assert challenged(await browser.get(LOG, bearer("eq_x_y")))
    assert challenged(await browser.get(LOG, (b"authorization", b"Basic YTpi")))
    assert (await browser.ask("POST", LOG, ENTRY, lister)).code == "forbidden"  # and it needs no Origin


# -- whose pages ------------------------------------------------------------------------------------------


async def test_a_change_by_cookie_needs_the_origin_of_this_server(world: World) -> None:
    token = world.token()
    browser = Browser(await world.open())
    await browser.sign_in(token)
    wrong: list[Pairs] = [
        [],
        [SIBLING],
        [(b"origin", b"http://127.0.0.1:8700")],
        [(b"origin", b"null")],
        [(b"origin", b"https://example.org")],
        [OWN, (b"sec-fetch-site", b"same-site")],
        [OWN, (b"sec-fetch-site", b"cross-site")],
    ]
    for headers in wrong:
        for method, target in (("POST", LOG), ("DELETE", f"{LOG}?after=x"), ("PATCH", f"{LOG}/config")):
            reply = await browser.ask(method, target, ENTRY, *headers)
            assert (reply.status, reply.code) == (403, "forbidden_origin"), headers
    assert (await browser.get("/v1/spaces")).json()["spaces"] == []
    assert (await browser.ask("POST", LOG, ENTRY, OWN, (b"sec-fetch-site", b"same-origin"))).status == 200


async def test_a_page_of_another_port_reads_nothing_by_cookie(world: World) -> None:
    """Cookies know no ports, and such a page is of the same site; all it has may still be granted to everybody."""
    token = world.token()
    browser = Browser(await world.open())
    await browser.sign_in(token)
    for headers in ([SIBLING], [(b"sec-fetch-site", b"same-site")], [(b"sec-fetch-site", b"cross-site")]):
        assert (await browser.get("/v1/spaces", *headers)).code == "forbidden_origin"
        assert (await browser.get("/ui/session", *headers)).code == "forbidden_origin"
    for headers in ([], [(b"sec-fetch-site", b"none")], [OWN]):
        assert (await browser.get("/v1/spaces", *headers)).status == 200


@pytest.mark.parametrize("headers", [[], [SIBLING], [OWN, (b"sec-fetch-site", b"cross-site")]])
async def test_no_other_page_signs_a_browser_in_or_out(world: World, headers: Pairs) -> None:
    token = world.token()
    browser = Browser(await world.open())
    reply = await browser.login(text(token), *headers)
    assert (reply.status, reply.code, browser.cookie) == (403, "forbidden_origin", None)
    await browser.sign_in(token)
    reply = await browser.ask("POST", "/ui/logout", b"", *headers)
    assert (reply.status, reply.code) == (403, "forbidden_origin")
    assert (await browser.get("/v1/spaces")).status == 200


async def test_where_no_token_is_needed_a_foreign_page_still_drives_nothing(world: World) -> None:
    client = await world.open()
    await client.append(Q, 1)
    simple = (b"content-type", b"text/plain")  # a form could send that without asking first
    for method, target in (("POST", LOG), ("POST", "/admin/queues/log/dlq/purge?tenant_id=demo")):
        for origin in (b"https://example.org", b"null"):
            reply = await client.ask(method, target, ENTRY, headers=[(b"origin", origin), simple])
            assert (reply.status, reply.code) == (403, "forbidden_origin")
    rebound: Pairs = [(b"host", b"example.org"), (b"origin", b"http://example.org")]
    for target in (LOG, "/ui", "/ui/session", "/admin/queues?tenant_id=demo"):
        reply = await client.ask("GET", target, headers=rebound, host=False)
        assert (reply.status, reply.code) == (421, "misdirected")


@only("app", why="it drives the messages of a WebSocket by hand")
async def test_a_websocket_by_cookie_is_for_pages_of_this_server(world: World) -> None:
    token = world.token("list")
    server = await world.server()
    browser = Browser(Client(server))
    await browser.sign_in(token)
    assert browser.cookie is not None
    for headers, answer in (
        ([], "websocket.close"),
        ([SIBLING], "websocket.close"),
        ([OWN], "websocket.accept"),
    ):
        async with connecting(server, headers=[browser.cookie, *headers]) as peer:
            assert (await peer.next())["type"] == answer


# -- how long ---------------------------------------------------------------------------------------------


async def test_a_sign_in_ends_with_its_token(world: World) -> None:
    revoked, ending = world.token(name="gone"), world.token(expires_in_ms=5_000)
    client = await world.open()
    first, second = Browser(client), Browser(client)
    await first.sign_in(revoked)
    await second.sign_in(ending)
    world.revoke("gone")
    await heeded()
    reply = await first.get("/v1/spaces")
    assert challenged(reply)
    assert reply.json()["detail"].startswith("the sign-in is over. ")
    assert (await second.get("/v1/spaces")).status == 200
    await trio.sleep(5)
    assert challenged(await second.get("/v1/spaces"))


async def test_a_sign_in_ends_after_twelve_hours(world: World) -> None:
    token = world.token()
    browser = Browser(await world.open())
    await browser.sign_in(token)
    await trio.sleep(LASTS_S - 1)
    assert (await browser.get("/v1/spaces")).status == 200
    await trio.sleep(1)
    assert challenged(await browser.get("/v1/spaces"))


async def test_signing_out_ends_the_sign_in_and_not_only_the_cookie(world: World) -> None:
    token = world.token()
    client = await world.open()
    browser, other = Browser(client), Browser(client)
    await browser.sign_in(token)
    await other.sign_in(token)
    kept = browser.cookie
    assert (await browser.sign_out()).status == 204
    assert browser.set_cookie.startswith("edgequeues-8700=; Max-Age=0; Path=/; ")
    assert (kept is not None, browser.cookie) == (True, None)
    browser.cookie = kept  # as a thief would
    assert challenged(await browser.get("/v1/spaces"))
    assert (await other.get("/v1/spaces")).status == 200
    assert (await Browser(client).sign_out()).status == 204  # nobody is signed in there


async def test_a_stream_ends_with_the_sign_in_that_asked_for_it(world: World) -> None:
    token = world.token()
    browser = Browser(await world.open())
    await browser.client.ask("POST", LOG, ENTRY, headers=[token])
    await browser.sign_in(token)
    assert browser.cookie is not None
    async with browser.client.open("GET", f"{LOG}/subscribe", headers=[browser.cookie]) as exchange:
        exchange.end()
        assert await exchange.begun() == 200
        assert await exchange.piece()
        await browser.sign_out()
        with trio.fail_after(120):
            await exchange.rest()
            await exchange.ended.wait()
        assert not exchange.whole


async def test_there_are_at_most_so_many_sign_ins_and_the_oldest_gives_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signins, "SIGNINS_MAX", 3)
    ids = iter("abcdef")
    held = SignIns(lambda: next(ids), secure=False)
    for number in range(4):
        held.begin(f"token{number}", {})
    assert [held.token_id(one) for one in (b"a", b"b", b"c", b"d")] == [None, "token1", "token2", "token3"]
    await trio.sleep(LASTS_S)
    held.begin("token4", {})
    assert held.token_id(b"e") == "token4"
    assert len(held._by_digest) == 1  # those that were over have gone


# -- what goes wrong --------------------------------------------------------------------------------------


async def test_a_wrong_token_is_refused_and_is_in_no_answer_and_no_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    good, gone = world.token(), world.token(name="gone")
    world.revoke("gone")
    browser = Browser(await world.open())
    caplog.set_level(logging.DEBUG)
    for wrong in ("eq_id_very-secret", text(gone), "", "\ud800", text(good) + "x"):
        reply = await browser.login(wrong, OWN)
        assert reply.status in (400, 401)
        assert (reply.code, "set-cookie" in reply.headers) == (
            "unauthenticated" if reply.status == 401 else "invalid_request",
            False,
        )
        assert not wrong or wrong.encode(errors="replace") not in reply.body
    assert "a sign-in failed" in caplog.text
    for secret in ("very-secret", text(gone), text(good)):
        assert secret not in caplog.text


async def test_a_good_sign_in_is_logged_by_the_name_of_its_token(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    token = world.token(name="ops laptop")
    browser = Browser(await world.open())
    caplog.set_level(logging.INFO)
    await browser.sign_in(token)
    assert "signed in with the token " in caplog.text
    assert "(ops laptop)" in caplog.text
    assert text(token) not in caplog.text
    assert browser.set_cookie.partition("=")[2].partition(";")[0] not in caplog.text


async def test_after_ten_failures_a_peer_waits_a_minute(world: World) -> None:
    token = world.token()
    browser = Browser(await world.open())
    for _ in range(FAILURES_MAX):
        assert challenged(await browser.login("eq_x_y", OWN))
    reply = await browser.sign_in(token)
    assert (reply.status, reply.code, browser.cookie) == (429, "rate_limited", None)
    assert reply.headers["retry-after"]
    await trio.sleep(FAILURES_S)
    assert (await browser.sign_in(token)).status == 204


def test_the_failures_of_one_peer_are_not_those_of_another_and_are_forgotten_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signins, "PEERS_MAX", 2)

    async def check() -> None:
        held = SignIns(str, secure=False)
        for _ in range(FAILURES_MAX):
            held.failed("a")
        held.admit("b")
        with pytest.raises(RateLimited):
            held.admit("a")
        for peer in "bcde":
            held.failed(peer)
        assert set(held._failures) == {"d", "e"}

    trio.run(check)


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        (b'{"token": 1}', [], "invalid_request"),
        (b'{"token": "x", "more": 1}', [], "invalid_request"),
        (b"token=x", [], "invalid_request"),
        (b'"\xff"', [], "invalid_request"),
        (b'{"token": "x"}', [(b"content-type", b"text/plain")], "unsupported_media_type"),
        (b'{"token": "' + b"x" * 5_000 + b'"}', [], "too_large"),
    ],
)
async def test_what_is_no_sign_in_is_refused(world: World, body: bytes, headers: Pairs, code: str) -> None:
    world.token()
    client = await world.open()
    reply = await client.ask("POST", "/ui/login", body, headers=[OWN, *headers])
    assert reply.code == code
    assert b"xxx" not in reply.body


@pytest.mark.parametrize(
    "cookie",
    [b"", b"edgequeues-8700", b"edgequeues-8700=", b"edgequeues-8700=x", b"edgequeues-8700=" + b"x" * 9_000],
)
async def test_a_cookie_that_is_none_of_ours_is_no_sign_in(world: World, cookie: bytes) -> None:
    world.token()
    client = await world.open()
    assert challenged(await client.get("/v1/spaces", (b"cookie", cookie)))
    world.let_everybody("list")
    await heeded()
    assert (await client.get("/v1/spaces", (b"cookie", cookie))).status == 200


# -- who is it --------------------------------------------------------------------------------------------


async def test_the_page_is_told_who_is_signed_in(world: World) -> None:
    client = await world.open()
    nobody = {"needs_token": False, "signed_in": False, "name": "", "version": __version__}
    assert (await client.get("/ui/session")).json() == nobody
    token = world.token(name="ops")
    await heeded()
    assert (await client.get("/ui/session")).json() == nobody | {"needs_token": True}
    browser = Browser(client)
    await browser.sign_in(token)
    reply = await browser.get("/ui/session")
    assert reply.json() == {"needs_token": True, "signed_in": True, "name": "ops", "version": __version__}
    assert reply.headers["cache-control"] == "no-store"
    await browser.sign_out()
    assert (await browser.get("/ui/session")).json() == nobody | {"needs_token": True}


async def test_the_audit_names_whoever_was_signed_in(world: World) -> None:
    token = world.token(name="ops")
    browser = Browser(await world.open())
    await browser.sign_in(token)
    push = await browser.ask("POST", "/v1/dxn:queue:demo:jobs/push", b'{"entries":[{"data":1}]}', OWN)
    assert push.status == 200, push.body
    paused = await browser.ask("PATCH", "/v1/dxn:queue:demo:jobs/config", b'{"paused":true}', OWN)
    assert paused.status == 200, paused.body
    found = (await browser.get("/admin/audit?tenant_id=demo")).json()["audit"]
    assert "ops" in json.dumps(found[-1])
    assert text(token).split("_")[1] in json.dumps(found[-1])
