"""`edgequeues bench`: a thin caller of the benchmarks, which are part of the sources, not of the package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from edgequeues.cli.session import Failure


@click.command()
@click.argument("names", nargs=-1)
@click.option("--quick", is_flag=True, help="Smaller sizes and fewer rounds: two or three minutes.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one measurement a line, also on a terminal."
)
@click.option(
    "--data",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where to write: the disk of this folder is what is measured. Default: the current one.",
)
@click.option("--save", is_flag=True, help="Also keep the lines in bench/results.")
@click.option("--only", multiple=True, metavar="PEER", help="peers: this one takes part; repeatable.")
@click.option(
    "--also",
    multiple=True,
    metavar="OPTIONS",
    help="peers: edgequeues with these options of serve takes part, too; repeatable.",
)
def bench(
    names: Sequence[str],
    quick: bool,
    as_json: bool,
    folder: Path | None,
    save: bool,
    only: Sequence[str],
    also: Sequence[str],
) -> None:
    """Measure the benches called NAMES, or all but `peers`, which fetches other servers to measure beside."""
    try:
        run = import_module("bench.main").run
    except ModuleNotFoundError as error:
        if error.name not in ("bench", "bench.main"):
            raise
        raise Failure("the benchmarks are not installed; run them from a checkout: make bench") from None
    try:
        run(names, quick, folder=folder, as_json=as_json or None, save=save, only=only, also=also)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
