"""`edgequeues backup`: the files of a running server's spaces, whole, as a data folder of their own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import click

from edgequeues.cli import archive, params
from edgequeues.cli.archive import Kept
from edgequeues.cli.render import progress, size
from edgequeues.cli.session import Failure, Session, explain, remote
from edgequeues.client import BadAnswer, Client, Refused, ServerError
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import reason


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.argument("spaces", nargs=-1, metavar="[SPACE]...")
@remote
def backup(session: Session, /, folder: Path, spaces: Sequence[str]) -> None:
    """Copy all spaces of a running server, or these, into FOLDER, which must be new or empty.

    Each file shows its space at one instant, with all that was confirmed before. Without SPACE, tokens and specs come
    along. FOLDER is then a data folder: `edgequeues check FOLDER` verifies it, `edgequeues restore FOLDER` puts it
    into a server that runs, and `edgequeues serve --data` serves a copy of it. Blobs are not in it.

    \b
      edgequeues backup backups/2026-11-29
      edgequeues backup backups/demo demo
    """
    named = [Dxn(params.space(name), "") for name in dict.fromkeys(spaces)]
    taken = _Taken(session, folder)

    async def work(client: Client) -> None:
        if not named:
            await taken.control(client)
        wanted = named or await _all(client)
        with progress("copying") as step:
            for done, one in enumerate(wanted):
                step(done, len(wanted))
                await taken.space(client, one)
        for one in named:
            await taken.traces(client, one.space)

    try:
        if folder.exists() and any(folder.iterdir()):
            raise Failure(f"{folder} holds something already: name a folder that is new or empty")
        try:
            session.run(work)
        except Failure as failure:
            raise Failure(f"{failure}{taken.so_far()}") from failure
        taken.close()
    except OSError as error:
        raise Failure(f"{error.filename or folder}: {reason(error)}{taken.so_far()}") from error
    taken.tell()


class _Taken:
    """What there is of a backup by now."""

    def __init__(self, session: Session, folder: Path) -> None:
        self._out = session.out
        self._folder = folder
        self._kept: list[tuple[str, Kept]] = []
        self._failed = 0

    async def control(self, client: Client) -> None:
        """Write the file of tokens and specs."""
        async with aclosing(client.backup_control()) as pieces:
            kept = await archive.write(self._folder / archive.CONTROL, pieces)
        self._keep("tokens and specs", kept, None, None)

    async def traces(self, client: Client, space: str) -> None:
        """Write the file of a space's traces, if it has any."""
        try:
            await self._write(client, Dxn(space, "", tag="trace"))
        except Refused as error:
            if error.code != "queue_not_found":
                raise

    async def space(self, client: Client, one: Dxn) -> None:
        """Write the file of a space. One that the server does not give is said and left out."""
        try:
            await self._write(client, one)
        except (ServerError, BadAnswer) as error:
            self._failed += 1
            self._out.note(f"edgequeues: {one.shard} is left out: {explain(error)}")

    async def _write(self, client: Client, one: Dxn) -> None:
        async with aclosing(client.backup(one.space, tag=one.tag)) as pieces:
            kept = await archive.write(archive.path_of(self._folder, one), pieces)
        self._keep(one.shard, kept, one.space, one.tag)

    def _keep(self, name: str, kept: Kept, space: str | None, tag: str | None) -> None:
        self._kept.append((name, kept))
        if self._out.json:
            told = {"space": space, "tag": tag, "file": str(kept.path)}
            self._out.line({**told, "bytes": kept.bytes, "sha256": kept.sha256}, at_once=True)

    def so_far(self) -> str:
        """What is to be said of the folder where this did not come to its end."""
        return f" ({self._folder} is no whole backup: remove it)" if self._kept else ""

    def close(self) -> None:
        """Say in the folder that this is all. Raises OSError."""
        if self._kept:
            archive.close(self._folder, [kept for _, kept in self._kept])

    def tell(self) -> None:
        """Say what there is. Raises Failure where something is missing."""
        if self._kept and not self._out.json:
            rows = [(name, size(kept.bytes), str(kept.path)) for name, kept in self._kept]
            self._out.table(("space", "size", "file"), rows, right=("size",))
        if self._failed:
            count = "1 space is" if self._failed == 1 else f"{self._failed} spaces are"
            whole = f"; what is in {self._folder} is whole" if self._kept else ""
            raise Failure(f"{count} not copied{whole}")


async def _all(client: Client) -> list[Dxn]:
    """All spaces, and the traces of those that have some."""
    return [Dxn(one.id, "", tag="trace" if one.tag == "trace" else "data") async for one in client.spaces()]
