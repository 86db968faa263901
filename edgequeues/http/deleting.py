"""Deleting from a queue: ids in turns of bounded size, a range turn by turn to its end."""

from __future__ import annotations

from collections.abc import Sequence

from edgequeues.core.dxn import Dxn
from edgequeues.core.who import Who
from edgequeues.http.reading import patiently, refuse_cursors
from edgequeues.http.waits import Waits
from edgequeues.models import ENTRIES_MAX
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by


async def delete_ids(router: Router, dxn: Dxn, named: Sequence[str], who: Who) -> int:
    """Delete objects by id; return how many there were."""
    space = await router.find(dxn)
    if space is None:
        return 0
    deleted = 0
    for start in range(0, len(named), ENTRIES_MAX):
        deleted += await space.call(
            by(who, SpaceShard.delete_ids), dxn.queue, named[start : start + ENTRIES_MAX]
        )
    return deleted


async def delete_range(
    router: Router,
    waits: Waits,
    dxn: Dxn,
    after: str | None,
    before: str | None,
    through: str | None = None,
    *,
    who: Who,
) -> int:
    """Delete what lies between cursors, as `SpaceShard.delete_range` does, to its end; return how many there were.

    Raises InvalidCursor, CursorStore.
    """
    space = await router.find(dxn)
    if space is None:
        refuse_cursors(after, before, through)
        return 0
    part = await space.call(by(who, SpaceShard.delete_range), dxn.queue, after, before, through)
    deleted = part.deleted
    while part.resume is not None:
        low, high = part.resume, part.through
        part = await patiently(
            lambda: space.call(by(who, SpaceShard.delete_range), dxn.queue, low, before, high),  # noqa: B023 (awaited at once)
            waits,
        )
        deleted += part.deleted
    return deleted


async def purge(router: Router, waits: Waits, dxn: Dxn, who: Who) -> int:
    """Delete all that is in a queue now; return how many entries that were. Raises QueueNotFound."""
    space = await router.require(dxn)
    part = await space.call(by(who, SpaceShard.purge), dxn.queue)
    deleted = part.deleted
    while part.resume is not None:
        part = await patiently(lambda: space.call(by(who, SpaceShard.purge), dxn.queue, begun=True), waits)
        deleted += part.deleted
    return deleted
