"""`edgequeues read` and `edgequeues tail`: what is in a queue, and what comes into it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import click
from msgspec import Raw

from edgequeues.cli import params
from edgequeues.cli.render import Output, cut, when
from edgequeues.cli.session import Session, remote
from edgequeues.client import Client, Entry, Page
from edgequeues.core.dxn import Dxn

TERMINAL_ENTRIES = 20
COLUMNS = ("position", "id", "type", "updated", "data")
data_only = click.option(
    "--data", "data_only", is_flag=True, help="Print only the data, one JSON text a line."
)


@click.command()
@click.argument("dxn", type=params.address)
@click.option("--after", metavar="CURSOR", help="Only entries after this cursor.")
@click.option("--before", metavar="CURSOR", help="Only entries before this cursor.")
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), help="At most so many. Default: 20 on a terminal, else all."
)
@click.option("--reverse", "-r", is_flag=True, help="Newest first.")
@click.option("--type", "entry_type", help="Only entries of this type.")
@click.option(
    "--since",
    type=params.time,
    help="Only objects first appended then or later: unix ms, ISO 8601, or 10m (ago).",
)
@click.option("--until", type=params.time, help="Only objects first appended then or earlier.")
@click.option("--id", "ids", multiple=True, help="Only this object. Repeatable.")
@click.option("--wait", "wait_ms", type=params.duration, help="Wait so long, up to 60s, for the first entry.")
@data_only
@remote
def read(session: Session, /, dxn: Dxn, data_only: bool, **bounds: Any) -> None:
    """Read queue DXN in order, or the one object that DXN names.

    \b
      edgequeues read dxn:queue:demo:log --reverse --limit 5
      edgequeues read dxn:queue:demo:log --since 1h --data | jq .
      edgequeues read dxn:queue:demo:log:some-id
    """
    if dxn.object is not None:
        if any(bounds.values()):
            raise click.UsageError(f"these options select from a queue: {params.queue_of(dxn)}")
        session.run(lambda client: _one(client, session.out, dxn, data_only=data_only))
    else:
        session.run(lambda client: _range(client, session.out, str(dxn), data_only=data_only, **bounds))


@click.command()
@click.argument("dxn", type=params.queue)
@click.option("--after", metavar="CURSOR", help="Start after this cursor instead of at the tail.")
@click.option("--all", "from_front", is_flag=True, help="Start at the front.")
@click.option("--type", "entry_type", help="Only entries of this type.")
@data_only
@remote
def tail(
    session: Session,
    /,
    dxn: Dxn,
    after: str | None,
    from_front: bool,
    entry_type: str | None,
    data_only: bool,
) -> None:
    """Print what is appended to queue DXN, as it comes, until interrupted.

    A dropped connection is taken up again where it broke off.
    """
    if after is not None and from_front:
        raise click.UsageError("--after and --all exclude each other")

    async def follow(client: Client) -> None:
        start = after if after or from_front else "tail"
        async with client.subscribe(str(dxn), after=start, type=entry_type) as entries:
            async for entry in entries:
                if session.out.json or data_only:
                    _print(session.out, entry, data_only=data_only, at_once=True)
                else:
                    session.out.text("  ".join(cells(entry)))

    session.run(follow)


async def _one(client: Client, out: Output, dxn: Dxn, *, data_only: bool) -> None:
    entry = await client.get(str(dxn))
    if out.json or data_only:
        _print(out, entry, data_only=data_only)
    else:
        out.fields({**record(entry), "data": entry.raw.decode()}, times=("created", "updated", "expires"))


async def _range(
    client: Client,
    out: Output,
    dxn: str,
    *,
    data_only: bool,
    after: str | None,
    before: str | None,
    limit: int | None,
    reverse: bool,
    entry_type: str | None,
    since: int | None,
    until: int | None,
    ids: Sequence[str],
    wait_ms: int | None,
) -> None:
    bounds: dict[str, Any] = {
        "after": after,
        "before": before,
        "reverse": reverse,
        "type": entry_type,
        "since_ms": since,
        "until_ms": until,
    }
    table = not (out.json or data_only)
    if limit is None and table:
        limit = TERMINAL_ENTRIES
    wait_s = None if wait_ms is None else wait_ms / 1000
    if table or ids or wait_s is not None:
        page = await client.read(dxn, limit=limit, ids=ids, wait_s=wait_s, **bounds)
        if table:
            _table(out, page, limit, reverse=reverse)
            return
        for entry in page.entries:
            _print(out, entry, data_only=data_only)
    else:
        async with aclosing(client.iterate(dxn, limit=limit, **bounds)) as entries:
            async for entry in entries:
                _print(out, entry, data_only=data_only)


def _table(out: Output, page: Page, limit: int | None, *, reverse: bool) -> None:
    out.table(COLUMNS, [cells(entry) for entry in page.entries], right=("position",))
    if len(page.entries) == limit:
        on = f"--before {page.prev_cursor}" if reverse else f"--after {page.next_cursor}"
        out.note(f"there may be more: {on}")


def cells(entry: Entry) -> tuple[str, ...]:
    """An entry as the cells of a table."""
    return str(entry.position), entry.id, entry.type or "", when(entry.updated), cut(entry.raw)


def record(entry: Entry) -> dict[str, object]:
    """An entry as the protocol shows it, what is not set left out."""
    optional = {"expires": entry.expires, "key": entry.key, "headers": entry.headers}
    return {
        "id": entry.id,
        "position": entry.position,
        "version": entry.version,
        "type": entry.type,
        "created": entry.created,
        "updated": entry.updated,
        **{name: value for name, value in optional.items() if value is not None},
        "data": Raw(entry.raw),
    }


def _print(out: Output, entry: Entry, *, data_only: bool, at_once: bool = False) -> None:
    if data_only:
        out.raw(entry.raw, at_once=at_once)
    else:
        out.line(record(entry), at_once=at_once)
