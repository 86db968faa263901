"""A stream of entries as a row of NDJSON requests, each confirmed before the next begins."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable

import anyio
from msgspec import Struct

from edgequeues.client import answers, wire
from edgequeues.client.errors import Unreachable
from edgequeues.client.http import Transport
from edgequeues.client.values import Confirmation, LineError

PIECE_BYTES = 64 * 1024  # entries at hand leave together; those of an async source leave as they come
ERRORS_MAX = 1_000


class Chunk(Struct, frozen=True):
    """How long one request may grow before its answer is awaited. It ends with the entry that reaches a bound.

    What was sent of the request under way is kept, at most this much, to be sent again should it fail.
    """

    entries_max: int = 10_000
    bytes_max: int = 8 * 1024 * 1024
    age_max_s: float = 1.0


class Source:
    """The caller's entries as lines; it can go back to the start of the current chunk."""

    def __init__(self, entries: AsyncIterable[object] | Iterable[object], chunk: Chunk) -> None:
        self._waits = isinstance(entries, AsyncIterable)
        self._entries = _lines(entries)
        self._chunk = chunk
        self._fault: Exception | None = (
            None  # what the caller's source raised; httpx must not take it for its own
        )
        self._sent: list[bytes] = []  # lines of the current chunk so far
        self._sent_bytes = 0
        self._named = True
        self._since_s = 0.0
        self.ended = False

    @property
    def count(self) -> int:
        """Lines of the current chunk so far."""
        return len(self._sent)

    async def begin(self) -> bool:
        """Forget the last chunk, begin the next with the source's next entry. False: there is none."""
        self._sent, self._sent_bytes, self._named = [], 0, True
        if await self._next() is None:
            return False
        self._since_s = anyio.current_time()
        return True

    def repeatable(self) -> bool:
        """Did every entry of the chunk name its id?"""
        return self._named

    def check(self) -> None:
        """Raise what the caller's source raised, if it did."""
        if self._fault is not None:
            raise self._fault

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the chunk from its start, then go on with the source until the chunk is full."""
        piece = b"".join(self._sent)
        while not self._full():
            if piece and (self._waits or len(piece) >= PIECE_BYTES):
                yield piece
                piece = b""
            line = await self._next()
            if line is None:
                break
            piece += line
        if piece:
            yield piece

    def _full(self) -> bool:
        return (
            self.ended
            or len(self._sent) >= self._chunk.entries_max
            or self._sent_bytes >= self._chunk.bytes_max
            or anyio.current_time() - self._since_s >= self._chunk.age_max_s
        )

    async def _next(self) -> bytes | None:
        if self.ended:
            return None
        try:
            line, named = await anext(self._entries)
        except StopAsyncIteration:
            self.ended = True
            return None
        except Exception as fault:
            self._fault, self.ended = fault, True
            return None
        self._sent.append(line)
        self._sent_bytes += len(line)
        self._named &= named
        return line


async def confirmations(transport: Transport, call: wire.Call, source: Source) -> AsyncIterator[Confirmation]:
    """Send the whole source; give a confirmation for every request. See `Client.append_stream`."""
    before = Confirmation(through=0, cursor=None, appended=0, refused=0)
    errors_left = ERRORS_MAX
    while await source.begin():
        answer = await transport.send(call, source)
        lines = answers.progress(answers.checked(answer))
        cut = not lines or lines[-1].appended is None
        now = _add(before, lines, errors_left)
        errors_left -= len(now.errors)
        if now.through > before.through:
            yield now
        if cut:
            raise Unreachable(
                f"the server broke off after entry {now.through} of the stream; send the rest again",
                maybe_done=True,
            )
        before = now
    source.check()


def _add(before: Confirmation, lines: list[answers.Progress], errors_left: int) -> Confirmation:
    last = lines[-1] if lines else answers.Progress(0)
    appended = last.through - last.refused if last.appended is None else last.appended
    errors = tuple(
        LineError(before.through + one.line, one.code, one.detail) for one in last.errors[:errors_left]
    )
    return Confirmation(
        through=before.through + last.through,
        cursor=last.cursor if last.cursor is not None else before.cursor,
        appended=before.appended + appended,
        refused=before.refused + last.refused,
        errors=errors,
    )


async def _lines(entries: AsyncIterable[object] | Iterable[object]) -> AsyncIterator[tuple[bytes, bool]]:
    if isinstance(entries, AsyncIterable):
        async for entry in entries:
            yield wire.line(entry)
    else:
        for entry in entries:
            yield wire.line(entry)
