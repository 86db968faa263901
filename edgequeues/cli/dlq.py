"""`edgequeues dlq`: dead letters, by the queue in which they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import click
import msgspec
from msgspec import Raw

from edgequeues.cli import params
from edgequeues.cli.editing import edit_option, message, set_option, try_
from edgequeues.cli.queue import purge_queue
from edgequeues.cli.render import Output, progress, when
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Client, DeadLetter, LetterFilter, Refused, Replayed
from edgequeues.core.dxn import Dxn

TERMINAL_LETTERS = 20
PAGE_LETTERS = 1_000
REPLAY_LETTERS = 500  # in one call, whose answer names 1,000 at most, those that stay included
REASONS = ("exhausted", "permanent", "skipped", "malformed")
FILTER_FIELDS = ("reason", "queue", "key", "type", "since", "until", "error", "where")
MEANINGS = {
    "no_queue": "the queue they came from is gone",
    "later": "at this pace they would be due when they are old already; say a higher --per-second, or do it later",
    "invalid": "the spec of the queue they came from does not take them",
    "unknown": "there is no such dead letter",
}

where_option = click.option(
    "--where",
    metavar="EXPR",
    help="Only those for which this expression holds, as in a spec: 'attempts >= 5 && payload.n == 1'.",
)

P = ParamSpec("P")


@click.group()
def dlq() -> None:
    """Look at dead letters, replay and purge them.

    DXN is the queue in which they lie: those of `jobs` lie in `jobs-dlq`, where its consumers do not say otherwise.
    """


@dlq.command(name="list")
@click.argument("dxn", type=params.queue)
@click.option("--after", type=click.IntRange(min=0), metavar="POSITION", help="Only what comes after it.")
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), help="At most so many. Default: 20 on a terminal, else all."
)
@where_option
@remote
def list_(session: Session, /, dxn: Dxn, after: int | None, limit: int | None, where: str | None) -> None:
    """List the dead letters in queue DXN, the oldest first."""
    left = TERMINAL_LETTERS if limit is None and not session.out.json else limit

    async def work(client: Client) -> None:
        found: list[DeadLetter] = []
        count, more = 0, False
        size = PAGE_LETTERS if left is None else min(left + 1, PAGE_LETTERS)
        every = client.iterate_dead_letters(str(dxn), after=after, page_size=size, where=where)
        async with aclosing(every) as letters:
            async for letter in letters:
                if count == left:
                    more = True
                    break
                count += 1
                if session.out.json:
                    session.out.line(record(letter))
                else:
                    found.append(letter)
        if not session.out.json:
            _table(session.out, found)
        if more and found:
            session.out.note(f"there are more: --after {found[-1].position}")
        if not count and after is None and where is None:
            await _hint(client, session.out, dxn)

    session.run(work)


dlq.add_command(try_)


@dlq.command()
@click.argument("dxn", type=params.queue)
@click.argument("letter_id", metavar="ID")
@remote
def show(session: Session, /, dxn: Dxn, letter_id: str) -> None:
    """Show the dead letter with this ID: its data, and how each attempt ended."""

    async def work(client: Client) -> None:
        entry = await client.get(str(dxn), letter_id)
        page = await client.dead_letters(str(dxn), after=entry.position - 1, limit=1)
        letter = next((one for one in page.letters if one.id == letter_id), None)
        if letter is None:
            raise Failure(f"{letter_id} in {dxn} is an entry, but no dead letter: `edgequeues read` shows it")
        if session.out.json:
            session.out.line(record(letter))
        else:
            _show(session.out, letter)

    session.run(work)


def filtered(command: Callable[P, None]) -> Callable[P, None]:
    """Give a command the options of a filter, as one argument `where`; None: none was given."""
    options = (
        click.option(
            "--reason",
            "reason",
            multiple=True,
            type=click.Choice(REASONS),
            help="Only those given up so. Repeatable.",
        ),
        click.option("--from", "queue", metavar="QUEUE", help="Only those from this queue, by name or id."),
        click.option("--key", help="Only those of this ordering key."),
        click.option("--type", help="Only those of this type."),
        click.option(
            "--since",
            type=params.time,
            help="Only what failed then or later: unix ms, ISO 8601, 10m (ago).",
        ),
        click.option("--until", type=params.time, help="Only what failed then or earlier."),
        click.option("--error", metavar="TEXT", help="Only those whose last error has this text in it."),
        where_option,
    )

    @wraps(command)
    def with_filter(*args: P.args, **kwargs: P.kwargs) -> None:
        said = {name: kwargs.pop(name) for name in FILTER_FIELDS}
        given = {name: value for name, value in said.items() if value not in (None, ())}
        kwargs["where"] = LetterFilter(**given) if given else None  # type: ignore[arg-type]
        command(*args, **kwargs)

    for option in reversed(options):
        with_filter = option(with_filter)
    return with_filter


@dlq.command()
@click.argument("dxn", type=params.queue)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="All that were not replayed before.")
@click.option("--limit", "-n", type=click.IntRange(min=1), help="Not more than so many.")
@click.option("--per-second", type=click.FloatRange(0.01, 10_000), help="Spread the new messages over time.")
@click.option("--preview", is_flag=True, help="Only say how many these are, and list the first ten.")
@edit_option
@set_option
@remote
@filtered
def replay(
    session: Session,
    /,
    dxn: Dxn,
    ids: Sequence[str],
    everything: bool,
    limit: int | None,
    per_second: float | None,
    preview: bool,
    edit: Path | None,
    changes: Sequence[str],
    where: LetterFilter | None,
) -> None:
    """Make new messages of dead letters in DXN, in the queues they came from.

    They are named by ids, or by the options that begin with "Only", or they are --all. A letter is replayed once, and
    stays in DXN, marked. What was pushed first goes first. With --edit or --set, one letter is replayed with another
    message; `edgequeues dlq try` takes the same options.

    \b
      edgequeues dlq replay dxn:queue:demo:jobs-dlq 01J...
      edgequeues dlq replay dxn:queue:demo:jobs-dlq --since 2h --error timeout
      edgequeues dlq replay dxn:queue:demo:jobs-dlq --all --per-second 10
      edgequeues dlq replay dxn:queue:demo:jobs-dlq 01J... --set payload.n=5
    """
    if [bool(ids), everything, where is not None].count(True) != 1:
        raise click.UsageError("say which: ids, or --all, or options that select some")
    if ids and (preview or limit is not None):
        raise click.UsageError("--preview and --limit are for --all and for options that select")
    edited = edit is not None or bool(changes)
    if edited and (len(ids) != 1 or per_second is not None):
        raise click.UsageError("--edit and --set are for one letter by its id, which is replayed at once")
    named = where or LetterFilter()
    if edited:
        session.run(lambda client: _replay_edited(client, session.out, str(dxn), ids[0], edit, changes))
    elif preview:
        session.run(lambda client: _preview(client, session.out, str(dxn), named))
    elif ids:
        session.run(lambda client: _replay(client, session.out, str(dxn), ids, per_second))
    else:
        session.run(lambda client: _replay_where(client, session.out, str(dxn), named, limit, per_second))


@dlq.command()
@click.argument("dxn", type=params.queue)
@click.option("--replayed/--not-replayed", default=None, help="Only those that were replayed, or were not.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@remote
@filtered
def purge(
    session: Session, /, dxn: Dxn, replayed: bool | None, yes: bool, where: LetterFilter | None
) -> None:
    """Delete dead letters in DXN, for good: all, or those that the options select.

    On a terminal it asks first, elsewhere it wants --yes.
    """
    if replayed is not None:
        where = msgspec.structs.replace(where or LetterFilter(), replayed=replayed)
    what = "everything" if where is None else "the selected dead letters"
    purge_queue(session, dxn, f"Delete {what} in {dxn}, for good?", yes=yes, where=where)


async def _preview(client: Client, out: Output, dxn: str, where: LetterFilter) -> None:
    found = await client.preview_replay(dxn, where)
    if out.json:
        out.line({"count": found.count, "letters": [record(one) for one in found.letters]})
    else:
        _table(out, found.letters)
        out.note(f"{found.count} would be replayed")


async def _replay(
    client: Client, out: Output, dxn: str, ids: Sequence[str], per_second: float | None
) -> None:
    """Replay letters by their ids and print what became of each."""
    _tell(out, await client.replay(dxn, ids, per_second=per_second))


async def _replay_edited(
    client: Client, out: Output, dxn: str, letter_id: str, edit: Path | None, changes: Sequence[str]
) -> None:
    """Replay a letter with another message."""
    data = await message(client, dxn, letter_id, edit, changes)
    _tell(out, [await client.replay_letter(dxn, letter_id, message=data)])


def _tell(out: Output, found: Sequence[Replayed]) -> None:
    """Print what became of each."""
    for one in found:
        if out.json:
            out.line(one)
        else:
            out.text(f"{one.outcome:<8}  {one.id}" + (f" as {one.message}" if one.message else ""))
    _judge(out, Counter(one.outcome for one in found))


async def _replay_where(
    client: Client, out: Output, dxn: str, where: LetterFilter, limit: int | None, per_second: float | None
) -> None:
    """Replay what a filter names, some at a time; as many as there are now, so that it ends whatever fails again."""
    count = (await client.preview_replay(dxn, where)).count
    wanted = count if limit is None else min(count, limit)
    done, more, missed = 0, wanted > 0, dict[str, Replayed]()
    with progress("replaying") as step:
        while more and done < wanted:
            size = min(REPLAY_LETTERS, wanted - done)
            part = await client.replay_where(dxn, where, limit=size, per_second=per_second)
            for one in part.results:
                if one.outcome != "replayed":
                    missed[one.id] = one
                elif out.json:
                    out.line(one, at_once=True)
            done += part.totals.replayed
            more = part.more and part.totals.replayed > 0
            step(done, wanted)
    for one in missed.values():
        if out.json:
            out.line(one)
    _judge(out, Counter({"replayed": done}) + Counter(one.outcome for one in missed.values()))


def _judge(out: Output, counts: Counter[str]) -> None:
    """Sum it up. Raises Failure where a letter could not be replayed."""
    before = f", {counts['already']} before" if counts["already"] else ""
    if not out.json:
        out.note(f"{counts['replayed']} replayed{before}")
    missed = [f"{counts[kind]} not replayed: {why}" for kind, why in MEANINGS.items() if counts[kind]]
    if missed:
        raise Failure("; ".join(missed))


async def _hint(client: Client, out: Output, dxn: Dxn) -> None:
    """Where nothing was found, say where to look."""
    try:
        found = await client.stats(str(dxn))
    except Refused:
        return  # listing was allowed, this is not
    name = found.config.name or found.id
    graves = {one.config.dead_letters for one in found.consumers} - {""}
    for grave in graves:
        out.note(
            f"no dead letters lie in {dxn}; its own go to "
            f"{Dxn(dxn.space, grave or f'{name}-dlq', None, dxn.tag)}"
        )


def record(letter: DeadLetter) -> dict[str, object]:
    """A dead letter as the protocol shows it."""
    said = {
        "originalMessage": Raw(letter.raw),
        "originalMessageId": letter.original_id,
        "originalQueue": letter.original_queue,
        "consumer": letter.consumer,
        "reason": letter.reason,
        "lastError": letter.last_error,
        "errors": letter.errors,
        "attempts": letter.attempts,
        "firstSeenAt": letter.first_seen,
        "lastSeenAt": letter.last_seen,
        "failedAt": letter.failed,
        "replayedAt": letter.replayed,
        "newMessageId": letter.new_id,
    }
    return {"id": letter.id, "position": letter.position, "letter": said}


def _table(out: Output, found: Sequence[DeadLetter]) -> None:
    rows = [
        (
            str(one.position),
            one.id,
            one.original_queue,
            one.consumer,
            one.reason,
            str(one.attempts),
            when(one.failed),
            when(one.replayed),
            one.last_error,
        )
        for one in found
    ]
    columns = ("position", "id", "queue", "consumer", "reason", "attempts", "failed", "replayed", "error")
    out.table(columns, rows, right=("position", "attempts"))


def _show(out: Output, letter: DeadLetter) -> None:
    out.fields(
        {
            "id": letter.id,
            "position": letter.position,
            "original id": letter.original_id,
            "queue": letter.original_queue,
            "consumer": letter.consumer,
            "reason": letter.reason,
            "error": letter.last_error,
            "attempts": letter.attempts,
            "first seen": letter.first_seen,
            "last seen": letter.last_seen,
            "failed": letter.failed,
            "replayed": letter.replayed,
            "replayed as": letter.new_id,
            "data": letter.raw.decode(errors="replace"),
        },
        times=("first seen", "last seen", "failed", "replayed"),
    )
    if letter.errors:
        out.text("")
        rows = [
            (str(one.attempt), one.ending, one.worker or "", when(one.at), one.message or "")
            for one in letter.errors
        ]
        out.table(("attempt", "ending", "worker", "ended", "error"), rows, right=("attempt",))
