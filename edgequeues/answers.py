"""Answers of others to requests of ours, over httpx on trio: how much is read, and which may be another one later."""

from __future__ import annotations

from typing import Final

import httpx
import trio

# Statuses of the 400s that may be another one when it is tried again; by the others it is said that it never will.
AGAIN: Final = frozenset({408, 409, 423, 425, 429})


async def body(response: httpx.Response, bytes_max: int) -> bytes | None:
    """The body of a streamed answer; None: it has more bytes than that, and the rest was not read."""
    found = bytearray()
    with trio.CancelScope() as scope:
        async for piece in response.aiter_bytes():
            found += piece
            if len(found) > bytes_max:
                scope.cancel()  # ends the innermost read, and so the generators around it; `break` leaves them open
    return bytes(found) if len(found) <= bytes_max else None
