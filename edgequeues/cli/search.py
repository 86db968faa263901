"""`edgequeues search`: entries and messages in whatever state, by what they hold and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import click
import msgspec
from msgspec import Raw

from edgequeues.cli import params
from edgequeues.cli.render import Output, cut, when
from edgequeues.cli.session import Session, remote
from edgequeues.client import Client, Found, Stance
from edgequeues.client.searching import STANDS, Stand
from edgequeues.core.dxn import Dxn

TERMINAL_FOUND = 20
PAGE_FOUND = 1_000


@click.command()
@click.argument("dxn", type=params.queue)
@click.option("--id", "object_id", metavar="ID", help="The one with this id.")
@click.option("--key", help="Only those with this ordering key.")
@click.option("--type", "type_name", metavar="TYPE", help="Only those of this type.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STANDS),
    metavar="STATE",
    help=f"Only those in this state: {', '.join(STANDS)}. Repeatable.",
)
@click.option("--where", metavar="EXPRESSION", help="Only those for which this holds.")
@click.option("--consumer", metavar="NAME", help="As they stand with this consumer. Default: with all.")
@click.option("--reverse", is_flag=True, help="The newest first.")
@click.option("--after", type=click.IntRange(min=0), metavar="POSITION", help="Go on after it.")
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), help="At most so many. Default: 20 on a terminal, else all."
)
@remote
def search(
    session: Session,
    /,
    dxn: Dxn,
    object_id: str | None,
    key: str | None,
    type_name: str | None,
    states: Sequence[str],
    where: str | None,
    consumer: str | None,
    reverse: bool,
    after: int | None,
    limit: int | None,
) -> None:
    """Find entries of queue DXN in any state, finished ones that are kept too. Nothing is changed by it.

    All that is said must hold. An expression sees the fields of the data, and facts such as state, attempts, key,
    error, created_at and now.

    \b
      edgequeues search dxn:queue:demo:jobs --where 'amount > 100 && attempts > 1'
      edgequeues search dxn:queue:demo:jobs --key customer-7 --state finished
    """
    left = TERMINAL_FOUND if limit is None and not session.out.json else limit

    async def work(client: Client) -> None:
        shown, resume, more = 0, after, True
        rows: list[Found] = []
        while more and (left is None or shown < left):
            page = await client.search(
                str(dxn),
                states=[cast(Stand, one) for one in states],
                consumer=consumer,
                id=object_id,
                key=key,
                type=type_name,
                where=where,
                after=resume,
                limit=PAGE_FOUND if left is None else min(PAGE_FOUND, left - shown),
                reverse=reverse,
            )
            if session.out.json:
                for one in page.found:
                    session.out.line(_record(one))
            else:
                rows += page.found
            shown += len(page.found)
            resume, more = page.resume, page.resume is not None
        if not session.out.json:
            _table(session.out, rows)
            if more:
                session.out.note(f"there may be more: --after {resume}")

    session.run(work)


def _record(one: Found) -> dict[str, object]:
    """An entry as the protocol shows it."""
    entry = one.entry
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__ if name != "raw"}
    return {**fields, "data": Raw(entry.raw), "standings": msgspec.to_builtins(one.standings)}


def _table(out: Output, found: Sequence[Found]) -> None:
    rows = []
    for one in found:
        for number, stance in enumerate(one.standings or [Stance("", "none")]):
            entry = one.entry
            first = number == 0
            rows.append(
                (
                    str(entry.position) if first else "",
                    entry.id if first else "",
                    stance.consumer,
                    stance.state,
                    "" if stance.attempts is None else str(stance.attempts),
                    when(stance.due),
                    (entry.key or "") if first else "",
                    stance.last_error[:60] if stance.last_error else "",
                    cut(entry.raw) if first else "",
                )
            )
    columns = ("position", "id", "consumer", "state", "attempts", "due", "key", "last error", "data")
    out.table(columns, rows, right=("position", "attempts"))
