"""What an export looks like, line by line, and how one is made.

A file is lines of JSON. The first says what it is; then come queues, each with its settings and consumers, its
entries in order, a mark after each page from which an export that was interrupted goes on, and how many entries there
were. The last line says that this is all.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from edgequeues.client import (
    BadAnswer,
    Client,
    Consumer,
    ConsumerRules,
    Entry,
    QueueConfig,
    QueueStats,
    Standing,
)
from edgequeues.client.text import Text

FORMAT = 1
PAGE_ENTRIES = 500
BEGINS = b'{"line":"export",'  # every export


class Head(Struct, frozen=True, tag="export", tag_field="line"):
    """The first line. of: a space, or the address of a queue."""

    of: str
    format: int = FORMAT


class Kept(Struct, frozen=True):
    """A consumer: its name and its rules."""

    name: str
    config: ConsumerRules


class QueueLine(Struct, frozen=True, tag="queue", tag_field="line"):
    """What follows is of this queue. dxn: its address, by its name where it has one."""

    dxn: str
    config: QueueConfig
    consumers: list[Kept]


class EntryLine(Struct, frozen=True, tag="entry", tag_field="line", omit_defaults=True):
    """An entry. due: unix ms before which it is not handed out. state: of an unfinished message, when it was read."""

    id: str
    data: Raw
    type: str | None = None
    key: str | None = None
    headers: dict[str, str] | None = None
    expires: int | None = None
    priority: int | None = None
    due: int | None = None
    state: str | None = None


class MarkLine(Struct, frozen=True, tag="mark", tag_field="line"):
    """All up to here was written. cursor: where the queue goes on; position, entries: of the last one, and so far."""

    cursor: str | None
    position: int
    entries: int


class EndLine(Struct, frozen=True, tag="end", tag_field="line"):
    """The queue is complete."""

    dxn: str
    entries: int


class WholeLine(Struct, frozen=True, tag="whole", tag_field="line"):
    """The export is complete."""

    queues: int


Line = Head | QueueLine | EntryLine | MarkLine | EndLine | WholeLine


def decoded(raw: bytes) -> Line:
    """A line, data as it is written. Raises BadAnswer for what is none."""
    text = Text(raw)
    line: Line = text.decode(Line)  # type: ignore[arg-type]  # a union is as good as a type here
    if isinstance(line, EntryLine):
        return msgspec.structs.replace(line, data=Raw(text.raw(line.data)))
    return line


class Resumed(Struct):
    """Where an export that was interrupted goes on. size: bytes of the file that count."""

    size: int = 0
    done: set[str] = msgspec.field(default_factory=set)  # addresses of queues that are complete
    queue: str | None = None  # the one that is not
    cursor: str | None = None
    position: int = 0
    entries: int = 0
    of: str | None = None
    whole: bool = False


def look(path: Path) -> Resumed:
    """What an interrupted export has written. Raises OSError, and ValueError for a file of something else."""
    found, at = Resumed(), 0
    with path.open("rb") as file:
        begins = file.read(len(BEGINS))
        if not BEGINS.startswith(begins):
            raise ValueError(f"{path} is no export: it does not begin like one")
        file.seek(0)
        for text in file:
            at += len(text)
            try:
                line = decoded(text)
            except BadAnswer:  # the line in which it was interrupted
                break
            if not text.endswith(b"\n"):
                break
            if isinstance(line, Head):
                found.of, found.size = line.of, at
            elif isinstance(line, QueueLine):
                found.queue, found.cursor, found.position, found.entries = line.dxn, None, 0, 0
                found.size = at
            elif isinstance(line, MarkLine):
                found.cursor, found.position, found.entries = line.cursor, line.position, line.entries
                found.size = at
            elif isinstance(line, EndLine):
                found.done.add(line.dxn)
                found.queue, found.size = None, at
            elif isinstance(line, WholeLine):
                found.size, found.whole = at, True
    return found


async def lines(
    client: Client, of: str, stats: list[QueueStats], begun: Resumed
) -> AsyncGenerator[Line, None]:
    """The lines of an export of these queues, from where it was interrupted."""
    if begun.of is None:
        yield Head(of)
    for one in stats:
        dxn = _address(one)
        if dxn in begun.done:
            continue
        goes_on, consumers = begun.queue == dxn, await client.consumers(dxn)
        if not goes_on:
            yield QueueLine(dxn, one.config, [Kept(each.name, each.config) for each in consumers])
        workers = consumers if one.config.kind == "work" else []
        async for line in _entries(client, dxn, workers, begun if goes_on else Resumed()):
            yield line
    if not begun.whole:
        yield WholeLine(len(stats))


async def _entries(
    client: Client, dxn: str, consumers: Sequence[Consumer], begun: Resumed
) -> AsyncGenerator[Line, None]:
    cursor, position, count = begun.cursor, begun.position, begun.entries
    keeps_all = not consumers or any(each.filling for each in consumers)
    while True:
        page = await client.read(dxn, after=cursor, limit=PAGE_ENTRIES)
        if not page.entries:
            break
        last = page.entries[-1].position
        standings: dict[int, list[Standing]] = {}
        for each in consumers:
            await _gather(client, dxn, each.name, position, last, standings)
        for entry in page.entries:
            standing = standings.get(entry.position, [])
            if not standing and not keeps_all:
                continue  # everybody is done with it, and it is only kept for a while
            yield _entry(entry, standing)
            count += 1
        cursor, position = page.next_cursor, last
        yield MarkLine(cursor, position, count)
    yield EndLine(dxn, count)


async def _gather(
    client: Client, dxn: str, consumer: str, after: int, last: int, found: dict[int, list[Standing]]
) -> None:
    """Add the unfinished messages of a consumer between two positions."""
    resume: int | None = after
    while resume is not None and resume < last:
        page = await client.peek(dxn, consumer=consumer, after=resume, limit=PAGE_ENTRIES)
        for each in page.messages:
            found.setdefault(each.position, []).append(each)
        resume = page.resume
        if page.messages and page.messages[-1].position >= last:
            break


def _entry(one: Entry, standings: Sequence[Standing]) -> EntryLine:
    """standings: with the consumers that are not done with it. It is due when it is for the first of them."""
    said: dict[str, Any] = {}
    if standings:
        said = {"priority": standings[0].priority, "state": standings[0].state}
        dues = [each.due for each in standings if each.state == "scheduled" and each.due is not None]
        if len(dues) == len(standings):
            said["due"] = min(dues)
    headers = None if one.headers is None else dict(one.headers)
    return EntryLine(one.id, Raw(one.raw), one.type, one.key, headers, one.expires, **said)


def _address(one: QueueStats) -> str:
    """By its name, where it has one: an id means nothing in another space."""
    if one.config.name is None:
        return one.dxn
    return one.dxn.rpartition(":")[0] + ":" + one.config.name
