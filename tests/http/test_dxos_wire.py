"""The DXOS dialect on the wire: envelopes, refusals, media types, tags, compression, web pages, strangers."""

from __future__ import annotations

import gzip
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from edgequeues.app import open_app
from edgequeues.settings import Settings
from shards.testing import InlineDisk, TrioClock

from .asgi import HOST, Client, Pairs, Reply
from .dxos_queue import OTHER_QUEUE, QUEUE, SPACE, Queue, body, note, oid, page, path, refused
from .fronted import FrontName, behind, only

HERE = (b"origin", b"http://localhost:5173")
ELSEWHERE = (b"origin", b"https://example.org")
GZIP = (b"accept-encoding", b"gzip, deflate")


@pytest.fixture
def queue(client: Client) -> Queue:
    return Queue(client)


@asynccontextmanager
async def served(front: FrontName, folder: Path, settings: Settings) -> AsyncIterator[Client]:
    """Another server than the usual one."""
    randomness = random.Random(2)
    async with open_app(folder, settings, clock=TrioClock(), disk=InlineDisk(), randomness=randomness) as app:
        yield Client(behind(front, app))


# -- success ---------------------------------------------------------------------------------------------


async def test_every_success_is_json_with_an_envelope_that_is_not_empty(queue: Queue) -> None:
    """An empty answer would break clients of 2025, one of another media type those of 2026."""
    inserted = await queue.send(body([note(1)]))
    deleted = await queue.client.delete(f"{queue.path}?ids={oid(2)}")
    for reply, status in ((inserted, 201), (deleted, 200)):
        assert (reply.status, reply.body) == (status, b'{"success":true,"data":{}}')
        assert reply.headers["content-type"] == "application/json"
    assert page(await queue.ask()).numbers == [1]


@pytest.mark.parametrize("media", [b"text/plain;charset=UTF-8", b"application/json", b"application/x-ndjson"])
async def test_the_media_type_of_an_insert_says_nothing(queue: Queue, media: bytes) -> None:
    assert (await queue.send(body([note(1)]), (b"content-type", media))).status == 201
    assert (await queue.query()).numbers == [1]


async def test_an_insert_without_a_media_type_is_taken(queue: Queue) -> None:
    text = body([note(1)])
    async with queue.client.open(
        "POST", queue.path, headers=[(b"content-length", b"%d" % len(text))]
    ) as exchange:
        exchange.end(text)
        assert await exchange.begun() == 201


async def test_a_client_that_says_json_where_there_is_no_body_is_answered(queue: Queue) -> None:
    json = (b"content-type", b"application/json")
    assert page(await queue.ask("", json)).objects == []
    reply = await queue.client.ask("DELETE", f"{queue.path}?ids={oid(1)}", headers=[json])
    assert reply.status == 200


async def test_a_query_can_be_asked_as_head(queue: Queue) -> None:
    await queue.insert(note(1))
    reply = await queue.client.ask("HEAD", f"{queue.path}/query")
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["etag"] == (await queue.ask()).headers["etag"]


# -- refusals --------------------------------------------------------------------------------------------

SPACES = [
    SPACE.lower(),
    SPACE[:-1],
    SPACE + "A",
    "A" + SPACE[1:],
    "B" + "1" * 32,
    "demo",
    "@",
    "B%2F" + SPACE[3:],
]
QUEUES = [QUEUE[:-1], QUEUE + "0", "8" + QUEUE[1:], QUEUE[:-1] + "U", "log", "@"]
BAD = [
    *(("GET", path(space=space) + "/query", 400, "invalid_id") for space in SPACES),
    *(("GET", path(queue=queue) + "/query", 400, "invalid_id") for queue in QUEUES),
    ("POST", path(space="demo"), 400, "invalid_id"),
    ("DELETE", path(queue="log") + "?ids=", 400, "invalid_id"),
    ("GET", path("weird") + "/query", 400, "invalid_request"),
    ("POST", path("weird"), 400, "invalid_request"),
    ("GET", path("%FF") + "/query", 400, "invalid_request"),
    ("GET", path() + "/query?limit=x", 400, "invalid_request"),
    ("GET", path() + "/query?limit=-1", 400, "invalid_request"),
    ("GET", path() + "/query?limit=1&limit=2", 400, "invalid_request"),
    ("GET", path() + "/query?reverse=1", 400, "invalid_request"),
    ("GET", path() + "/query?after=x", 400, "invalid_cursor"),
    ("GET", path() + "/query?before=x", 400, "invalid_cursor"),
    ("GET", path() + "/query?objectIds=door", 400, "invalid_id"),
    ("GET", path() + "/query?x=%FF", 400, "invalid_request"),
    ("POST", path(), 400, "invalid_json"),
    ("GET", "/spaces/data", 404, "not_found"),
    ("GET", path() + "/nothing", 404, "not_found"),
    ("GET", path() + "/", 404, "not_found"),
    ("GET", path(space="") + "/query", 404, "not_found"),
    ("GET", "/ws/one", 404, "not_found"),
    ("GET", path(), 405, "method_not_allowed"),
    ("POST", path() + "/query", 405, "method_not_allowed"),
    ("POST", "/ws/one/two", 405, "method_not_allowed"),
]


@pytest.mark.parametrize(("method", "target", "status", "code"), BAD)
async def test_a_refusal_speaks_to_old_clients_and_to_new_ones(
    client: Client, method: str, target: str, status: int, code: str
) -> None:
    reply = await client.ask(method, target)
    assert (reply.status, refused(reply)) == (status, code)
    assert ("allow" in reply.headers) == (status == 405)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"objects":[{"id":"\xff"}]}', "invalid_json"),
        (b"[]", "invalid_request"),
        (b"{}", "invalid_request"),
        (b'{"objects":{}}', "invalid_request"),
        (b'{"objects":[],"objects":[]}', "invalid_json"),
    ],
)
async def test_a_body_without_a_list_of_objects_is_refused(queue: Queue, text: bytes, code: str) -> None:
    reply = await queue.send(text)
    assert (reply.status, refused(reply)) == (400, code)


@only("app", "lane", why="h11 counts the Host headers itself, and knows no dialects")
async def test_what_is_refused_before_routing_is_refused_in_the_same_words(queue: Queue) -> None:
    target = f"{queue.path}/query"
    misled: Pairs = [(b"host", b"example.org")]
    reply = await queue.client.ask("GET", target, headers=misled, host=False)
    assert (reply.status, refused(reply)) == (421, "misdirected")
    reply = await queue.client.ask("GET", target, headers=[HOST, HOST], host=False)
    assert (reply.status, refused(reply)) == (400, "invalid_request")


async def test_a_cursor_of_another_queue_or_tag_is_refused(queue: Queue) -> None:
    await queue.insert(note(1))
    cursor = await queue.cursor(1)
    for other, code in (
        (Queue(queue.client, queue=OTHER_QUEUE), "invalid_cursor"),
        (Queue(queue.client, "trace"), "cursor_store"),
    ):
        await other.insert(note(1))
        reply = await other.ask(f"?after={cursor}")
        assert (reply.status, refused(reply)) == (400, code)


async def test_a_cursor_of_another_store_is_400_and_natively_410(
    queue: Queue, tmp_path: Path, front: FrontName
) -> None:
    async with served(front, tmp_path / "other", Settings()) as other:
        foreign = Queue(other)
        await foreign.insert(note(1))
        cursor = await foreign.cursor(1)
    for _ in range(2):  # before the space is made, and then
        for reply in (
            await queue.ask(f"?after={cursor}"),
            await queue.client.delete(f"{queue.path}?after={cursor}"),
        ):
            assert (reply.status, refused(reply)) == (400, "cursor_store")
        assert (await queue.client.get(f"{queue.native}?after={cursor}")).status == 410
        await queue.insert(note(1))


async def test_a_body_may_have_so_many_bytes_as_the_setting_says(tmp_path: Path, front: FrontName) -> None:
    async with served(front, tmp_path, Settings(body_bytes_max=1024)) as client:
        queue = Queue(client)
        fill = 1024 - len(body([note(1, fill="")]))
        reply = await queue.send(body([note(1, fill="x" * (fill + 1))]))
        assert (reply.status, refused(reply)) == (413, "too_large")
        await queue.insert(note(1, fill="x" * fill))
        assert (await queue.query()).numbers == [1]


# -- tags and compression --------------------------------------------------------------------------------


async def news(queue: Queue, tag: str) -> str:
    """The tag of what there is now, asked for by a client that has `tag`."""
    reply = await queue.ask("", (b"if-none-match", tag.encode()))
    if reply.status == 304:
        assert (reply.body, reply.headers["etag"]) == (b"", tag)
        assert "content-type" not in reply.headers
    else:
        assert page(reply).objects is not None
    assert reply.headers["cache-control"] == "no-cache"
    return reply.headers["etag"]


async def test_nothing_changed_is_304_until_something_does(queue: Queue) -> None:
    changes = [
        partial(queue.insert, note(1), note(2)),
        partial(queue.insert, note(1, changed=True)),
        partial(queue.delete, f"?ids={oid(2)}"),
    ]
    tags = [await news(queue, 'W/"other"')]
    for change in changes:
        assert (await queue.ask("", (b"if-none-match", tags[-1].encode()))).status == 304
        await change()
        tags.append(await news(queue, tags[-1]))
        assert await news(queue, tags[-1]) == tags[-1]
    assert len(set(tags)) == 4
    await Queue(queue.client, "trace").insert(note(3))
    assert (await queue.ask("", (b"if-none-match", tags[-1].encode()))).status == 304


@pytest.mark.parametrize("count", [1_000, 2_500])
async def test_gzip_holds_the_same_bytes(queue: Queue, count: int) -> None:
    await queue.insert(*map(note, range(count)))
    plain, packed = await queue.ask(), await queue.ask("", GZIP)
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 4
    assert packed.headers["etag"] == plain.headers["etag"]
    assert page(plain).numbers == list(range(count))


# -- web pages -------------------------------------------------------------------------------------------


def allowed(reply: Reply) -> str | None:
    """Which page may read the answer. It may then see the headers that matter, too."""
    origin = reply.headers.get("access-control-allow-origin")
    if origin is not None:
        exposed = reply.headers["access-control-expose-headers"].split(", ")
        assert {"etag", "retry-after", "www-authenticate"} <= set(exposed)
    return origin


async def test_a_page_may_read_successes_and_refusals(queue: Queue) -> None:
    replies = [
        await queue.send(body([note(1)]), HERE),
        await queue.ask("", HERE),
        await queue.ask("", HERE, (b"if-none-match", (await queue.ask()).headers["etag"].encode())),
        await queue.client.ask("DELETE", f"{queue.path}?ids=", headers=[HERE]),
        await queue.ask("?limit=x", HERE),
        await queue.client.get("/spaces/nothing", HERE),
        await queue.client.ask("PUT", queue.path, headers=[HERE]),
        await queue.client.get("/ws/one/two", HERE),
    ]
    assert [reply.status for reply in replies] == [201, 200, 304, 200, 400, 404, 405, 426]
    assert {allowed(reply) for reply in replies} == {"http://localhost:5173"}
    assert allowed(await queue.ask()) is None


async def test_a_page_of_another_origin_is_refused_and_may_not_even_read_why(queue: Queue) -> None:
    replies = [
        await queue.send(body([note(1)]), ELSEWHERE),
        await queue.client.ask("OPTIONS", queue.path, headers=[ELSEWHERE]),
    ]
    for reply in replies:
        assert (reply.status, refused(reply), allowed(reply)) == (403, "forbidden_origin", None)
    assert (await queue.query()).objects == []


async def test_the_setting_says_which_pages_may_ask(tmp_path: Path, front: FrontName) -> None:
    async with served(front, tmp_path, Settings(cors_origins=["https://example.org"])) as client:
        queue = Queue(client)
        assert (await queue.send(body([note(1)]), ELSEWHERE)).status == 201
        assert allowed(await queue.ask("", ELSEWHERE)) == "https://example.org"
        assert (await queue.ask("", HERE)).status == 403


@pytest.mark.parametrize(
    ("target", "method", "methods"),
    [
        (path(), b"POST", {"POST", "DELETE"}),
        (path(), b"DELETE", {"POST", "DELETE"}),
        (path() + "/query", b"GET", {"GET", "HEAD"}),
        ("/ws/one/two", b"GET", {"GET", "HEAD"}),
    ],
)
async def test_a_preflight_allows_the_methods_of_the_path_and_the_headers_asked_for(
    client: Client, target: str, method: bytes, methods: set[str]
) -> None:
    names = "authorization,content-type,traceparent,tracestate,x-dxos-client-tag"
    asked: Pairs = [
        (b"access-control-request-method", method),
        (b"access-control-request-headers", names.encode()),
    ]
    reply = await client.ask("OPTIONS", target, headers=[HERE, *asked])
    assert (reply.status, reply.body, allowed(reply)) == (204, b"", "http://localhost:5173")
    assert set(reply.headers["access-control-allow-methods"].split(", ")) == methods
    assert reply.headers["access-control-allow-headers"] == names
    reply = await client.ask("OPTIONS", target, headers=[ELSEWHERE, *asked])
    assert (reply.status, allowed(reply)) == (403, None)


# -- strangers -------------------------------------------------------------------------------------------


async def test_strangers_who_make_many_spaces_are_told_to_wait_in_words_that_clients_heed(
    tmp_path: Path, front: FrontName
) -> None:
    settings = Settings(insecure=True, host="0.0.0.0", stranger_spaces_per_minute=2)
    spaces = ["B" + letter * 32 for letter in "ABCD"]
    async with served(front, tmp_path, settings) as client:
        queues = [Queue(client, space=space) for space in spaces]
        await queues[0].insert(note(1))
        await queues[1].insert(note(1))
        reply = await queues[2].send(body([note(1)]))
        assert (reply.status, refused(reply)) == (503, "rate_limited")
        assert int(reply.headers["retry-after"]) > 0
        reply = await client.post(queues[3].native, {"entries": [{"data": 1}]})
        assert (reply.status, reply.code) == (429, "rate_limited")
        assert int(reply.headers["retry-after"]) > 0
        await queues[0].insert(note(2))  # what is there may be used
        assert (await queues[2].query()).objects == []
        assert len((await client.get("/v1/spaces")).json()["spaces"]) == 2
