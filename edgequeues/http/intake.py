"""An append that is streamed: lines in, groups of them committed, answers out when the client takes them.

Three things go on at once, none waiting for a slower one longer than it must: reading and checking lines into a
group, committing the group before it, and answering. Answers are cumulative, so those the client is too busy to
read are merged: a client that sends all before it reads anything must not stop the other two.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

import trio
from msgspec import UNSET, Struct, UnsetType

from edgequeues.core import errors
from edgequeues.core.errors import EdgeQueuesError, TooLarge
from edgequeues.http import codec, envelope, problems
from edgequeues.http.routes import ClientGone, Request
from edgequeues.models import ENTRY_BYTES_MAX, AppendAnswer, NewEntry
from shards.errors import Overloaded

LINE_BYTES_MAX = ENTRY_BYTES_MAX + 64 * 1024
GROUP_LINES_MAX = 256
GROUP_BYTES_MAX = 256 * 1024  # a group ends with the line that reaches it
ERRORS_MAX = 1_000
PAUSE_S = 3600.0  # a stream may be silent for this long: who follows a log has nothing to say at night

# What one entry of a group can be at fault for; the others of the group are then stored without it.
ONE_ENTRY = (
    errors.EntryExists,
    errors.VersionAhead,
    errors.DuplicateId,
    errors.InvalidId,
    errors.InvalidMessage,
    errors.InvalidRequest,
    errors.TooLarge,
)

Append = Callable[[Sequence[NewEntry]], Awaitable[AppendAnswer]]


class LineError(Struct, frozen=True):
    """A line that was refused; counted from 1."""

    line: int
    code: str
    detail: str


class Progress(Struct, frozen=True):
    """One line of the answer: everything up to line `through` is settled, and what was not refused is on disk.

    appended, refused, errors: only at the end. problem: why it ended before the input did; without `appended`.
    """

    through: int
    cursor: str | None
    appended: int | UnsetType = UNSET
    refused: int | UnsetType = UNSET
    errors: list[LineError] | UnsetType = UNSET
    problem: problems.Problem | UnsetType = UNSET


class Lines:
    """Bytes to lines, in linear time, however they are cut."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def held(self) -> int:
        """Bytes kept of a line that has not ended."""
        return self._size if self._size <= self._bytes_max else 0

    def feed(self, piece: bytes) -> Iterator[bytes | None]:
        """Give the lines that end in `piece`; None stands for one longer than `bytes_max`."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._line()
        self._add(rest)

    def end(self) -> Iterator[bytes | None]:
        """Give the last line, if the input did not end with a line break."""
        if self._size:
            yield self._line()

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._bytes_max:
            self._parts.append(part)
        else:
            self._parts.clear()  # it is refused anyway: remember only how long it is

    def _line(self) -> bytes | None:
        line = None if self._size > self._bytes_max else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line


class Group:
    """Lines to settle together, in order: an entry, or why there is none."""

    def __init__(self) -> None:
        self.items: list[tuple[int, NewEntry | EdgeQueuesError]] = []
        self.through = 0  # the last line read when it was closed, also blank ones
        self._bytes = 0
        self._ids: set[str] = set()

    @property
    def full(self) -> bool:
        """Does it take no more lines?"""
        return len(self.items) >= GROUP_LINES_MAX or self._bytes >= GROUP_BYTES_MAX

    def names(self, item: NewEntry | EdgeQueuesError) -> bool:
        """Is the object of `item` in here already? One turn takes each object once."""
        return isinstance(item, NewEntry) and item.object_id is not None and item.object_id in self._ids

    def add(self, number: int, item: NewEntry | EdgeQueuesError, size: int) -> None:
        """Take line `number`, of `size` bytes."""
        self.items.append((number, item))
        self._bytes += size
        if isinstance(item, NewEntry) and item.object_id is not None:
            self._ids.add(item.object_id)


class Intake:
    """One streamed append. `run` does the work, `answers` tells of it; both at once, each once."""

    def __init__(self, request: Request, append: Append) -> None:
        self._request = request
        self._append = append
        self._filling = Group()
        self._lines_read = 0
        self._input_ended = False
        self._work = trio.Event()  # there is something to commit, or there will be nothing more
        self._room = trio.Event()  # the group being filled was taken away
        self._news = trio.Event()
        self._done = False
        self._through = 0
        self._cursor: str | None = None
        self._appended = 0
        self._refused = 0
        self._errors: list[LineError] = []
        self._failure: Exception | None = None

    async def run(self) -> None:
        """Take all lines, or as many as come before something fails for good."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._commit_all, nursery.cancel_scope)
            try:
                await self._read_all()
            except ClientGone:
                nursery.cancel_scope.cancel()  # nobody will hear of the rest
            except (EdgeQueuesError, Overloaded) as error:
                self._failure = error
            self._input_ended = True
            self._work.set()
        self._done = True
        self._news.set()

    async def answers(self) -> AsyncGenerator[bytes, None]:
        """Give a line whenever there is news, and the last one with the counts."""
        told = 0
        while not self._done:
            await self._news.wait()
            self._news = trio.Event()
            if self._through > told and not self._done:
                told = self._through
                yield codec.encode(Progress(told, self._cursor)) + b"\n"
        failure = self._failure
        yield (
            codec.encode(
                Progress(
                    self._through,
                    self._cursor,
                    UNSET if failure else self._appended,
                    self._refused,
                    self._errors,
                    problems.problem(failure) if failure else UNSET,
                )
            )
            + b"\n"
        )

    # -- reading ------------------------------------------------------------------------------------------

    async def _read_all(self) -> None:
        lines = Lines(LINE_BYTES_MAX)
        while piece := await self._request.piece(PAUSE_S):
            for line in lines.feed(piece):
                await self._take(line)
            self._request.hold(lines.held)
        for line in lines.end():
            await self._take(line)

    async def _take(self, line: bytes | None) -> None:
        number = self._lines_read + 1
        if line is None or line.strip():
            item, size = _parse(line), len(line or b"")
            while self._filling.full or self._filling.names(item):
                self._room = trio.Event()
                await self._room.wait()
            self._filling.add(number, item, size)
        self._lines_read = self._filling.through = number
        self._work.set()

    # -- committing ---------------------------------------------------------------------------------------

    async def _commit_all(self, everything: trio.CancelScope) -> None:
        while True:
            await self._work.wait()
            self._work = trio.Event()
            group, self._filling = self._filling, Group()
            self._room.set()
            if group.through:
                try:
                    await self._settle(group)
                except Exception as error:
                    problems.report(error, "a group of a streamed append")
                    self._failure = error
                    everything.cancel()
                    return
            if self._input_ended:
                if not self._filling.through:
                    return  # the last line of the answer says it all
                self._work.set()
            self._news.set()

    async def _settle(self, group: Group) -> None:
        """Store what can be stored of a group, in order; note what cannot."""
        refused: list[tuple[int, EdgeQueuesError]] = []
        entries: list[tuple[int, NewEntry]] = []
        for number, item in group.items:
            if isinstance(item, NewEntry):
                entries.append((number, item))
            else:
                refused.append((number, item))
        try:
            if entries:
                await self._store(entries, refused)
            self._through = group.through
        finally:  # after a failure, what was not reached is neither stored nor refused
            for number, error in sorted(refused, key=lambda one: one[0]):
                if number <= self._through:
                    self._refuse(number, error)

    async def _store(
        self, entries: list[tuple[int, NewEntry]], refused: list[tuple[int, EdgeQueuesError]]
    ) -> None:
        """Append in one turn; if an entry is at fault, look for it in halves, and go on without it."""
        try:
            answer = await self._append([entry for _, entry in entries])
        except ONE_ENTRY as error:
            if len(entries) == 1:
                refused.append((entries[0][0], error))
                self._through = entries[0][0]
                return
            middle = len(entries) // 2
            await self._store(entries[:middle], refused)
            await self._store(entries[middle:], refused)
        else:
            self._appended += len(entries)
            self._cursor = answer.cursor
            self._through = entries[-1][0]

    def _refuse(self, number: int, error: EdgeQueuesError) -> None:
        self._refused += 1
        if len(self._errors) < ERRORS_MAX:
            self._errors.append(LineError(number, error.code, str(error)))


def _parse(line: bytes | None) -> NewEntry | EdgeQueuesError:
    if line is None:
        return TooLarge(f"the line has more than {LINE_BYTES_MAX} bytes")
    try:
        return envelope.entry(line)
    except EdgeQueuesError as error:
        return error
