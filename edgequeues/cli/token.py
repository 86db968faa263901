"""`edgequeues token`: who may use a server. Works on the data folder, whether a server runs over it or not."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec

import click
import msgspec

from edgequeues.cli import params
from edgequeues.cli.render import Output, when
from edgequeues.cli.session import Failure, Surroundings
from edgequeues.control import Control, ControlError, Token
from edgequeues.core.errors import InvalidRequest
from edgequeues.core.grants import MEANINGS, VERBS, grant
from edgequeues.settings import SettingsError, load

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


def on_folder(command: Callable[Concatenate[Control, Output, P], None]) -> Callable[P, None]:
    """Give a command --data, --config and --json, and the control file of that folder, open, as first argument."""

    @click.option("--data", metavar="DIR", help="The data folder, as `edgequeues serve` has it.")
    @click.option(
        "--config",
        "file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        envvar="EDGEQUEUES_CONFIG",
        help="TOML file with the server's settings, for its data folder.",
    )
    @click.option(
        "--json", "as_json", is_flag=True, help="Print JSON, one object a line, also on a terminal."
    )
    @wraps(command)
    def with_control(*args: P.args, **kwargs: P.kwargs) -> None:
        data, file, as_json = kwargs.pop("data"), kwargs.pop("file"), bool(kwargs.pop("as_json"))
        surroundings = click.get_current_context().find_object(Surroundings)
        assert surroundings is not None
        assert file is None or isinstance(file, Path)
        try:
            chosen = load(flags={"data": data}, environment=os.environ, file=file)
            with Control.open(Path(chosen.data)) as control:
                command(control, Output(json=as_json or not surroundings.terminal), *args, **kwargs)
        except SettingsError as error:
            raise click.UsageError(str(error)) from error
        except (ControlError, InvalidRequest) as error:
            raise Failure(str(error)) from error

    return with_control


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
    control: Control,
    out: Output,
    /,
    name: str,
    spaces: Sequence[str],
    queues: Sequence[str],
    verbs: str,
    expires: int | None,
    anonymous: bool,
) -> None:
    """Make a token called NAME and print it, this once: only a digest of it is kept.

    \b
      edgequeues token create laptop
      edgequeues token create reader --space demo --verbs read --expires 90d
      edgequeues token create dxos --anonymous --space B... --verbs read,append,delete
    """
    wanted = grant([verb.strip() for verb in verbs.split(",") if verb.strip()], spaces, queues)
    first = not control.tokens()
    now_ms = _now_ms()
    ends = None if expires is None else now_ms + expires
    made, text = control.create(name, wanted, now_ms=now_ms, expires=ends, anonymous=anonymous)
    until = "" if ends is None else f" until {when(ends)}"
    who = "everybody, without a token," if text is None else made.name
    out.note(f"{who} may {wanted}{until} ({made.id})")
    if text is not None:
        out.note(
            "Keep it: it is not shown again. Send it as `Authorization: Bearer TOKEN`, or set EDGEQUEUES_TOKEN."
        )
        sys.stdout.write(text + "\n")
    if first:
        out.note(
            "It is the first: a server over this folder now refuses requests without a token, unless auth = off."
        )


@token.command(name="list")
@on_folder
def list_(control: Control, out: Output, /) -> None:
    """List the tokens there are and were. What a token is, is not kept."""
    rows = []
    for one in control.tokens():
        if out.json:
            out.line(_listed(one))
        shown = _listed(one)
        rows.append(
            (
                one.id,
                one.name,
                str(shown["state"]),
                "anonymous" if one.anonymous else "token",
                ",".join(verb for verb in VERBS if verb in one.grant.verbs),
                when(one.created),
                when(one.expires),
                " ".join(one.grant.spaces),
                " ".join(one.grant.queues),
            )
        )
    if not out.json:
        out.table(("id", "name", "state", "kind", "verbs", "created", "expires", "spaces", "queues"), rows)


@token.command()
@click.argument("named", metavar="NAME|ID")
@on_folder
def revoke(control: Control, out: Output, /, named: str) -> None:
    """End a token for good, by its name or its id. A server that runs heeds it within a second."""
    was = control.revoke(named, now_ms=_now_ms())
    said = "was revoked before" if was.revoked is not None else "is revoked"
    if out.json:
        out.line({"id": was.id, "name": was.name})
    else:
        out.text(f"{was.name} ({was.id}) {said}")


def _listed(one: Token) -> dict[str, object]:
    state = "active" if one.holds(_now_ms()) else "expired" if one.revoked is None else "revoked"
    grants = msgspec.to_builtins(one.grant)
    return {
        "id": one.id,
        "name": one.name,
        "state": state,
        "anonymous": one.anonymous,
        "verbs": [verb for verb in VERBS if verb in one.grant.verbs],
        "spaces": grants["spaces"],
        "queues": grants["queues"],
        "created": one.created,
        "expires": one.expires,
        "revoked": one.revoked,
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
