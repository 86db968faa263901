"""`edgequeues doctor`: is this machine fit for a server, and is the server well?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from edgequeues.cli.diagnosis import Finding, of_machine, of_settings
from edgequeues.cli.render import Output
from edgequeues.cli.session import Failure, Surroundings
from edgequeues.settings import Settings, SettingsError
from edgequeues.settings_sources import load, settings

SIGNS = {"ok": "ok", "warning": "WARNING", "fault": "FAULT"}


@click.command()
@click.option("--data", metavar="FOLDER", help="The data folder. Default: as the settings have it.")
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="EDGEQUEUES_CONFIG",
    help="TOML file with the server's settings.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line, also on a terminal.")
@click.pass_obj
def doctor(surroundings: Surroundings, data: str | None, file: Path | None, as_json: bool) -> None:
    """Look at what a server here would need: settings, data folder, disk, clock, open files, port.

    Changes nothing but a small file in the data folder, which it writes to measure the disk and removes. May run
    beside the server. Exit code 1 if there is a fault.
    """
    out = Output(json=as_json or not surroundings.terminal)
    faults = warnings = 0
    for one in _findings(data, file):
        faults += one.verdict == "fault"
        warnings += one.verdict == "warning"
        if out.json:
            out.line(one, at_once=True)
            continue
        out.text(f"{SIGNS[one.verdict]:<8} {one.about:<12} {one.says}")
        if one.advice:
            out.text(f"{'':<22}-> {one.advice}")
    if faults:
        raise Failure(
            f"{faults} {'fault' if faults == 1 else 'faults'}: mend them before you rely on a server here"
        )
    if not out.json:
        out.text("nothing is wrong" if not warnings else "nothing is wrong that keeps a server from running")


def _findings(data: str | None, file: Path | None) -> Iterator[Finding]:
    yield from of_settings(os.environ, [one.variable for one in settings()])
    try:
        chosen = load(flags={"data": data}, environment=os.environ, file=file)
    except SettingsError as error:
        yield Finding("settings", "fault", str(error), "correct it; the rest is looked at with the defaults")
        chosen = Settings() if data is None else Settings(data=data)
    else:
        yield Finding(
            "settings", "ok", f"of {file}, the environment and flags" if file else "of the environment"
        )
    yield from of_machine(chosen, _mounts)


def _mounts() -> str:
    try:
        return Path("/proc/self/mounts").read_text()
    except OSError:  # not Linux
        return ""
