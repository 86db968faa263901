"""Objects over HTTP: stored once and for all, checked before, and fetched whole or in part."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgequeues.app import open_app
from shards.testing import InlineDisk, TrioClock

from .asgi import Client, Pairs
from .fronted import only
from .objects import BUCKET, EVENT, SPACE, TEXT, Objects, about, path
from .world import World

DATA = b"0123456789"


@pytest.fixture
def objects(client: Client) -> Objects:
    return Objects(client)


# -- storing ------------------------------------------------------------------------------------------------


async def test_what_is_known_of_an_object_is_kept(objects: Objects) -> None:
    headers = [
        (b"x-media-width", b"640"),
        (b"x-media-height", b"480"),
        *about(filename="Käse.png", media="image/PNG; q=1"),
    ]
    made = await objects.client.ask("PUT", path("a/b.png"), DATA, headers=headers)
    assert made.status == 201
    shown = made.json()
    assert shown.pop("keptUntil") > shown.pop("createdAt")
    assert shown == {
        "bucket": BUCKET,
        "key": "a/b.png",
        "eventId": EVENT,
        "source": "email",
        "contentType": "image/png",
        "size": len(DATA),
        "sha256": sha256(DATA).hexdigest(),
        "filename": "Käse.png",
        "mediaWidth": 640,
        "mediaHeight": 480,
    }
    assert await objects.listed() == [made.json()]


async def test_identical_content_is_no_change_and_other_content_a_conflict(objects: Objects) -> None:
    first = await objects.put("a", DATA)
    await trio.sleep(5)
    again = await objects.put("a", DATA, event="another-event")
    assert (first.status, again.status) == (201, 200)
    assert again.json() == first.json()
    other = await objects.put("a", b"other")
    assert (other.status, other.code) == (409, "blob_conflict")
    assert (await objects.get("a")).body == DATA


async def test_of_many_who_store_under_one_key_at_once_one_wins(objects: Objects) -> None:
    statuses: list[tuple[int, bytes]] = []

    async def put(data: bytes) -> None:
        statuses.append(((await objects.put("a", data)).status, data))

    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(put, b"%d" % (number % 3))
    [winner] = [data for status, data in statuses if status == 201]
    assert (await objects.get("a")).body == winner
    assert sorted(status for status, _ in statuses) == [200] * 3 + [201] + [409] * 8
    assert all((data == winner) == (status != 409) for status, data in statuses)


@pytest.mark.parametrize(
    "key", ["", "a//b", "a/", ".", "..", "a/../b", "a/./b", "a\nb", "a\x7fb", "é" * 513], ids=ascii
)
async def test_a_key_that_is_none_is_refused(objects: Objects, key: str) -> None:
    refused = await objects.put(key)
    assert (refused.status, refused.code) == (400, "invalid_request")
    assert (await objects.get(key)).code == "invalid_request"
    assert (await objects.sign(key)).code == "invalid_request"
    assert await objects.listed() == []


async def test_a_path_is_decoded_once_and_an_encoded_slash_is_one(objects: Objects) -> None:
    await objects.client.ask("PUT", f"/blobs/{SPACE}/{BUCKET}/a%2Fb%2520c", DATA, headers=about())
    assert [one["key"] for one in await objects.listed()] == ["a/b%20c"]
    assert (await objects.client.get(f"/blobs/{SPACE}/{BUCKET}/a/b%2520c")).body == DATA
    assert (await objects.client.get(f"/blobs/{SPACE}/{BUCKET}/a/b%20c")).status == 404


@pytest.mark.parametrize("bucket", ["B", "ab", "a_b", "-ab", "a" * 64, "a.b"])
async def test_a_bucket_that_is_none_is_refused(client: Client, bucket: str) -> None:
    refused = await client.ask("PUT", path("a", bucket=bucket), DATA, headers=about())
    assert (refused.status, refused.code) == (400, "invalid_request")


LACKING: list[tuple[Pairs, int, str]] = [
    (about()[1:], 400, "invalid_request"),
    ([about()[0], TEXT], 400, "invalid_request"),
    (about(event=""), 400, "invalid_request"),
    (about(event="e" * 129), 400, "invalid_request"),
    (about(event="%00"), 400, "invalid_request"),
    (about(event="%ff"), 400, "invalid_request"),
    (about(media="text"), 400, "invalid_request"),
    ([*about(), (b"x-media-width", b"0")], 400, "invalid_request"),
    ([*about(), (b"x-media-width", b"-1")], 400, "invalid_request"),
    (about(media="application/x-msdownload"), 415, "blob_type_refused"),
    (about(media="text/javascript"), 415, "blob_type_refused"),
    ([*about(), (b"content-encoding", b"gzip")], 415, "unsupported_media_type"),
]


@pytest.mark.parametrize(("headers", "status", "code"), LACKING)
async def test_what_will_not_do_is_refused_and_nothing_is_stored(
    client: Client, tmp_path: Path, headers: Pairs, status: int, code: str
) -> None:
    refused = await client.ask("PUT", path("a"), DATA, headers=headers)
    assert (refused.status, refused.code) == (status, code)
    assert not (tmp_path / "data" / "blobs").exists()
    assert (await client.get(path("a"))).status == 404


async def test_an_object_has_so_many_bytes_at_most(world: World) -> None:
    objects = Objects(await world.open(blobs_file_bytes_max=10))
    assert (await objects.put("a", DATA)).status == 201
    refused = await objects.put("b", DATA + b"!")
    assert (refused.status, refused.code) == (413, "too_large")
    async with objects.client.open("PUT", path("c"), headers=about()) as exchange:  # it does not say how many
        exchange.send(DATA)
        exchange.end(b"!")
        assert await exchange.begun() == 413
    assert [one["key"] for one in await objects.listed()] == ["a"]


@only("app", why="a front keeps to the length itself")
@pytest.mark.parametrize("stated", [b"9", b"11"])
async def test_a_body_that_is_not_as_long_as_it_says_is_refused(objects: Objects, stated: bytes) -> None:
    async with objects.client.open(
        "PUT", path("a"), headers=[*about(), (b"content-length", stated)]
    ) as exchange:
        exchange.end(DATA)
        assert await exchange.begun() == 400
    assert await objects.listed() == []


async def test_an_upload_that_breaks_off_stores_nothing(objects: Objects) -> None:
    headers = [*about(), (b"content-length", b"10")]
    async with objects.client.open("PUT", path("a"), headers=headers) as exchange:
        exchange.send(b"01234")
        await trio.sleep(1)
        exchange.hang_up()
        await exchange.ended.wait()
    assert await objects.listed() == []


KEYS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=300)


@given(keys=st.lists(KEYS, min_size=1, max_size=3, unique=True))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_key_that_is_taken_is_given_back(tmp_path_factory: Any, keys: list[str]) -> None:
    async with open_app(tmp_path_factory.mktemp("data"), clock=TrioClock(), disk=InlineDisk()) as server:
        objects = Objects(Client(server))
        taken = {key for key in keys if (await objects.put(key, key.encode())).status == 201}
        assert {one["key"] for one in await objects.listed()} == taken
        for key in taken:
            assert (await objects.get(key)).body == key.encode()
            link, _ = await objects.link(key)
            assert (await objects.client.get(link)).body == key.encode()
        for key in set(keys) - taken:
            assert any(part in ("", ".", "..") for part in key.split("/"))


# -- fetching -----------------------------------------------------------------------------------------------


async def test_what_is_fetched_is_saved_and_never_run(objects: Objects) -> None:
    await objects.put("a/body.html", b"<script>alert(1)</script>", media="text/html")
    found = await objects.get("a/body.html")
    assert found.headers["content-type"] == "text/html"
    assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''body.html"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["content-security-policy"] == "sandbox"
    assert found.headers["cache-control"].startswith("private")


NAMES = {
    "Scan 2024-03-07 at 9.12.png": "Scan%202024-03-07%20at%209.12.png",
    "a+b.txt": "a%2Bb.txt",
    "50%.csv": "50%25.csv",
    "c++/x": "c%2B%2B%2Fx",
    "q?x=1#f.txt": "q%3Fx%3D1%23f.txt",
    "semi;colon&amp.txt": "semi%3Bcolon%26amp.txt",
    'quote".txt': "quote%22.txt",
    "a\r\nset-cookie: x": "a__set-cookie%3A%20x",
    "\u202egpj.exe": "_gpj.exe",
}


@pytest.mark.parametrize(("name", "coded"), NAMES.items(), ids=ascii)
async def test_a_file_is_given_back_under_the_name_it_came_with(
    objects: Objects, name: str, coded: str
) -> None:
    assert (await objects.put("a", filename=name)).json()["filename"] == name
    assert (await objects.get("a")).headers["content-disposition"] == f"attachment; filename*=UTF-8''{coded}"


RANGES: list[tuple[bytes, int, bytes, str | None]] = [
    (b"bytes=0-0", 206, b"0", "bytes 0-0/10"),
    (b"bytes=2-4", 206, b"234", "bytes 2-4/10"),
    (b"bytes=7-", 206, b"789", "bytes 7-9/10"),
    (b"bytes=7-99", 206, b"789", "bytes 7-9/10"),
    (b"bytes=-3", 206, b"789", "bytes 7-9/10"),
    (b"bytes=-99", 206, DATA, "bytes 0-9/10"),
    (b"bytes=10-", 416, b"", "bytes */10"),
    (b"bytes=-0", 416, b"", "bytes */10"),
    (b"bytes=4-2", 200, DATA, None),
    (b"bytes=0-1,4-5", 200, DATA, None),
    (b"lines=0-1", 200, DATA, None),
    (b"bytes=a-b", 200, DATA, None),
]


@pytest.mark.parametrize(("asked", "status", "body", "told"), RANGES)
async def test_a_range_is_what_was_asked_for(
    objects: Objects, asked: bytes, status: int, body: bytes, told: str | None
) -> None:
    await objects.put("a", DATA)
    found = await objects.get("a", (b"range", asked))
    assert (found.status, found.headers.get("content-range")) == (status, told)
    if status == 416:
        assert found.code == "range_not_satisfiable"
    else:
        assert (found.body, found.headers["content-length"]) == (body, str(len(body)))


async def test_a_range_of_what_has_changed_is_the_whole(objects: Objects) -> None:
    tag = (await objects.put("a", DATA)).json()["sha256"]
    part = (b"range", b"bytes=0-1")
    assert (await objects.get("a", part, (b"if-range", f'"{tag}"'.encode()))).body == b"01"
    assert (await objects.get("a", part, (b"if-range", b'"other"'))).body == DATA


async def test_an_empty_object_has_no_range(objects: Objects) -> None:
    await objects.put("a", b"")
    assert (await objects.get("a")).body == b""
    refused = await objects.get("a", (b"range", b"bytes=0-"))
    assert (refused.status, refused.headers["content-range"]) == (416, "bytes */0")


async def test_what_a_client_has_is_not_sent_again(objects: Objects) -> None:
    await objects.put("a", DATA)
    tag = (await objects.get("a")).headers["etag"].encode()
    for known in (tag, b'"x", W/' + tag, b"*"):
        same = await objects.get("a", (b"if-none-match", known))
        assert (same.status, same.body, same.headers["etag"].encode()) == (304, b"", tag)
    assert (await objects.get("a", (b"if-none-match", b'"x"'))).status == 200


async def test_a_head_tells_the_same_without_the_bytes(objects: Objects) -> None:
    await objects.put("a", DATA)
    whole, head = await objects.get("a"), await objects.client.ask("HEAD", path("a"))
    assert (head.status, head.body) == (200, b"")
    assert head.headers == whole.headers


@only("app", why="in a test, what comes out of a front is put together again")
async def test_a_large_object_comes_in_pieces(objects: Objects) -> None:
    data = bytes(range(256)) * 8192
    await objects.put("a", data)
    pieces = []
    async with objects.client.open("GET", path("a")) as exchange:
        while (piece := await exchange.piece()) is not None:
            pieces.append(piece)
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) < len(data) / 2


# -- listing ------------------------------------------------------------------------------------------------


async def test_the_objects_of_an_event_are_listed_in_pages(objects: Objects) -> None:
    for number in range(5):
        await objects.put(f"a/{number}")
    await objects.put("b", event="another-event")
    reply = await objects.client.get(f"/blobs/{SPACE}?event={EVENT}&limit=2")
    assert [one["key"] for one in reply.json()["blobs"]] == ["a/0", "a/1"]
    rest = await objects.listed(after=reply.json()["resume"], limit=3)
    assert [one["key"] for one in rest] == ["a/2", "a/3", "a/4"]
    assert await objects.listed("nobody") == []
    assert (await objects.client.get(f"/blobs/{SPACE}")).code == "invalid_request"
    assert (await objects.client.get(f"/blobs/{SPACE}?event=a&evnt=b")).code == "invalid_request"


async def test_bl_s04_equal_names_are_objects_of_their_own_and_a_retry_changes_nothing(
    objects: Objects,
) -> None:
    parts = [
        ("image.png", b"one"),
        ("image.png", b"two"),
        ("image.png", b"three"),
        (None, b"four"),
        ("IMAGE.PNG", b"5"),
    ]
    for _ in range(2):
        for number, (name, data) in enumerate(parts):
            key = f"email/2026/01/02/8f14e45f/att/{number}-{name or 'file'}"
            assert (await objects.put(key, data, filename=name, media="image/png")).status in (200, 201)
    found = await objects.listed()
    assert [(one.get("filename"), one["size"], one["sha256"]) for one in found] == [
        (name, len(data), sha256(data).hexdigest()) for name, data in parts
    ]
    changed = await objects.put("email/2026/01/02/8f14e45f/att/0-image.png", b"two")
    assert changed.code == "blob_conflict"


async def test_a_space_that_nobody_wrote_to_has_no_objects_and_is_not_made(client: Client) -> None:
    assert (await client.get("/blobs/none/some-bucket/a")).code == "blob_not_found"
    assert (await client.post("/blobs/none", {"key": "a"})).code == "blob_not_found"
    assert (await client.get("/blobs/none?event=a")).json() == {"blobs": [], "resume": None}
    assert (await client.delete("/blobs/none?event=a")).json() == {"event": "a", "blobs": 0, "messages": 0}
    assert (await client.get("/v1/spaces")).json()["spaces"] == []
