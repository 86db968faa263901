"""`edgequeues spec` where it talks to a server: what holds there, and having it hold. And `edgequeues hooks`."""

from __future__ import annotations

from pathlib import Path

import click

from edgequeues.cli.queue import confirm
from edgequeues.cli.render import when
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Applied, Client

SPACE = click.option(
    "--space", metavar="SPACE", help="The space it is about; by default, that of the app's name."
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@SPACE
@click.option("--dry-run", is_flag=True, help="Only say what it would do.")
@remote
def apply(session: Session, /, file: Path, space: str | None, dry_run: bool) -> None:
    """Have the spec of FILE hold on a server, instead of the app's earlier one.

    Queues are made and changed, webhooks are served at once. What would lose or strand messages is refused, with the
    reason. Secrets are those of the server's environment.
    """
    from edgequeues.spec import ir
    from edgequeues.spec.files import SpecError, read

    try:
        spec = read(file)
    except SpecError as error:
        raise Failure(str(error)) from error

    async def work(client: Client) -> None:
        text = ir.encode(spec)
        done = await client.apply_spec(space or spec.app, spec.app, text, origin=str(file), dry_run=dry_run)
        _show(session, done)

    session.run(work)


@click.command(name="list")
@click.argument("space")
@remote
def list_(session: Session, /, space: str) -> None:
    """List the specs that hold in SPACE."""

    async def work(client: Client) -> None:
        found = await client.specs(space)
        if session.out.json:
            for one in found:
                session.out.line(one)
            return
        rows = [
            (
                one.app,
                when(one.applied),
                ", ".join(one.queues),
                ", ".join(one.webhooks),
                one.blocked or one.origin,
            )
            for one in found
        ]
        session.out.table(("app", "applied", "queues", "webhooks", "from"), rows)

    session.run(work)


@click.command()
@click.argument("app")
@SPACE
@click.option("--dry-run", is_flag=True, help="Only say what it would do.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@remote
def remove(session: Session, /, app: str, space: str | None, dry_run: bool, yes: bool) -> None:
    """Have the spec of APP hold no more on a server: its webhooks end, and its queues, which must be empty, go."""
    if not dry_run:
        confirm(session, f"remove the spec of {app}, with its webhooks and its empty queues?", yes=yes)

    async def work(client: Client) -> None:
        _show(session, await client.remove_spec(space or app, app, dry_run=dry_run))

    session.run(work)


@click.command()
@remote
def hooks(session: Session) -> None:
    """List the webhooks of a server, with what became of their calls since it started."""

    async def work(client: Client) -> None:
        found = await client.hooks()
        if session.out.json:
            for one in found:
                session.out.line(one)
            return
        rows = [
            (one.name, one.space, one.app, one.queue or "", one.state, one.why or _counts(one.counts))
            for one in found
        ]
        session.out.table(("name", "space", "app", "queue", "state", "calls"), rows)

    session.run(work)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none yet"


def _show(session: Session, done: Applied) -> None:
    if session.out.json:
        session.out.line(done)
        return
    rows = [(one.queue, one.change, ", ".join(one.fields)) for one in done.queues]
    session.out.table(("queue", "change", "fields"), rows)
