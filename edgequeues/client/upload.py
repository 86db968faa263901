"""A stream of entries as a row of NDJSON requests, each confirmed before the next begins."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable

import anyio
from msgspec import Struct

from edgequeues.client import answers, wire
from edgequeues.client.errors import ClientError, Unavailable, Unreachable
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


class Batch(tuple[object, ...]):
    """Several entries that are at hand at once, as one item of an async source: they leave together."""


class Source:
    """The caller's entries as lines; it can go back to the start of the current chunk."""

    def __init__(
        self,
        entries: AsyncIterable[object] | Iterable[object],
        chunk: Chunk,
        now: Callable[[], float] = anyio.current_time,
        new_key: wire.NewKey | None = None,
    ) -> None:
        self._waits = isinstance(entries, AsyncIterable)
        self._entries = aiter(entries) if isinstance(entries, AsyncIterable) else iter(entries)
        self._ready: deque[object] = deque()  # what is left of a Batch
        self._chunk = chunk
        self._now = now
        self._new_key = new_key
        self._fault: Exception | None = None  # raised by the source: no fault of the transport
        self._sent: list[bytes] = []  # lines of the current chunk so far
        self._sent_bytes = 0
        self._safe = True
        self._since_s = 0.0
        self.ended = False

    async def begin(self) -> bool:
        """Go on with what is left of the chunk, or begin one with the source's next entry. False: there is none."""
        if self._sent:
            return True
        self._sent_bytes, self._safe = 0, True
        if await self._next() is None:
            return False
        self._since_s = self._now()
        return True

    def settle(self, count: int | None) -> None:
        """Forget the first `count` lines of the chunk, which need not be sent again. None: all of them."""
        self._sent_bytes -= sum(map(len, self._sent[:count]))
        del self._sent[:count]

    def repeatable(self) -> bool:
        """Did every entry of the chunk name its id, or have an idempotency key?"""
        return self._safe

    def check(self) -> None:
        """Raise what the caller's source raised, if it did."""
        if self._fault is not None:
            raise self._fault

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the chunk from its start, then go on with the source until the chunk is full."""
        piece = b"".join(self._sent)
        while not self._full():
            if piece and (len(piece) >= PIECE_BYTES or (self._waits and not self._ready)):
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
            or self._now() - self._since_s >= self._chunk.age_max_s
        )

    async def _next(self) -> bytes | None:
        if self.ended:
            return None
        try:
            while not self._ready:
                given = self._entries
                item = await anext(given) if isinstance(given, AsyncIterator) else next(given)
                self._ready.extend(item if isinstance(item, Batch) else (item,))
            line, safe = wire.line(self._ready.popleft(), self._new_key)
        except (StopAsyncIteration, StopIteration):
            self.ended = True
            return None
        except Exception as fault:
            self._fault, self.ended = fault, True
            return None
        self._sent.append(line)
        self._sent_bytes += len(line)
        self._safe &= safe
        return line


async def confirmations(
    transport: Transport, call: wire.Call, source: Source
) -> AsyncGenerator[Confirmation, None]:
    """Send the whole source; give a confirmation for every request. See `Client.append_stream`."""
    so_far = Confirmation(through=0, cursor=None, appended=0, refused=0)
    errors_left = ERRORS_MAX
    failures = 0
    while await source.begin():
        told = answers.progress(answers.checked(await transport.send(call, source)))
        through = so_far.through
        so_far = _add(so_far, told, errors_left)
        errors_left -= len(so_far.errors)
        error = answers.cut_short(told, so_far.through)
        source.settle(so_far.through - through if error else None)
        if so_far.through > through:
            failures = 0
            yield so_far
        if error is not None:
            failures += 1
            await _pause_or_raise(transport, source, error, failures)
    source.check()


async def _pause_or_raise(transport: Transport, source: Source, error: ClientError, failures: int) -> None:
    again = source.repeatable() and isinstance(error, Unreachable | Unavailable)
    pause_s = transport.retry.pause_s(failures, error, transport.chance) if again else None
    if pause_s is None:
        raise error
    await transport.sleep(pause_s)


def _add(so_far: Confirmation, told: list[answers.Progress], errors_left: int) -> Confirmation:
    last = told[-1] if told else answers.Progress(0)
    appended = last.through - last.refused if last.appended is None else last.appended
    errors = tuple(
        LineError(so_far.through + one.line, one.code, one.detail) for one in last.errors[:errors_left]
    )
    return Confirmation(
        through=so_far.through + last.through,
        cursor=so_far.cursor if last.cursor is None else last.cursor,
        appended=so_far.appended + appended,
        refused=so_far.refused + last.refused,
        errors=errors,
    )
