"""`edgequeues restore`: spaces of a backup, put into a running server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from edgequeues.cli import archive, params
from edgequeues.cli.archive import Kept
from edgequeues.cli.queue import confirm
from edgequeues.cli.render import progress, size
from edgequeues.cli.session import Failure, Session, explain, remote
from edgequeues.client import Client, Refused, ServerError, Unavailable
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import reason

NAMED_MAX = 5  # of many spaces, in a sentence


@click.command()
@click.argument("source", metavar="FOLDER|FILE", type=click.Path(path_type=Path, exists=True))
@click.argument("spaces", nargs=-1, metavar="[SPACE]...")
@click.option("--replace", is_flag=True, help="Also put them in the place of spaces that are there.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before they are replaced.")
@remote
def restore(session: Session, /, source: Path, spaces: Sequence[str], replace: bool, yes: bool) -> None:
    """Put all spaces of a backup, or these, into a running server; or one FILE, as the space of that name.

    Each file is looked at by the server before it counts, and takes its place at once. What a space got since the
    backup is gone with the space that is replaced: on a terminal it asks first, elsewhere it wants --yes. Tokens and
    specs are not put back.

    \b
      edgequeues restore backups/2026-11-29
      edgequeues restore backups/2026-11-29 demo --replace
      edgequeues restore backups/2026-11-29/2a/demo.db demo-of-then
    """
    try:
        wanted = _folder(source, spaces) if source.is_dir() else _file(source, spaces)
    except ValueError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{error.filename or source}: {reason(error)}") from error

    async def work(client: Client) -> None:
        taken = await _taken(client, wanted)
        if taken and not replace:
            raise Failure(
                f"nothing was done, for {_few(taken)} {'is' if len(taken) == 1 else 'are'} there already: with"
                " --replace the backup takes the place of what is there"
            )
        if replace and taken != []:
            what = _few([one.shard for one in wanted] if taken is None else taken)
            question = f"Give up all that is in {what} now, for what is in the backup?"
            confirm(session, question, yes=yes, done="restored")
        await _put(session, client, wanted, replace=replace)

    try:
        session.run(work)
    except OSError as error:
        raise Failure(f"{error.filename or source}: {reason(error)}") from error


def _folder(folder: Path, spaces: Sequence[str]) -> dict[Dxn, Kept]:
    """The files that are meant. Raises ValueError, OSError."""
    found = archive.spaces_in(folder)
    wanted = {one: kept for one, kept in found.items() if not spaces or one.space in spaces}
    missing = sorted(set(spaces) - {one.space for one in wanted})
    if missing:
        raise ValueError(f"{folder} has no space {', '.join(missing)}")
    return wanted


def _file(file: Path, spaces: Sequence[str]) -> dict[Dxn, Kept]:
    """One file, as the space of that name. Raises UsageError, OSError."""
    if len(spaces) != 1:
        raise click.UsageError(f"{file} becomes one space: name it, as `edgequeues restore {file} demo`")
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256")
    return {Dxn(params.space(spaces[0]), ""): Kept(file, file.stat().st_size, digest.hexdigest())}


async def _put(session: Session, client: Client, wanted: Mapping[Dxn, Kept], *, replace: bool) -> None:
    """Send the files, one after the other. Raises Failure in the end where some were refused."""
    out, rows, failed, unsure = session.out, [], 0, False
    with progress("restoring") as step:
        for done, (space, kept) in enumerate(wanted.items()):
            step(done, len(wanted))
            try:
                placed = await client.restore(
                    space.space, archive.read(kept.path), tag=space.tag, sha256=kept.sha256, replace=replace
                )
            except ServerError as error:
                failed += 1
                unsure |= not isinstance(error, Refused | Unavailable)
                out.note(f"edgequeues: {space.shard} is not restored: {explain(error)}")
                continue
            if out.json:
                out.line({"tag": space.tag, **msgspec.to_builtins(placed)}, at_once=True)
            rows.append((space.shard, size(placed.bytes), "replaced" if placed.replaced else "made"))
            for spec in placed.specs:
                if spec.why is not None:
                    out.note(f"edgequeues: {space.space}: the spec of {spec.app} does not hold: {spec.why}")
    if rows and not out.json:
        out.table(("space", "size", "was"), rows, right=("size",))
    if failed:
        count = "1 is" if failed == 1 else f"{failed} are"
        state = "look at them before you try again" if unsure else "what was there is as it was"
        raise Failure(f"of {len(wanted)}, {count} not restored: {state}")


async def _taken(client: Client, wanted: Iterable[Dxn]) -> list[str] | None:
    """Which of them are there already; None: the token may not know. The server looks again anyway."""
    try:
        there = {(one.id, one.tag) async for one in client.spaces()}
    except Refused:
        return None
    return [one.shard for one in wanted if (one.space, one.tag) in there]


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f"{'space' if len(names) == 1 else 'spaces'} {', '.join(names[:NAMED_MAX])}{more}"
