"""`edgequeues consume`: the consumer daemon, which has each event of a queue handled until it is told to stop."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click
import trio

from edgequeues.cli.session import Failure
from edgequeues.daemon.settings import SettingsError, load, settings

C = TypeVar("C", bound=Callable[..., object])

KINDS: dict[str, Literal["python", "command", "url"]] = {
    "handler": "python",
    "command": "command",
    "url": "url",
}


class Unusable(click.ClickException):
    """Settings or a handler that cannot be used, in as many lines as there are faults; wrong usage."""

    exit_code = 2


def every_setting(command: C) -> C:
    """Give a command a flag for each setting that is no secret, described by the setting itself."""
    for one in reversed(settings()):
        if one.flag is not None:
            shown = f"{one.help} Variable: {one.variable}."
            command = click.option(one.flag, one.name, metavar="VALUE", help=shown)(command)
    return command


@click.command()
@click.option("--handler", metavar="MODULE:FUNCTION", help="The Python function that handles an event.")
@click.option(
    "--command", metavar="COMMAND", help="A program that is given events as JSON lines and answers alike."
)
@click.option("--url", metavar="URL", help="Where events are posted to.")
@click.option(
    "--loop",
    type=click.Choice(["trio", "asyncio"]),
    default="trio",
    help="What a handler that is async runs on. Default: trio.",
)
@click.option("--once", is_flag=True, help="End with the messages of one pull.")
@click.option("--until-empty", is_flag=True, help="End when nothing is ready and no handler runs.")
@every_setting
def consume(loop: Literal["trio", "asyncio"], once: bool, until_empty: bool, **said: str | None) -> None:
    """Have each event of a queue handled, until SIGTERM or Ctrl-C.

    Works against edgequeues and against Cloudflare Queues. Settings come from the environment, secrets from there
    only; flags win.

    \b
      edgequeues consume --handler shop:handle
      edgequeues consume --command 'node handler.mjs'
      edgequeues consume --url http://127.0.0.1:3000/handle --until-empty
    """
    if once and until_empty:
        raise click.UsageError("--once and --until-empty exclude each other")
    targets = {kind: target for name, kind in KINDS.items() if (target := said.pop(name)) is not None}
    if len(targets) != 1:
        raise click.UsageError("name one handler: --handler MODULE:FUNCTION, --command COMMAND or --url URL")
    [(kind, target)] = targets.items()
    try:
        found = load(os.environ, said)
    except SettingsError as error:
        raise Unusable(str(error)) from error
    _run(
        found,
        {"kind": kind, "target": target, "loop": loop},
        "once" if once else "empty" if until_empty else "stopped",
    )


def _run(found: Any, handler: dict[str, Any], until: Literal["stopped", "empty", "once"]) -> None:
    from edgequeues.daemon.app import run_daemon
    from edgequeues.daemon.handlers.spec import HandlerSpec, UnusableHandler
    from edgequeues.daemon.wire import QueueError

    sys.path.insert(0, "")  # a handler is in the folder where this is run, as with `python -m`

    async def main() -> None:
        spec = HandlerSpec(
            **handler,
            at_once=found.queue_max_concurrent_batches * found.max_batch_concurrency,
            budget_s=float(found.processing_budget_seconds),
        )
        await run_daemon(found, spec, log_file=sys.stderr, until=until, ready=_ready)

    try:
        trio.run(main, restrict_keyboard_interrupt_to_checkpoints=True)
    except (SettingsError, UnusableHandler) as error:
        raise Unusable(str(error)) from error
    except QueueError as error:
        raise Failure(str(error)) from error


def _ready(queue: str) -> None:
    gc.collect()
    gc.freeze()  # what was made at the start is not looked through again and again
    click.echo(f"ready {queue}")
    sys.stdout.flush()
