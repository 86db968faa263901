"""`edgequeues work`: runs a command for each message of a work queue, until it is told to stop."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

import click
import msgspec
import trio

from edgequeues.cli import params
from edgequeues.cli.executing import Commands, missing, surroundings
from edgequeues.cli.pull import consumer as of_consumer
from edgequeues.cli.render import Output
from edgequeues.cli.session import Session, explain, remote
from edgequeues.client import Client, ClientError, Handled, Retry, Worker
from edgequeues.client.worker import FOR_EVER, LEASE_MS_MIN, Until
from edgequeues.core.dxn import Dxn

WAIT_MS_MAX = 60_000
BRIEF = Retry()  # with --once and --drain, which nobody waits for all day


@click.command()
@click.argument("dxn", type=params.queue)
@click.option(
    "--exec", "text", required=True, metavar="CMD", help="The shell command to run for each message."
)
@click.option(
    "--concurrency", "-c", type=click.IntRange(1, 100), default=1, help="Commands at once. Default: 1."
)
@click.option(
    "--batch",
    "-n",
    type=click.IntRange(1, 1_000),
    help="Messages held at most, those that wait for a command included. Default: no more than run.",
)
@click.option(
    "--lease",
    "lease_ms",
    type=params.duration,
    default="30s",
    help="How soon others get what this one held if it dies; extended while commands run. Default: 30s.",
)
@click.option("--timeout", "timeout_ms", type=params.duration, help="End a command after so long, and retry.")
@click.option(
    "--grace",
    "grace_ms",
    type=params.duration,
    default="30s",
    help="What running commands are given when this one is to stop. Default: 30s.",
)
@click.option(
    "--wait",
    "wait_ms",
    type=params.duration,
    default="20s",
    help="How long one request waits for a message, up to 60s. Default: 20s.",
)
@of_consumer
@click.option("--name", help="How this one calls itself; `explain` shows it. Default: HOST/PID.")
@click.option("--once", is_flag=True, help="End with the messages of one pull.")
@click.option("--drain", is_flag=True, help="End when nothing is ready and no command runs.")
@remote
def work(session: Session, /, dxn: Dxn, text: str, once: bool, drain: bool, **said: Any) -> None:
    """Run a command for each message of work queue DXN, until SIGTERM or Ctrl-C.

    The data comes on stdin; EDGEQUEUES_ID, _ATTEMPTS, _KEY, _LEASE and more are in the environment. Exit code 0 acks
    the message, 65 makes a dead letter of it, any other has it tried again later; the last line on stderr is kept as
    the error.

    \b
      edgequeues work dxn:queue:demo:mail --exec ./send.sh --concurrency 4
      edgequeues work dxn:queue:demo:jobs --exec 'jq .n' --drain
    """
    if once and drain:
        raise click.UsageError("--once and --drain exclude each other")
    if said["lease_ms"] < LEASE_MS_MIN:
        raise click.UsageError("--lease is at least 1s: a shorter one could lapse while it is extended")
    if said["wait_ms"] > WAIT_MS_MAX:
        raise click.UsageError("--wait is at most 60s; it asks again by itself")
    if (program := missing(text)) is not None:
        raise click.UsageError(f"--exec: there is no program {program}; every message would fail")
    until: Until = "once" if once else "empty" if drain else "stopped"
    teller = Teller(session.out)
    environment = surroundings(SERVER=session.server, QUEUE=str(dxn), CONSUMER=said["consumer"])
    commands = Commands(text, environment)
    session.run(lambda client: _work(_worker(client, dxn, commands, teller, until, **said), teller, until))


class Teller:
    """Says what becomes of messages, and when the server is away."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.deaf: BrokenPipeError | None = None  # whoever read our output is gone
        self.worker: Worker | None = None

    def handled(self, one: Handled) -> None:
        """Print a line."""
        try:
            self._print(one)
        except BrokenPipeError as error:
            self.deaf = error
            assert self.worker is not None
            self.worker.stop()

    def _print(self, one: Handled) -> None:
        message = one.message
        if self._out.json:
            said = {
                "id": message.id,
                "position": message.position,
                "attempts": message.attempts,
                "key": message.key,
            }
            took_ms = round(one.took_s * 1000)
            self._out.line({**said, "did": one.did, "error": one.error, "took_ms": took_ms}, at_once=True)
            return
        did = one.did.replace("_", " ")
        error = f"  {one.error}" if one.error else ""
        self._out.text(f"{did:<8}  {message.id}  attempt {message.attempts}  {one.took_s:.1f} s{error}")

    def away(self, error: ClientError | None) -> None:
        """Tell once that the server is away, and once that it is back."""
        if error is None:
            self.note("the server is back")
        else:
            self.note(f"{explain(error)}. Trying again until it works")

    def note(self, text: str) -> None:
        """Say something beside the results."""
        self._out.note(f"edgequeues: {text}")

    def end(self, worker: Worker, until: Until) -> None:
        """Sum it up; after a drain, say what is left and why."""
        counts = msgspec.to_builtins(worker.tally)
        said = [f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count]
        self.note(", ".join(said) or "no messages")
        if until == "empty" and worker.seen.paused:
            self.note("the queue is paused: nothing is handed out until `edgequeues resume`")
        elif until == "empty" and worker.seen.backlog:
            self.note(f"not ready and left: {worker.seen.backlog}; `edgequeues peek` shows them")


def _worker(
    client: Client,
    dxn: Dxn,
    commands: Commands,
    teller: Teller,
    until: Until,
    *,
    timeout_ms: int | None,
    grace_ms: int,
    wait_ms: int,
    name: str | None,
    **said: Any,
) -> Worker:
    teller.worker = Worker(
        client,
        str(dxn),
        commands,
        name=name or f"{socket.gethostname()}/{os.getpid()}",
        timeout_s=None if timeout_ms is None else timeout_ms / 1000,
        grace_s=grace_ms / 1000,
        wait_s=wait_ms / 1000,
        retry=FOR_EVER if until == "stopped" else BRIEF,
        on_handled=teller.handled,
        on_away=teller.away,
        **said,
    )
    return teller.worker


async def _work(worker: Worker, teller: Teller, until: Until) -> None:
    fault: ClientError | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(_heed_signals, worker, teller)
        try:
            await worker.run(until=until)
        except ClientError as error:
            fault = error
        nursery.cancel_scope.cancel()
    if teller.deaf is not None:
        raise teller.deaf
    if fault is not None:
        raise fault
    teller.end(worker, until)


async def _heed_signals(
    worker: Worker, teller: Teller, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """The first signal asks for an orderly end, the second for one without grace, the third is the system's."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        await anext(signals)
        teller.note("stopping: running commands may finish; again to end them")
        worker.stop()
        await anext(signals)
    teller.note("ending running commands")
    worker.stop(grace_s=0.0)
    await trio.sleep_forever()
