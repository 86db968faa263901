"""`edgequeues push`: messages from arguments, files or a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Raw, Struct

from edgequeues.cli import params
from edgequeues.cli.inputs import STDIN, InputError, Place, new_entry, texts
from edgequeues.cli.render import progress
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Client, NewEntry
from edgequeues.core.dxn import Dxn


class Envelope(Struct):
    """A message with what is said of it, as one JSON object; what else it has is left behind."""

    data: Raw
    id: str | None = None
    type: str | None = None
    ttl_ms: int | None = None
    key: str | None = None
    headers: dict[str, str] | None = None
    priority: int | None = None
    due: int | None = None
    delay_ms: int | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True)
class Options:
    """What is said of every message beside its data."""

    envelope: bool
    said: dict[str, Any]

    def entry(self, text: bytes) -> NewEntry:
        """Make a message of one JSON text. Raises ValueError."""
        if not self.envelope:
            return NewEntry(Raw(text), **self.said)
        try:
            given = msgspec.json.decode(text, type=Envelope)
        except msgspec.DecodeError as error:
            raise ValueError(f"not a message object with data: {error}") from error
        own = {name: getattr(given, name) for name in given.__struct_fields__}
        if self.said["due"] is not None or self.said["delay_ms"] is not None:
            own["due"] = own["delay_ms"] = None  # they say the same thing
        return NewEntry(**{**own, **{name: one for name, one in self.said.items() if one is not None}})


@click.command()
@click.argument("dxn", type=params.queue)
@click.argument("json", nargs=-1, metavar="[JSON|-]...")
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Read messages from a file, `-` for stdin: one JSON text, or one a line. Repeatable.",
)
@click.option(
    "--envelope",
    is_flag=True,
    help='Each JSON is a message object: {"data": ..., "key": ..., "priority": ...}.',
)
@click.option("--key", help="Their ordering key.")
@click.option("--priority", type=click.IntRange(0, 9), help="9 is handed out first. Default: 4.")
@click.option("--delay", "delay_ms", type=params.duration, help="Not handed out before so long, like 10s.")
@click.option("--due", type=params.moment, help="Not handed out before then: unix ms or ISO 8601.")
@click.option("--ttl", "ttl_ms", type=params.duration, help="They expire so long after now, like 10s or 7d.")
@click.option("--id", help="The message's id, for a single one.")
@click.option("--idempotency-key", help="Pushed again with the same, a single message is not doubled.")
@click.option("--type", help="Their type.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of theirs. Repeatable."
)
@click.option(
    "--keyed",
    is_flag=True,
    help="Give those without an idempotency key a random one, so that a push whose answer is lost is repeated.",
)
@remote
def push(
    session: Session,
    /,
    dxn: Dxn,
    json: Sequence[str],
    files: Sequence[Path],
    envelope: bool,
    keyed: bool,
    **said: Any,
) -> None:
    """Push messages to work queue DXN: each JSON argument is the data of one.

    Without arguments and files, stdin is read. The queue is made by its first push. Up to 1,000 messages go in one
    call, all or nothing.

    \b
      edgequeues push dxn:queue:demo:jobs '{"n": 1}' '{"n": 2}'
      edgequeues push dxn:queue:demo:jobs --key a --delay 10m '{"n": 3}'
      edgequeues push dxn:queue:demo:jobs --file jobs.ndjson
    """
    if said["due"] is not None and said["delay_ms"] is not None:
        raise click.UsageError("give either --due or --delay")
    options = Options(envelope, {**said, "headers": params.pairs(said["headers"])})
    try:
        entries = [new_entry(options.entry, *one) for one in _given(json, files)]
    except InputError as error:
        raise Failure(f"{error}. Data is JSON, a text in quotes of its own; nothing was pushed") from error
    for name in ("id", "idempotency_key"):
        if said[name] is not None and len(entries) != 1:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} is for a single message, but {len(entries)} were given")
    session.run(lambda client: _push(client, session, dxn, entries, keyed))


def _given(json: Sequence[str], files: Sequence[Path]) -> Iterator[Place]:
    """The JSON texts, with their places, from where they were said to be."""
    if json and files:
        raise click.UsageError("name messages as arguments or in files, not both")
    if not json and not files and sys.stdin.isatty():
        raise click.UsageError("no messages: give JSON as arguments, --file, or a pipe to stdin")
    if not json:
        yield from texts(files or [STDIN])
    for number, text in enumerate(json, 1):
        if text == "-":
            yield from texts([STDIN])
        elif not text.startswith(("{", "[", '"')) and Path(text).is_file():
            raise click.UsageError(f"{text} is a file: say --file {text} to push what is in it")
        else:
            yield "argument", number, os.fsencode(text)


async def _push(client: Client, session: Session, dxn: Dxn, entries: Sequence[NewEntry], keyed: bool) -> None:
    rows: list[tuple[str, str, str]] = []
    try:
        with progress("pushing") as step:
            async with aclosing(client.push_all(str(dxn), entries, keyed=keyed)) as answers:
                async for answer in answers:
                    for one in answer.results:
                        if session.out.json:
                            session.out.line(one)
                        rows.append((str(one.position), one.outcome, one.id))
                    step(len(rows), len(entries))
    finally:  # what was stored before a later call failed is shown all the same
        if not session.out.json:
            session.out.table(("position", "outcome", "id"), rows, right=("position",))
