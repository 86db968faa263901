"""How objects go: when their time is over, or when somebody erases them, bytes and all, whatever comes between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.blobs.folder import STAGED, open_folder
from edgequeues.blobs.store import path_of
from edgequeues.space.blob_verbs import DOOMED_TOGETHER, REMIND_MS, SEARCHED
from shards.testing import InlineDisk

from .asgi import Client
from .fronted import FrontName, only
from .objects import BUCKET, EVENT, SPACE, Objects, path
from .world import World, worlds

DAY_S = 86_400
OTHER = "ev-00000002"
DATA_OF_EVENT = {"id": EVENT, "source": "email"}

pytestmark = only("app", why="no front takes part in it")


@pytest.fixture
async def objects(world: World) -> Objects:
    return Objects(await world.open(blobs_retention_days=1))


@pytest.fixture
def stored(world: World) -> Stored:
    return Stored(world.folder / "blobs")


class Stored:
    """The folder of the objects."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def files(self) -> list[bytes]:
        """What all files of objects hold."""
        return sorted(file.read_bytes() for file in self.root.rglob("*") if file.is_file())

    def out_of_order(self) -> Iterator[None]:
        """Have the backend refuse to touch an object, until told to go on."""
        folder, aside = self.root / SPACE, self.root.parent / "aside"
        folder.rename(aside)
        folder.symlink_to(aside)
        yield
        folder.unlink()
        aside.rename(folder)
        yield


# -- by time ------------------------------------------------------------------------------------------------


async def test_an_object_goes_with_its_bytes_when_its_time_is_over(objects: Objects, stored: Stored) -> None:
    await objects.put("a", b"first")
    await trio.sleep(DAY_S / 2)
    await objects.put("b", b"second")
    await trio.sleep(DAY_S / 2 - 1)
    assert (await objects.get("a")).status == 200
    await trio.sleep(2)
    assert (await objects.get("a")).code == "blob_not_found"
    assert [one["key"] for one in await objects.listed()] == ["b"]
    await trio.sleep(60)
    assert stored.files() == [b"second"]
    assert (await objects.put("a", b"another")).status == 201


async def test_a_key_is_free_at_once_when_the_time_of_its_object_is_over(
    world: World, objects: Objects
) -> None:
    """Nobody has swept: it is the clock that went on."""
    await objects.put("a", b"first")
    world.clock.skew_ms += (DAY_S + 1) * 1_000
    assert (await objects.put("a", b"second")).status == 201
    assert (await objects.get("a")).body == b"second"


async def test_no_object_goes_before_a_link_to_it_ends(objects: Objects, stored: Stored) -> None:
    await objects.put("a")
    await trio.sleep(DAY_S - 1)
    link, _ = await objects.link("a", 3 * DAY_S)
    shorter, _ = await objects.link("a", 60)
    await trio.sleep(3 * DAY_S - 1)
    assert (await objects.client.get(link)).status == 200
    assert (await objects.client.get(shorter)).code == "link_expired"
    await trio.sleep(2)
    assert (await objects.client.get(link)).code == "link_expired"
    assert (await objects.get("a")).code == "blob_not_found"
    await trio.sleep(60)
    assert stored.files() == []
    assert (await objects.sign("a")).code == "blob_not_found"


# -- by erasure ---------------------------------------------------------------------------------------------


async def fill(objects: Objects) -> None:
    """Objects and messages of two events; those of EVENT lie in many places and forms."""
    for event in (EVENT, OTHER):
        await objects.put(f"{event}/a", f"one of {event}".encode(), event=event)
        await objects.put(f"{event}/b", f"two of {event}".encode(), event=event)
    texts = [
        DATA_OF_EVENT,
        DATA_OF_EVENT | {"id": OTHER},
        {"originalMessage": DATA_OF_EVENT, "lastError": "no"},
    ]
    await objects.client.append(
        "dxn:queue:demo:log", *texts, {"event": DATA_OF_EVENT}, [EVENT], EVENT, {"it": EVENT}
    )
    await objects.client.append(
        "dxn:queue:demo:log", '{"id":"' + EVENT + '"}', '{"id":', "[1", {"id": 1}, None
    )


async def in_queue(client: Client, queue: str) -> list[Any]:
    reply = await client.get(f"/v1/dxn:queue:demo:{queue}")
    return [one["data"] for one in reply.json().get("objects", reply.json().get("entries"))]


async def test_an_event_is_erased_with_its_objects_and_its_messages_and_no_other(
    objects: Objects, stored: Stored
) -> None:
    await fill(objects)
    link, _ = await objects.link(f"{EVENT}/a")
    other, _ = await objects.link(f"{OTHER}/a")
    reply = await objects.erase()
    assert reply.json() == {"event": EVENT, "blobs": 2, "messages": 4}
    assert stored.files() == [b"one of " + OTHER.encode(), b"two of " + OTHER.encode()]
    assert (await objects.client.get(link)).code == "blob_not_found"
    assert (await objects.client.get(other)).status == 200
    assert await objects.listed() == []
    assert len(await objects.listed(OTHER)) == 2
    left = await in_queue(objects.client, "log")
    assert left == [
        DATA_OF_EVENT | {"id": OTHER},
        [EVENT],
        EVENT,
        {"it": EVENT},
        '{"id":',
        "[1",
        {"id": 1},
        None,
    ]
    assert (await objects.erase()).json() == {"event": EVENT, "blobs": 0, "messages": 0}


async def test_dead_letters_of_an_event_are_erased(objects: Objects) -> None:
    client, jobs = objects.client, "/v1/dxn:queue:demo:jobs"
    await client.post(f"{jobs}/push", {"entries": [{"data": DATA_OF_EVENT}, {"data": {"id": OTHER}}]})
    messages = (await client.post(f"{jobs}/pull", {"batch": 2})).json()["messages"]
    retries = [{"lease": one["lease"], "permanent": True, "error": "no"} for one in messages]
    assert (await client.post(f"{jobs}/retry", {"retries": retries})).status == 200
    assert len(await in_queue(client, "jobs-dlq")) == 2
    assert (await objects.erase()).json()["messages"] == 1
    assert await in_queue(client, "jobs-dlq") == [{"id": OTHER}]
    letters = (await client.get("/admin/queues/jobs/dlq?tenant_id=demo")).json()["dead_letters"]
    assert len(letters) == 1


async def test_all_that_there_is_of_an_event_goes_however_much_it_is(
    objects: Objects, stored: Stored
) -> None:
    for number in range(DOOMED_TOGETHER + 2):
        await objects.put(f"a/{number}", b"%d" % number)
    for start in range(0, 2 * SEARCHED, 100):
        some = [
            {"id": f"o{n}", "data": {"event": {"id": EVENT if n % 2 else OTHER}}}
            for n in range(start, start + 100)
        ]
        assert (await objects.client.post("/v1/dxn:queue:demo:log", {"entries": some})).status == 200
    reply = await objects.erase()
    assert reply.json() == {"event": EVENT, "blobs": DOOMED_TOGETHER + 2, "messages": SEARCHED}
    assert stored.files() == []


async def test_who_erased_what_is_on_record(world: World) -> None:
    world.token(name="everything")
    objects = Objects(await world.open(), world.token(name="office"))
    await objects.put("a")
    await objects.put("b", event=OTHER)
    await objects.client.post(
        "/v1/dxn:queue:demo:log", {"entries": [{"data": DATA_OF_EVENT}]}, *objects.headers
    )
    await objects.erase()
    assert (await objects.client.ask("DELETE", path("b"), headers=objects.headers)).status == 204
    reply = await objects.client.get("/admin/audit?tenant_id=demo", *objects.headers)
    found = [
        (one["who"]["name"], one["action"], one["queue"], one["detail"]) for one in reply.json()["audit"]
    ]
    assert found == [
        ("office", "erase", None, {"event": EVENT, "blobs": 1}),
        ("office", "erase", "log", {"event": EVENT, "messages": 1}),
        ("office", "erase", None, {"event": OTHER, "blobs": 1}),
    ]


async def test_only_who_may_delete_erases(world: World) -> None:
    others = world.token("read", "append", "list", "push", "configure", name="others")
    deleter = world.token("delete", spaces=[SPACE], name="deleter")
    objects = Objects(await world.open(), world.token())
    await objects.put("a")
    for target in (path("a"), f"/blobs/{SPACE}?event={EVENT}"):
        assert (await objects.client.ask("DELETE", target, headers=[others])).status == 403
    assert (await objects.client.ask("DELETE", path("a"), headers=[deleter])).status == 204
    assert (await objects.client.ask("DELETE", path("a"), headers=[deleter])).status == 404


# -- cut short ----------------------------------------------------------------------------------------------


async def test_what_cannot_be_deleted_now_is_there_for_nobody_and_deleted_later(
    objects: Objects, stored: Stored
) -> None:
    await objects.put("a")
    link, _ = await objects.link("a")
    trouble = stored.out_of_order()
    next(trouble)
    refused = await objects.erase()
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "blob_store_down", "5")
    assert (await objects.client.get(link)).code == "blob_not_found"
    assert await objects.listed() == []
    assert (await objects.put("a")).code == "blob_store_down"
    next(trouble)
    assert stored.files() == [b"hello"]
    await trio.sleep(REMIND_MS / 1_000 + 2)
    assert stored.files() == []


async def test_a_server_that_starts_goes_on_with_what_another_had_to_delete(
    tmp_path: Path, front: FrontName
) -> None:
    async with worlds(tmp_path, front) as world:
        stored, objects = Stored(world.folder / "blobs"), Objects(await world.open())
        await objects.put("a")
        trouble = stored.out_of_order()
        next(trouble)
        assert (await objects.erase()).code == "blob_store_down"
    next(trouble)
    assert stored.files() == [b"hello"]
    async with worlds(tmp_path, front) as world:
        await world.open()
        await trio.sleep(REMIND_MS / 1_000 + 2)
    assert stored.files() == []


async def test_bytes_that_a_crash_left_without_a_row_are_adopted_by_the_same_object_alone(
    world: World, objects: Objects
) -> None:
    folder = await open_folder(world.folder / "blobs", InlineDisk())
    await folder.put(path_of(SPACE, BUCKET, "a"), b"hello", "text/plain")
    assert (await objects.get("a")).code == "blob_not_found"
    assert (await objects.put("a", b"other")).code == "blob_conflict"
    assert (await objects.put("a")).status == 201
    assert (await objects.get("a")).body == b"hello"
    assert not list((world.folder / "blobs" / STAGED).glob("*"))
