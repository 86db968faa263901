"""`edgequeues top`: how the queues are doing, looked at again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click
import trio

from edgequeues.cli.render import clean
from edgequeues.cli.session import Session, remote
from edgequeues.client import Client, QueueDoing

if TYPE_CHECKING:
    from rich.table import Table

SPACES_MAX = 100  # that are looked at where none is named
SPARKS = " ▁▂▃▄▅▆▇█"
SPARK_S = 20  # seconds that a sparkline shows
NARROW = 100  # columns of a terminal that has no room for sparklines

Row = tuple[str, QueueDoing]
SORTS: dict[str, Callable[[Row], object]] = {
    "depth": lambda row: -row[1].depth,
    "age": lambda row: -(row[1].oldest_ready_age_seconds or 0.0),
    "rate": lambda row: -sum(row[1].rates.came),
    "name": lambda row: (row[0], row[1].name),
}


@click.command()
@click.argument("spaces", nargs=-1, metavar="[SPACE]...")
@click.option("--name", metavar="TEXT", help="Only queues whose names hold this text.")
@click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
    default="depth",
    show_default=True,
    help="What comes first: the longest, what waits longest, what gets most, or by name.",
)
@click.option(
    "--every",
    type=click.FloatRange(0.2, 3_600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.option("--once", is_flag=True, help="Look once, and end.")
@remote
def top(
    session: Session, /, spaces: Sequence[str], name: str | None, sort: str, every: float, once: bool
) -> None:
    """Show how queues are doing, of each SPACE or of the first 100 there are, until Ctrl-C.

    Depth by state, how long the next message has been ready, how many came and were acked in the last second and
    minute. Into a pipe, one JSON object a queue and look.
    """

    async def work(client: Client) -> None:
        if session.out.json:
            while True:
                for space, one in await _looked(client, spaces, name, sort):
                    session.out.line({"space": space, "queue": one}, at_once=True)
                if once:
                    return
                await trio.sleep(every)
        await _on_terminal(client, spaces, name, sort, None if once else every)

    session.run(work)


async def _looked(client: Client, spaces: Sequence[str], name: str | None, sort: str) -> list[Row]:
    """All queues, the first first. A space that is gone has none."""
    named = list(spaces)
    if not named:
        async for space in client.spaces():
            if space.tag == "data":
                named.append(space.id)
            if len(named) == SPACES_MAX:
                break
    rows = [(space, one) for space in named async for one in client.iterate_doing(space, name=name)]
    return sorted(rows, key=SORTS[sort])  # type: ignore[arg-type]  # each gives values that compare


async def _on_terminal(
    client: Client, spaces: Sequence[str], name: str | None, sort: str, every: float | None
) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    rows = await _looked(client, spaces, name, sort)
    if every is None:
        console.print(_table(rows, console.width, len(rows)))
        return
    with Live(_table(rows, console.width, console.height - 3), console=console, screen=True) as live:
        while True:
            await trio.sleep(every)
            rows = await _looked(client, spaces, name, sort)
            live.update(_table(rows, console.width, console.height - 3))


def _table(rows: Sequence[Row], width: int, height: int) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    wide = width >= NARROW
    shown = rows[: max(height, 1)]
    left = len(rows) - len(shown)
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), caption=f"and {left} more" if left else None
    )
    table.add_column("queue", no_wrap=True, overflow="ellipsis")
    parked = ("delayed", "behind") if wide else ()
    for column in ("ready", "leased", "backoff", *parked, "oldest", "in/s", "out/s", "in/min"):
        table.add_column(column, justify="right", no_wrap=True)
    if wide:
        table.add_column("in, last 20 s", no_wrap=True)
    for space, one in shown:
        states, rates = one.states, one.rates
        label = f"{space}/{one.name}" + (" (paused)" if one.paused else "")
        ready = states["ready"] if one.kind == "work" or any(states.values()) else one.entries
        cells = [
            *map(str, (ready, states["leased"], states["backoff"])),
            *map(str, (states["scheduled"], states["waiting"]) if wide else ()),
            age(one.oldest_ready_age_seconds),
            *map(str, (rates.came[-2], rates.acked[-2], sum(rates.came))),  # the last second is not over yet
            *([spark(rates.came[-SPARK_S - 1 : -1])] if wide else []),
        ]
        table.add_row(Text(clean(label)), *cells)
    return table


def age(seconds: float | None) -> str:
    """A length of time in its two largest units."""
    if seconds is None:
        return "-"
    whole = int(seconds)
    for unit, size, below, smaller in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // smaller:02d}{below}"
    return f"{whole}s"


def spark(values: Sequence[int]) -> str:
    """Values as a line of bars, the greatest as high as a line is."""
    most = max(values, default=0)
    if not most:
        return SPARKS[0] * len(values)
    return "".join(SPARKS[-(-value * (len(SPARKS) - 1) // most)] for value in values)
