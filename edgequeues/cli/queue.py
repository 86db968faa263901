"""Commands about whole queues: delete, purge, pause, resume, remove, queues, spaces, config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import click
import msgspec

from edgequeues.cli import params
from edgequeues.cli.render import size, when
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Client, ConfigChange, LetterFilter, QueueConfig
from edgequeues.core.dxn import Dxn

T = TypeVar("T", ConfigChange, QueueConfig)


@click.command()
@click.argument("dxn", type=params.address)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--after", metavar="CURSOR", help="Delete what comes after this cursor.")
@click.option("--before", metavar="CURSOR", help="Delete what comes before this cursor.")
@click.option("--through", metavar="CURSOR", help="Delete up to this cursor and the entry it stands for.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before a range is deleted.")
@remote
def delete(
    session: Session,
    /,
    dxn: Dxn,
    ids: Sequence[str],
    after: str | None,
    before: str | None,
    through: str | None,
    yes: bool,
) -> None:
    """Delete the object that DXN names, or from queue DXN the objects with these IDs, or a range.

    \b
      edgequeues delete dxn:queue:demo:log:some-id
      edgequeues delete dxn:queue:demo:log id-1 id-2
      edgequeues delete dxn:queue:demo:log --through CURSOR
    """
    cursors = {"after": after, "before": before, "through": through}
    ranged = any(cursors.values())
    if dxn.object is not None and (ids or ranged):
        raise click.UsageError("the DXN names one object already; to select from a queue, name the queue")
    if dxn.object is None and bool(ids) == ranged:
        raise click.UsageError("say what to delete: either ids, or a range by --after, --before, --through")
    if ranged and session.terminal and not yes:
        which = " and ".join(f"{name} {cursor}" for name, cursor in cursors.items() if cursor)
        if not click.confirm(f"Delete every entry of {dxn} {which}?", err=True):
            raise Failure("nothing was deleted")

    async def work(client: Client) -> None:
        deleted = await client.delete(str(dxn), ids=ids, after=after, before=before, through=through)
        session.out.told({"deleted": deleted}, f"{deleted} deleted")

    session.run(work)


@click.command()
@click.argument("dxn", type=params.queue)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@remote
def purge(session: Session, /, dxn: Dxn, yes: bool) -> None:
    """Delete all that is in queue DXN now; what is pushed from then on stays.

    Leases end with their messages. On a terminal it asks first, elsewhere it wants --yes.
    """
    purge_queue(session, dxn, f"Delete everything in {dxn}, for good?", yes=yes)


def purge_queue(
    session: Session, dxn: Dxn, question: str, *, yes: bool, where: LetterFilter | None = None
) -> None:
    """Delete all that is in a queue, or some dead letters, once that is confirmed. Raises Failure, UsageError."""
    confirm(session, question, yes=yes)

    async def work(client: Client) -> None:
        deleted = await client.purge(str(dxn), where)
        session.out.told({"deleted": deleted}, f"{deleted} deleted")

    session.run(work)


def confirm(session: Session, question: str, *, yes: bool, done: str = "deleted") -> None:
    """Ask on a terminal; elsewhere nobody can answer. Raises Failure after a no, UsageError without --yes.

    done: what was not done then.
    """
    if yes:
        return
    if not session.terminal:
        raise click.UsageError(f"nothing was {done}: there is nobody to ask, so say --yes")
    if not click.confirm(question, err=True):
        raise Failure(f"nothing was {done}")


@click.command()
@click.argument("dxn", type=params.queue)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@remote
def remove(session: Session, /, dxn: Dxn, yes: bool) -> None:
    """Remove queue DXN with all that is in it, its settings and its consumers.

    On a terminal it asks first, elsewhere it wants --yes.
    """
    confirm(session, f"Remove {dxn} with everything in it, for good?", yes=yes)

    async def work(client: Client) -> None:
        await client.remove(str(dxn))
        session.out.told({"removed": str(dxn)}, f"{dxn} is removed")

    session.run(work)


@click.command()
@click.argument("dxn", type=params.queue)
@remote
def pause(session: Session, /, dxn: Dxn) -> None:
    """Hand out nothing more of queue DXN. Pushes go on, and so does what is leased."""
    _pause(session, dxn, paused=True)


@click.command()
@click.argument("dxn", type=params.queue)
@remote
def resume(session: Session, /, dxn: Dxn) -> None:
    """Hand out messages of queue DXN again."""
    _pause(session, dxn, paused=False)


def _pause(session: Session, dxn: Dxn, *, paused: bool) -> None:
    async def work(client: Client) -> None:
        result = await client.reconfigure(str(dxn), ConfigChange(paused=paused))
        session.out.told({"paused": result.paused}, f"{dxn} is {'paused' if result.paused else 'not paused'}")

    session.run(work)


@click.command()
@click.argument("space")
@click.option("--trace", is_flag=True, help="The trace queues beside the space's own.")
@remote
def queues(session: Session, /, space: str, trace: bool) -> None:
    """List the queues of SPACE."""
    params.space(space)

    async def work(client: Client) -> None:
        rows = []
        async for queue in client.queues(space, tag="trace" if trace else None):
            if session.out.json:
                session.out.line(queue)
            name = queue.config.name or ""
            count, oldest = str(queue.entries), when(queue.oldest)
            kind = f"{queue.config.kind}, paused" if queue.config.paused else queue.config.kind
            rows.append((name, queue.id, kind, count, size(queue.bytes), oldest, queue.dxn))
        if not session.out.json:
            columns = ("name", "id", "kind", "entries", "bytes", "oldest", "dxn")
            session.out.table(columns, rows, right=("entries", "bytes"))

    session.run(work)


@click.command()
@remote
def spaces(session: Session, /) -> None:
    """List the spaces of the server."""

    async def work(client: Client) -> None:
        rows = []
        async for space in client.spaces():
            if session.out.json:
                session.out.line(space)
            rows.append((space.id, space.tag))
        if not session.out.json:
            session.out.table(("space", "tag"), rows)

    session.run(work)


@click.command()
@click.argument("dxn", type=params.queue)
@click.argument("changes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option(
    "--replace", is_flag=True, help="Set what is not named to its default; makes the queue if need be."
)
@click.option(
    "--profile",
    metavar="NAME",
    help="Make a work queue, or set one anew: what is not named is as `work`, `switchboard`, `webhook` or `inbound` "
    "have it.",
)
@remote
def config(session: Session, /, dxn: Dxn, changes: Sequence[str], replace: bool, profile: str | None) -> None:
    """Show the settings of queue DXN, or change some.

    They are name, max_age_ms, max_entries, mutable; and of work queues on_ack, retain_acked_ms, delay_ms, depth_max,
    paused. A new queue takes a kind, `log` or `work`; one of kind `work` gets the consumer `default`.

    A VALUE is JSON, or text where that is meant; `null` takes a setting back.

    \b
      edgequeues config dxn:queue:demo:log
      edgequeues config dxn:queue:demo:log max_age_ms=60000 name=events
      edgequeues config dxn:queue:demo:hooks --profile webhook
    """
    if replace and profile is not None:
        raise click.UsageError(
            "what is not named is its default by --replace, the profile's by --profile: choose one"
        )
    wanted = dict(_setting(change) for change in changes)
    whole = _as(QueueConfig, wanted) if replace else None
    some = _as(ConfigChange, wanted) if wanted and not replace else None

    async def work(client: Client) -> None:
        if profile is not None:
            result = await client.make_queue(str(dxn), profile, settings=some)
        elif whole is not None:
            result = await client.configure(str(dxn), whole)
        elif some is not None:
            result = await client.reconfigure(str(dxn), some)
        else:
            result = await client.config(str(dxn))
        if session.out.json:
            session.out.line(result)
        else:
            session.out.fields(msgspec.to_builtins(result))

    session.run(work)


def _setting(change: str) -> tuple[str, Any]:
    name, equals, value = change.partition("=")
    if not equals:
        raise click.UsageError(f"{change!r} is not NAME=VALUE")
    if name == "name":
        return name, None if value in ("null", "") else value.strip('"')
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value


def _as(kind: type[T], wanted: dict[str, Any]) -> T:
    known = [field.name for field in msgspec.structs.fields(kind)]
    for name in wanted:
        if name not in known:
            raise click.UsageError(f"no such setting: {name}; known are {', '.join(known)}")
    try:
        return msgspec.convert(wanted, kind)
    except msgspec.ValidationError as error:
        raise click.UsageError(f"not a value of this setting: {error}") from error
