"""Backups put back over HTTP: looked at before they count, in place at once, and stores of their own from then on."""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
import trio
from msgspec.json import encode

from .asgi import Client, Reply
from .fronted import only
from .test_backups import BACKUP, LOG, left, put
from .work_queue import pull, push, said
from .world import World

SQLITE = (b"content-type", b"application/vnd.sqlite3")
COPY = "/admin/spaces/copy/backup"
IN_COPY = "/v1/dxn:queue:copy:log"


def spoil(reply: Reply, folder: Path, statement: str) -> bytes:
    """A backup after this was done to it."""
    path = put(reply, folder)
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()
    return path.read_bytes()


async def data(client: Client, path: str = f"/v1/{LOG}") -> list[object]:
    """The data of a log."""
    return [one["data"] for one in (await client.get(path)).json()["entries"]]


async def test_a_backup_becomes_a_space_of_any_name(client: Client, tmp_path: Path) -> None:
    await client.append(LOG, 1, 2, 3)
    backup = await client.ask("GET", BACKUP)
    digest = (b"repr-digest", backup.headers["repr-digest"].encode())
    reply = await client.ask("PUT", COPY, backup.body, headers=[SQLITE, digest])
    assert reply.status == 201
    assert reply.json() == {
        "space": "copy",
        "bytes": len(backup.body),
        "sha256": sha256(backup.body).hexdigest(),
        "replaced": False,
        "specs": [],
    }
    assert await data(client, IN_COPY) == [1, 2, 3]
    spaces = (await client.get("/v1/spaces")).json()["spaces"]
    assert [one["id"] for one in spaces] == ["copy", "demo"]
    records = (await client.get("/admin/audit?tenant_id=copy")).json()["audit"]
    assert [one["action"] for one in records] == ["restore"]
    assert left(tmp_path / "data") == []


async def test_a_space_goes_back_to_its_backup_where_that_is_said(client: Client) -> None:
    await client.append(LOG, "kept")
    backup = (await client.ask("GET", BACKUP)).body
    await client.append(LOG, "lost")
    cursor = (await client.get(f"/v1/{LOG}?limit=1")).json()["nextCursor"]
    refused = await client.ask("PUT", BACKUP, backup, headers=[SQLITE])
    assert (refused.status, refused.code) == (409, "space_exists")
    assert await data(client) == ["kept", "lost"]
    await trio.sleep(1)
    reply = await client.ask("PUT", f"{BACKUP}?replace=true", backup, headers=[SQLITE])
    assert (reply.status, reply.json()["replaced"]) == (200, True)
    assert await data(client) == ["kept"]
    assert (await client.get(f"/v1/{LOG}?after={cursor}")).code == "cursor_store"


async def test_work_that_was_handed_out_is_handed_out_again(client: Client) -> None:
    await push(client, {"data": "first"}, {"data": "later", "delay_ms": 120_000})
    [message] = await pull(client, batch=1, lease_ms=60_000)
    backup = (await client.ask("GET", BACKUP)).body
    assert await said(client, "ack", {"leases": [message["lease"]]}) == ["done"]
    await trio.sleep(1)
    await client.ask("PUT", f"{BACKUP}?replace=true", backup, headers=[SQLITE])
    assert await said(client, "ack", {"leases": [message["lease"]]}) == ["unknown"]
    assert await pull(client, batch=10) == []
    await trio.sleep(60)
    assert [one["data"] for one in await pull(client, batch=10, lease_ms=600_000)] == ["first"]
    await trio.sleep(60)
    assert [one["data"] for one in await pull(client, batch=10)] == ["later"]


async def test_what_is_no_backup_changes_nothing(client: Client) -> None:
    await client.append(LOG, *range(100))
    backup = (await client.ask("GET", BACKUP)).body
    wrong = (b"repr-digest", b"sha-256=:" + b64encode(bytes(32)) + b":")
    for body, headers, code in [
        (b"", [SQLITE], "invalid_backup"),
        (b"{}", [SQLITE], "invalid_backup"),
        (backup[:-4_096], [SQLITE], "invalid_backup"),
        (backup.replace(b"deliveries", b"elsewhere."), [SQLITE], "invalid_backup"),
        (backup, [SQLITE, wrong], "invalid_backup"),
        (backup, [SQLITE, (b"repr-digest", b"md5=:x:")], "invalid_request"),
        (backup, [(b"content-type", b"text/plain")], "unsupported_media_type"),
    ]:
        reply = await client.ask("PUT", f"{BACKUP}?replace=true", body, headers=headers)
        assert reply.code == code
        assert "/tmp" not in reply.json()["detail"]
    assert await data(client) == list(range(100))
    assert (await client.ask("PUT", f"{BACKUP}?replace=yes", backup, headers=[SQLITE])).status == 400
    assert (await client.ask("PUT", f"{COPY}?no=1", backup, headers=[SQLITE])).status == 400


@pytest.mark.parametrize(
    "spoilt",
    [
        "UPDATE store SET store_id = CAST(x'ff' AS TEXT)",
        "DELETE FROM store",
        "DELETE FROM shard_alarm",
        "UPDATE queue_entries SET data = CAST(x'22ff22' AS TEXT), size = 3",
    ],
)
@only("app", why="it is about a file")
async def test_a_file_that_could_not_be_served_does_not_take_the_place_of_one_that_is(
    client: Client, spoilt: str, tmp_path: Path
) -> None:
    await client.append(LOG, "kept")
    body = spoil(await client.ask("GET", BACKUP), tmp_path / "spoilt", spoilt)
    reply = await client.ask("PUT", f"{BACKUP}?replace=true", body, headers=[SQLITE])
    assert (reply.status, reply.code) == (400, "invalid_backup")
    assert await data(client) == ["kept"]


async def test_who_may_take_a_backup_may_not_put_one_in_place(world: World) -> None:
    owner, taker = world.token(name="owner"), world.token("backup", "append", "configure", name="taker")
    giver = world.token("restore", spaces=["demo"], name="giver")
    client = await world.open()
    await client.post(f"/v1/{LOG}", {"entries": [{"data": 1}]}, owner)
    backup = (await client.ask("GET", BACKUP, headers=[taker])).body
    path = f"{BACKUP}?replace=true"
    assert (await client.ask("PUT", path, backup, headers=[SQLITE, taker])).code == "forbidden"
    assert (await client.ask("PUT", COPY, backup, headers=[SQLITE, giver])).code == "forbidden"
    assert (await client.ask("PUT", path, backup, headers=[SQLITE, giver])).status == 200


async def test_traces_have_a_file_of_their_own(client: Client) -> None:
    trace = "dxn:queue:trace:demo:log"
    await client.append(trace, "traced")
    assert (await client.ask("GET", BACKUP)).code == "queue_not_found"
    backup = (await client.ask("GET", f"{BACKUP}?tag=trace")).body
    assert (await client.ask("PUT", f"{COPY}?tag=trace", backup, headers=[SQLITE])).status == 201
    assert await data(client, "/v1/dxn:queue:trace:copy:log") == ["traced"]
    assert (await client.ask("GET", f"{BACKUP}?tag=other")).code == "invalid_request"


SHOP = {
    "version": 0,
    "app": "shop",
    "queues": {"orders": {"message_type": {"n": {"type": "int"}}}},
}


async def test_specs_hold_in_what_was_put_in_place(client: Client) -> None:
    await client.append(LOG, "before the spec")
    backup = (await client.ask("GET", BACKUP)).body
    assert (await client.ask("PUT", "/v1/spaces/demo/specs/shop", encode(SHOP))).status == 200
    reply = await client.ask("PUT", f"{BACKUP}?replace=true", backup, headers=[SQLITE])
    assert reply.json()["specs"] == [{"app": "shop", "why": None}]
    orders = "/v1/dxn:queue:demo:orders"
    assert (await client.post(f"{orders}/push", {"entries": [{"data": {"n": 1}}]})).status == 200
    refused = await client.post(f"{orders}/push", {"entries": [{"data": {"n": "one"}}]})
    assert refused.code == "invalid_message"


async def test_a_spec_that_cannot_hold_there_is_named_with_why(client: Client) -> None:
    await client.post("/v1/dxn:queue:demo:orders/push", {"entries": [{"data": 1}]})
    backup = (await client.ask("GET", BACKUP)).body
    [queue] = (await client.get("/v1/spaces/demo/queues")).json()["queues"]
    await client.ask("DELETE", f"/v1/{queue['dxn']}/config")
    assert (await client.ask("PUT", "/v1/spaces/demo/specs/shop", encode(SHOP))).status == 200
    reply = await client.ask("PUT", f"{BACKUP}?replace=true", backup, headers=[SQLITE])
    assert reply.status == 200
    [told] = reply.json()["specs"]
    assert told["app"] == "shop"
    assert "orders" in told["why"]


async def test_a_spec_that_is_removed_during_a_restore_stays_removed(client: Client) -> None:
    await client.append(LOG, 1)
    backup = (await client.ask("GET", BACKUP)).body
    apps = ("aaa", "bbb", "ccc")

    async def restore() -> None:
        reply = await client.ask("PUT", f"{BACKUP}?replace=true", backup, headers=[SQLITE])
        assert reply.status == 200

    async def remove(after: int) -> None:
        for _ in range(after):
            await trio.lowlevel.checkpoint()
        assert (await client.ask("DELETE", "/v1/spaces/demo/specs/bbb")).status == 200

    for after in range(0, 60, 3):
        for app in apps:
            spec = {"version": 0, "app": app, "queues": {app: {}}}
            assert (await client.ask("PUT", f"/v1/spaces/demo/specs/{app}", encode(spec))).status == 200
        async with trio.open_nursery() as nursery:
            nursery.start_soon(restore)
            nursery.start_soon(remove, after)
        held = (await client.get("/v1/spaces/demo/specs")).json()["specs"]
        assert [one["app"] for one in held] == ["aaa", "ccc"]
