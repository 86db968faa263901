"""`edgequeues completion`: what a shell asks when somebody presses Tab."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what completes commands, options and queues in SHELL, to be put where that looks for it.

    \b
      edgequeues completion bash >> ~/.bashrc
      edgequeues completion zsh > ~/.zfunc/_edgequeues
      edgequeues completion fish > ~/.config/fish/completions/edgequeues.fish

    Names of spaces and queues are asked of the server that EDGEQUEUES_SERVER names; without an answer there are none.
    """
    made = get_completion_class(shell)
    assert made is not None
    if shell == "bash":  # which would take an address apart at its colons
        click.echo("COMP_WORDBREAKS=${COMP_WORDBREAKS//:/}")
    click.echo(made(ctx.find_root().command, {}, "edgequeues", "_EDGEQUEUES_COMPLETE").source())
