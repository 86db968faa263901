"""`edgequeues append`: entries from arguments, files or a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
from msgspec import Raw, Struct

from edgequeues.cli import params
from edgequeues.cli.inputs import InputError, chunks_of, new_entry, texts
from edgequeues.cli.render import progress
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Batch, Client, ClientError, Confirmation, NewEntry
from edgequeues.core.dxn import Dxn

CALL_ENTRIES = 1_000
CALL_BYTES = 8 * 1024 * 1024


class Envelope(Struct):
    """An entry object as `read` prints it; what the server gave it (position, version, times) is left behind."""

    data: Raw
    id: str | None = None
    type: str | None = None
    ttl_ms: int | None = None
    key: str | None = None
    headers: dict[str, str] | None = None


@dataclass(frozen=True)
class Options:
    """What is said of every entry beside its data."""

    envelope: bool
    id: str | None
    type: str | None
    ttl_ms: int | None
    key: str | None
    headers: dict[str, str] | None

    def entry(self, text: bytes) -> NewEntry:
        """Make an entry of one JSON text. Raises ValueError."""
        if not self.envelope:
            return NewEntry(Raw(text), self.id, self.type, self.ttl_ms, self.key, self.headers)
        try:
            said = msgspec.json.decode(text, type=Envelope)
        except msgspec.DecodeError as error:
            raise ValueError(f"not an entry object with data: {error}") from error
        return NewEntry(
            said.data,
            self.id or said.id,
            self.type or said.type,
            self.ttl_ms or said.ttl_ms,
            self.key or said.key,
            self.headers or said.headers,
        )


class CallOptions(NamedTuple):
    """What options say of the calls, rather than of entries."""

    actor: str | None
    keyed: bool


@click.command()
@click.argument("dxn", type=params.queue)
@click.argument("json", nargs=-1)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Read entries from a file, `-` for stdin: one JSON text, or one a line. Repeatable.",
)
@click.option(
    "--stream",
    is_flag=True,
    help="Send entries of files and stdin as they come, one a line, any number of "
    "them; print a summary instead of each id. A bad entry is then refused alone.",
)
@click.option(
    "--envelope", is_flag=True, help="Each JSON is an entry object with `data`, as `read --json` prints it."
)
@click.option("--id", "object_id", help="The object's id, for a single entry.")
@click.option("--type", "entry_type", help="The type of the entries.")
@click.option(
    "--ttl", "ttl_ms", type=params.duration, help="The entries expire so long after now, like 10s or 7d."
)
@click.option("--key", help="The ordering key of the entries.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of the entries. Repeatable."
)
@click.option("--actor", help="Names the writer in versions.")
@click.option(
    "--keyed",
    is_flag=True,
    help="Give entries without an id a random idempotency key, so that a call whose answer is lost is repeated.",
)
@remote
def append(
    session: Session,
    /,
    dxn: Dxn,
    json: Sequence[str],
    files: Sequence[Path],
    stream: bool,
    actor: str | None,
    keyed: bool,
    **said: Any,
) -> None:
    """Append entries to queue DXN: each JSON argument is the data of one, kept as it is written.

    Without arguments and files, stdin is read. Up to 1,000 entries go in one call, all or nothing.

    \b
      edgequeues append dxn:queue:demo:log '{"n": 1}' '{"n": 2}'
      edgequeues append dxn:queue:demo:log --id a --ttl 1h '"text"'
      edgequeues append dxn:queue:demo:log --stream --file events.ndjson
    """
    options, call = _options(**said), CallOptions(actor, keyed)
    if json and files:
        raise click.UsageError("name entries as arguments or in files, not both")
    if not json and not files:
        if sys.stdin.isatty():
            raise click.UsageError("no entries: give JSON as arguments, --file, or a pipe to stdin")
        files = [Path("-")]
    if options.id is not None and (stream or len(json) > 1):
        raise click.UsageError("--id names a single entry")
    if stream and json:
        raise click.UsageError("--stream reads files or stdin, not arguments")
    try:
        if stream:
            session.run(lambda client: _stream(client, session, dxn, files, options, call))
        else:
            given = [("argument", n, os.fsencode(text)) for n, text in enumerate(json, 1)] or texts(files)
            entries = [new_entry(options.entry, *one) for one in given]
            if options.id is not None and len(entries) > 1:
                raise click.UsageError(f"--id names a single entry, but {len(entries)} were given")
            session.run(lambda client: _append(client, session, dxn, entries, call))
    except InputError as error:
        raise Failure(str(error)) from error


def _options(object_id: str | None, entry_type: str | None, headers: Sequence[str], **said: Any) -> Options:
    return Options(id=object_id, type=entry_type, headers=params.pairs(headers), **said)


async def _append(
    client: Client, session: Session, dxn: Dxn, entries: Sequence[NewEntry], said: CallOptions
) -> None:
    rows: list[tuple[str, str, str, str]] = []
    try:
        with progress("appending") as step:
            for part in _calls(entries):
                answer = await client.append(str(dxn), part, actor=said.actor, keyed=said.keyed)
                for one in answer.results:
                    if session.out.json:
                        session.out.line(one)
                    rows.append((str(one.position), one.outcome, one.id, one.version))
                step(len(rows), len(entries))
    finally:  # what was stored before a later call failed is shown all the same
        if not session.out.json:
            session.out.table(("position", "outcome", "id", "version"), rows, right=("position",))


def _calls(entries: Iterable[NewEntry]) -> Iterable[list[NewEntry]]:
    """Cut a list into calls the server takes."""
    left = iter(entries)
    while part := list(islice(left, CALL_ENTRIES)):
        start, size = 0, 0
        for end, entry in enumerate(part):
            assert isinstance(entry.data, Raw)
            size += len(memoryview(entry.data))
            if size > CALL_BYTES and end > start:
                yield part[start:end]
                start, size = end, len(memoryview(entry.data))
        yield part[start:]


async def _stream(
    client: Client, session: Session, dxn: Dxn, files: Sequence[Path], options: Options, said: CallOptions
) -> None:
    last = Confirmation(through=0, cursor=None, appended=0, refused=0)
    try:
        with progress("appending") as step:
            async with aclosing(_batches(files, options)) as source:
                stream = client.append_stream(str(dxn), source, actor=said.actor, keyed=said.keyed)
                async for last in stream:
                    step(last.through)
                    for error in last.errors:
                        session.out.note(f"edgequeues: entry {error.line}: {error.detail} [{error.code}]")
    except (InputError, ClientError):
        session.out.note(
            f"edgequeues: {last.appended} entries are stored, {last.refused} were refused; then:"
        )
        raise
    session.out.told(
        {"appended": last.appended, "refused": last.refused, "cursor": last.cursor},
        f"{last.appended} appended, {last.refused} refused",
    )
    if last.refused:
        raise Failure(f"{last.refused} of {last.through} entries were refused; the others are stored")


async def _batches(files: Sequence[Path], options: Options) -> AsyncGenerator[Batch, None]:
    async with aclosing(chunks_of(files)) as chunks:
        async for where, first, lines in chunks:
            good: list[NewEntry] = []
            try:
                for number, line in enumerate(lines, first):
                    if line.strip():
                        good.append(new_entry(options.entry, where, number, line.strip()))
            except InputError:
                yield Batch(good)  # what was right before it is stored
                raise
            yield Batch(good)
