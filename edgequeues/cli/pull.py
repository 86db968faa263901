"""`edgequeues pull`, and what is said of what was pulled: ack, retry, release."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click
from msgspec import Raw

from edgequeues.cli import params
from edgequeues.cli.render import cut, when
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Answered, Client, Message, Pulled
from edgequeues.core.dxn import Dxn

COLUMNS = ("id", "attempts", "until", "lease", "data")
MEANINGS = {
    "stale": "answered already, or handed out again since",
    "lapsed": "it ended before",
    "superseded": "the message has newer data",
    "unknown": "no lease of this queue",
}
consumer = click.option("--consumer", metavar="NAME", help="Default: the only one, or `default`.")
leases = click.argument("leases", nargs=-1, required=True, metavar="LEASE...")


@click.command()
@click.argument("dxn", type=params.queue)
@click.option("--batch", "-n", type=click.IntRange(1, 100), help="At most so many. Default: the consumer's.")
@click.option(
    "--lease", "lease_ms", type=params.duration, help="How long they are hidden. Default: the consumer's."
)
@click.option("--wait", "wait_ms", type=params.duration, help="Wait so long, up to 60s, for the first one.")
@consumer
@click.option("--worker", metavar="NAME", help="How you call yourself; `explain` shows it.")
@click.option("--ack", is_flag=True, help="Ack them once they are printed.")
@click.option("--data", "data_only", is_flag=True, help="Print only the data, one JSON text a line.")
@remote
def pull(
    session: Session, /, dxn: Dxn, ack: bool, data_only: bool, wait_ms: int | None, **asked: Any
) -> None:
    """Lease messages of work queue DXN and print them.

    They are hidden until they are acked, retried or released, or their leases lapse.

    \b
      edgequeues pull dxn:queue:demo:jobs --batch 10 --wait 20s
      edgequeues pull dxn:queue:demo:jobs --ack --data | jq .
    """
    if data_only and not ack:
        raise click.UsageError("--data shows no leases, so nothing could be acked: say --ack too")

    async def work(client: Client) -> None:
        wait_s = None if wait_ms is None else wait_ms / 1000
        pulled = await client.pull(str(dxn), wait_s=wait_s, **asked)
        _print(session, pulled, data_only=data_only)
        if ack and pulled.messages:
            _judge(await client.ack(str(dxn), [one.lease for one in pulled.messages]), "acked")

    session.run(work)


@click.command()
@click.argument("dxn", type=params.queue)
@leases
@remote
def ack(session: Session, /, dxn: Dxn, leases: Sequence[str]) -> None:
    """Finish messages of DXN, by the leases that `pull` printed."""
    _answer(session, "acked", lambda client: client.ack(str(dxn), leases))


@click.command()
@click.argument("dxn", type=params.queue)
@leases
@click.option(
    "--delay", "delay_ms", type=params.duration, help="Before the next attempt. Default: the back-off."
)
@click.option("--error", help="What went wrong; it is kept with the message.")
@click.option("--permanent", is_flag=True, help="Do not try again: make dead letters of them.")
@remote
def retry(session: Session, /, dxn: Dxn, leases: Sequence[str], **said: Any) -> None:
    """Give up attempts at messages of DXN; after the last one a message is a dead letter."""
    if said["permanent"] and said["delay_ms"] is not None:
        raise click.UsageError("--permanent ends all attempts, so there is nothing to --delay")
    _answer(session, "given up", lambda client: client.retry(str(dxn), leases, **said))


@click.command()
@click.argument("dxn", type=params.queue)
@leases
@remote
def release(session: Session, /, dxn: Dxn, leases: Sequence[str]) -> None:
    """Give messages of DXN back untouched: they are ready at once, and the attempts do not count."""
    _answer(session, "released", lambda client: client.release(str(dxn), leases))


@click.command()
@click.argument("dxn", type=params.queue)
@leases
@click.option(
    "--lease", "lease_ms", type=params.duration, required=True, help="How long from now they are held, as 5m."
)
@remote
def extend(session: Session, /, dxn: Dxn, leases: Sequence[str], lease_ms: int) -> None:
    """Hold messages of DXN longer, so that nobody else is given them meanwhile."""
    _answer(session, "extended", lambda client: client.extend(str(dxn), leases, lease_ms))


def _answer(session: Session, done: str, call: Callable[[Client], Awaitable[list[Answered]]]) -> None:
    async def work(client: Client) -> None:
        answers = await call(client)
        if session.out.json:
            for one in answers:
                session.out.line(one)
        else:
            rows = [(one.outcome, one.lease) for one in answers]
            session.out.table(("outcome", "lease"), rows)
        _judge(answers, done)

    session.run(work)


def _judge(answers: Sequence[Answered], done: str) -> None:
    """Raise Failure where a lease was good for nothing."""
    missed = [one for one in answers if not one.settled]
    if missed:
        kinds = dict.fromkeys(one.outcome for one in missed)
        why = "; ".join(f"{kind}: {MEANINGS[kind]}" for kind in kinds)
        raise Failure(
            f"{len(missed)} of {len(answers)} were not {done} ({why}). Pull again to see what is left"
        )


def _print(session: Session, pulled: Pulled, *, data_only: bool) -> None:
    out = session.out
    for one in pulled.messages:
        if data_only:
            out.raw(one.raw, at_once=True)
        elif out.json:
            out.line(record(one), at_once=True)
    if not (data_only or out.json):
        rows = [
            (one.id, str(one.attempts), when(one.until), one.lease, cut(one.raw)) for one in pulled.messages
        ]
        out.table(COLUMNS, rows, right=("attempts",))
    if pulled.paused:
        out.note("the queue is paused: nothing is handed out until `edgequeues resume`")
    elif session.terminal:
        out.note(f"{pulled.backlog} unfinished")


def record(one: Message) -> dict[str, object]:
    """A message as the protocol shows it, what is not set left out."""
    optional = {"key": one.key, "headers": one.headers, "content_type": one.content_type}
    return {
        "lease": one.lease,
        "attempts": one.attempts,
        "until": one.until,
        "id": one.id,
        "position": one.position,
        "version": one.version,
        "type": one.type,
        "created": one.created,
        "updated": one.updated,
        "priority": one.priority,
        "data": Raw(one.raw),
        **{name: value for name, value in optional.items() if value is not None},
    }
