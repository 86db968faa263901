"""Backups over HTTP: whole, sound, for those who may; and where they are served, they are stores of their own."""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio

from edgequeues.control import FILE_NAME, Control
from edgequeues.http.server import Server
from edgequeues.space.check import problems
from edgequeues.space.schema import MIGRATIONS
from shards import copying
from shards.check import check
from shards.files import path_of

from .asgi import Client, Reply
from .fronted import FrontName, only
from .work_queue import pull, push, said
from .world import World, bearer, cut_short, heeded, worlds

BACKUP = "/admin/spaces/demo/backup"
LOG = "dxn:queue:demo:log"


def put(reply: Reply, folder: Path) -> Path:
    """Put a backup where a server would look for it."""
    path = path_of(folder, "demo")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(reply.body)
    return path


def left(folder: Path) -> list[Path]:
    """Files of copies that lie in a data folder."""
    return list((folder / copying.FOLDER).glob("*"))


async def test_a_backup_is_the_file_with_its_length_and_digest(client: Client, tmp_path: Path) -> None:
    await client.append(LOG, *range(100))
    reply = await client.ask("GET", BACKUP)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/vnd.sqlite3"
    assert reply.headers["content-length"] == str(len(reply.body))
    digest = b64encode(sha256(reply.body).digest()).decode()
    assert reply.headers["repr-digest"] == f"sha-256=:{digest}:"
    assert reply.headers["cache-control"] == "no-store"
    assert int(reply.headers["edgequeues-taken"]) > 0
    db = sqlite3.connect(put(reply, tmp_path / "other"))
    assert db.execute("SELECT count(*) FROM queue_entries").fetchone() == (100,)
    db.close()
    assert left(tmp_path / "data") == []


async def test_a_backup_in_the_middle_of_work_passes_the_check(client: Client, tmp_path: Path) -> None:
    await push(client, *({"data": n, "key": f"k{n % 7}"} for n in range(200)))
    leased = await pull(client, batch=50)
    await said(client, "ack", {"leases": [one["lease"] for one in leased[:20]]})
    await said(client, "retry", {"retries": [{"lease": leased[21]["lease"], "permanent": True}]})
    put(await client.ask("GET", BACKUP), tmp_path / "other")
    [found] = check(tmp_path / "other", MIGRATIONS, problems)
    assert (found.name, found.problems) == ("demo", [])


async def test_a_backup_that_is_served_elsewhere_is_another_store(
    client: Client, front: FrontName, tmp_path: Path
) -> None:
    """Its positions go to other entries in time, and nobody acks there what was handed out here."""
    await client.append(LOG, 1, 2, 3)
    await push(client, {"data": "handed out"}, {"data": "waits"})
    cursor = (await client.get(f"/v1/{LOG}?limit=1")).json()["nextCursor"]
    [message] = await pull(client, batch=1, lease_ms=60_000)
    reply = await client.ask("GET", BACKUP)
    async with worlds(tmp_path / "other", front) as world:
        put(reply, world.folder)
        world.clock.skew_ms = 1  # else the same seed makes the same id at the same time
        await is_another_store(await world.open(), cursor, message["lease"])


async def is_another_store(client: Client, cursor: str, lease: str) -> None:
    """All is there, but the cursor and the lease are of another store."""
    assert (await client.get(f"/v1/{LOG}?after={cursor}")).code == "cursor_store"
    assert [one["data"] for one in (await client.get(f"/v1/{LOG}")).json()["entries"]] == [1, 2, 3]
    assert await said(client, "ack", {"leases": [lease]}) == ["unknown"]
    assert [one["data"] for one in await pull(client, batch=10)] == ["waits"]
    await trio.sleep(61)
    assert [one["data"] for one in await pull(client, batch=10)] == ["handed out", "waits"]


async def test_who_took_a_backup_is_on_record(world: World) -> None:
    world.token(name="owner")
    taker, reader = world.token("backup", name="nightly"), world.token("read", "append")
    client = await world.open()
    await client.post(f"/v1/{LOG}", {"entries": [{"data": 1}]}, reader)
    reply = await client.ask("GET", BACKUP, headers=[taker])
    assert reply.status == 200
    [record] = await records_of(client, reader)
    assert record["who"]["name"] == "nightly"
    assert record["action"] == "backup"
    assert record["detail"] == {"bytes": len(reply.body), "sha256": sha256(reply.body).hexdigest()}


async def records_of(client: Client, reader: tuple[bytes, bytes]) -> list[dict[str, Any]]:
    """What is on record of `demo`."""
    found: list[dict[str, Any]] = (await client.get("/admin/audit?tenant_id=demo", reader)).json()["audit"]
    return found


async def test_a_token_for_some_queues_takes_no_backup(world: World) -> None:
    some = world.token("backup", "read", spaces=["demo"], queues=["log"])
    other = world.token("backup", spaces=["other"])
    mine = world.token("backup", spaces=["demo"])
    client = await world.open()
    assert (await client.get(BACKUP)).status == 401
    assert (await client.get(BACKUP, bearer("eq_x_y"))).status == 401
    assert (await client.get(BACKUP, some)).code == "forbidden"
    assert (await client.get(BACKUP, other)).code == "forbidden"
    assert (await client.get(BACKUP, mine)).code == "queue_not_found"


async def test_what_does_not_exist_is_not_made_by_a_backup(client: Client, tmp_path: Path) -> None:
    assert (await client.get(BACKUP)).code == "queue_not_found"
    assert (await client.get("/admin/spaces/no~space/backup")).code == "invalid_id"
    assert not path_of(tmp_path / "data", "demo").exists()


async def test_what_the_last_process_left_is_removed(tmp_path: Path, world: World) -> None:
    (world.folder / copying.FOLDER).mkdir(parents=True)
    (world.folder / copying.FOLDER / "1.db").write_text("half")
    await world.open()
    assert left(world.folder) == []


@only("app", why="it holds answers half read")
async def test_who_hangs_up_gives_back_the_place_and_the_room(
    client: Client, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "PIECE_BYTES", 4_096)
    await client.append(LOG, *("x" * 1_000 for _ in range(100)))
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            for _ in range(copying.COPIES_MAX):
                exchange = await nursery.start(half_read, client)
            assert (await client.get(BACKUP)).code == "overloaded"
            assert exchange is not None
            nursery.cancel_scope.cancel()
        async with client.open("HEAD", BACKUP) as head:
            assert await head.begun() == 200
            assert await head.rest() == b""
    assert (await client.get(BACKUP)).status == 200
    assert left(tmp_path / "data") == []


async def half_read(client: Client, task_status: trio.TaskStatus[object]) -> None:
    """Read the first piece of a backup, and no more until cancelled; then hang up."""
    async with client.open("GET", BACKUP, ahead=0) as exchange:
        assert await exchange.begun() == 200
        assert await exchange.piece()
        task_status.started(exchange)
        try:
            await trio.sleep_forever()
        finally:
            exchange.hang_up()


@only("app", why="it holds an answer half read")
async def test_a_backup_ends_with_its_token(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "PIECE_BYTES", 4_096)
    owner, taker = world.token(name="owner"), world.token("backup", name="taker")
    client = await world.open()
    await client.post(f"/v1/{LOG}", {"entries": [{"data": "x" * 1_000}] * 100}, owner)
    async with client.open("GET", BACKUP, headers=[taker], ahead=0) as exchange:
        assert await exchange.piece()
        world.revoke("taker")
        await heeded()
        await cut_short(exchange)
        assert not exchange.whole


# -- tokens and specs ---------------------------------------------------------------------------------------

CONTROL = "/admin/control/backup"


async def test_the_control_file_is_given_to_who_may_have_everything(world: World, tmp_path: Path) -> None:
    everywhere = world.token("backup", name="everywhere")
    somewhere = world.token("backup", spaces=["demo"], name="somewhere")
    client = await world.open()
    assert (await client.ask("GET", CONTROL, headers=[somewhere])).code == "forbidden"
    reply = await client.ask("GET", CONTROL, headers=[everywhere])
    assert reply.status == 200
    assert reply.headers["content-disposition"] == 'attachment; filename="control.db"'
    digest = b64encode(sha256(reply.body).digest()).decode()
    assert reply.headers["repr-digest"] == f"sha-256=:{digest}:"
    secret = everywhere[1].split(b"_", 2)[2]
    assert secret not in reply.body
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE_NAME).write_bytes(reply.body)
    with Control.open(tmp_path / "other", create=False) as copied:
        assert {one.name for one in copied.tokens()} == {"everywhere", "somewhere"}


async def test_a_control_file_that_somebody_writes_is_asked_for_again(world: World) -> None:
    token = world.token("backup")
    client = await world.open()
    db = apsw.Connection(
        str(world.folder / FILE_NAME)
    )  # sqlite3 is another library: this one would not see its lock
    db.execute("BEGIN EXCLUSIVE")
    reply = await client.ask("GET", CONTROL, headers=[token])
    db.close()
    assert (reply.status, reply.code) == (503, "not_ready")
    assert "try again" in reply.json()["detail"]
