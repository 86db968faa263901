"""`edgequeues import`: makes queues of what `edgequeues export` wrote."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from edgequeues.cli import exporting, params
from edgequeues.cli.exporting import EndLine, EntryLine, Head, Line, QueueLine, WholeLine
from edgequeues.cli.render import progress
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import BadAnswer, Client, ConfigChange, NewEntry
from edgequeues.core import dxn as dxns
from edgequeues.core import ids

BATCH_ENTRIES = 500
BATCH_BYTES = 4 * 1024 * 1024


class Progress(Struct):
    """How far an import has come: lines of the file that are stored, and what they made.

    into: where they were to go. last: the SHA-256 of the last of these lines, in hex: is it still the same file?
    """

    into: str | None = None
    lines: int = 0
    entries: int = 0
    expired: int = 0
    last: str = ""


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--into", metavar="DXN|SPACE", help="The queue, for an export of one, or the space. Default: as it was."
)
@remote
def import_(session: Session, /, file: Path, into: str | None) -> None:
    """Make queues of FILE, which `edgequeues export` wrote: with their settings, consumers and entries.

    Entries keep their ids, so what is there already with the same data stays as it is. Messages begin anew: attempts
    at 0, no lease, what was delayed still until its time. How far it is stands in FILE.imported: run the same again
    after an interruption, and it goes on there. That file is removed at the end.
    """
    beside = file.with_name(file.name + ".imported")
    done = msgspec.json.decode(beside.read_bytes(), type=Progress) if beside.exists() else Progress(into)
    if done.into != into:
        raise Failure(
            f"{beside} tells of an import into {done.into or 'where it was'} that is not complete: go on with that, "
            "or remove the file to begin anew"
        )

    async def work(client: Client) -> None:
        one = _Import(client, into, done, beside)
        with progress("importing") as step:
            for number, (raw, line) in enumerate(_lines(file), 1):
                await one.take(number, raw, line)
                step(done.entries)
            await one.flush()
        if not one.is_whole:
            raise Failure(
                f"{file} is not a whole export; {done.entries} entries of it are stored. Go on with the export by "
                "`edgequeues export --resume`, then with this"
            )
        beside.unlink(missing_ok=True)
        if session.out.json:
            session.out.line({"entries": done.entries, "expired": done.expired})
        else:
            said = f", {done.expired} had expired" if done.expired else ""
            session.out.text(f"{done.entries} entries are stored{said}")

    session.run(work)


def _lines(file: Path) -> Iterator[tuple[bytes, Line]]:
    with file.open("rb") as content:
        for number, text in enumerate(content, 1):
            try:
                yield text, exporting.decoded(text)
            except BadAnswer as error:
                raise Failure(f"{file}:{number}: not a line of an export: {error}") from error


class _Import:
    """One run. done: what is stored already; it is kept up to date, and written to `beside`."""

    def __init__(self, client: Client, into: str | None, done: Progress, beside: Path) -> None:
        self.is_whole = False
        self._client = client
        self._into = into
        self._done = done
        self._beside = beside
        self._queue: QueueLine | None = None
        self._queues: list[tuple[QueueLine, str]] = []
        self._dxn = ""
        self._batch: list[NewEntry] = []
        self._bytes = 0
        self._line = 0
        self._raw = b""  # that line

    async def take(self, number: int, raw: bytes, line: Line) -> None:
        """Do what a line says, but for what was done before. Raises Failure."""
        is_new = number > self._done.lines
        if number == self._done.lines and sha256(raw).hexdigest() != self._done.last:
            raise Failure(
                f"line {number} is not what it was when {self._beside} was written: this is another file. Remove "
                f"{self._beside} to begin anew"
            )
        if (number == 1) != isinstance(line, Head):
            raise Failure(f"line {number} is not where it belongs: is this a whole export?")
        await self._do(number, raw, line, is_new)
        self._line, self._raw = number, raw

    async def _do(self, number: int, raw: bytes, line: Line, is_new: bool) -> None:
        if isinstance(line, Head):
            if line.format > exporting.FORMAT:
                raise Failure(f"this export is of format {line.format}; a newer edgequeues reads it")
            if (self._into or "").startswith("dxn:") and not line.of.startswith("dxn:"):
                raise Failure(f"this is an export of space {line.of}: --into names a space, not a queue")
        elif isinstance(line, QueueLine):
            await self.flush()
            self._queue, self._dxn = line, _address(line.dxn, self._into)
            self._queues.append((line, self._dxn))
            if is_new:
                await self._make(line)
        elif self._queue is None:
            raise Failure(f"line {number} is not of a queue: is this the beginning of an export?")
        elif isinstance(line, EntryLine):
            if is_new:
                await self._add(line, number, raw)
        elif isinstance(line, EndLine):
            await self.flush()
        elif isinstance(line, WholeLine):
            for queue, dxn in self._queues:
                await self._finish(queue, dxn)
            self.is_whole = True

    async def _make(self, queue: QueueLine) -> None:
        """Make the queue, and the consumers of a work queue, so that they are given what comes."""
        config = msgspec.structs.replace(queue.config, paused=True)  # nobody is to work half of it
        if config.kind == "log":
            await self._client.configure(self._dxn, msgspec.structs.replace(config, name=self._name()))
            return
        names = {one.name: one.config for one in queue.consumers}
        said = {
            field: getattr(config, field)
            for field in ConfigChange.__struct_fields__
            if field not in ("name", "kind")
        }
        settings = msgspec.convert(said, ConfigChange)
        rules = msgspec.to_builtins(names["default"]) if "default" in names else None
        profile = "inbound" if config.sessions else "work"
        await self._client.make_queue(self._dxn, profile, settings=settings, rules=rules)
        for name, each in names.items():
            if name != "default":
                await self._client.put_consumer(self._dxn, name, each, start="beginning")
        if names and "default" not in names:
            await self._client.delete_consumer(self._dxn, "default")

    async def _finish(self, queue: QueueLine, dxn: str) -> None:
        """All is there: let consumers of a log begin after it, and have the queue worked if it was.

        Dead letters that lay in a queue of their own did so because nothing else was said. Here that queue is one
        like any other, so it is said.
        """
        names = {one.config.name for one, _ in self._queues}
        for one in queue.consumers:
            implicit = f"{queue.config.name}-dlq"
            if one.config.dead_letters is None and implicit in names:
                rules = msgspec.structs.replace(one.config, dead_letters=implicit)
                await self._client.put_consumer(dxn, one.name, rules)
            elif queue.config.kind == "log":
                await self._client.put_consumer(dxn, one.name, one.config)
        if not queue.config.paused:
            await self._client.reconfigure(dxn, ConfigChange(paused=False))

    async def _add(self, line: EntryLine, number: int, raw: bytes) -> None:
        ttl_ms = None
        if line.expires is not None:
            ttl_ms = line.expires - clock.time_ns() // 1_000_000
            if ttl_ms <= 0:
                self._done.expired += 1
                return
        self._batch.append(
            NewEntry(
                line.data,
                line.id,
                line.type,
                ttl_ms,
                line.key,
                line.headers,
                priority=line.priority,
                due=line.due,
            )
        )
        self._bytes += len(memoryview(line.data))
        if len(self._batch) >= BATCH_ENTRIES or self._bytes >= BATCH_BYTES:
            self._line, self._raw = number, raw
            await self.flush()

    async def flush(self) -> None:
        """Store what has gathered, and note up to which line the file is stored."""
        if self._batch:
            assert self._queue is not None
            send = self._client.push if self._queue.config.kind == "work" else self._client.append
            await send(self._dxn, self._batch)
            self._done.entries += len(self._batch)
            self._batch, self._bytes = [], 0
        if self._line <= self._done.lines:
            return
        self._done.lines, self._done.last = self._line, sha256(self._raw).hexdigest()
        fresh = self._beside.with_name(self._beside.name + ".new")
        fresh.write_bytes(msgspec.json.encode(self._done))
        fresh.replace(self._beside)

    def _name(self) -> str | None:
        queue = dxns.parse(self._dxn).queue
        return None if ids.is_ulid(queue) else queue


def _address(dxn: str, into: str | None) -> str:
    """Where a queue is to go. Raises click.BadParameter."""
    if into is None:
        return dxn
    place = params.space_or_queue(into, "--into")
    if isinstance(place, dxns.Dxn):
        return str(place)
    was = dxns.parse(dxn)
    return str(dxns.Dxn(place, was.queue, None, was.tag))
