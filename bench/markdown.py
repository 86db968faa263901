"""What does docs/performance.md say? `python -m bench.markdown` makes its tables of what was saved.

`--write` puts them into the page: `edgequeues bench --save && python -m bench.markdown --write`, on a quiet machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from bench import main as benches
from bench.figures import Figure, shown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN, END = "## Figures\n", "## What bounds them\n"  # what is between them is made here
HEAD = """
| case | median | unit | range | more | against | result | target | |
|---|---:|---|---|---|---|---:|---:|---|
"""


def section(path: Path) -> str:
    """All that stands between the two headings, for the lines in this file."""
    first, *lines = path.read_text().splitlines()
    facts = msgspec.json.decode(first)
    figures = [msgspec.json.decode(line, type=Figure) for line in lines]
    source = f"bench/results/{path.name}"
    parts = [f"The lines these tables were made from: `{source}`. The load when they began: {facts['load']}."]
    for bench, some in groupby(figures, key=lambda one: one.bench):
        question = (
            benches.FLUSH
            if bench == "machine"
            else f"{(benches.QUESTIONS[bench] or bench).partition('?')[0]}?"
        )
        parts.append(f"### {question}\n{HEAD}" + "\n".join(row for one in some for row in _rows(one)))
    return "\n" + "\n\n".join(parts) + "\n\n"


def renewed(page: str, made: str) -> str:
    """The page with this section in place of its own. Raises ValueError where the headings are not there."""
    before, found, rest = page.partition(BEGIN)
    _, ends, after = rest.partition(END)
    if not found or not ends:
        raise ValueError(f"no section from {BEGIN.strip()!r} to {END.strip()!r}")
    return before + found + made + ends + after


def _rows(one: Figure) -> Iterator[str]:
    more = ", ".join(f"{name} {shown(value)}" for name, value in one.more.items())
    spread = "" if one.rounds == 1 else f"{shown(one.low)} to {shown(one.high)}"
    cells = [
        [each.what, shown(each.value), f"{each.sign} {shown(each.target)}", each.verdict]
        for each in one.against
    ]
    first, *others = cells or [["", "", "", ""]]
    yield _row(one.case, shown(one.value), one.unit, spread, more, *first)
    for other in others:
        yield _row("", "", "", "", "", *other)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the section, or write it into the page."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.markdown", description="Make the tables of the page."
    )
    parser.add_argument(
        "file", nargs="?", type=Path, help="saved lines; default: the newest in bench/results/"
    )
    parser.add_argument(
        "--write", action="store_true", help=f"put them into {PAGE.name} instead of printing them"
    )
    asked = parser.parse_args(arguments)
    made = section(asked.file or max(benches.RESULTS.glob("[0-9]*.jsonl")))
    if asked.write:
        PAGE.write_text(renewed(PAGE.read_text(), made))
    else:
        print(made.strip())


if __name__ == "__main__":
    main()
