"""Looking at a work queue without touching it: stats, peek, lines, explain."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click
import msgspec
from msgspec import Raw

from edgequeues.cli import params
from edgequeues.cli.pull import consumer
from edgequeues.cli.render import Output, cut, size, when
from edgequeues.cli.session import Session, remote
from edgequeues.cli.telling import Head, sentence
from edgequeues.client import Client, Consumer, Explanation, QueueStats, Standing
from edgequeues.core.dxn import Dxn
from edgequeues.core.lifecycle import UNFINISHED

TERMINAL_MESSAGES = 20
LINES_MAX = 1_000  # that a head is looked for in
LAST_CHAR = "\U0010ffff"
TOTALS = (
    "acked",
    "retried",
    "lapsed",
    "released",
    "exhausted",
    "permanent",
    "skipped",
    "expired",
    "cancelled",
)


@click.command()
@click.argument("dxn", type=params.queue)
@remote
def stats(session: Session, /, dxn: Dxn) -> None:
    """Show what is in queue DXN, and how far each of its consumers is."""

    async def work(client: Client) -> None:
        found = await client.stats(str(dxn))
        if session.out.json:
            session.out.line(found)
        else:
            _stats(session.out, found)

    session.run(work)


@click.command()
@click.argument("dxn", type=params.queue)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(UNFINISHED),
    metavar="STATE",
    help=f"Only those in this state: {', '.join(UNFINISHED)}. Repeatable.",
)
@consumer
@click.option("--after", type=click.IntRange(min=0), metavar="POSITION", help="Only what comes after it.")
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), help="At most so many. Default: 20 on a terminal, else all."
)
@remote
def peek(
    session: Session,
    /,
    dxn: Dxn,
    states: Sequence[str],
    consumer: str | None,
    after: int | None,
    limit: int | None,
) -> None:
    """Look at the unfinished messages of work queue DXN, by position. Nothing is handed out.

    \b
      edgequeues peek dxn:queue:demo:jobs --state backoff --state leased
    """
    left = TERMINAL_MESSAGES if limit is None and not session.out.json else limit

    async def work(client: Client) -> None:
        found: list[Standing] = []
        resume, more = after, True
        while more and (left is None or len(found) < left):
            ask = min(1_000, 1_000 if left is None else left - len(found))
            page = await client.peek(str(dxn), states=states, consumer=consumer, after=resume, limit=ask)
            if session.out.json:
                for one in page.messages:
                    session.out.line(record(one))
            found += page.messages if left is not None else []
            resume, more = page.resume, page.resume is not None
        if not session.out.json:
            _standings(session.out, found)
            if more:
                session.out.note(f"there may be more: --after {resume}")

    session.run(work)


@click.command()
@click.argument("dxn", type=params.queue)
@consumer
@click.option("--after", metavar="KEY", help="Only keys after this one.")
@click.option("--limit", "-n", type=click.IntRange(1, 1_000), help="At most so many. Default: 100.")
@remote
def lines(session: Session, /, dxn: Dxn, consumer: str | None, after: str | None, limit: int | None) -> None:
    """Show the ordering keys of queue DXN whose messages wait, the longest lines first.

    Of very many keys, the first thousand are looked at.
    """

    async def work(client: Client) -> None:
        page = await client.lines(str(dxn), consumer=consumer, after=after, limit=limit)
        if session.out.json:
            for one in page.lines:
                session.out.line(one)
        else:
            rows = [
                (str(one.waiting), str(one.position), one.state, str(one.attempts), when(one.due), one.key)
                for one in page.lines
            ]
            columns = ("waiting", "head", "state", "attempts", "due", "key")
            session.out.table(columns, rows, right=("waiting", "head", "attempts"))
        if page.resume is not None:
            session.out.note(f"there may be more: --after {shlex.quote(page.resume)}")

    session.run(work)


@click.command()
@click.argument("dxn", type=params.queue)
@click.argument("object_id", metavar="ID")
@remote
def explain(session: Session, /, dxn: Dxn, object_id: str) -> None:
    """Say why the message with this ID is not delivered now, and how each attempt ended.

    \b
      edgequeues explain dxn:queue:demo:jobs order-7
    """

    async def work(client: Client) -> None:
        found = await client.explain(str(dxn), object_id)
        for one in found:
            head = await _head(client, str(dxn), one) if one.why == "behind" else None
            said = sentence(one, head, str(dxn))
            if session.out.json:
                session.out.line({"id": object_id, "sentence": said, **msgspec.to_builtins(one)})
            else:
                session.out.text(f"{one.consumer}: {said}")
                _history(session.out, one)
        if not found:
            session.out.note(f"{dxn} has no consumer, so nothing is handed out; it is read as a log")

    session.run(work)


async def _head(client: Client, dxn: str, told: Explanation) -> Head | None:
    """The message that a line waits for. None: it has gone on since, or was not found."""
    after = None if told.key is None else _just_before(told.key)
    page = await client.lines(dxn, consumer=told.consumer, after=after, limit=LINES_MAX)
    line = next((one for one in page.lines if one.key == told.key), None)
    if line is None:  # the line of a whole queue has no key
        page = await client.lines(dxn, consumer=told.consumer, limit=LINES_MAX)
        line = next((one for one in page.lines if one.key == ""), None)
    if line is None:
        return None
    found = await client.peek(dxn, consumer=told.consumer, after=line.position - 1, limit=1)
    standing = next((one for one in found.messages if one.position == line.position), None)
    return None if standing is None else Head(standing, line.key)


def _just_before(key: str) -> str | None:
    """A text below a key with hardly any key between. None: there is no text below it that could be one."""
    start, below = key[:-1], ord(key[-1]) - 1
    if chr(below).isprintable():
        return start + chr(below) + LAST_CHAR
    return start or None


def record(one: Standing) -> dict[str, object]:
    """A message as the protocol shows it."""
    fields = {name: getattr(one, name) for name in one.__struct_fields__ if name != "raw"}
    return {**fields, "data": Raw(one.raw)}


def _standings(out: Output, found: Sequence[Standing]) -> None:
    rows = [
        (
            str(one.position),
            one.id,
            one.state,
            str(one.attempts),
            when(one.due),
            one.worker or "",
            one.key or "",
            one.last_error[:60] if one.last_error else "",
            cut(one.raw),
        )
        for one in found
    ]
    columns = ("position", "id", "state", "attempts", "due", "worker", "key", "last error", "data")
    out.table(columns, rows, right=("position", "attempts"))


def _history(out: Output, told: Explanation) -> None:
    if told.history:
        rows = [
            (
                str(one.attempt),
                one.ending,
                one.worker or "",
                when(one.began),
                when(one.ended),
                one.error or "",
            )
            for one in told.history
        ]
        out.table(("attempt", "ending", "worker", "began", "ended", "error"), rows, right=("attempt",))


def _stats(out: Output, found: QueueStats) -> None:
    out.fields(
        {
            "dxn": found.dxn,
            "id": found.id,
            "kind": found.config.kind,
            "paused": "yes" if found.config.paused else "no",
            "entries": found.entries,
            "bytes": size(found.bytes),
            "oldest": found.oldest,
            "created": found.created,
        },
        times=("oldest", "created"),
    )
    if found.consumers:
        out.text("")
        consumers(out, found.consumers)


def consumers(out: Output, found: Sequence[Consumer]) -> None:
    """Print consumers as tables: what they have to do, and what became of what they did."""
    rows = [
        (
            one.name,
            one.config.ordering,
            *(str(getattr(one, state)) for state in UNFINISHED),
            when(one.oldest_ready),
        )
        for one in found
    ]
    out.table(("consumer", "ordering", *UNFINISHED, "oldest ready"), rows, right=UNFINISHED)
    out.text("")
    rows = [
        (one.name, *(str(getattr(one, f"total_{total}")) for total in ("in", "attempts", *TOTALS)))
        for one in found
    ]
    columns = ("pushed", "attempts", *TOTALS)
    out.table(("consumer", *columns), rows, right=columns)
