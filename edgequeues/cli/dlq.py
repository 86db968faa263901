"""`edgequeues dlq`: dead letters, by the queue in which they lie."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import click
from msgspec import Raw

from edgequeues.cli import params
from edgequeues.cli.queue import purge_queue
from edgequeues.cli.render import Output, progress, when
from edgequeues.cli.session import Failure, Session, remote
from edgequeues.client import Client, DeadLetter, Refused, Replayed
from edgequeues.core.dxn import Dxn

TERMINAL_LETTERS = 20
PAGE_LETTERS = 1_000
REPLAY_LETTERS = 100  # in one call: so the progress moves, and little is done when it is interrupted
MEANINGS = {"no_queue": "the queue they came from is gone", "unknown": "there is no such dead letter"}


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
@remote
def list_(session: Session, /, dxn: Dxn, after: int | None, limit: int | None) -> None:
    """List the dead letters in queue DXN, the oldest first."""
    left = TERMINAL_LETTERS if limit is None and not session.out.json else limit

    async def work(client: Client) -> None:
        found: list[DeadLetter] = []
        count, more = 0, False
        size = PAGE_LETTERS if left is None else min(left + 1, PAGE_LETTERS)
        async with aclosing(client.iterate_dead_letters(str(dxn), after=after, page_size=size)) as letters:
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
        if not count and after is None:
            await _hint(client, session.out, dxn)

    session.run(work)


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


@dlq.command()
@click.argument("dxn", type=params.queue)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--all", "everything", is_flag=True, help="All that are there now and were not replayed before."
)
@remote
def replay(session: Session, /, dxn: Dxn, ids: Sequence[str], everything: bool) -> None:
    """Make new messages of dead letters in DXN, in the queues they came from.

    A letter is replayed once, and stays in DXN, marked. The oldest go first.

    \b
      edgequeues dlq replay dxn:queue:demo:jobs-dlq 01J...
      edgequeues dlq replay dxn:queue:demo:jobs-dlq --all
    """
    if everything == bool(ids):
        raise click.UsageError("say which: either ids, or --all")

    async def work(client: Client) -> None:
        if ids:
            _judge(session.out, await _replay(client, session.out, str(dxn), list(ids)))
        else:
            _judge(session.out, await _replay_all(client, session.out, str(dxn)))

    session.run(work)


@dlq.command()
@click.argument("dxn", type=params.queue)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@remote
def purge(session: Session, /, dxn: Dxn, yes: bool) -> None:
    """Delete all dead letters in DXN, for good."""
    purge_queue(session, dxn, f"Delete everything in {dxn}, for good?", yes=yes)


async def _replay(
    client: Client, out: Output, dxn: str, ids: Sequence[str], *, brief: bool = False
) -> list[Replayed]:
    """Replay letters by their ids and print what became of each; `brief`: for people only of those that stay."""
    found = await client.replay(dxn, ids)
    for one in found:
        if out.json:
            out.line(one, at_once=True)
        elif not brief or one.outcome in MEANINGS:
            out.text(f"{one.outcome:<8}  {one.id}" + (f" as {one.message}" if one.message else ""))
    return found


async def _replay_all(client: Client, out: Output, dxn: str) -> list[Replayed]:
    """Replay what is there now, some at a time. What fails again meanwhile lies behind and is not taken twice."""
    newest = (await client.read(dxn, limit=1, reverse=True)).entries
    if not newest:
        await client.config(dxn)  # refuses a queue that is not there
        return []
    found: list[Replayed] = []
    with progress("replaying") as step:
        async with aclosing(_fresh(client, dxn, newest[0].position)) as parts:
            async for part in parts:
                found += await _replay(client, out, dxn, part, brief=True)
                step(len(found))
    return found


async def _fresh(client: Client, dxn: str, last: int) -> AsyncGenerator[list[str], None]:
    """Ids of letters up to position `last` that were not replayed yet, some at a time."""
    part: list[str] = []
    async with aclosing(client.iterate_dead_letters(dxn, page_size=PAGE_LETTERS)) as letters:
        async for letter in letters:
            if letter.position > last:
                break
            if letter.replayed is None:
                part.append(letter.id)
            if len(part) == REPLAY_LETTERS:
                yield part
                part = []
    if part:
        yield part


def _judge(out: Output, found: Sequence[Replayed]) -> None:
    """Sum it up. Raises Failure where a letter could not be replayed."""
    counts = {kind: sum(one.outcome == kind for one in found) for kind in ("replayed", "already", *MEANINGS)}
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
