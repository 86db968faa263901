"""What does the daemon cost by itself? Handlers that have nothing to do, apart from all else that benches import."""

from __future__ import annotations


def plain(event: object, ctx: object) -> None:
    """Deal with an event."""


async def coroutine(event: object, ctx: object) -> None:
    """The same, on trio."""
