"""Dead letters mended from a command line: other data for one, and trying it before it is sent."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from edgequeues.cli import params
from edgequeues.cli.inputs import STDIN, shown
from edgequeues.cli.render import Output
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Client, Trial
from edgequeues.core.dxn import Dxn

edit_option = click.option(
    "--edit",
    "edit",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Its message is to be the JSON in FILE; - is stdin.",
)
set_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=VALUE",
    help="One part of its message is to be this: payload.n=5. VALUE is JSON, or else a text. Repeatable.",
)


@click.command(name="try")
@click.argument("dxn", type=params.queue)
@click.argument("letter_id", metavar="ID")
@click.option(
    "--map-to",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Try this mapping, written as after `map_to:` in a spec, instead of the queue's own; - is stdin.",
)
@edit_option
@set_option
@remote
def try_(
    session: Session,
    /,
    dxn: Dxn,
    letter_id: str,
    map_to: Path | None,
    edit: Path | None,
    changes: Sequence[str],
) -> None:
    """Show what the map_to of its queue would make of the dead letter with this ID. Nothing is done.

    DXN is the queue it comes from, or the one in which it lies. Where it does not fit, that is exit code 1.
    """
    if map_to == edit == STDIN:
        raise click.UsageError("--map-to and --edit cannot both come from stdin")
    mapping = None if map_to is None else _content(map_to).decode("utf-8", "replace")

    async def work(client: Client) -> None:
        given = await message(client, str(dxn), letter_id, edit, changes)
        found = await client.try_letter(
            str(dxn), letter_id, map_to=mapping, message=msgspec.UNSET if given is None else given
        )
        _show(session.out, found)

    session.run(work)


async def message(
    client: Client, dxn: str, letter_id: str, edit: Path | None, changes: Sequence[str]
) -> bytes | None:
    """The data that a letter is to have, as JSON; None: what it has. Raises click.BadParameter."""
    if edit is None and not changes:
        return None
    raw = (await client.inspect(dxn, letter_id)).raw if edit is None else _content(edit).strip()
    try:
        value: Any = json.loads(raw)
    except ValueError as error:
        where = "its message" if edit is None else shown(edit)
        raise click.BadParameter(f"{where} is no JSON: {error}", param_hint="--edit") from None
    if not changes:
        return raw
    for change in changes:
        _set(value, change)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _set(value: Any, change: str) -> None:
    """Have a part of a value be another. Raises click.BadParameter."""
    path, sign, text = change.partition("=")
    if not sign or not path:
        raise click.BadParameter(f"{change!r} is not written like payload.n=5", param_hint="--set")
    try:
        new = json.loads(text)
    except ValueError:
        new = text
    *before, last = path.split(".")
    for step in before:
        value = _inside(value, step, path)
    if isinstance(value, list):
        value[_number(value, last, path)] = new
    elif isinstance(value, dict):
        value[last] = new
    else:
        raise click.BadParameter(f"{path}: there is nothing that could have a {last}", param_hint="--set")


def _inside(value: Any, step: str, path: str) -> Any:
    if isinstance(value, list):
        return value[_number(value, step, path)]
    if isinstance(value, dict) and step in value:
        return value[step]
    raise click.BadParameter(f"{path}: there is no {step} in the message", param_hint="--set")


def _number(value: list[Any], step: str, path: str) -> int:
    if step.isdecimal() and int(step) < len(value):
        return int(step)
    raise click.BadParameter(f"{path}: there is no element {step} in the message", param_hint="--set")


def _content(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise Failure(f"{shown(path)}: {error.strerror}") from error


def _show(out: Output, found: Trial) -> None:
    """Print what would come of it. Raises Failure where it does not fit."""
    if out.json:
        out.line(
            {"ok": True, "command": found.command, "queue": found.queue, "input": found.input}
            if found.ok
            else {"ok": False, "errors": found.errors}
        )
    elif found.ok:
        leads = {"queue": found.queue} if found.command is None else {"command": found.command}
        out.fields({**leads, "input": json.dumps(found.input, ensure_ascii=False)})
    else:
        rows = [(one.field or "", one.expression or "", one.found or "", one.error) for one in found.errors]
        out.table(("field", "expression", "found", "error"), rows)
    if not found.ok:
        raise Failure(f"it does not fit: {found.errors[0].error}")
