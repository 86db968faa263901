"""`edgequeues export`: a queue, or all of a space, as lines of JSON."""

from __future__ import annotations

import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from edgequeues.cli import exporting, params
from edgequeues.cli.exporting import EndLine, MarkLine, Resumed
from edgequeues.cli.render import progress
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Client, QueueStats
from edgequeues.core.dxn import Dxn


@click.command()
@click.argument("of", metavar="DXN|SPACE")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file, not to stdout."
)
@click.option("--resume", is_flag=True, help="Go on with the file, which was interrupted.")
@remote
def export(session: Session, /, of: str, out: Path | None, resume: bool) -> None:
    """Write the queue DXN, or all queues of SPACE, as lines of JSON: settings, consumers, entries.

    Of a work queue, what is not finished. What comes meanwhile may be in it. `edgequeues import` makes queues of it
    again.

    \b
      edgequeues export demo --out demo.ndjson
      edgequeues export demo --out demo.ndjson --resume
    """
    if resume and out is None:
        raise click.UsageError("--resume goes on with a file: name it by --out")
    if out is not None and out.exists() and not resume:
        raise Failure(f"{out} is there already: name another file, or say --resume to go on with it")
    try:
        begun = exporting.look(out) if out is not None and resume and out.exists() else Resumed()
    except ValueError as error:
        raise Failure(str(error)) from error
    if begun.of not in (None, of):
        raise Failure(f"{out} is an export of {begun.of}, not of {of}")

    async def work(client: Client) -> None:
        queues = await _queues(client, of)
        if out is None:
            await _write(client, of, queues, begun, sys.stdout.buffer)
            return
        with out.open("r+b" if begun.size else "wb") as file:
            file.truncate(begun.size)
            file.seek(begun.size)
            await _write(client, of, queues, begun, file)
            file.flush()
            os.fsync(file.fileno())
        session.out.note(f"edgequeues: {of} is in {out}")

    session.run(work)


async def _queues(client: Client, of: str) -> list[QueueStats]:
    """The queues that are meant. Raises click.BadParameter."""
    place = params.space_or_queue(of)
    if isinstance(place, Dxn):
        return [await client.stats(str(place))]
    found = [one async for one in client.queues(place)]
    if not found:
        raise Failure(f"there is no queue in space {place}")
    return found


async def _write(client: Client, of: str, queues: list[QueueStats], begun: Resumed, file: BinaryIO) -> None:
    total, done = sum(one.entries for one in queues), begun.entries
    with progress("exporting") as step:
        async with aclosing(exporting.lines(client, of, queues, begun)) as lines:
            async for line in lines:
                file.write(msgspec.json.encode(line) + b"\n")
                if isinstance(line, MarkLine | EndLine):
                    file.flush()
                    done = max(done, line.entries)
                    step(done, total)
