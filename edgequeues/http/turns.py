"""Several verbs as one turn, so that an answer is of one instant and costs one way through the mailbox."""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from edgequeues.models import ConsumerInfo, Page, QueueInfo, RangeQuery
from edgequeues.space.shard import SpaceShard
from shards.shard import reads


class Look(Struct, frozen=True):
    """What a queue shows: its tag, and a page unless the caller knows the tag.

    tail: the cursor of the newest entry, if asked for or where the range goes on behind the page; None for an
    unknown queue.
    """

    etag: str
    page: Page | None
    tail: str | None = None


@reads
def look(
    space: SpaceShard, queue: str, ask: RangeQuery, known: Container[str] = (), *, with_tail: bool = False
) -> Look:
    """Read one page. Raises InvalidCursor, CursorStore."""
    etag = space.etag(queue)
    if etag in known:
        return Look(etag, None)
    page = space.read(queue, ask)
    if page.queue_id is None or not (with_tail or page.resume is not None):
        return Look(etag, page)
    return Look(etag, page, space.stats(queue).cursor)


def count(space: SpaceShard, queue: str) -> tuple[QueueInfo, list[ConsumerInfo]]:
    """Count a queue and its consumers. Raises QueueNotFound."""
    found = space.consumers(queue)  # first: it may settle what is due, which can change the queue's counts
    return space.stats(queue), found
