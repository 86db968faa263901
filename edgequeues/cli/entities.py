"""`edgequeues entities`: what the commands of a space made, and which commands did it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from edgequeues.cli import params
from edgequeues.cli.render import cut, when
from edgequeues.cli.session import Session, remote
from edgequeues.client import Client, Entity, Executed

SHOWN = 100  # where the command line does not say
PAGE = 1_000  # of one request


@click.command()
@click.argument("space")
@click.argument("entity_type", metavar="TYPE")
@click.argument("entity_id", metavar="[ID]", required=False)
@click.option("--history", is_flag=True, help="The commands on this entity, the oldest first.")
@click.option("--after", metavar="ID", help="Go on after this id, or after this receipt.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Show no more than so many; 100 where nothing is said.",
)
@remote
def entities(
    session: Session,
    /,
    space: str,
    entity_type: str,
    entity_id: str | None,
    history: bool,
    after: str | None,
    limit: int | None,
) -> None:
    """List the entities of TYPE in SPACE by id, or show the one with this ID.

    \b
      edgequeues entities demo Incident
      edgequeues entities demo Incident 01HZY3 --history
    """
    _check(space, entity_type, entity_id)
    if history and entity_id is None:
        raise click.UsageError("a history is that of one entity: name its ID")
    if entity_id is not None and not history and (after, limit) != (None, None):
        raise click.UsageError("--after and --limit are of lists, and an ID names one entity: leave that out")
    if history and after is not None and not after.isdigit():
        raise click.UsageError("--after wants a receipt, a number, with --history")

    async def work(client: Client) -> None:
        if entity_id is None:
            await _list(session, client, space, entity_type, after, limit or SHOWN)
        elif history:
            start = None if after is None else int(after)
            found = await _history(client, space, entity_type, entity_id, start, limit or SHOWN)
            _show_history(session, *found)
        else:
            _show(session, await client.entity(space, entity_type, entity_id))

    session.run(work)


def _check(space: str, entity_type: str, entity_id: str | None) -> None:
    params.space(space)
    for hint, text in (("TYPE", entity_type), ("ID", entity_id)):
        if text == "":
            raise click.BadParameter("it is empty", param_hint=hint)


async def _list(
    session: Session, client: Client, space: str, entity_type: str, after: str | None, limit: int
) -> None:
    rows = []
    while True:
        page = await client.entities(space, entity_type, after=after, limit=min(limit, PAGE))
        for one in page.entities:
            if session.out.json:
                session.out.line(_record(one))
            rows.append((one.id, one.state or "", str(one.version), when(one.updated), cut(one.raw)))
        limit -= len(page.entities)
        after = page.resume
        if after is None or limit <= 0:
            break
    if not session.out.json:
        session.out.table(("id", "state", "version", "updated", "attributes"), rows, right=("version",))
    _note_rest(session, after)


async def _history(
    client: Client, space: str, entity_type: str, entity_id: str, after: int | None, limit: int
) -> tuple[list[Executed], int | None]:
    """Commands, and the receipt after which there are more."""
    found: list[Executed] = []
    while True:
        wanted = min(limit - len(found), PAGE)
        page = await client.entity_history(space, entity_type, entity_id, after=after, limit=wanted)
        found += page.commands
        after = page.resume
        if after is None or len(found) >= limit:
            return found, after


def _show(session: Session, one: Entity) -> None:
    record = _record(one)
    if session.out.json:
        session.out.line(record)
    else:
        session.out.fields({**record, "attributes": one.raw.decode()}, times=("created", "updated"))


def _show_history(session: Session, found: list[Executed], after: int | None) -> None:
    rows = []
    for one in found:
        if session.out.json:
            session.out.line(one)
        cause = f"message {one.message} of {one.queue}" if one.queue else f"request {one.message or ''}"
        rows.append((str(one.receipt), str(one.version), one.command, when(one.executed), cause))
    if not session.out.json:
        columns = ("receipt", "version", "command", "executed", "called for")
        session.out.table(columns, rows, right=("receipt", "version"))
    _note_rest(session, after)


def _note_rest(session: Session, after: str | int | None) -> None:
    if after is not None:
        session.out.note(f"there are more: go on with --after {after}, or raise --limit")


def _record(one: Entity) -> Mapping[str, Any]:
    """An entity as the protocol has it."""
    return {
        "id": one.id,
        "state": one.state,
        "version": one.version,
        "created": one.created,
        "updated": one.updated,
        "attributes": one.attributes,
    }
