"""Objects of a real server: killed in the middle, in a folder; and in the bucket of a real S3 server."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest
import trio

from edgequeues.blobs.s3 import Bucket
from tests.blobs.seaweed import seaweed

from .process import Running, command, serving

pytestmark = pytest.mark.slow

DATA = bytes(range(256)) * 4096
EVENT = "ev-00000001"
HEADERS = {
    "x-event-id": EVENT,
    "x-source": "email",
    "content-type": "application/pdf",
    "x-filename": "a%20b.pdf",
}
NAMES = ("Scan 2024-03-07 at 9.12.png", "a+b.txt", "50%.csv", "c++/x", "q?x=1#f.txt", "semi;colon&amp.txt")
OBJECTS = "/blobs/demo/switchboard-ingress"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with seaweed(tmp_path_factory.mktemp("s3") / "data") as bucket:
        yield bucket


def libraries(server: Running) -> str:
    """What the server has loaded."""
    return Path(f"/proc/{server.process.pid}/maps").read_text()


async def signed(http: httpx.AsyncClient, server: Running, key: str, **more: object) -> str:
    answer = await http.post(f"{server.url}/blobs/demo", json={"key": key} | more)
    assert answer.status_code == 200, answer.text
    url: str = answer.json()["presignedGetUrl"]
    return url


async def test_what_was_stored_when_the_server_was_killed_is_there_and_its_links_work(
    data: Path, http: httpx.AsyncClient
) -> None:
    stored: dict[str, bytes] = {}
    some = trio.Event()

    async def store(worker: int, url: str) -> None:
        for number in range(1_000):
            key, body = f"a/{worker}/{number}", b"%d" % number * 5_000
            try:
                answer = await http.put(f"{url}{OBJECTS}/{key}", content=body, headers=HEADERS)
            except httpx.TransportError:
                return
            assert answer.status_code == 201
            stored[key] = body
            if len(stored) == 20:
                some.set()

    async with serving(data) as server:
        port = server.port
        assert "_obstore" not in libraries(server)  # which is for those who store something
        async with trio.open_nursery() as nursery:
            for worker in range(4):
                nursery.start_soon(store, worker, server.url)
            await some.wait()
            assert "_obstore" in libraries(server)
            url = await signed(http, server, next(iter(stored)))
            await server.stop(signal.SIGKILL)
    async with serving(data, port=port) as server:
        for key, body in stored.items():
            found = await http.get(f"{server.url}{OBJECTS}/{key}")
            assert (found.status_code, found.content) == (200, body)
        assert (await http.get(url)).content == stored[next(iter(stored))]
        listed = (await http.get(f"{server.url}/blobs/demo?event={EVENT}&limit=1000")).json()["blobs"]
        assert {one["key"] for one in listed} >= set(stored)
        for worker in range(4):  # what each was about to store when the server was killed
            number = sum(key.startswith(f"a/{worker}/") for key in stored)
            again = await http.put(
                f"{server.url}{OBJECTS}/a/{worker}/{number}", content=b"%d" % number * 5_000, headers=HEADERS
            )
            assert again.status_code in (200, 201)


async def test_a_link_ends_in_real_time_too(data: Path, http: httpx.AsyncClient) -> None:
    async with serving(data) as server:
        await http.put(f"{server.url}{OBJECTS}/a", content=DATA, headers=HEADERS)
        url = await signed(http, server, "a", lifetimeS=2)
        found = await http.get(url)
        assert (found.status_code, found.content) == (200, DATA)
        assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20b.pdf"
        await trio.sleep(2.1)
        assert (await http.get(url)).json()["code"] == "link_expired"


async def test_bl_s01_links_open_with_a_client_that_takes_them_as_they_are(
    data: Path, http: httpx.AsyncClient
) -> None:
    async with serving(data) as server:
        for number, name in enumerate(NAMES):
            key = f"att/{number}-{name}"
            target = f"{server.url}{OBJECTS}/{quote(key, safe='/')}"
            named = HEADERS | {"x-filename": quote(name, safe="")}
            assert (await http.put(target, content=key.encode(), headers=named)).status_code == 201
            found = await http.get(await signed(http, server, key))
            assert (found.status_code, found.content) == (200, key.encode())
            assert (
                found.headers["content-disposition"] == f"attachment; filename*=UTF-8''{quote(name, safe='')}"
            )


async def test_objects_lie_in_a_bucket_of_s3(
    data: Path, http: httpx.AsyncClient, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.secret)
    options = (
        "--blobs-backend",
        "s3",
        "--blobs-s3-endpoint",
        bucket.endpoint,
        "--blobs-s3-bucket",
        bucket.bucket,
    )
    async with serving(data, *options, "--blobs-s3-region", bucket.region) as server:
        target = f"{server.url}{OBJECTS}/att/1-a%20b.pdf"
        assert (await http.put(target, content=DATA, headers=HEADERS)).status_code == 201
        assert (await http.put(target, content=DATA, headers=HEADERS)).status_code == 200
        assert (await http.put(target, content=DATA[1:], headers=HEADERS)).status_code == 409
        part = await http.get(target, headers={"range": "bytes=-256"})
        assert (part.status_code, part.content) == (206, DATA[-256:])
        assert sha256((await http.get(target)).content).digest() == sha256(DATA).digest()
        url = await signed(http, server, "att/1-a b.pdf", lifetimeS=30 * 86_400)
        assert urlsplit(url).netloc == urlsplit(bucket.endpoint).netloc
        assert "X-Amz-Expires=604800" in url
        assert (await http.get(url)).content == DATA
        erased = await http.delete(f"{server.url}/blobs/demo", params={"event": EVENT})
        assert erased.json() == {"event": EVENT, "blobs": 1, "messages": 0}
        assert (await http.get(url)).status_code == 404
        assert (await http.get(target)).json()["code"] == "blob_not_found"
    assert not (data / "blobs").exists()


async def test_a_server_that_cannot_enter_its_bucket_does_not_start(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    options = ("serve", "--data", str(data), "--port", "0", "--blobs-backend", "s3")
    nameless = await command(*options)
    assert nameless.returncode != 0
    assert b"blobs_s3_bucket" in nameless.stderr
    locked = await command(*options, "--blobs-s3-bucket", "objects")
    assert locked.returncode != 0
    assert b"AWS_ACCESS_KEY_ID" in locked.stderr
    assert b"Traceback" not in nameless.stderr + locked.stderr
