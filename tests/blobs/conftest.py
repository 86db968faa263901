"""Each backend of the object store, empty."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from edgequeues.blobs.folder import open_folder
from edgequeues.blobs.s3 import Bucket, S3Blobs
from edgequeues.blobs.store import BlobStore
from shards.disk import ThreadDisk

from .seaweed import seaweed

Opening = Callable[[], Awaitable[BlobStore]]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """A bucket of a real S3 server."""
    with seaweed(tmp_path_factory.mktemp("s3") / "data") as bucket:
        yield bucket


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Opening:
    """Opens each backend in turn. For tests of many examples, which async fixtures do not go with."""
    bucket: Bucket | None = None if request.param == "folder" else request.getfixturevalue("bucket")

    async def opened() -> BlobStore:
        disk = ThreadDisk()
        return await open_folder(tmp_path / "blobs", disk) if bucket is None else S3Blobs(bucket, disk)

    return opened


@pytest.fixture
async def store(opening: Opening) -> BlobStore:
    """Each backend in turn."""
    return await opening()


@pytest.fixture
def place() -> str:
    """Where in a store a test has its objects: the bucket is there for all of them."""
    return f"demo/of-test-{next(_numbers)}"
