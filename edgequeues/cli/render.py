"""How things are printed: tables for people, JSON lines for programs, notes and progress beside them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Literal, Protocol

import msgspec

DATA_CHARS_MAX = 1_000  # of an entry's data in a table; more never fits
LAST_CHARS_MIN = 24  # of the last column; a narrower terminal has to wrap
GAP_CHARS = 3  # between columns


class Output:
    """Where a command's results go. json: JSON lines rather than tables."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def line(self, record: object, *, at_once: bool = False) -> None:
        """Print one object as a line of JSON. at_once: do not wait for more."""
        self.raw(msgspec.json.encode(record), at_once=at_once)

    def raw(self, text: bytes, *, at_once: bool = False) -> None:
        """Print one JSON text as a line; line breaks between its tokens become spaces."""
        sys.stdout.buffer.write(text.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")
        if at_once:
            sys.stdout.buffer.flush()

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
    ) -> None:
        """Print a table. Columns named in `right` are aligned there; the last one is cut where it does not fit."""
        from rich.box import SIMPLE_HEAD
        from rich.cells import cell_len
        from rich.console import Console, ConsoleDimensions
        from rich.table import Table
        from rich.text import Text

        cells = [[clean(cell) for cell in row] for row in rows]
        widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
        console = Console(file=sys.stdout, highlight=False)
        gaps = GAP_CHARS * (len(columns) - 1)
        left = console.width - sum(widths[:-1]) - gaps
        widths[-1] = min(widths[-1], max(left, LAST_CHARS_MIN))
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name, width in zip(columns, widths, strict=True):
            justify: Literal["left", "right"] = "right" if name in right else "left"
            table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis", width=width)
        for row in cells:
            table.add_row(*map(Text, row))
        # Rich would squeeze what is wider, until columns vanish; a terminal wraps it.
        console.size = ConsoleDimensions(max(console.width, sum(widths) + gaps), console.height)
        console.print(table, crop=False)

    def fields(self, values: Mapping[str, object], *, times: Collection[str] = ()) -> None:
        """Print one thing, a field a line; those named in `times` are unix ms."""
        width = max(map(len, values))
        for name, value in values.items():
            shown = when(value) if name in times and isinstance(value, int) else value
            self.text(f"{name:<{width}}  {'' if shown is None else shown}".rstrip())

    def text(self, line: str) -> None:
        """Print one line for people."""
        print(clean(line), flush=True)

    def told(self, record: object, text: str) -> None:
        """Print what was done: the record for programs, the line for people."""
        if self.json:
            self.line(record)
        else:
            self.text(text)

    def note(self, text: str) -> None:
        """Say something beside the results, on stderr."""
        print(clean(text), file=sys.stderr)


def clean(text: str) -> str:
    """The text without anything a terminal would obey: a stored entry must not move anybody's cursor."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def cut(raw: bytes) -> str:
    """Data as the cell of a table: one line, no longer than a table shows."""
    shown = raw[: 4 * DATA_CHARS_MAX].decode(errors="replace")[:DATA_CHARS_MAX]
    return " ".join(shown.split())


def when(unix_ms: int | None) -> str:
    """Local time, to the second."""
    if unix_ms is None:
        return ""
    try:
        return datetime.fromtimestamp(unix_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # beyond what the calendar knows
        return str(unix_ms)


def size(count: int) -> str:
    """Bytes, in the unit that fits."""
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        del units[0]
    return f"{count} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


class Step(Protocol):
    """Moves a progress line on."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """So much is done by now, of so much if that is known."""
        ...


@contextmanager
def progress(what: str) -> Iterator[Step]:
    """Show on stderr how far a long job is, if somebody looks at it there; else nothing."""
    if not sys.stderr.isatty():
        yield lambda done, total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total=None: bar.update(task, completed=done, total=total)
