"""`edgequeues spec`: look at specs without a server: what is wrong with them, what they say, how two differ.

The commands of the group that talk to a server are in spec_server.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgequeues.cli.inputs import STDIN, shown
from edgequeues.cli.render import Output
from edgequeues.cli.session import Failure, Surroundings
from edgequeues.cli.spec_files import loaded, once, read, readable, right, tell
from edgequeues.cli.spec_server import apply, list_, remove
from edgequeues.core.errors import reason
from edgequeues.settings import SettingsError
from edgequeues.settings_sources import load as load_settings

if TYPE_CHECKING:  # the parser is loaded by those commands alone that read a spec
    from edgequeues.spec import ir
    from edgequeues.spec.check import Allowed
    from edgequeues.spec.load import Loaded

UNCHECKED = (
    "whether the server allows the secrets, hosts and modules was not checked: give its settings, by --config or the "
    "environment"
)

file_argument = click.argument("file", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, also on a terminal.")


@click.group()
def spec() -> None:
    """Check, show, compare, lay out and apply specs: queues and webhooks as an app declares them.

    A FILE is text of the language that docs/reference/spec.md explains, or a spec as JSON; `-` is stdin.
    """


for on_a_server in (apply, list_, remove):
    spec.add_command(on_a_server)


@spec.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="EDGEQUEUES_CONFIG",
    help="The server's settings: also check that it allows the secrets, hosts and modules.",
)
@json_option
@click.pass_obj
def check(surroundings: Surroundings, files: Sequence[Path], config: Path | None, as_json: bool) -> None:
    """Say everything that is wrong with specs.

    The faults are told on stderr; on stdout is which files are right. Exit code 1 if any is not.
    """
    allowed = _allowed(config)
    out = Output(json=as_json or not surroundings.terminal)
    once(files)
    every = [loaded(file, allowed) for file in files]
    for one in every:
        tell(out, one)
    if allowed is None and any(one.spec is not None and _has_more_to_check(one.spec) for one in every):
        out.note(UNCHECKED)
    wrong = sum(one.spec is None for one in every)
    if out.json:
        for one in every:
            out.line(_record(one))
    else:
        rows = [(one.file, one.spec.app if one.spec else "", _found(one)) for one in every]
        out.table(("file", "app", "found"), rows)
    if wrong:
        which = f"{wrong} of {len(every)} specs" if len(every) > 1 else "the spec"
        raise Failure(f"{which} cannot be used")


@spec.command()
@file_argument
@click.option("--json", "as_json", is_flag=True, help="Print the JSON that a server stores.")
def show(file: Path, as_json: bool) -> None:
    """Print the spec in FILE in its one form.

    As text that is without what is said by default; with --json it is what a server stores.
    """
    from edgequeues.spec.fmt import fmt
    from edgequeues.spec.ir import encode

    out = Output(json=as_json)
    found = right(out, file)
    if as_json:
        out.raw(encode(found))
    else:
        sys.stdout.write(fmt(found))


@spec.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def diff(surroundings: Surroundings, old: Path, new: Path, as_json: bool) -> int:
    """Say what changes from OLD to NEW.

    Prints nothing where they are the same; else the exit code is 1.
    """
    from edgequeues.spec.diff import diff as compare

    once((old, new))
    out = Output(json=as_json or not surroundings.terminal)
    before, after = right(out, old), right(out, new)
    changes = compare(before, after)
    for change in changes:
        if out.json:
            out.line(change)
        else:
            out.text(str(change))
    return 1 if changes else 0


@spec.command(name="fmt")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--check", "only_check", is_flag=True, help="Change nothing; exit code 1 if a file would change."
)
@click.option("--write", is_flag=True, help="Write the files anew, in their places.")
def fmt_(files: Sequence[Path], only_check: bool, write: bool) -> None:
    """Lay out the text of specs.

    Keys are put in their order, one a line; comments stay with what they are about. Without options the
    text is printed, of one FILE.
    """
    if only_check and write:
        raise click.UsageError("--check changes nothing, --write does; give one of them")
    if not (only_check or write) and len(files) > 1:
        raise click.UsageError(
            "more than one file can be checked or written, not printed; give --check or --write"
        )
    if write and STDIN in files:
        raise click.UsageError("stdin cannot be written; leave out --write, and the text is printed")
    once(files)
    out = Output(json=False)
    changed = [file for file in files if _lay_out(out, file, only_check=only_check, write=write)]
    if only_check and changed:
        raise Failure(
            f"not laid out: {', '.join(map(shown, changed))}. `edgequeues spec fmt --write` does it"
        )


def _lay_out(out: Output, file: Path, *, only_check: bool, write: bool) -> bool:
    """Print or write the text of one file, or neither; is it another than before?"""
    from edgequeues.spec.fmt import fmt
    from edgequeues.spec.load import is_json
    from edgequeues.spec.relayout import relayout

    content = read(file)
    if is_json(content):
        if only_check or write:
            raise Failure(
                f"{shown(file)} is JSON, which has no layout; `edgequeues spec show` prints it as text"
            )
        sys.stdout.write(fmt(right(out, file, content)))
        return False
    text = relayout(readable(out, file, content))
    if write and text.encode() != content:
        _replace(file, text)
        out.note(f"{shown(file)}: written")
    elif not (only_check or write):
        sys.stdout.write(text)
    return text.encode() != content


def _replace(file: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    new = file.with_name(f".{file.name}.new")
    try:
        new.write_bytes(text.encode())
        new.chmod(file.stat().st_mode & 0o777)
        new.replace(file.resolve())
    except OSError as error:
        new.unlink(missing_ok=True)
        raise Failure(f"cannot write {file}: {reason(error)}") from error


def _has_more_to_check(spec: ir.Spec) -> bool:
    """Does a spec name secrets, hosts or modules?"""
    verified = any(not hook.verify.none for hook in spec.webhooks.values())
    return verified or any(one.python or one.http or one.secret_env for one in spec.commands.values())


def _found(one: Loaded) -> str:
    count = len(one.faults)
    return "ok" if one.spec is not None else "1 fault" if count == 1 else f"{count} faults"


def _record(one: Loaded) -> dict[str, object]:
    """What is known of one file, for programs."""
    from edgequeues.spec.faults import place_of, words

    faults = []
    for fault in one.faults:
        place = place_of(fault, one.marks) if one.text is not None else None
        where: Mapping[str, int] = {"line": place.line, "column": place.column} if place else {}
        faults.append({"path": words(fault.path), "what": fault.what, "remedy": fault.remedy, **where})
    return {"file": one.file, "app": one.spec.app if one.spec else None, "faults": faults}


def _allowed(config: Path | None) -> Allowed | None:
    """What the server's settings let specs use; None: no setting says anything of it."""
    from edgequeues.spec.check import Allowed

    try:
        settings = load_settings(flags={}, environment=os.environ, file=config)
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint="--config") from error
    names = ("commands_modules", "commands_http_allow", "secrets_env")
    modules, hosts, secrets = (tuple(getattr(settings, name, ())) for name in names)
    if not (modules or hosts or secrets):
        return None
    return Allowed(modules, hosts, secrets, dict(os.environ))
