"""Every command of the command line with what it takes."""

from __future__ import annotations

from collections.abc import Iterator

import click

from edgequeues.cli.main import edgequeues

from .tables import BY, table

INTRO = """# Commands and options

What `edgequeues <command> --help` says, in one place; `eq` is the same program.
[guides/cli.md](../guides/cli.md) shows how they are used.
"""


def page() -> str:
    """docs/reference/cli.md."""
    parts = [_section(path, command) for path, command in commands(edgequeues, "edgequeues")]
    return BY + INTRO + "".join(parts)


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Each command below a group, in the order of its help, with how it is called."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def _section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *(piece for piece in command.collect_usage_pieces(context))])
    text = "\n".join(line.strip() for line in (command.help or "").split("\f")[0].splitlines()).replace(
        "\b\n", ""
    )
    options = [
        _option(one, context) for one in command.params if isinstance(one, click.Option) and not one.hidden
    ]
    rows = table(("option", "value", "default", "what it does"), options) if options else ""
    return f"\n## `{path}`\n\n`{usage}`\n\n{_escaped(text.strip())}\n" + (f"\n{rows}" if rows else "")


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag or option.count else f"`{option.make_metavar(context)}`"
    extra = option.get_help_extra(context)
    default = extra.get("default", "")
    wanted = "required" if option.required else f"`{default}`" if default else ""
    return names, value, wanted, option.help or ""


def _escaped(text: str) -> str:
    """Angles outside of code would be taken for HTML."""
    parts = text.split("`")
    return "`".join(one if number % 2 else one.replace("<", "&lt;") for number, one in enumerate(parts))
