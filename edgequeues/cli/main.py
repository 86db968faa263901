"""The command `edgequeues`: finds the subcommand, and turns whatever goes wrong into one line and an exit code.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted, 141 the reader of our output is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from edgequeues.cli.session import Failure, Surroundings

REFUSED, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141

# Loaded when called, so that --help and each command import no more than they need.
COMMANDS = {
    "serve": ("edgequeues.cli.serve:serve", "Run the server."),
    "append": ("edgequeues.cli.append:append", "Append entries to a queue."),
    "read": ("edgequeues.cli.read:read", "Read part of a queue, or one object."),
    "tail": ("edgequeues.cli.read:tail", "Follow a queue as it grows."),
    "push": ("edgequeues.cli.push:push", "Push messages to a work queue."),
    "work": ("edgequeues.cli.work:work", "Run a command for each message of a work queue."),
    "consume": ("edgequeues.cli.consume:consume", "Run a handler for each event of a queue."),
    "pull": ("edgequeues.cli.pull:pull", "Lease messages of a work queue."),
    "ack": ("edgequeues.cli.pull:ack", "Finish messages that were pulled."),
    "retry": ("edgequeues.cli.pull:retry", "Give up attempts at messages that were pulled."),
    "extend": ("edgequeues.cli.pull:extend", "Hold messages longer that were pulled."),
    "release": ("edgequeues.cli.pull:release", "Give messages back that were pulled."),
    "top": ("edgequeues.cli.top:top", "Watch how queues are doing."),
    "stats": ("edgequeues.cli.look:stats", "Show the counts of a queue and its consumers."),
    "peek": ("edgequeues.cli.look:peek", "Look at the unfinished messages of a queue."),
    "search": ("edgequeues.cli.search:search", "Find entries and messages in any state."),
    "explain": ("edgequeues.cli.look:explain", "Say why a message is not delivered."),
    "lines": ("edgequeues.cli.look:lines", "Show the ordering keys whose messages wait."),
    "skip": ("edgequeues.cli.consumer:skip", "Give up a message that nobody holds."),
    "hurry": ("edgequeues.cli.consumer:hurry", "Have a message be ready now that waits for its time."),
    "sessions": ("edgequeues.cli.sessions:sessions", "Show and mend sessions whose messages wait."),
    "dlq": ("edgequeues.cli.dlq:dlq", "List, show, replay and purge dead letters."),
    "consumer": ("edgequeues.cli.consumer:consumer", "List, set and remove consumers."),
    "pause": ("edgequeues.cli.queue:pause", "Hand out nothing more of a queue."),
    "resume": ("edgequeues.cli.queue:resume", "Hand out messages of a queue again."),
    "audit": ("edgequeues.cli.audit:audit", "Show who did what to a space."),
    "purge": ("edgequeues.cli.queue:purge", "Delete all that is in a queue."),
    "remove": ("edgequeues.cli.queue:remove", "Remove a queue with all that is in it."),
    "delete": ("edgequeues.cli.queue:delete", "Delete objects, or a range of a queue."),
    "queues": ("edgequeues.cli.queue:queues", "List the queues of a space."),
    "spaces": ("edgequeues.cli.queue:spaces", "List the spaces of a server."),
    "config": ("edgequeues.cli.queue:config", "Show or change the settings of a queue."),
    "export": ("edgequeues.cli.export:export", "Write a queue or a space as lines of JSON."),
    "import": ("edgequeues.cli.importing:import_", "Make queues of what export wrote."),
    "backup": ("edgequeues.cli.backup:backup", "Copy the files of a running server."),
    "restore": ("edgequeues.cli.restore:restore", "Put files of a backup into a running server."),
    "spec": ("edgequeues.cli.spec:spec", "Check, show, compare, lay out and apply specs."),
    "entities": ("edgequeues.cli.entities:entities", "Show what the commands of a space made."),
    "hooks": ("edgequeues.cli.spec_server:hooks", "List the webhooks of a server and their calls."),
    "schedules": ("edgequeues.cli.schedules:schedules", "List the schedules of a space, or run one."),
    "token": ("edgequeues.cli.token:token", "Make, list and revoke access tokens."),
    "doctor": ("edgequeues.cli.doctor:doctor", "Look whether a server would do well here."),
    "check": ("edgequeues.cli.check:check", "Verify the files of a data folder."),
    "bench": ("edgequeues.cli.bench:bench", "Measure this machine."),
    "completion": ("edgequeues.cli.completion:completion", "Print what completes commands in your shell."),
}


class PipeClosed(Exception):
    """Whoever read our output is gone. click would end with exit code 1 for a BrokenPipeError."""


class Commands(click.Group):
    """The subcommands, in the order above."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the one that is called. Raises PipeClosed too."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise PipeClosed from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one that is called."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name][0].split(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands that begin so; none is imported for that."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for name, (_, text) in COMMANDS.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="edgequeues", message="%(package)s %(version)s")
def edgequeues() -> None:
    """Durable queues. `edgequeues serve` runs the server; the other commands talk to it.

    On a terminal they print tables, into a pipe JSON, one object a line.
    """


def run(args: Sequence[str], surroundings: Surroundings | None = None) -> int:
    """Run one command line; return its exit code. Raises only what is a bug of ours."""
    try:
        code = edgequeues.main(
            list(args), "edgequeues", standalone_mode=False, obj=surroundings or Surroundings.real()
        )
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Failure as failure:
        click.echo(f"edgequeues: {failure}", err=True)
        return REFUSED
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except (BrokenPipeError, PipeClosed):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter would complain when it flushes
        return PIPE_CLOSED
    return code if isinstance(code, int) else 0


def main() -> None:
    """Entry point of the scripts `edgequeues` and `eq`."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
