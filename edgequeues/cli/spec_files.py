"""Files of specs, for the commands of `edgequeues spec`: read, checked, and what is wrong told on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgequeues.cli.inputs import STDIN, shown
from edgequeues.cli.render import Output
from edgequeues.cli.session import Failure
from edgequeues.core.errors import reason

if TYPE_CHECKING:  # the parser is loaded by those commands alone that read a spec
    from edgequeues.spec import ir
    from edgequeues.spec.check import Allowed
    from edgequeues.spec.load import Loaded


def read(file: Path) -> bytes:
    """What is in a file, or comes from stdin. Raises Failure."""
    try:
        return sys.stdin.buffer.read() if file == STDIN else file.read_bytes()
    except OSError as error:
        raise Failure(f"cannot read {shown(file)}: {reason(error)}") from error


def loaded(file: Path, allowed: Allowed | None, content: bytes | None = None) -> Loaded:
    """The spec in a file, with what is wrong with it. content: where it was read already. Raises Failure."""
    from edgequeues.spec.load import load

    return load(read(file) if content is None else content, shown(file), allowed)


def right(out: Output, file: Path, content: bytes | None = None) -> ir.Spec:
    """The spec in a file. Raises Failure when something is wrong with it, having told what."""
    found = loaded(file, None, content)
    tell(out, found)
    if found.spec is None:
        raise Failure(f"{found.file} is no spec that could be used")
    return found.spec


def readable(out: Output, file: Path, content: bytes) -> str:
    """The text of a spec that can be read; whether its parts fit together does not matter. Raises Failure."""
    from edgequeues.spec.load import read_text

    found = read_text(content, shown(file))
    if found.faults or found.text is None:
        tell(out, found)
        raise Failure(f"{found.file} cannot be laid out before it is right")
    return found.text


def tell(out: Output, found: Loaded) -> None:
    """Say on stderr what is wrong."""
    for fault in found.render():
        for line in fault.split("\n"):
            out.note(line)


def once(files: Sequence[Path]) -> None:
    """Raises UsageError where stdin is named twice."""
    if list(files).count(STDIN) > 1:
        raise click.UsageError("stdin can be read once; give `-` for one file only")
