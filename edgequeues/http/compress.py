"""gzip for those who ask, in slices: compressing a large answer must not stop the event loop for long."""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import lru_cache

import trio

LEVEL = 2  # level 6 costs three times the time for a tenth less
BYTES_MIN = 1024  # below this the header costs more than is won
SLICE_BYTES = 64 * 1024  # about half a millisecond of compressing between two checkpoints
GZIP_WINDOW = 31  # zlib's way to ask for a gzip frame around 32 KiB of window

HEADER = (b"content-encoding", b"gzip")
VARY = (b"vary", b"accept-encoding")

_REFUSED = re.compile(rb";\s*q\s*=\s*0(?:\.0{0,3})?\s*\Z", re.IGNORECASE)


@lru_cache(maxsize=256)
def accepts(header: bytes) -> bool:
    """Does an Accept-Encoding header allow gzip?"""
    verdict = {}
    for coding in header.lower().split(b","):
        name = coding.partition(b";")[0].strip()
        verdict[name] = _REFUSED.search(coding) is None
    return verdict.get(b"gzip", verdict.get(b"*", False))


async def whole(body: bytes) -> bytes:
    """Compress a body whose end is known."""
    squeezer = _squeezer()
    return b"".join([*await _squeeze(squeezer, body), squeezer.flush()])


async def stream(body: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Compress piece by piece; the client can read each one before the next is made."""
    squeezer = _squeezer()
    async with aclosing(body):
        async for piece in body:
            yield b"".join([*await _squeeze(squeezer, piece), squeezer.flush(zlib.Z_SYNC_FLUSH)])
    yield squeezer.flush()


def _squeezer() -> zlib._Compress:
    return zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WINDOW)


async def _squeeze(squeezer: zlib._Compress, body: bytes) -> list[bytes]:
    view = memoryview(body)
    pieces = []
    for start in range(0, len(body), SLICE_BYTES):
        if start:
            await trio.lowlevel.checkpoint()
        pieces.append(squeezer.compress(view[start : start + SLICE_BYTES]))
    return pieces
