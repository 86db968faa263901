"""`edgequeues spec` where it talks to a server: what holds there, and having it hold. And `edgequeues hooks`."""

from __future__ import annotations

from pathlib import Path

import click

from edgequeues.cli.inputs import shown
from edgequeues.cli.queue import confirm
from edgequeues.cli.render import when
from edgequeues.cli.session import Session, remote
from edgequeues.cli.spec_files import right
from edgequeues.client import Applied, Client

WHY = "refused_"  # begins the counts that say why calls were refused

space_option = click.option(
    "--space", metavar="SPACE", help="The space it is about; by default, that of the app's name."
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what it would do.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@space_option
@dry_run_option
@remote
def apply(session: Session, /, file: Path, space: str | None, dry_run: bool) -> None:
    """Have the spec in FILE hold on a server.

    It takes the place of the app's earlier one. Queues are made and changed, webhooks are served at once. What would
    lose or strand messages is refused, with the reason. Secrets are those of the server's environment.
    """
    from edgequeues.spec.ir import encode

    spec = right(session.out, file)
    home = space or spec.app

    async def work(client: Client) -> None:
        done = await client.apply_spec(home, spec.app, encode(spec), origin=shown(file), dry_run=dry_run)
        _show(session, done)
        if dry_run:
            session.out.note("nothing was changed: this is what it would do")
            return
        session.out.note(f"the spec of {spec.app} holds in space {home}")
        for name in spec.webhooks:
            session.out.note(f"webhook {name}: {session.server.rstrip('/')}/hook/{name}")

    session.run(work)


@click.command(name="list")
@click.argument("space")
@remote
def list_(session: Session, /, space: str) -> None:
    """List the specs that hold in SPACE.

    Where the webhooks of one are not served, it says why.
    """

    async def work(client: Client) -> None:
        found = await client.specs(space)
        if session.out.json:
            for one in found:
                session.out.line(one)
            return
        columns = ("app", "applied", "from", "queues", "webhooks", "blocked")
        rows = [
            (
                one.app,
                when(one.applied),
                one.origin,
                ", ".join(one.queues),
                ", ".join(one.webhooks),
                one.blocked or "",
            )
            for one in found
        ]
        session.out.table(columns, rows)

    session.run(work)


@click.command()
@click.argument("app")
@space_option
@dry_run_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@remote
def remove(session: Session, /, app: str, space: str | None, dry_run: bool, yes: bool) -> None:
    """Have the spec of APP hold no more.

    Its webhooks end, and its queues, which must be empty, are removed. On a terminal it asks first, elsewhere it
    wants --yes.
    """
    home = space or app
    if not dry_run:
        question = f"Remove the spec of {app} from space {home}, with its webhooks and its empty queues?"
        confirm(session, question, yes=yes)

    async def work(client: Client) -> None:
        _show(session, await client.remove_spec(home, app, dry_run=dry_run))
        told = (
            "nothing was changed: this is what it would do"
            if dry_run
            else f"the spec of {app} holds no more in space {home}"
        )
        session.out.note(told)

    session.run(work)


@click.command()
@remote
def hooks(session: Session) -> None:
    """List the webhooks of a server, with what became of their calls since it started.

    Where one is blocked, because what it needs is not there, it says why.
    """

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
    """`2 queued, 3 refused (1 mismatch, 2 missing)`: what is counted by why as well is told once."""
    whys = {name.removeprefix(WHY): count for name, count in counts.items() if name.startswith(WHY)}
    told = {name: count for name, count in counts.items() if not name.startswith(WHY)}
    shown = f" ({_list(whys)})" if whys else ""
    return _list(told).replace(" refused", f" refused{shown}") or "none yet"


def _list(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _show(session: Session, done: Applied) -> None:
    if session.out.json:
        session.out.line(done)
    elif done.queues:
        rows = [(one.queue, one.change, ", ".join(one.fields)) for one in done.queues]
        session.out.table(("queue", "change", "fields"), rows)
    if done.schedules and not session.out.json:
        times = [(one.schedule, one.change, when(one.next)) for one in done.schedules]
        session.out.table(("schedule", "change", "next"), times)
