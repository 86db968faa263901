"""`edgequeues token`: who may use a server. Works on the data folder, whether a server runs over it or not."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec

import click

from edgequeues.cli import params
from edgequeues.cli.render import Output, when
from edgequeues.cli.session import Failure, Surroundings
from edgequeues.control import Control, ControlError, Token
from edgequeues.core.errors import InvalidRequest
from edgequeues.core.grants import MEANINGS, VERBS, grant
from edgequeues.settings import SettingsError
from edgequeues.settings_sources import load

P = ParamSpec("P")

HELP = """Make, list and revoke access tokens.

They are kept in the data folder; a server that runs there heeds a change within a second. Once there is one, the
server wants a token from everybody (setting `auth`). A token allows its VERBS, in the spaces and on the queues it
is for:

\b
""" + "\n".join(f"{verb:<10} {MEANINGS[verb]}" for verb in VERBS)


@click.group(help=HELP)
def token() -> None:
    """Make, list and revoke access tokens."""


def on_folder(command: Callable[P, None]) -> Callable[P, None]:
    """Give a command --data and --config, which say where the tokens are, and --json."""
    options = (
        click.option("--data", metavar="DIR", help="The data folder, as `edgequeues serve` has it."),
        click.option(
            "--config",
            "file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            envvar="EDGEQUEUES_CONFIG",
            help="TOML file with the server's settings, for its data folder.",
        ),
        click.option(
            "--json", "as_json", is_flag=True, help="Print JSON, one object a line, also on a terminal."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@token.command()
@click.argument("name")
@click.option(
    "--space", "spaces", multiple=True, metavar="SPACE", help="Only this space; `abc*`: all that begin so."
)
@click.option("--queue", "queues", multiple=True, metavar="QUEUE", help="Only this queue, by name or id.")
@click.option(
    "--verbs", default="", metavar="VERB,...", help=f"Only these of {', '.join(VERBS)}. Default: all of them."
)
@click.option("--expires", type=params.duration, metavar="TIME", help="End by itself after 90d, 12h, ...")
@click.option("--anonymous", is_flag=True, help="Let everybody do this without a token.")
@on_folder
def create(
    name: str,
    spaces: Sequence[str],
    queues: Sequence[str],
    verbs: str,
    expires: int | None,
    anonymous: bool,
    data: str | None,
    file: Path | None,
    as_json: bool,
) -> None:
    """Make a token called NAME and print it, this once: only a digest of it is kept.

    Without --json the token is all there is on stdout, also in a pipe.

    \b
      edgequeues token create laptop
      edgequeues token create reader --space demo --verbs read --expires 90d
      edgequeues token create app --anonymous --space B... --verbs read,append
    """
    try:
        wanted = grant([verb.strip() for verb in verbs.split(",") if verb.strip()], spaces, queues)
    except InvalidRequest as error:
        raise click.UsageError(str(error)) from error
    now_ms = _now_ms()
    ends = None if expires is None else now_ms + expires
    with _control(data, file, create=True) as control:
        first = not control.tokens()
        made, text = control.create(name, wanted, now_ms=now_ms, expires=ends, anonymous=anonymous)
    out = Output(json=as_json)
    if as_json:
        out.line({"token": text, **_listed(made)})
    elif text is not None:
        sys.stdout.write(text + "\n")
    _explain(out, made, first=first)


@token.command(name="list")
@on_folder
@click.pass_obj
def list_(surroundings: Surroundings, data: str | None, file: Path | None, as_json: bool) -> None:
    """List the tokens there are and were. What a token is, is not kept."""
    out = Output(json=as_json or not surroundings.terminal)
    with _control(data, file) as control:
        found = control.tokens()
    if out.json:
        for one in found:
            out.line(_listed(one))
        return
    rows = [
        (
            one.id,
            one.name,
            _state(one),
            "anonymous" if one.anonymous else "token",
            ",".join(_verbs(one)),
            when(one.created),
            when(one.expires),
            " ".join(one.grant.spaces),
            " ".join(one.grant.queues),
        )
        for one in found
    ]
    out.table(("id", "name", "state", "kind", "verbs", "created", "expires", "spaces", "queues"), rows)


@token.command()
@click.argument("named", metavar="NAME|ID")
@on_folder
@click.pass_obj
def revoke(
    surroundings: Surroundings, named: str, data: str | None, file: Path | None, as_json: bool
) -> None:
    """End a token for good, by its name or its id. A server that runs heeds it within a second."""
    out = Output(json=as_json or not surroundings.terminal)
    with _control(data, file) as control:
        was = control.revoke(named, now_ms=_now_ms())
    said = "was revoked before" if was.revoked is not None else "is revoked"
    if out.json:
        out.line({"id": was.id, "name": was.name})
    else:
        out.text(f"{was.name} ({was.id}) {said}")


# -- details ------------------------------------------------------------------------------------------------


@contextmanager
def _control(data: str | None, file: Path | None, *, create: bool = False) -> Iterator[Control]:
    """The open control file of the folder that a server would have.

    create: a folder that is misspelt should become one only where a token is made. Raises Failure, UsageError.
    """
    try:
        chosen = load(flags={"data": data}, environment=os.environ, file=file)
        with Control.open(Path(chosen.data), create=create) as control:
            yield control
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    except ControlError as error:
        raise Failure(str(error)) from error


def _explain(out: Output, made: Token, *, first: bool) -> None:
    """Say what was made, and what it changes."""
    until = "" if made.expires is None else f" until {when(made.expires)}"
    who = "everybody, without a token," if made.anonymous else made.name
    out.note(
        f"{who} may {made.grant}{until} ({made.id}). A server over this folder heeds it within a second."
    )
    if not made.anonymous:
        out.note(
            "Keep it: it is not shown again. Send it as `Authorization: Bearer TOKEN`, or set EDGEQUEUES_TOKEN."
        )
    if first:
        rest = "everything else" if made.anonymous else "everything"
        out.note(f"It is the first: {rest} needs a token from now on, unless auth = off.")


def _state(one: Token) -> str:
    return "active" if one.holds(_now_ms()) else "expired" if one.revoked is None else "revoked"


def _verbs(one: Token) -> list[str]:
    return [verb for verb in VERBS if verb in one.grant.verbs]


def _listed(one: Token) -> dict[str, object]:
    return {
        "id": one.id,
        "name": one.name,
        "state": _state(one),
        "anonymous": one.anonymous,
        "verbs": _verbs(one),
        "spaces": one.grant.spaces,
        "queues": one.grant.queues,
        "created": one.created,
        "expires": one.expires,
        "revoked": one.revoked,
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
