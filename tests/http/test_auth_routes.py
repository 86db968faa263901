"""What each route asks of a token."""

from __future__ import annotations

from typing import Any, cast

import pytest

from edgequeues.core.grants import VERBS, Verb
from edgequeues.core.ids import ulid_to_hex
from edgequeues.http import admin, binding, blobs, cloudflare, dxos, hooks, ingest, native
from edgequeues.http.waits import Waits
from edgequeues.openapi import serving as openapi

from .asgi import NDJSON, Client, Pairs
from .dxos_queue import QUEUE, SPACE
from .fronted import only
from .test_dxos_socket import connecting
from .world import Header, World, bearer, challenged, denied

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"
ENTRY = {"entries": [{"data": 1}]}

LETTERS = "/admin/queues/{name}/dlq"
CF = "/client/v4/accounts/{space}"
CF_Q = CF + "/queues/{queue_hex}"
BLOB = "/blobs/{space}/{bucket}/{key...}"
OF_BINDING = (b"edgequeues-queue", f"{SPACE}/{QUEUE}".encode())

NEEDED: dict[tuple[str, str], Verb | None] = {
    ("POST", "/v1/{dxn}"): "append",
    ("DELETE", "/v1/{dxn}"): "delete",
    ("GET", "/v1/{dxn}"): "read",
    ("GET", "/v1/{dxn}/subscribe"): "read",
    ("GET", "/v1/{dxn}/config"): "read",
    ("PUT", "/v1/{dxn}/config"): "configure",
    ("PATCH", "/v1/{dxn}/config"): "configure",
    ("DELETE", "/v1/{dxn}/config"): "configure",
    ("GET", "/v1/{dxn}/stats"): "read",
    ("POST", "/v1/{dxn}/push"): "push",
    ("POST", "/v1/{dxn}/pull"): "pull",
    ("POST", "/v1/{dxn}/ack"): "pull",
    ("POST", "/v1/{dxn}/retry"): "pull",
    ("POST", "/v1/{dxn}/release"): "pull",
    ("POST", "/v1/{dxn}/extend"): "pull",
    ("GET", "/v1/{dxn}/consumers"): "read",
    ("PUT", "/v1/{dxn}/consumers/{consumer}"): "configure",
    ("DELETE", "/v1/{dxn}/consumers/{consumer}"): "configure",
    ("GET", "/v1/{dxn}/peek"): "read",
    ("GET", "/v1/{dxn}/explain"): "read",
    ("GET", "/v1/{dxn}/search"): "read",
    ("GET", "/v1/{dxn}/lines"): "read",
    ("POST", "/v1/{dxn}/skip"): "configure",
    ("POST", "/v1/{dxn}/hurry"): "configure",
    ("GET", "/v1/{dxn}/dead"): "read",
    ("POST", "/v1/{dxn}/replay"): "push",
    ("POST", "/v1/{dxn}/purge"): "delete",
    ("POST", "/v1/{dxn}/inbound"): "push",
    ("GET", "/v1/{dxn}/sessions"): "read",
    ("POST", "/v1/{dxn}/sessions/close"): "configure",
    ("POST", "/v1/{dxn}/sessions/skip"): "configure",
    ("POST", "/v1/{dxn}/sessions/retry"): "configure",
    ("POST", "/v1/{dxn}/sessions/reclaim"): "pull",
    ("POST", "/v1/{dxn}/sessions/clean"): "delete",
    ("POST", "/hook/{hook}"): None,
    ("POST", "/hook/{hook}/{in_space}"): None,
    ("GET", "/v1/hooks"): "list",
    ("GET", "/openapi.json"): None,
    ("GET", "/v1/spaces/{space}/schedules"): "list",
    ("POST", "/v1/spaces/{space}/schedules/{schedule}/run"): "push",
    ("GET", "/v1/spaces/{space}/specs"): "spec",
    ("GET", "/v1/spaces/{space}/specs/{app}"): "spec",
    ("PUT", "/v1/spaces/{space}/specs/{app}"): "spec",
    ("DELETE", "/v1/spaces/{space}/specs/{app}"): "spec",
    ("GET", "/v1/spaces/{space}/entities/{entity_type}"): "read",
    ("GET", "/v1/spaces/{space}/entities/{entity_type}/{entity_id}"): "read",
    ("GET", "/v1/spaces/{space}/entities/{entity_type}/{entity_id}/history"): "read",
    ("GET", "/v1/spaces"): "list",
    ("GET", "/v1/spaces/{space}/queues"): "list",
    ("POST", "/spaces/{tag}/{space}/queue/{queue}"): "append",
    ("GET", "/spaces/{tag}/{space}/queue/{queue}/query"): "read",
    ("DELETE", "/spaces/{tag}/{space}/queue/{queue}"): "delete",
    ("GET", "/ws/{identity}/{device}"): None,
    ("GET", CF + "/queues"): "list",
    ("POST", CF + "/queues"): "configure",
    ("GET", CF_Q): "read",
    ("PUT", CF_Q): "configure",
    ("PATCH", CF_Q): "configure",
    ("DELETE", CF_Q): "configure",
    ("GET", CF_Q + "/consumers"): "read",
    ("POST", CF_Q + "/consumers"): "configure",
    ("GET", CF_Q + "/consumers/{consumer}"): "read",
    ("PUT", CF_Q + "/consumers/{consumer}"): "configure",
    ("DELETE", CF_Q + "/consumers/{consumer}"): "configure",
    ("POST", CF_Q + "/messages"): "push",
    ("POST", CF_Q + "/messages/batch"): "push",
    ("POST", CF_Q + "/messages/pull"): "pull",
    ("POST", CF_Q + "/messages/ack"): "pull",
    ("POST", CF_Q + "/messages/extend"): "pull",
    ("POST", CF_Q + "/messages/peek"): "read",
    ("POST", CF_Q + "/messages/preview"): "read",
    ("POST", CF_Q + "/messages/purge"): "delete",
    ("POST", CF_Q + "/messages/preview/ack"): "delete",
    ("GET", CF_Q + "/metrics"): "read",
    ("POST", CF_Q + "/purge"): "delete",
    ("GET", CF_Q + "/purge"): "read",
    ("GET", CF + "/event_subscriptions/subscriptions"): "list",
    ("POST", "/message"): "push",
    ("POST", "/batch"): "push",
    ("GET", "/metrics"): "read",
    ("GET", "/admin/queues"): "list",
    ("GET", "/admin/queues/{name}"): "read",
    ("GET", "/admin/live"): "list",
    ("GET", "/admin/queues/{name}/live"): "read",
    ("GET", "/admin/audit"): "read",
    ("GET", "/admin/spaces/{space}/backup"): "backup",
    ("PUT", "/admin/spaces/{space}/backup"): "restore",
    ("GET", "/admin/control/backup"): "backup",
    ("GET", "/admin/queues/{name}/results"): "read",
    ("GET", LETTERS): "read",
    ("GET", LETTERS + "/{id}"): "read",
    ("DELETE", LETTERS + "/{id}"): "delete",
    ("POST", LETTERS + "/{id}/replay"): "push",
    ("POST", LETTERS + "/{id}/dry-run"): "read",
    ("POST", LETTERS + "/replay"): "push",
    ("POST", LETTERS + "/purge"): "delete",
    ("PUT", BLOB): "append",
    ("GET", BLOB): None,
    ("DELETE", BLOB): "delete",
    ("POST", "/blobs/{space}"): "read",
    ("GET", "/blobs/{space}"): "read",
    ("DELETE", "/blobs/{space}"): "delete",
    ("POST", "/ingest/email"): "ingest",
    ("POST", "/ingest/sms"): None,
    ("GET", "/healthz"): None,
    ("GET", "/readyz"): None,
}
GUARDED = [(method, template, verb) for (method, template), verb in NEEDED.items() if verb is not None]


async def status(client: Client, method: str, path: str, *headers: Header) -> int:
    """Begin a request with an empty body and return the status: a subscription has no end."""
    async with client.open(method, path, headers=[*headers, OF_BINDING]) as exchange:
        exchange.end()
        return await exchange.begun()


def test_every_route_is_in_the_list_above_with_its_verb() -> None:
    router = cast(Any, None)
    dialects = [build(router, Waits()) for build in (dxos.dialect, cloudflare.dialect)]
    dialects += [native.dialect(router, Waits(), router), admin.dialect(router, Waits(), router, router)]
    dialects += [binding.dialect(router, router), hooks.dialect(router), blobs.dialect(router, router, "")]
    dialects += [ingest.dialect(router), openapi.dialect(dialects)]
    there_are = {(route.method, route.template): route.verb for one in dialects for route in one.routes}
    assert there_are == NEEDED


@pytest.mark.parametrize(("method", "template", "verb"), GUARDED)
async def test_a_route_needs_its_verb_and_no_other(
    world: World, method: str, template: str, verb: Verb
) -> None:
    path = template.replace("{key...}", "a/b").format(
        bucket="of-files",
        dxn=f"dxn:queue:{SPACE}:{QUEUE}",
        tag="data",
        space=SPACE,
        queue=QUEUE,
        queue_hex=ulid_to_hex(QUEUE),
        consumer="c",
        app="ops",
        schedule="tick",
        entity_type="Incident",
        entity_id="i1",
        name="jobs",
        id="letter",
    )
    only, others = world.token(verb), world.token(*(one for one in VERBS if one != verb))
    client = await world.open()
    assert await status(client, method, path) == 401
    assert await status(client, method, path, others) == 403
    assert await status(client, method, path, only) not in (401, 403)
    if method == "GET":
        assert await status(client, "HEAD", path, others) == 403


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_is_open_to_all(world: World, path: str) -> None:
    client = await world.open(auth="required")
    assert (await client.get(path)).status == 200
    assert (await client.get(path, bearer("eq_x_y"))).status == 200


async def test_the_description_of_all_routes_is_open_to_all(world: World) -> None:
    client = await world.open(auth="required")
    assert (await client.get("/openapi.json")).status == 200


async def test_what_paths_and_methods_there_are_is_told_only_to_those_with_a_token(world: World) -> None:
    token = world.token("read", spaces=["demo"])
    client = await world.open()
    assert challenged(await client.get("/v1/no/such/path"))
    assert (await client.get("/v1/no/such/path", token)).code == "not_found"
    assert challenged(await client.put(LOG, {}))
    assert (await client.ask("PUT", LOG, b"{}", headers=[token])).code == "method_not_allowed"


async def test_a_refused_append_is_not_taken_in(world: World) -> None:
    reader = world.token("read", "list")
    client = await world.open()
    assert denied(await client.post(LOG, ENTRY, reader)) == "forbidden"
    assert denied(await client.ask("POST", LOG, b'{"data":1}\n', headers=[NDJSON, reader])) == "forbidden"
    assert (await client.get("/v1/spaces", reader)).json()["spaces"] == []


@only("app", why="it drives the messages of a WebSocket by hand")
async def test_a_websocket_needs_a_token_that_may_do_anything_at_all(world: World) -> None:
    token = world.token("list", spaces=["demo"])
    server = await world.server()
    wanted: list[tuple[Pairs, str]] = [
        ([], "websocket.close"),
        ([bearer("eq_x_y")], "websocket.close"),
        ([token], "websocket.accept"),
    ]
    for headers, answer in wanted:
        async with connecting(server, headers=headers) as peer:
            assert (await peer.next())["type"] == answer


@only("app", why="it drives the messages of a WebSocket by hand")
async def test_a_grant_to_everybody_lets_websockets_in(world: World) -> None:
    world.let_everybody("read", spaces=[SPACE])
    async with connecting(await world.server()) as peer:
        assert (await peer.next())["type"] == "websocket.accept"
