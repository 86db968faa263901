"""What does it cost? Asks every bench, or those named, and prints what they say.

On a terminal a table for each question; in a pipe, or with --json, one JSON line for each measurement.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import msgspec
from rich.console import Console

from bench import (
    append,
    backups,
    budget,
    daemon,
    deletes,
    hooks,
    http,
    http_memory,
    latency,
    machine,
    memory,
    reads,
    sessions,
    spaces,
    visible,
    work,
    work_delayed,
    work_depth,
    work_http,
    work_latency,
)
from bench.figures import Figure, quantile, show
from bench.peers import main as peers
from bench.rig import Effort, Rig

BENCHES: Mapping[str, Callable[[Rig], Iterator[Figure]]] = {
    "append": append.measure,
    "latency": latency.measure,
    "reads": reads.measure,
    "deletes": deletes.measure,
    "spaces": spaces.measure,
    "work": work.measure,
    "work-depth": work_depth.measure,
    "work-delayed": work_delayed.measure,
    "memory": memory.measure,
    "http": http.measure,
    "http-memory": http_memory.measure,
    "budget": budget.measure,
    "work-http": work_http.measure,
    "work-latency": work_latency.measure,
    "hooks": hooks.measure,
    "visible": visible.measure,
    "daemon": daemon.measure,
    "sessions": sessions.measure,
    "backups": backups.measure,
    peers.NAME: peers.measure,
}
ON_REQUEST = (peers.NAME,)  # not among all: it fetches what it needs
QUESTIONS = {
    "append": append.__doc__,
    "latency": latency.__doc__,
    "reads": reads.__doc__,
    "deletes": deletes.__doc__,
    "spaces": spaces.__doc__,
    "work": work.__doc__,
    "work-depth": work_depth.__doc__,
    "work-delayed": work_delayed.__doc__,
    "memory": memory.__doc__,
    "http": http.__doc__,
    "http-memory": http_memory.__doc__,
    "budget": budget.__doc__,
    "work-http": work_http.__doc__,
    "work-latency": work_latency.__doc__,
    "hooks": hooks.__doc__,
    "visible": visible.__doc__,
    "daemon": daemon.__doc__,
    "sessions": sessions.__doc__,
    "backups": backups.__doc__,
    peers.NAME: peers.__doc__,
}
FLUSH = "What does a flush cost here?"
RESULTS = Path(__file__).parent / "results"
IN_MEMORY = ("tmpfs", "ramfs")


def run(
    names: Sequence[str],
    quick: bool,
    *,
    folder: Path | None = None,
    as_json: bool | None = None,
    save: bool = False,
    only: Sequence[str] = (),
    also: Sequence[str] = (),
) -> None:
    """Run the benches named, all but `peers` if none is, and print.

    quick: smaller sizes and fewer rounds, two or three minutes. folder: where the data goes, else the current one.
    as_json: None decides by whether stdout is a terminal. save: also write the lines to results/.
    only, also: see `Rig`.
    Raises ValueError for a name there is no bench of, or a folder in memory, where a flush means nothing.
    """
    tell = Teller(as_json=not sys.stdout.isatty() if as_json is None else as_json)
    effort: Effort = "quick" if quick else "full"
    tell.lines += list(measure(names, effort, folder or Path.cwd(), tell, only=only, also=also))
    if save:
        RESULTS.mkdir(exist_ok=True)
        kind = f"{peers.NAME}-" if peers.NAME in names else ""
        path = RESULTS / f"{kind}{datetime.now(UTC):%Y-%m-%d}.jsonl"
        path.write_text("".join(f"{line}\n" for line in tell.lines))


class Teller:
    """Prints figures as they come, or a table when a question is answered."""

    def __init__(self, *, as_json: bool, out: TextIO | None = None) -> None:
        self.lines: list[str] = []
        self._json = as_json
        self._out = out or sys.stdout
        self._console = Console(file=self._out, width=None if self._out.isatty() else 180)

    def fact(self, line: str) -> None:
        print(line, file=self._out, flush=True)

    def figure(self, each: Figure) -> None:
        if self._json:
            print(each.line(), file=self._out, flush=True)
        else:
            print(f"... {each.bench}: {each.case}", file=sys.stderr, flush=True)

    def answered(self, question: str, figures: Sequence[Figure]) -> None:
        if not self._json:
            show(self._console, question, figures)


def measure(
    names: Sequence[str],
    effort: Effort,
    folder: Path,
    tell: Teller,
    *,
    only: Sequence[str] = (),
    also: Sequence[str] = (),
) -> Iterator[str]:
    """Ask in order, telling each figure as it comes; yield the lines worth keeping."""
    unknown = sorted(set(names) - set(BENCHES))
    if unknown:
        raise ValueError(f"no bench is named {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    kind = machine.file_system(folder)
    if kind in IN_MEMORY:
        raise ValueError(f"{folder} is on {kind}, where a flush does nothing: name a folder on a disk")
    with tempfile.TemporaryDirectory(dir=folder, prefix="bench-") as name:
        place = Path(name)
        times_ms = machine.flush_times_ms(place, {"full": 2_000, "quick": 500, "tiny": 20}[effort])
        facts = msgspec.json.encode({"bench": "machine", "effort": effort} | machine.facts(place)).decode()
        tell.fact(facts)
        yield facts
        yield from _answer(FLUSH, iter([machine.flush(times_ms)]), tell)
        rig = Rig(place, effort, quantile(times_ms, 0.5), only, also)
        for bench in names or [each for each in BENCHES if each not in ON_REQUEST]:
            began = time.perf_counter()
            question = (QUESTIONS[bench] or bench).splitlines()[0]
            yield from _answer(question, BENCHES[bench](rig), tell)
            print(f"... {bench} took {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


def _answer(question: str, figures: Iterator[Figure], tell: Teller) -> Iterator[str]:
    found = []
    for each in figures:
        found.append(each)
        tell.figure(each)
        yield each.line()
    tell.answered(question, found)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure edgequeues on this machine."
    )
    named = f"any of {', '.join(BENCHES)}; none: all but peers"
    parser.add_argument("names", nargs="*", metavar="bench", help=named)
    parser.add_argument("--quick", action="store_true", help="smaller and fewer, two or three minutes")
    parser.add_argument("--json", action="store_true", default=None, help="JSON lines on a terminal too")
    parser.add_argument("--table", dest="json", action="store_false", help="tables in a pipe too")
    parser.add_argument("--folder", type=Path, help="where to put the data; default: the current folder")
    parser.add_argument("--save", action="store_true", help="also write the lines to bench/results/")
    parser.add_argument("--only", action="append", default=[], help="peers: this one takes part; repeatable")
    parser.add_argument(
        "--also", action="append", default=[], help="peers: edgequeues with these options of serve, too"
    )
    asked = parser.parse_args()
    try:
        run(
            asked.names,
            asked.quick,
            folder=asked.folder,
            as_json=asked.json,
            save=asked.save,
            only=asked.only,
            also=asked.also,
        )
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))
