"""How is a measurement told? As one JSON line for machines, as a row of a table for people."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import msgspec
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class Against:
    """A figure set beside another one, or beside a bound: what came out, and what was hoped for."""

    what: str
    value: float
    target: float
    at_most: bool = False  # the target is an upper bound

    @property
    def verdict(self) -> str:
        """Reported, never asserted: the machine may be busy, or slow."""
        good = self.value <= self.target if self.at_most else self.value >= self.target
        return "reached" if good else "not reached"

    @property
    def sign(self) -> str:
        return "<=" if self.at_most else ">="


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measurement. `value` is the median of `rounds`, `low` and `high` are the extremes."""

    bench: str
    case: str
    value: float
    unit: str
    low: float
    high: float
    rounds: int
    against: Sequence[Against] = ()
    more: Mapping[str, float] = field(default_factory=dict)
    note: str = ""  # under which setting it was measured

    def line(self) -> str:
        """The figure as one line of JSON."""
        told = asdict(self) | {
            "value": shorten(self.value),
            "low": shorten(self.low),
            "high": shorten(self.high),
            "more": {name: shorten(value) for name, value in self.more.items()},
            "against": [asdict(a) | {"value": shorten(a.value), "verdict": a.verdict} for a in self.against],
        }
        return msgspec.json.encode(
            {name: value for name, value in told.items() if value not in ([], {}, "")}
        ).decode()


def figure(
    bench: str,
    case: str,
    values: Sequence[float],
    unit: str,
    *,
    against: Sequence[Against] = (),
    more: Mapping[str, float] | None = None,
    note: str = "",
) -> Figure:
    """Summarise the rounds of one case."""
    return Figure(
        bench=bench,
        case=case,
        value=statistics.median(values),
        unit=unit,
        low=min(values),
        high=max(values),
        rounds=len(values),
        against=against,
        more=more or {},
        note=note,
    )


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios round by round: rounds lie side by side in time, so load hits both alike."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def quantile(values: Sequence[float], part: float) -> float:
    """The value that `part` (0 to 1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def shorten(value: float) -> float:
    """Three digits that mean something; whole numbers above a hundred."""
    return round(value) if abs(value) >= 100 else float(f"{value:.3g}")


def shown(value: float) -> str:
    """The number for people."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(console: Console, question: str, figures: Sequence[Figure]) -> None:
    """Print the table of one bench."""
    table = Table(title=question, title_justify="left", title_style="bold")
    aimed, noted = any(each.against for each in figures), any(each.note for each in figures)
    aims = ("against", "result", "target", "") if aimed else ()
    for name in ("case", "median", "unit", "range", "more", *aims, *(("setting",) if noted else ())):
        table.add_column(name, justify="right" if name in ("median", "result", "target") else "left")
    for each in figures:
        more = ", ".join(f"{name} {shown(value)}" for name, value in each.more.items())
        spread = "" if each.rounds == 1 else f"{shown(each.low)} to {shown(each.high)}"
        first, *others = each.against or (None,)
        cells = [*(_cells(first) if aimed else ()), *((each.note,) if noted else ())]
        table.add_row(each.case, shown(each.value), each.unit, spread, more, *cells)
        for other in others:
            table.add_row("", "", "", "", "", *_cells(other))
    console.print(table)


def _cells(against: Against | None) -> tuple[str, str, str, str]:
    if against is None:
        return "", "", "", ""
    return against.what, shown(against.value), f"{against.sign} {shown(against.target)}", against.verdict
