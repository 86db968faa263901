"""What the server knows of an address that somebody has begun to type. Quick, or nothing; never an error."""

from __future__ import annotations

import os
from collections.abc import Mapping

from edgequeues.cli.session import DEFAULT_SERVER

PREFIX = "dxn:queue:"
PATIENCE_S = 1.0
COUNT_MAX = 100


def addresses(given: Mapping[str, object], begun: str) -> list[str]:
    """Addresses of spaces or queues that begin so. given: the options so far, which may name the server."""
    if not begun.startswith(PREFIX):
        return [PREFIX] if PREFIX.startswith(begun) else []
    server = given.get("server") or os.environ.get("EDGEQUEUES_SERVER") or DEFAULT_SERVER
    token = given.get("token") or os.environ.get("EDGEQUEUES_TOKEN") or None
    return [
        PREFIX + one
        for one in _asked(str(server), None if token is None else str(token), begun[len(PREFIX) :])
    ]


def _asked(server: str, token: str | None, begun: str) -> list[str]:
    import trio

    from edgequeues.client import Client, ClientError, Retry

    space, colon, part = begun.partition(":")
    found: list[str] = []

    async def ask() -> None:
        with trio.move_on_after(PATIENCE_S):
            async with Client(server, token=token, retry=Retry(attempts_max=1)) as client:
                if not colon:
                    found.extend([f"{one.id}:" async for one in client.spaces() if one.id.startswith(space)])
                    return
                async for one in client.iterate_doing(space, name=part or None):
                    if one.name.startswith(part):
                        found.append(f"{space}:{one.name}")

    try:
        trio.run(ask)
    except (ClientError, ValueError, ExceptionGroup):
        return []
    return sorted(found)[:COUNT_MAX]
