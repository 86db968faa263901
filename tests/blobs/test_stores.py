"""What every backend of the object store does, be it a folder or a bucket."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgequeues.blobs.about import KEY_BYTES_MAX, check_key
from edgequeues.blobs.s3 import LINK_S_MAX, Bucket, S3Blobs
from edgequeues.blobs.store import BlobStore, path_of
from edgequeues.core.errors import BlobConflict, BlobNotFound, BlobStoreDown, InvalidRequest
from shards.disk import ThreadDisk

from .conftest import Opening

TEXT = "text/plain"
PIECE = 256 * 1024


def is_key(key: str) -> bool:
    try:
        check_key(key)
    except InvalidRequest:
        return False
    return True


KEYS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=400).filter(is_key)


async def whole(store: BlobStore, path: str, size: int) -> bytes:
    return b"".join([piece async for piece in store.read(path, 0, size)])


async def test_what_is_stored_can_be_read(store: BlobStore, place: str) -> None:
    data = bytes(range(256)) * 4096  # several pieces
    assert await store.put(f"{place}/a", data, TEXT)
    pieces = [piece async for piece in store.read(f"{place}/a", 0, len(data))]
    assert b"".join(pieces) == data
    assert len(pieces) > 1
    assert max(map(len, pieces)) <= 2 * PIECE


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (3, 10), (9, 10), (5, 5)])
async def test_a_range_can_be_read(store: BlobStore, place: str, start: int, stop: int) -> None:
    await store.put(f"{place}/a", b"0123456789", TEXT)
    assert (
        b"".join([piece async for piece in store.read(f"{place}/a", start, stop)])
        == b"0123456789"[start:stop]
    )


async def test_an_object_may_be_empty(store: BlobStore, place: str) -> None:
    assert await store.put(f"{place}/a", b"", TEXT)
    assert not await store.put(f"{place}/a", b"", TEXT)
    with pytest.raises(BlobConflict):
        await store.put(f"{place}/a", b"a", TEXT)
    assert await whole(store, f"{place}/a", 0) == b""


@pytest.mark.parametrize("other", [b"hellO", b"hello!", b"hell", b""])
async def test_an_object_never_changes(store: BlobStore, place: str, other: bytes) -> None:
    assert await store.put(f"{place}/a", b"hello", TEXT)
    assert not await store.put(f"{place}/a", b"hello", TEXT)
    with pytest.raises(BlobConflict):
        await store.put(f"{place}/a", other, TEXT)
    assert await whole(store, f"{place}/a", 5) == b"hello"


async def test_of_many_who_store_at_once_one_wins(store: BlobStore, place: str) -> None:
    made: list[bytes] = []

    async def put(data: bytes) -> None:
        with suppress(BlobConflict):
            if await store.put(f"{place}/a", data, TEXT):
                made.append(data)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(put, b"%d" % (number % 4))
    [winner] = made
    assert await whole(store, f"{place}/a", 1) == winner


async def test_what_was_deleted_is_gone_and_its_place_is_free(store: BlobStore, place: str) -> None:
    await store.put(f"{place}/a/b", b"hello", TEXT)
    await store.put(f"{place}/a/c", b"other", TEXT)
    await store.delete(f"{place}/a/b")
    await store.delete(f"{place}/a/b")
    with pytest.raises(BlobNotFound):
        await whole(store, f"{place}/a/b", 5)
    assert await whole(store, f"{place}/a/c", 5) == b"other"
    assert await store.put(f"{place}/a/b", b"new", TEXT)
    assert await whole(store, f"{place}/a/b", 3) == b"new"


async def test_an_object_may_lie_below_another(store: BlobStore, place: str) -> None:
    await store.put(f"{place}/a", b"above", TEXT)
    await store.put(f"{place}/a/b", b"below", TEXT)
    assert await whole(store, f"{place}/a", 5) == b"above"
    assert await whole(store, f"{place}/a/b", 5) == b"below"


@given(keys=st.lists(KEYS, min_size=1, max_size=4, unique=True))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_key_is_a_place_of_its_own(opening: Opening, keys: list[str]) -> None:
    store = await opening()
    paths = [path_of("demo", "of-keys", key) for key in keys]
    try:
        for key, path in zip(keys, paths, strict=True):
            await store.put(path, key.encode(), TEXT)
        for key, path in zip(keys, paths, strict=True):
            assert await whole(store, path, len(key.encode())) == key.encode()
    finally:
        for path in paths:
            await store.delete(path)


@pytest.mark.parametrize("key", ["é" * (KEY_BYTES_MAX // 2), "/".join("a" * 512), "/".join(["é" * 60] * 8)])
async def test_a_key_may_be_as_long_as_it_may_be(store: BlobStore, place: str, key: str) -> None:
    path = path_of("demo", "of-keys", check_key(key))
    await store.put(path, b"hello", TEXT)
    assert await whole(store, path, 5) == b"hello"
    await store.delete(path)


# -- links of S3 --------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_link_of_the_bucket_works_without_anything_else_until_it_ends(
    bucket: Bucket, place: str
) -> None:
    store = S3Blobs(bucket, ThreadDisk())
    await store.put(f"{place}/a b+c", b"<p>hello</p>", "text/html")
    async with httpx.AsyncClient() as client:
        url = await store.sign(f"{place}/a b+c", 3_600)
        answer = await client.get(url)
        assert (answer.status_code, answer.content) == (200, b"<p>hello</p>")
        assert answer.headers["content-type"] == "text/html"
        assert answer.headers["content-disposition"] == "attachment"
        part = await client.get(url, headers={"range": "bytes=3-7"})
        assert (part.status_code, part.content) == (206, b"hello")
        assert (await client.get(url.replace("Expires=3600", "Expires=36000"))).status_code == 403
        assert (await client.get(url.partition("?")[0])).status_code == 403
        short = await store.sign(f"{place}/a b+c", 1)
        assert (await client.get(short)).status_code == 200
        await trio.sleep(2.1)
        assert (await client.get(short)).status_code == 403


@pytest.mark.slow
async def test_a_link_of_the_bucket_lives_a_week_at_most(bucket: Bucket, place: str) -> None:
    store = S3Blobs(bucket, ThreadDisk())
    url = await store.sign(f"{place}/a", 30 * 86_400)
    assert f"X-Amz-Expires={LINK_S_MAX}" in urlsplit(url).query.split("&")


@pytest.mark.slow
async def test_who_has_the_wrong_secret_is_told_that_the_store_is_down(
    bucket: Bucket, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = S3Blobs(bucket._replace(secret="another"), ThreadDisk())
    with pytest.raises(BlobStoreDown):
        await store.put(f"{place}/a", b"hello", TEXT)
    assert "another" not in caplog.text


async def test_a_bucket_that_nobody_serves_is_down_and_not_waited_for(place: str) -> None:
    nobody = Bucket("http://127.0.0.1:9", "objects", "auto", "a", "b")
    with trio.fail_after(60), pytest.raises(BlobStoreDown):
        await S3Blobs(nobody, ThreadDisk()).put(f"{place}/a", b"hello", TEXT)
