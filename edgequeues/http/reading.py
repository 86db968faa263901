"""Reading a queue page by page: at once, streamed, waited for, or followed as events."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Mapping
from typing import Any, TypeVar

import trio
from msgspec.structs import replace

from edgequeues.core import cursors
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import QueueNotFound
from edgequeues.http import codec
from edgequeues.http.codec import NATIVE, Form
from edgequeues.http.routes import Response
from edgequeues.http.turns import Look, look
from edgequeues.http.waits import Waits
from edgequeues.models import Page, RangeQuery
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from shards.errors import ShardClosed, ShardError

T = TypeVar("T")

NO_SPACE_ETAG = "none"  # of every queue of a space that does not exist
# Always ask again; the tag makes that cheap. A page of another origin must not get what this one was given.
REVALIDATE = ((b"cache-control", b"no-cache"), (b"vary", b"origin"))
KEEP_ALIVE_S = 15.0
_ETAG = re.compile(rb'(?:W/)?"([!#-~]*)"')
PATIENCE_S = (0.05, 0.1, 0.2, 0.4, 0.8)  # between tries of one step in the middle of a long job


class Reading:
    """One queue, as one request reads it."""

    def __init__(self, router: Router, dxn: Dxn, waits: Waits, form: Form = NATIVE) -> None:
        self._router = router
        self._dxn = dxn
        self._waits = waits
        self._form = form

    async def look(self, ask: RangeQuery, known: Container[str] = (), *, with_tail: bool = False) -> Look:
        """Read one page in one turn; a space that does not exist reads as empty, and is not made."""
        space = await self._router.find(self._dxn)
        if space is None:
            refuse_cursors(ask.after, ask.before)
            page = None if NO_SPACE_ETAG in known else Page([], ask.after, ask.before, None)
            return Look(NO_SPACE_ETAG, page)
        return await space.call(look, self._dxn.queue, ask, known, with_tail=with_tail)

    async def tail(self) -> str | None:
        """Return the cursor of the newest entry, None for an unknown queue."""
        space = await self._router.find(self._dxn)
        if space is None:
            return None
        try:
            return (await space.call(SpaceShard.stats, self._dxn.queue)).cursor
        except QueueNotFound:
            return None

    async def wait(self, ask: RangeQuery, wait_s: float) -> Look:
        """Read as soon as something matches, for `wait_s` at most; then what there is, which is nothing."""
        deadline = trio.current_time() + wait_s
        given = ask
        with self._router.watch(self._dxn) as watch:
            while True:
                seen = await self.look(ask, with_tail=True)
                page = seen.page
                assert page is not None
                if page.entries:
                    return seen
                if page.resume is not None:
                    ask = _after(ask, page.resume)
                elif await self._waits.at_most(deadline - trio.current_time(), watch.wait):
                    ask = _beyond(ask, seen)
                else:
                    empty = Page([], given.after, given.before, None)
                    return replace(seen, page=empty)

    async def answer(self, ask: RangeQuery, known: Container[str] = (), *, wait_s: float = 0) -> Response:
        """Answer with a range, or that nothing has changed: in one piece if it fits a page, else streamed."""
        seen = await self.wait(ask, wait_s) if wait_s > 0 else await self.look(ask, known)
        headers = [(b"etag", b'W/"%b"' % seen.etag.encode()), *REVALIDATE]
        page = seen.page
        if page is None or seen.etag in known:
            return Response(status=304, headers=headers)
        shown = self._form.shown(page.entries)
        if page.resume is not None or (ask.limit is not None and len(shown) < len(page.entries)):
            return Response(self._stream(seen, ask), headers=headers)
        return Response(self._form.whole(shown, page.next_cursor, page.prev_cursor), headers=headers)

    async def _stream(self, seen: Look, ask: RangeQuery) -> AsyncGenerator[bytes, None]:
        """Give a page and all that follows it as one JSON text. What is appended meanwhile is left out.

        A limit counts what is shown, so pages are read without it and cut where it is reached.
        """
        ask, left = replace(_bounded(ask, seen), limit=None), ask.limit
        head, first, last = self._form.start, seen.page, seen.page
        page = seen.page
        assert page is not None
        while True:
            page, shown = self._shown(page, left)
            if page.entries:
                first = page if first is None or not first.entries else first
                last = page
            if shown:
                yield head + self._form.joined(shown)
                head = b","
            left = None if left is None else left - len(shown)
            resume = page.resume
            if (
                page is seen.page and resume is None and left
            ):  # cut by its own limit, though some are not shown
                resume = page.prev_cursor if ask.reverse else page.next_cursor
            if resume is None or left == 0:
                break
            ask = _after(ask, resume)
            page = (await self._again(ask)).page
            assert page is not None
        assert first is not None
        assert last is not None
        low, high = (last, first) if ask.reverse else (first, last)
        end = self._form.end(high.next_cursor, low.prev_cursor)
        yield end if head == b"," else self._form.start + end

    def _shown(self, page: Page, left: int | None) -> tuple[Page, list[Any]]:
        """A page, and what is shown of it; cut behind the entry with which it has shown all that were `left`."""
        shown = self._form.shown(page.entries)
        if left is None or len(shown) <= left:
            return page, shown
        assert page.store_id is not None
        assert page.queue_id is not None
        end = count = 0
        while count < left:
            count += len(self._form.shown(page.entries[end : end + 1]))
            end += 1
        edge = cursors.encode(page.store_id, page.queue_id, page.entries[end - 1].position)
        reverse = page.entries[0].position > page.entries[-1].position
        cut = replace(page, entries=page.entries[:end], resume=edge)
        cut = replace(cut, prev_cursor=edge) if reverse else replace(cut, next_cursor=edge)
        return cut, shown[:left]

    async def _again(self, ask: RangeQuery, *, with_tail: bool = False) -> Look:
        return await patiently(lambda: self.look(ask, with_tail=with_tail), self._waits)

    async def events(self, seen: Look, ask: RangeQuery) -> AsyncGenerator[bytes, None]:
        """Give a page and all that follows it, now and later, as server-sent events, until the server stops."""
        watched = False  # the page given was read before the watch began, so look again before waiting
        with self._router.watch(self._dxn) as watch:
            while not self._waits.over():
                page = seen.page
                assert page is not None
                if page.entries:
                    yield _events(page)
                    ask = replace(ask, after=page.next_cursor)
                if page.resume is not None:
                    ask = _after(ask, page.resume)
                elif watched:
                    ask = _beyond(ask, seen)
                    while not await self._waits.at_most(KEEP_ALIVE_S, watch.wait):
                        if self._waits.over():
                            return
                        yield b": still here\n\n"
                seen = await self._again(ask, with_tail=True)
                watched = True


def known_tags(headers: Mapping[bytes, bytes]) -> frozenset[str]:
    """Return the tags of what the client has already."""
    header = headers.get(b"if-none-match")
    return frozenset() if header is None else frozenset(tag.decode() for tag in _ETAG.findall(header))


def refuse_cursors(*texts: str | None) -> None:
    """No cursor belongs to a space that is not there. Raises InvalidCursor, CursorStore."""
    for text in texts:
        if text is not None:
            cursors.decode("", "", text)


def _after(ask: RangeQuery, resume: str) -> RangeQuery:
    return replace(ask, before=resume) if ask.reverse else replace(ask, after=resume)


def _beyond(ask: RangeQuery, seen: Look) -> RangeQuery:
    """Skip what was looked at and did not match; only what is appended from now on can."""
    if seen.tail is None or ask.reverse:
        return ask
    return replace(ask, after=seen.tail)


def _bounded(ask: RangeQuery, seen: Look) -> RangeQuery:
    """End a range at the tail as it was seen, so that a queue that grows while it is read has an end."""
    page = seen.page
    if ask.reverse or seen.tail is None or page is None or page.store_id is None or page.queue_id is None:
        return ask
    end = cursors.decode(page.store_id, page.queue_id, seen.tail) + 1
    if ask.before is not None and cursors.decode(page.store_id, page.queue_id, ask.before) <= end:
        return ask
    return replace(ask, before=cursors.encode(page.store_id, page.queue_id, end))


def _events(page: Page) -> bytes:
    store_id, queue_id = page.store_id, page.queue_id
    assert store_id is not None
    assert queue_id is not None
    parts = []
    for one in page.entries:
        # Line breaks in JSON are only ever between its tokens; in an event each would end a line.
        line = codec.entry(one).replace(b"\r", b" ").replace(b"\n", b" ")
        cursor = cursors.encode(store_id, queue_id, one.position).encode()
        parts.append(b"id: %b\nevent: entry\ndata: %b\n\n" % (cursor, line))
    return b"".join(parts)


async def to_its_end(step: Callable[[], Awaitable[bool]], waits: Waits) -> None:
    """Repeat a step of a long job until it says that there is no more."""
    while await patiently(step, waits):
        pass


async def patiently(step: Callable[[], Awaitable[T]], waits: Waits) -> T:
    """Do one step of a long job, a few times where a shard says that it may work later."""
    for pause_s in PATIENCE_S:
        try:
            return await step()
        except ShardError as error:
            if not error.retryable or isinstance(error, ShardClosed):
                raise
        await waits.pause(pause_s)
    return await step()
