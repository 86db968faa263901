"""`edgequeues consumer`: who works a queue, by which rules. `edgequeues skip`, `hurry`: what holds a line up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from edgequeues.cli import look, params
from edgequeues.cli.pull import consumer as of_consumer
from edgequeues.cli.queue import confirm
from edgequeues.cli.session import Session, remote
from edgequeues.client import Client, ConsumerRules
from edgequeues.core.dxn import Dxn

RULES = [field.name for field in msgspec.structs.fields(ConsumerRules) if field.name != "facts"]


@click.group()
def consumer() -> None:
    """List the consumers of a queue, make and remove them, and change their rules."""


@consumer.command(name="list")
@click.argument("dxn", type=params.queue)
@remote
def list_(session: Session, /, dxn: Dxn) -> None:
    """List the consumers of queue DXN with their counts; --json shows their rules too."""

    async def work(client: Client) -> None:
        found = await client.consumers(str(dxn))
        if not session.out.json:
            look.consumers(session.out, found)
            return
        for one in found:
            session.out.line(one)

    session.run(work)


@consumer.command(name="set")
@click.argument("dxn", type=params.queue)
@click.argument("name")
@click.argument("changes", nargs=-1, metavar="[RULE=VALUE]...")
@click.option("--beginning", is_flag=True, help="Give a new consumer what is in the queue already.")
@remote
def set_(session: Session, /, dxn: Dxn, name: str, changes: Sequence[str], beginning: bool) -> None:
    """Make consumer NAME of queue DXN, or change some of its rules; print what it is then.

    Rules: ordering (fixed), lease_ms, batch, attempts_max, backoff, lapse_delay_ms, starvation_after_ms,
    dead_letters, dead_letter_body. A VALUE is JSON, or text where that is meant.

    \b
      edgequeues consumer set dxn:queue:demo:jobs default attempts_max=10
      edgequeues consumer set dxn:queue:demo:log mailer ordering=per_key
      edgequeues consumer set dxn:queue:demo:jobs default \\
          backoff='{"initial_ms": 500, "max_ms": 600000}'
    """
    wanted = dict(_rule(change) for change in changes)

    async def work(client: Client) -> None:
        known = {one.name: one.config for one in await client.consumers(str(dxn))}
        rules = _changed(known.get(name, ConsumerRules()), wanted)
        made = await client.put_consumer(str(dxn), name, rules, start="beginning" if beginning else "new")
        if session.out.json:
            session.out.line(made)
        else:
            session.out.fields({"name": made.name, **msgspec.to_builtins(made.config)})

    session.run(work)


@consumer.command()
@click.argument("dxn", type=params.queue)
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@remote
def remove(session: Session, /, dxn: Dxn, name: str, yes: bool) -> None:
    """Remove consumer NAME of queue DXN, and where it stands with each message.

    What no other consumer needs goes too, but all stays when the last consumer goes.
    """
    confirm(session, f"Remove consumer {name} of {dxn} with all it has in hand?", yes=yes)

    async def work(client: Client) -> None:
        await client.delete_consumer(str(dxn), name)
        session.out.told({"removed": name}, f"{name} is removed")

    session.run(work)


@click.command()
@click.argument("dxn", type=params.queue)
@click.argument("object_id", metavar="ID")
@of_consumer
@remote
def skip(session: Session, /, dxn: Dxn, object_id: str, consumer: str | None) -> None:
    """Give up the message ID of queue DXN, so that its line goes on. It becomes a dead letter.

    Only a message that nobody holds can be skipped.
    """

    async def work(client: Client) -> None:
        await client.skip(str(dxn), object_id, consumer=consumer)
        session.out.told({"skipped": object_id}, f"{object_id} is skipped")

    session.run(work)


@click.command()
@click.argument("dxn", type=params.queue)
@click.argument("object_id", metavar="ID")
@of_consumer
@remote
def hurry(session: Session, /, dxn: Dxn, object_id: str, consumer: str | None) -> None:
    """Have the message ID of queue DXN be ready now, which backs off or waits for its time."""

    async def work(client: Client) -> None:
        await client.hurry(str(dxn), object_id, consumer=consumer)
        session.out.told({"hurried": object_id}, f"{object_id} is ready")

    session.run(work)


def _rule(change: str) -> tuple[str, Any]:
    name, equals, value = change.partition("=")
    if not equals:
        raise click.UsageError(f"{change!r} is not RULE=VALUE")
    if name not in RULES:
        raise click.UsageError(f"no such rule: {name}; known are {', '.join(RULES)}")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value


def _changed(rules: ConsumerRules, wanted: dict[str, Any]) -> ConsumerRules:
    try:
        return msgspec.convert({**msgspec.to_builtins(rules), **wanted}, ConsumerRules)
    except msgspec.ValidationError as error:
        raise click.UsageError(f"not a value of this rule: {error}") from error
