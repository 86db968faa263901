"""Links to blobs that we serve ourselves: who has one may fetch the blob until the link ends.

What is signed (HMAC-SHA-256, https://www.rfc-editor.org/rfc/rfc2104) is the method, the shard, the bucket and the key
as they are once decoded, and the end; so whatever way a URL is written, it is the blob that counts. The key of the
signature is made from one that the space's file keeps.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from hashlib import sha256
from urllib.parse import quote

import msgspec

_PURPOSE = b"edgequeues links to blobs"


class Links:
    """Signs for one shard. secret: of the space's file; expires: unix ms."""

    def __init__(self, secret: bytes, shard: str) -> None:
        self._key = hmac.digest(secret, _PURPOSE, "sha256")
        self._shard = shard

    def signature(self, bucket: str, key: str, expires: int) -> str:
        """The signature of a link."""
        text = msgspec.json.encode(["GET", self._shard, bucket, key, expires])
        return urlsafe_b64encode(hmac.new(self._key, text, sha256).digest()).rstrip(b"=").decode()

    def holds(self, bucket: str, key: str, expires: int, signature: str) -> bool:
        """Is it the signature of this link?"""
        right = self.signature(bucket, key, expires)
        return hmac.compare_digest(signature.encode("utf-8", "replace"), right.encode())


def target(space: str, bucket: str, key: str) -> str:
    """The path under which a blob is served."""
    return f"/blobs/{space}/{bucket}/{quote(key, safe='/')}"
