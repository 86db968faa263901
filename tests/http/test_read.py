"""GET of ranges and objects."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import trio

from edgequeues.models import ENTRIES_MAX
from edgequeues.space.pages import WINDOW_ROWS

from .asgi import Client, Reply
from .fronted import only

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"


@pytest.fixture
async def filled(client: Client) -> Client:
    """Ten objects, a0 to a9, the odd ones of type T."""
    entries = [{"data": n, "id": f"a{n}", **({"type": "T"} if n % 2 else {})} for n in range(10)]
    assert (await client.post(LOG, {"entries": entries})).status == 200
    return client


async def fill(client: Client, count: int) -> None:
    for start in range(0, count, ENTRIES_MAX):
        await client.append(Q, *range(start, min(start + ENTRIES_MAX, count)))


def data(reply: Reply) -> list[Any]:
    assert reply.status == 200, reply.body
    return [one["data"] for one in reply.json()["entries"]]


async def cursor_of(client: Client, object_id: str) -> str:
    """The cursor at an object."""
    return str((await client.get(f"{LOG}?id={object_id}")).json()["nextCursor"])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", list(range(10))),
        ("?limit=3", [0, 1, 2]),
        ("?limit=1000000", list(range(10))),
        ("?reverse=true", list(range(9, -1, -1))),
        ("?reverse=true&limit=2", [9, 8]),
        ("?reverse=false", list(range(10))),
        ("?type=T", [1, 3, 5, 7, 9]),
        ("?type=T&reverse=true&limit=1", [9]),
        ("?type=none", []),
        ("?id=a3&id=a1", [1, 3]),
        ("?id=a3,a1,zz", [1, 3]),
        ("?id=a3,a1&type=none", []),
        ("?since=0", list(range(10))),
        ("?since=1700000000001", []),
        ("?until=1699999999999", []),
        ("?since=1700000000000&until=1700000000000", list(range(10))),
    ],
)
async def test_a_range_is_chosen_by_its_parameters(filled: Client, query: str, expected: list[int]) -> None:
    assert data(await filled.get(LOG + query)) == expected


async def test_cursors_are_exclusive_and_chain_in_both_directions(filled: Client) -> None:
    third, seventh = await cursor_of(filled, "a3"), await cursor_of(filled, "a7")
    assert data(await filled.get(f"{LOG}?after={third}&before={seventh}")) == [4, 5, 6]
    assert data(await filled.get(f"{LOG}?after={third}&before={seventh}&reverse=true")) == [6, 5, 4]
    page = (await filled.get(f"{LOG}?after={third}&limit=2")).json()
    assert data(await filled.get(f"{LOG}?after={page['nextCursor']}&limit=2")) == [6, 7]
    assert data(await filled.get(f"{LOG}?before={page['prevCursor']}&reverse=true&limit=2")) == [3, 2]


async def test_next_is_the_highest_and_prev_the_lowest_also_when_reversed(filled: Client) -> None:
    first, last = await cursor_of(filled, "a0"), await cursor_of(filled, "a9")
    for query in ("", "?reverse=true"):
        page = (await filled.get(LOG + query)).json()
        assert (page["prevCursor"], page["nextCursor"]) == (first, last)


async def test_an_empty_answer_gives_back_its_cursors(filled: Client) -> None:
    last = await cursor_of(filled, "a9")
    page = (await filled.get(f"{LOG}?after={last}")).json()
    assert page == {"entries": [], "nextCursor": last, "prevCursor": None}
    page = (await filled.get(f"{LOG}?before={last}&type=none")).json()
    assert page == {"entries": [], "nextCursor": None, "prevCursor": last}


@pytest.mark.parametrize("address", ["dxn:queue:demo:unknown", "dxn:queue:nowhere:log"])
async def test_an_unknown_queue_reads_as_empty_and_is_not_made(filled: Client, address: str) -> None:
    reply = await filled.get(f"/v1/{address}")
    assert reply.json() == {"entries": [], "nextCursor": None, "prevCursor": None}
    assert len((await filled.get("/v1/spaces")).json()["spaces"]) == 1


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("limit=0", "invalid_request", "limit"),
        ("limit=1000001", "invalid_request", "limit"),
        ("limit=-1", "invalid_request", "limit"),
        ("limit=x", "invalid_request", "limit"),
        ("limit=1&limit=2", "invalid_request", "limit"),
        ("reverse=1", "invalid_request", "reverse"),
        ("since=x", "invalid_request", "since"),
        ("until=-5", "invalid_request", "until"),
        ("wait=61", "invalid_request", "wait"),
        ("wait=x", "invalid_request", "wait"),
        ("after=", "invalid_request", "after"),
        ("after=abc", "invalid_cursor", "abc"),
        ("before=abc", "invalid_cursor", "abc"),
        ("type=", "invalid_request", "type"),
        ("type=a%00b", "invalid_id", "type"),
        ("id=", "invalid_request", "id"),
        ("id=a%20b", "invalid_id", "object id"),
        ("lmit=1", "invalid_request", "lmit"),
    ],
)
async def test_a_bad_parameter_is_refused_by_name(filled: Client, query: str, code: str, said: str) -> None:
    for address in (Q, "dxn:queue:nowhere:log"):
        reply = await filled.get(f"/v1/{address}?{query}")
        assert (reply.status, reply.code) == (400, code)
        assert said in reply.json()["detail"]


async def test_a_cursor_of_another_queue_is_400_and_of_another_store_410(filled: Client) -> None:
    other = (await filled.append("dxn:queue:demo:other", 1)).json()["cursor"]
    reply = await filled.get(f"{LOG}?after={other}")
    assert (reply.status, reply.code) == (400, "invalid_cursor")
    foreign = (await filled.append("dxn:queue:elsewhere:log", 1)).json()["cursor"]
    for address in (Q, "dxn:queue:nowhere:log"):
        reply = await filled.get(f"/v1/{address}?after={foreign}")
        assert (reply.status, reply.code) == (410, "cursor_store")


# -- one object ------------------------------------------------------------------------------------------


async def test_an_object_is_read_by_its_address(filled: Client) -> None:
    reply = await filled.get(f"{LOG}:a3")
    assert reply.json() == (await filled.get(f"{LOG}?id=a3")).json()["entries"][0]
    assert (await filled.get("/v1/echo:%2F%2Fdemo%2Flog%2Fa3")).json()["data"] == 3


@pytest.mark.parametrize(
    ("address", "code"),
    [
        (f"{Q}:zz", "entry_not_found"),
        ("dxn:queue:demo:unknown:a1", "queue_not_found"),
        ("dxn:queue:nowhere:log:a1", "queue_not_found"),
    ],
)
async def test_what_is_not_there_is_404(filled: Client, address: str, code: str) -> None:
    reply = await filled.get(f"/v1/{address}")
    assert (reply.status, reply.code) == (404, code)


async def test_an_object_takes_no_parameters(filled: Client) -> None:
    assert (await filled.get(f"{LOG}:a3?limit=1")).code == "invalid_request"


# -- conditional -----------------------------------------------------------------------------------------


async def test_an_unchanged_queue_answers_304_until_it_changes(filled: Client) -> None:
    tag = (await filled.get(LOG)).headers["etag"].encode()
    for known in (tag, tag.removeprefix(b"W/"), b'"x", ' + tag):
        reply = await filled.get(LOG, (b"if-none-match", known))
        assert (reply.status, reply.body, reply.headers["etag"]) == (304, b"", tag.decode())
    assert (await filled.get(LOG, (b"if-none-match", b'"x"'))).status == 200
    await filled.append(Q, {"id": "a3", "now": "other"})
    assert (await filled.get(LOG, (b"if-none-match", tag))).status == 200


async def test_expiry_and_deletes_change_the_tag(filled: Client) -> None:
    await filled.post(LOG, {"entries": [{"data": 1, "ttl_ms": 1_000}]})
    tag = (await filled.get(LOG)).headers["etag"].encode()
    await trio.sleep(2)
    reply = await filled.get(LOG, (b"if-none-match", tag))
    assert (reply.status, len(data(reply))) == (200, 10)
    await filled.delete(f"{LOG}:a3")
    assert (await filled.get(LOG, (b"if-none-match", reply.headers["etag"].encode()))).status == 200


async def test_an_unknown_queue_has_a_tag_too_and_its_making_changes_it(client: Client) -> None:
    tag = (await client.get(LOG)).headers["etag"].encode()
    assert (await client.get(LOG, (b"if-none-match", tag))).status == 304
    await client.append("dxn:queue:demo:other", 1)
    tag = (await client.get(LOG)).headers["etag"].encode()
    assert (await client.get(LOG, (b"if-none-match", tag))).status == 304
    await client.append(Q, 1)
    assert (await client.get(LOG, (b"if-none-match", tag))).status == 200


# -- more than a page ------------------------------------------------------------------------------------


async def test_a_range_of_many_pages_is_one_answer(client: Client) -> None:
    await fill(client, 2_500)
    whole = await client.get(LOG)
    assert "content-length" not in whole.headers
    assert data(whole) == list(range(2_500))
    assert (
        whole.json()["nextCursor"] == (await client.get(f"{LOG}?reverse=true&limit=1")).json()["nextCursor"]
    )
    assert whole.json()["prevCursor"] == (await client.get(f"{LOG}?limit=1")).json()["prevCursor"]
    backwards = await client.get(f"{LOG}?reverse=true")
    assert data(backwards) == list(range(2_499, -1, -1))
    assert backwards.json() | {"entries": 0} == whole.json() | {"entries": 0}


@pytest.mark.parametrize("limit", [999, 1_000, 1_001, 2_000, 2_001, 2_500, 9_999])
async def test_a_limit_may_be_larger_than_a_page(client: Client, limit: int) -> None:
    await fill(client, 2_500)
    assert data(await client.get(f"{LOG}?limit={limit}")) == list(range(min(limit, 2_500)))
    newest_first = list(range(2_499, -1, -1))[:limit]
    assert data(await client.get(f"{LOG}?limit={limit}&reverse=true")) == newest_first


async def test_a_long_search_that_finds_nothing_is_a_whole_answer(client: Client) -> None:
    for _ in range(6):
        await fill(client, 1_000)
    reply = await client.get(f"{LOG}?until=1")
    assert reply.json() == {"entries": [], "nextCursor": None, "prevCursor": None}


async def test_a_long_search_that_finds_something_has_the_cursors_of_what_it_found(client: Client) -> None:
    await client.append(Q, 0)
    await trio.sleep(1)
    await fill(client, WINDOW_ROWS + 1)
    found = (await client.get(f"{LOG}?until=1700000000000&reverse=true")).json()
    first = (await client.get(f"{LOG}?limit=1")).json()
    assert found == first


async def test_a_streamed_range_is_compressed_for_those_who_ask(client: Client) -> None:
    await fill(client, 1_500)
    reply = await client.get(LOG, (b"accept-encoding", b"gzip"))
    assert reply.headers["content-encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(reply.body))["entries"]) == 1_500


@only("app", why="a socket takes more than one piece that nobody reads")
async def test_a_range_is_read_as_fast_as_the_client_takes_it(client: Client) -> None:
    """Entries deleted while the client pauses are in the answer only as far as the one page read ahead."""
    await fill(client, 3_000)
    async with client.open("GET", LOG, ahead=0) as exchange:
        first = await exchange.piece()
        assert first is not None
        assert first.count(b'"data"') == 1_000
        await trio.testing.wait_all_tasks_blocked()
        tail = (await client.get(f"{LOG}?reverse=true&limit=1")).json()["nextCursor"]
        assert (await client.delete(f"{LOG}?through={tail}")).json() == {"deleted": 3_000}
        rest = await exchange.rest()
    assert len(json.loads(first + rest)["entries"]) == 2_000


async def test_a_queue_that_grows_while_it_is_read_has_an_end(client: Client) -> None:
    await fill(client, 2_500)
    pieces = []
    async with client.open("GET", LOG, ahead=0) as exchange:
        while (piece := await exchange.piece()) is not None:
            pieces.append(piece)
            await fill(client, 1_000)
            assert len(pieces) < 10
    answer = json.loads(b"".join(pieces))
    assert [one["data"] for one in answer["entries"]] == list(range(2_500))
    assert len(data(await client.get(f"{LOG}?after={answer['nextCursor']}"))) >= 3_000


async def test_a_range_that_ends_before_the_tail_stays_within_its_bounds(client: Client) -> None:
    await fill(client, 2_500)
    end = (await client.get(f"{LOG}?limit=1500")).json()["nextCursor"]
    assert data(await client.get(f"{LOG}?before={end}")) == list(range(1_499))


async def test_hanging_up_ends_a_streamed_range(client: Client) -> None:
    await fill(client, 3_000)
    async with client.open("GET", LOG, ahead=0) as exchange:
        assert await exchange.piece()
        exchange.hang_up()
        await exchange.ended.wait()
        assert not exchange.whole


async def test_head_of_a_range_has_its_tag(filled: Client) -> None:
    reply = await filled.ask("HEAD", LOG)
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["etag"] == (await filled.get(LOG)).headers["etag"]
