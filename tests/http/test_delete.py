"""DELETE of an object, of objects by id, and of ranges."""

from __future__ import annotations

import pytest

from .asgi import Client

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"


@pytest.fixture
async def filled(client: Client) -> Client:
    """Ten objects, a0 to a9."""
    await client.append(Q, *({"id": f"a{n}"} for n in range(10)))
    return client


async def left(client: Client) -> str:
    """The digits of the objects still there."""
    return "".join(one["id"][1:] for one in (await client.get(LOG)).json()["entries"])


async def cursor_of(client: Client, object_id: str) -> str:
    return str((await client.get(f"{LOG}?id={object_id}")).json()["nextCursor"])


async def test_an_object_is_deleted_once(filled: Client) -> None:
    assert (await filled.delete(f"{LOG}:a3")).json() == {"deleted": 1}
    assert (await filled.delete(f"{LOG}:a3")).json() == {"deleted": 0}
    assert await left(filled) == "012456789"


@pytest.mark.parametrize("query", ["id=a1&id=a3", "id=a1,a3", "id=a1,a3,zz", "id=a1,a3&id=a3"])
async def test_objects_are_deleted_by_id_and_unknown_ones_count_0(filled: Client, query: str) -> None:
    assert (await filled.delete(f"{LOG}?{query}")).json() == {"deleted": 2}
    assert await left(filled) == "02456789"


async def test_after_and_before_are_exclusive_and_through_is_inclusive(filled: Client) -> None:
    two, five, eight = [await cursor_of(filled, f"a{n}") for n in (2, 5, 8)]
    assert (await filled.delete(f"{LOG}?after={two}&before={five}")).json() == {"deleted": 2}
    assert await left(filled) == "01256789"
    assert (await filled.delete(f"{LOG}?after={two}&through={eight}")).json() == {"deleted": 4}
    assert await left(filled) == "0129"
    assert (await filled.delete(f"{LOG}?before={two}")).json() == {"deleted": 2}
    assert (await filled.delete(f"{LOG}?after={two}")).json() == {"deleted": 1}
    assert await left(filled) == "2"


async def test_through_next_cursor_deletes_what_was_read(filled: Client) -> None:
    read = (await filled.get(f"{LOG}?limit=4")).json()
    assert (await filled.delete(f"{LOG}?through={read['nextCursor']}")).json() == {"deleted": 4}
    assert await left(filled) == "456789"


async def test_a_range_of_many_steps_is_deleted_by_one_request(client: Client) -> None:
    await client.stream(LOG, *(b'{"data":%d}' % n for n in range(3_500)))
    tail = (await client.get(f"{LOG}/stats")).json()["cursor"]
    assert (await client.delete(f"{LOG}?through={tail}")).json() == {"deleted": 3_500}
    assert (await client.get(f"{LOG}/stats")).json()["entries"] == 0


@pytest.mark.parametrize("address", ["dxn:queue:demo:unknown", "dxn:queue:nowhere:log"])
async def test_in_an_unknown_queue_there_is_nothing_to_delete(filled: Client, address: str) -> None:
    assert (await filled.delete(f"/v1/{address}?id=a1")).json() == {"deleted": 0}
    assert (await filled.delete(f"/v1/{address}:a1")).json() == {"deleted": 0}
    assert len((await filled.get("/v1/spaces")).json()["spaces"]) == 1


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        (LOG, "invalid_request", "id"),
        (f"{LOG}?id=a1&after=x", "invalid_request", "either"),
        (f"{LOG}?id=", "invalid_request", "id"),
        (f"{LOG}?id=a%20b", "invalid_id", "object id"),
        (f"{LOG}?id={','.join(['a'] * 1_001)}", "invalid_request", "1000"),
        (f"{LOG}?through=abc", "invalid_cursor", "abc"),
        (f"{LOG}?after=", "invalid_request", "after"),
        (f"{LOG}?limit=1", "invalid_request", "limit"),
        (f"{LOG}:a1?id=a1", "invalid_request", "id"),
        ("/v1/dxn:queue:nowhere:log?through=abc", "invalid_cursor", "abc"),
    ],
)
async def test_a_bad_selection_is_refused_and_deletes_nothing(
    filled: Client, target: str, code: str, said: str
) -> None:
    reply = await filled.delete(target)
    assert (reply.status, reply.code) == (400, code)
    assert said in reply.json()["detail"]
    assert await left(filled) == "0123456789"


async def test_cursors_of_another_store_delete_nothing(filled: Client) -> None:
    foreign = (await filled.append("dxn:queue:elsewhere:log", 1)).json()["cursor"]
    for address in (Q, "dxn:queue:nowhere:log"):
        reply = await filled.delete(f"/v1/{address}?through={foreign}")
        assert (reply.status, reply.code) == (410, "cursor_store")
    assert await left(filled) == "0123456789"
