"""`edgequeues check`: look at every file of a data folder that nobody serves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from edgequeues.cli.render import Output, progress, size
from edgequeues.cli.session import Failure, Surroundings
from edgequeues.core.errors import reason


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--repair", is_flag=True, help="First rewrite the files of which the disk refused a flush.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line, also on a terminal.")
@click.pass_obj
def check(surroundings: Surroundings, folder: Path, repair: bool, as_json: bool) -> None:
    """Verify every space in the data folder FOLDER, which must not be served meanwhile.

    Each file must pass SQLite's own check, have our tables, and hold what must hold of its rows: counters equal to
    counts, positions and versions within the counters, sizes, times and sweeps in order, data that is JSON, alarms
    that are in the index; consumers with the deliveries, lines, attempts and dead letters they should have. Exit
    code 1 if anything is wrong.
    """
    from shards.errors import FolderLocked
    from shards.folders import locked

    out = Output(json=as_json or not surroundings.terminal)
    try:
        with locked(folder):
            if repair:
                _repair(out, folder)
            failed = _check(out, folder)
    except FolderLocked as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot look at {error.filename or folder}: {reason(error)}") from error
    if failed:
        raise Failure(f"{folder}: {failed} {'file is' if failed == 1 else 'files are'} not as they should be")


def _repair(out: Output, folder: Path) -> None:
    """Rewrite what needs it; what could not be repaired still does, and the check will say so."""
    from shards.check import repair_all
    from shards.disk import ThreadDisk

    for name, why_not in repair_all(folder, ThreadDisk()):
        out.note(f"{name}: {f'not repaired: {why_not}' if why_not else 'repaired'}")


def _check(out: Output, folder: Path) -> int:
    """Print what is found; return how many files are not right."""
    from edgequeues.space.check import problems
    from edgequeues.space.schema import MIGRATIONS
    from shards import files
    from shards.check import Finding
    from shards.check import check as check_folder

    def looked_at() -> Iterator[Finding]:
        with progress("checking") as step:
            total = sum(1 for _ in files.walk(folder))
            step(0, total)
            for done, finding in enumerate(check_folder(folder, MIGRATIONS, problems), 1):
                yield finding
                step(done, total)

    rows, said, wrong = [], [], 0
    for finding in looked_at():
        count = len(finding.problems)
        wrong += bool(count)
        if out.json:
            record = {"name": finding.name, "path": str(finding.path), "bytes": finding.bytes}
            out.line({**record, "problems": finding.problems, "repairable": finding.repairable}, at_once=True)
        found = "ok" if not count else "1 problem" if count == 1 else f"{count} problems"
        rows.append((finding.name, size(finding.bytes), found))
        said += [f"{finding.name}: {problem}" for problem in finding.problems]
    if not out.json:
        out.table(("space", "size", "found"), rows, right=("size",))
        for sentence in said:  # whole, which a cell of a table would not show
            out.text(sentence)
    return wrong
