"""`edgequeues audit`: who did what to a space."""

from __future__ import annotations

from contextlib import aclosing

import click
import msgspec

from edgequeues.cli.render import when
from edgequeues.cli.session import Session, remote
from edgequeues.client import AuditRecord, Client


@click.command()
@click.argument("space")
@click.option("--queue", metavar="QUEUE", help="Only what was done to this queue, by name or id.")
@click.option("--after", type=click.IntRange(min=0), metavar="NUMBER", help="Only what comes after it.")
@click.option("--limit", "-n", type=click.IntRange(min=1), help="At most so many. Default: all.")
@remote
def audit(session: Session, /, space: str, queue: str | None, after: int | None, limit: int | None) -> None:
    """Show what operators did to SPACE, the oldest first: replays, purges, settings, specs."""

    async def work(client: Client) -> None:
        found: list[AuditRecord] = []
        count, more = 0, False
        async with aclosing(client.iterate_audit(space, queue=queue, after=after)) as records:
            async for one in records:
                if count == limit:
                    more = True
                    break
                count += 1
                if session.out.json:
                    session.out.line(one)
                else:
                    found.append(one)
        if not session.out.json:
            columns = ("number", "at", "who", "action", "queue", "detail")
            session.out.table(columns, [_row(one) for one in found], right=("number",))
        if more and found:
            session.out.note(f"there are more: --after {found[-1].id}")

    session.run(work)


def _row(one: AuditRecord) -> tuple[str, ...]:
    who = f"{one.who.name} ({one.who.id})" if one.who.name else one.who.id
    detail = msgspec.json.encode(one.detail).decode() if one.detail else ""
    return str(one.id), when(one.at * 1_000), who, one.action, one.queue or "", detail
