"""Blobs in a bucket of S3, or of what speaks its protocol (R2, MinIO, SeaweedFS). Its links are its own."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

from edgequeues.blobs.objects import Objects
from shards.disk import Disk

if TYPE_CHECKING:  # it is nowhere else
    from obstore.store import S3Config

LINK_S_MAX = 7 * 86_400  # of a signature of version 4


class Bucket(NamedTuple):
    """Where the bucket is, and how it is entered. endpoint: ""; Amazon's own, by the region."""

    endpoint: str
    bucket: str
    region: str
    key_id: str
    secret: str
    session: str = ""


def _config(bucket: Bucket) -> S3Config:
    said: S3Config = {
        "access_key_id": bucket.key_id,
        "secret_access_key": bucket.secret,
        "region": bucket.region,
        "virtual_hosted_style_request": False,
        "conditional_put": "etag",
    }
    if bucket.endpoint:
        said["endpoint"] = bucket.endpoint
    if bucket.session:
        said["session_token"] = bucket.session
    return said


class S3Blobs(Objects):
    """Blobs of one bucket; all our buckets are in it."""

    link_s_max = LINK_S_MAX
    link_margin_s = 60

    def __init__(self, bucket: Bucket, disk: Disk) -> None:
        self._s3 = S3Store(
            bucket.bucket,
            config=_config(bucket),
            client_options={
                "allow_http": bucket.endpoint.startswith("http://"),
                "connect_timeout": timedelta(seconds=5),
                "timeout": timedelta(seconds=60),
            },
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=20)},
        )
        super().__init__(self._s3, disk)

    async def put(self, path: str, data: bytes, media: str) -> bool:
        """Keep bytes, durably; False: the same were there before. Raises BlobConflict, BlobStoreDown."""
        return await self._run(lambda: self._put(path, data, media))

    async def sign(self, path: str, lifetime_s: int) -> str:
        """A link to the bucket."""
        return await self._run(
            lambda: obstore.sign(self._s3, "GET", path, timedelta(seconds=min(lifetime_s, LINK_S_MAX)))
        )

    def _put(self, path: str, data: bytes, media: str) -> bool:
        said = {"Content-Type": media, "Content-Disposition": "attachment"}  # what its links answer with
        try:
            obstore.put(self._s3, path, data, mode="create", attributes=said, use_multipart=False)
        except AlreadyExistsError:
            self._compare(path, data)
            return False
        return True
