"""`edgequeues sessions`: messages of users that wait for their sessions: which, why, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import get_args

import click
import msgspec
from msgspec import Raw

from edgequeues import inbound
from edgequeues.cli import params
from edgequeues.cli.queue import confirm
from edgequeues.cli.render import when
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Client, Inbound, SessionInfo
from edgequeues.core import jsontext
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import EdgeQueuesError, InvalidJson
from edgequeues.inbound import MessageType

TERMINAL_SESSIONS = 20
PAGE_SESSIONS = 1_000
COLUMNS = ("depth", "head", "state", "failures", "blocked since", "due", "session", "last error")


@click.group()
def sessions() -> None:
    """Show sessions whose messages wait, add a message to one, and close, skip or retry what is stuck."""


@sessions.command(name="list")
@click.argument("dxn", type=params.queue)
@click.argument("session_id", metavar="[SESSION]", required=False)
@click.option("--after", metavar="SESSION", help="Only sessions after this one.")
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), help="At most so many. Default: 20 on a terminal, else all."
)
@remote
def list_(
    session: Session, /, dxn: Dxn, session_id: str | None, after: str | None, limit: int | None
) -> None:
    """List the sessions of queue DXN with messages that are not finished, by id, or show one of them.

    Of each: how many messages, and how the one stands that it waits for.
    """
    if session_id is not None and after is not None:
        raise click.UsageError("--after goes with a list; leave it out to see one session")
    left = TERMINAL_SESSIONS if limit is None and not session.out.json else limit

    async def one(client: Client) -> None:
        assert session_id is not None
        found = await client.session(str(dxn), session_id)
        if found is None:
            session.out.note(f"nothing is unfinished in session {session_id}")
        _show(session, [] if found is None else [found])

    async def many(client: Client) -> None:
        found: list[SessionInfo] = []
        resume, more = after, True
        while more and (left is None or len(found) < left):
            ask = min(PAGE_SESSIONS, PAGE_SESSIONS if left is None else left - len(found))
            page = await client.sessions(str(dxn), after=resume, limit=ask)
            found += page.sessions
            resume, more = page.resume, page.resume is not None
        _show(session, found)
        if more and resume is not None:
            session.out.note(f"there may be more: --after {shlex.quote(resume)}")

    session.run(many if session_id is None else one)


@sessions.command()
@click.argument("dxn", type=params.queue)
@click.argument("session_id", metavar="SESSION")
@click.argument("content", metavar="[TEXT]", default="")
@click.option("--origin", required=True, help="Which way the message came, as `telegram`.")
@click.option(
    "--type", "message_type", type=click.Choice(get_args(MessageType)), default="text", show_default=True
)
@click.option("--payload", metavar="JSON", help="What else belongs to it, as one JSON text.")
@click.option("--source-message", "source_message_id", metavar="ID", help="Given again, it is a repeat.")
@click.option("--source-channel", "source_channel_id", metavar="ID", help="Where that id is unique.")
@click.option("--actor", "actor_id", metavar="ID", help="Who wrote it.")
@click.option("--actor-name", metavar="NAME", help="What they are called.")
@remote
def send(session: Session, /, dxn: Dxn, payload: str | None, **said: str | None) -> None:
    """Add a message with this TEXT to SESSION of queue DXN. The first one makes the queue.

    \b
      edgequeues sessions send dxn:queue:chat:inbound s1 'Hello' \\
          --origin telegram --source-channel 4711 --source-message 17
    """
    message = _message(payload, said)

    async def work(client: Client) -> None:
        received = await client.enqueue_inbound(str(dxn), message)
        if session.out.json:
            session.out.line(received)
        elif received.id is None:
            session.out.text("it came before: nothing was added")
        else:
            session.out.text(f"{received.id} at {received.position}")

    session.run(work)


@sessions.command()
@click.argument("dxn", type=params.queue)
@click.argument("session_id", metavar="SESSION")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@remote
def close(session: Session, /, dxn: Dxn, session_id: str, yes: bool) -> None:
    """Expire all that is unfinished in SESSION of queue DXN, what is being delivered too.

    What comes later is delivered. On a terminal it asks first, elsewhere it wants --yes.
    """
    confirm(session, f"Expire every message of session {session_id} of {dxn}?", yes=yes)

    async def work(client: Client) -> None:
        expired = await client.close_session(str(dxn), session_id)
        session.out.told({"expired": expired}, f"{expired} expired")

    session.run(work)


@sessions.command()
@click.argument("dxn", type=params.queue)
@click.argument("session_id", metavar="SESSION")
@remote
def skip(session: Session, /, dxn: Dxn, session_id: str) -> None:
    """Expire the message that SESSION of queue DXN waits for, so that the next one is delivered."""

    async def work(client: Client) -> None:
        nothing = (
            f"nothing was skipped in session {session_id}: no message waits in it, or the first one is being "
            "delivered; `edgequeues sessions list` tells, and `close` ends that one, too"
        )
        _tell(session, "skipped", await client.skip_session(str(dxn), session_id), nothing)

    session.run(work)


@sessions.command()
@click.argument("dxn", type=params.queue)
@click.argument("session_id", metavar="SESSION")
@remote
def retry(session: Session, /, dxn: Dxn, session_id: str) -> None:
    """Have the message that backs off in SESSION of queue DXN delivered now."""

    async def work(client: Client) -> None:
        nothing = (
            f"nothing waits for its time in session {session_id}: it has no message, or one that is ready or "
            "being delivered; `edgequeues sessions list` tells"
        )
        _tell(session, "ready", await client.retry_session(str(dxn), session_id), nothing)

    session.run(work)


def _tell(session: Session, state: str, message_id: str | None, nothing: str) -> None:
    """Say of which message that is the state now. Raises Failure, which says `nothing`, where it is none."""
    if message_id is None:
        raise Failure(nothing)
    session.out.told({state: message_id}, f"{message_id} is {state}")


def _message(payload: str | None, said: Mapping[str, str | None]) -> Inbound:
    """Raises UsageError."""
    try:
        if payload is not None:
            jsontext.check(payload.encode())
    except (InvalidJson, UnicodeEncodeError) as error:
        raise click.BadParameter(str(error), param_hint="--payload") from error
    given: dict[str, object] = {name: value for name, value in said.items() if value is not None}
    if payload is not None:
        given["payload"] = Raw(payload.encode())
    try:
        return inbound.check(msgspec.convert(given, Inbound))
    except (msgspec.ValidationError, EdgeQueuesError) as error:
        raise click.UsageError(getattr(error, "detail", str(error))) from error


def _show(session: Session, found: list[SessionInfo]) -> None:
    if session.out.json:
        for one in found:
            session.out.line(one)
        return
    rows = [
        (
            str(one.depth),
            str(one.head.position),
            one.head.state,
            str(one.head.failures),
            when(one.head.blocked_since),
            when(one.head.due),
            one.session_id,
            one.head.last_error or "",
        )
        for one in found
    ]
    session.out.table(COLUMNS, rows, right=("depth", "head", "failures"))
