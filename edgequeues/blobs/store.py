"""The port to the bytes of blobs, and the paths under which a backend keeps them.

A backend keeps bytes and nothing else: what they are, whose they are and how long they are kept are rows of a space.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from hashlib import sha256
from typing import Protocol
from urllib.parse import quote

from shards import files

PATH_CHARS_MAX = 700  # of an encoded key; an S3 key ends at 1,024 bytes
SEGMENT_CHARS_MAX = 200  # of a part of it; file systems allow 255, and suffixes are added

_LETTER = re.compile(r"[^A-Za-z0-9._-]")


class BlobStore(Protocol):
    """Bytes by path. Every call raises BlobStoreDown where the backend does not answer as it should.

    link_s_max: seconds for which a link can be valid. link_margin_s: for which it may still be after its end, by
    another clock than ours.
    """

    link_s_max: int
    link_margin_s: int

    async def put(self, path: str, data: bytes, media: str) -> bool:
        """Keep bytes, durably; False: the same were there before. Raises BlobConflict where it was others."""
        ...

    def read(self, path: str, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to `stop`, in pieces. Raises BlobNotFound."""
        ...

    async def delete(self, path: str) -> None:
        """Have no bytes here any more, durably."""
        ...

    async def sign(self, path: str, lifetime_s: int) -> str | None:
        """A link to the backend itself; None: it has none."""
        ...


def path_of(space: str, bucket: str, key: str) -> str:
    """Where the bytes of a blob lie: safe characters alone; a key that would get too long is a hash of it."""
    path = "/".join(_encoded(segment) for segment in key.split("/"))
    if len(path) > PATH_CHARS_MAX or any(len(one) > SEGMENT_CHARS_MAX for one in path.split("/")):
        path = "~" + sha256(key.encode()).hexdigest()
    return f"{files.encode(space)}/{bucket}/{path}"


def _encoded(segment: str) -> str:
    return _LETTER.sub(lambda letter: quote(letter[0], safe="").replace("~", "%7E"), segment)
