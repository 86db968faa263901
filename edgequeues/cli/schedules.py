"""`edgequeues schedules`: what is made again and again in a space, when it comes next, and having it come now."""

from __future__ import annotations

import click

from edgequeues.cli import params
from edgequeues.cli.render import when
from edgequeues.cli.session import Session, remote
from edgequeues.client import Client


@click.command()
@click.argument("space")
@click.option("--run", "name", metavar="NAME", help="Make the message of this schedule now instead.")
@remote
def schedules(session: Session, /, space: str, name: str | None) -> None:
    """List the schedules of SPACE, as specs declare them.

    Where one made no message the last time, or waits for its queue, it says why.
    """
    params.space(space)

    async def listed(client: Client) -> None:
        rows = []
        async for one in client.schedules(space):
            if session.out.json:
                session.out.line(one)
            times = (when(one.next), when(one.last), str(one.made))
            rows.append((one.name, one.app, one.queue, one.cron, one.timezone, *times, one.last_error or ""))
        if not session.out.json:
            columns = ("name", "app", "queue", "cron", "timezone", "next", "last", "made", "trouble")
            session.out.table(columns, rows, right=("made",))

    async def run(client: Client) -> None:
        assert name is not None
        made = await client.run_schedule(space, name)
        if session.out.json:
            session.out.line(made)
        else:
            session.out.text(f"{name}: {made.outcome} {made.id}".rstrip())

    session.run(listed if name is None else run)
